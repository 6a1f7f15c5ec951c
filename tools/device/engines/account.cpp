#include "tools/device/engines/account.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace reprise::sim {
namespace {
constexpr int kProcesses = 64;
constexpr int kDevices = 64;

void say_unshared(const char* path, const char* why) {
  std::fprintf(stderr, "reprise: simulated device: REPRISE_SIM_SHARED=%s cannot be used (%s): nobody shares this one\n",
               path, why);
}

bool lives(pid_t process) { return kill(process, 0) == 0 || errno != ESRCH; }
}  // namespace

struct SharedAccount::File {
  struct Slot {
    pid_t process;  // 0: free
    uint64_t used[kDevices];
    int contexts[kDevices];
  };
  pthread_mutex_t mutex;
  Slot slots[kProcesses];
};

SharedAccount* SharedAccount::open(const char* path) noexcept {
  const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct stat status {};
  // The first one to come makes the lock; the others wait for it.
  bool usable = file >= 0 && flock(file, LOCK_EX) == 0 && fstat(file, &status) == 0;
  const bool fresh = status.st_size == 0;
  usable = usable && (fresh ? ftruncate(file, sizeof(File)) == 0 : status.st_size == sizeof(File));
  void* const place = usable ? mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (place == MAP_FAILED) {
    say_unshared(path,
                 file >= 0 && !fresh && status.st_size != sizeof(File) ? "it holds something else" : strerror(errno));
    if (file >= 0) ::close(file);
    return nullptr;
  }
  auto* const shared = static_cast<File*>(place);
  if (fresh) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  auto* const account = new SharedAccount(shared);
  account->lock();
  for (int i = 0; i < kProcesses && account->slot_ < 0; ++i) {
    File::Slot& slot = shared->slots[i];
    if (slot.process != 0 && lives(slot.process)) continue;
    slot = {};
    slot.process = getpid();
    account->slot_ = i;
  }
  account->unlock();
  flock(file, LOCK_UN);  // the mapping would keep it
  ::close(file);
  if (account->slot_ >= 0) return account;
  say_unshared(path, "it has no room for one more process");
  delete account;
  return nullptr;
}

void SharedAccount::lock() noexcept {
  if (pthread_mutex_lock(&file_->mutex) == EOWNERDEAD) pthread_mutex_consistent(&file_->mutex);
}
void SharedAccount::unlock() noexcept { pthread_mutex_unlock(&file_->mutex); }

uint64_t SharedAccount::used_locked(int device) noexcept {
  uint64_t sum = 0;
  for (File::Slot& slot : file_->slots) {
    if (slot.process == 0) continue;
    if (lives(slot.process)) {
      sum += slot.used[device];
    } else {
      slot = {};
    }
  }
  return sum;
}

bool SharedAccount::charge(int device, uint64_t bytes, uint64_t capacity) noexcept {
  lock();
  const uint64_t used = used_locked(device);
  const bool fits = bytes <= capacity && used <= capacity - bytes;
  if (fits) file_->slots[slot_].used[device] += bytes;
  unlock();
  return fits;
}

void SharedAccount::refund(int device, uint64_t bytes) noexcept {
  lock();
  file_->slots[slot_].used[device] -= bytes;
  unlock();
}

uint64_t SharedAccount::used(int device) noexcept {
  lock();
  const uint64_t sum = used_locked(device);
  unlock();
  return sum;
}

void SharedAccount::add_contexts(int device, int change) noexcept {
  lock();
  file_->slots[slot_].contexts[device] += change;
  unlock();
}

std::vector<DeviceProcess> SharedAccount::processes(int device) noexcept {
  std::vector<DeviceProcess> all;
  lock();
  used_locked(device);  // who has ended has none
  for (const File::Slot& slot : file_->slots) {
    if (slot.process == 0 || slot.contexts[device] == 0) continue;
    all.push_back({static_cast<unsigned>(slot.process), slot.used[device]});
  }
  unlock();
  return all;
}

}  // namespace reprise::sim
