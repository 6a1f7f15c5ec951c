#include "preload/tracking/image_places.h"

#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "preload/base/runtime.h"
#include "preload/files/file_limit.h"
#include "preload/files/out_of_the_way.h"
#include "preload/images/image.h"
#include "preload/images/mapped_file.h"
#include "preload/record/recorder.h"
#include "preload/tracking/handle_map.h"

namespace reprise {
namespace {

// Images that are in no file come from compilers at run time, and are small.
constexpr uint64_t kMostInMemory = uint64_t{256} << 20;

constinit HandleMap told;  // code -> 1
pthread_mutex_t memory_mutex = PTHREAD_MUTEX_INITIALIZER;
int memory_file = -1;
uint64_t memory_bytes = 0;

bool write_all(const char* data, uint64_t bytes, uint64_t offset) {
  const FileLimitGuard guard;
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t wrote =
        pwrite(memory_file, data + done, static_cast<size_t>(bytes - done), static_cast<off_t>(offset + done));
    if (wrote <= 0) return false;
    done += static_cast<uint64_t>(wrote);
  }
  return true;
}

void keep_in_memory(std::string_view image, images::MappedFile* place) {
  pthread_mutex_lock(&memory_mutex);
  if (memory_file < 0) memory_file = move_out_of_the_way(memfd_create("reprise-images", MFD_CLOEXEC));
  if (memory_file >= 0 && memory_bytes + image.size() <= kMostInMemory &&
      write_all(image.data(), image.size(), memory_bytes)) {
    std::snprintf(place->path, sizeof place->path, "/proc/%d/fd/%d", getpid(), memory_file);
    place->offset = memory_bytes;
    place->found = true;
    memory_bytes += image.size();
  }
  pthread_mutex_unlock(&memory_mutex);
}

bool is_new(const ImageTraits& traits) {
  if (traits.code == 0 || traits.architecture == 0 || runtime().recorder == nullptr) return false;
  if (told.find(traits.code) != 0) return false;
  told.set(traits.code, 1);
  return true;
}

void tell(const ImageTraits& traits, uint64_t offset, uint64_t bytes, const char* path) {
  char key[32];
  char value[PATH_MAX + 64];
  std::snprintf(key, sizeof key, "image.%016lx", traits.code);
  std::snprintf(value, sizeof value, "%u %lu %lu %s", traits.architecture, offset, bytes, path);
  runtime().recorder->info(key, value);
}

}  // namespace

void record_image_place(const ImageTraits& traits, const void* image) noexcept {
  const std::string_view bytes = images::bytes_of(image);
  if (bytes.empty() || !is_new(traits)) return;
  images::MappedFile file = images::file_of(bytes);
  if (!file.found) keep_in_memory(bytes, &file);
  if (file.found) tell(traits, file.offset, bytes.size(), file.path);
}

void record_image_file(const ImageTraits& traits, const char* path) noexcept {
  char whole[PATH_MAX];
  struct stat file {};
  if (path == nullptr || !is_new(traits) || realpath(path, whole) == nullptr || stat(whole, &file) != 0) return;
  tell(traits, 0, static_cast<uint64_t>(file.st_size), whole);
}

}  // namespace reprise
