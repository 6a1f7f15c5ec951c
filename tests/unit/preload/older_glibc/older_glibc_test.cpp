// The stand-ins for what glibc has gained, linked into this program as into the preloaded library: with the compiler's
// own libraries inside, which call them.
#include <dlfcn.h>

#include <stdexcept>

#include "tests/support/test.h"

extern "C" char __libc_single_threaded;

namespace {

__attribute__((noinline)) void throw_from_below(int depth) {
  if (depth == 0) throw std::runtime_error("found");
  throw_from_below(depth - 1);
  asm volatile("");  // no tail call
}

// The unwinder asks _dl_find_object where the frames of an address are described.
TEST(OlderGlibc, ExceptionsFindTheirWay) {
  try {
    throw_from_below(10);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "found");
  }
  dl_find_object object;
  EXPECT_EQ(_dl_find_object(reinterpret_cast<void*>(&throw_from_below), &object), 0);
  EXPECT_NE(object.dlfo_eh_frame, nullptr);
  EXPECT_LE(object.dlfo_map_start, reinterpret_cast<void*>(&throw_from_below));
  EXPECT_GT(object.dlfo_map_end, reinterpret_cast<void*>(&throw_from_below));
  EXPECT_EQ(_dl_find_object(nullptr, &object), -1);
}

TEST(OlderGlibc, FilesAreDescribedAsByTheSystem) {
  struct stat by_path {};
  struct stat by_file {};
  struct stat64 wide {};
  struct stat link {};
  const int file = open("/proc/self/exe", O_RDONLY);
  ASSERT_GE(file, 0);
  ASSERT_EQ(fstat(file, &by_file), 0);
  ASSERT_EQ(fstat64(file, &wide), 0);
  ASSERT_EQ(stat("/proc/self/exe", &by_path), 0);
  ASSERT_EQ(lstat("/proc/self/exe", &link), 0);
  close(file);
  EXPECT_EQ(by_path.st_ino, by_file.st_ino);
  EXPECT_EQ(wide.st_ino, by_file.st_ino);
  EXPECT_EQ(wide.st_size, by_file.st_size);
  EXPECT_GT(by_file.st_size, 10'000);
  EXPECT_TRUE(S_ISLNK(link.st_mode));
  EXPECT_EQ(stat("/no such file", &by_path), -1);
}

TEST(OlderGlibc, ThreadsLibrariesAndRandomNumbers) {
  std::string name(16, '\0');
  std::thread([&] {
    pthread_setname_np(pthread_self(), "older");
    pthread_getname_np(pthread_self(), name.data(), name.size());
  }).join();
  EXPECT_STREQ(name.c_str(), "older");
  EXPECT_NE(dlsym(RTLD_DEFAULT, "malloc"), nullptr);
  EXPECT_EQ(dlopen("/no such library", RTLD_NOW), nullptr);
  EXPECT_NE(dlerror(), nullptr);
  std::random_device device;
  unsigned seen = 0;
  for (int i = 0; i < 8; ++i) seen |= device();
  EXPECT_NE(seen, 0u);
  EXPECT_EQ(__libc_single_threaded, 0);  // references are counted by atomics
}

}  // namespace
