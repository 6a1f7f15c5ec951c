// neighbour plain|info|managed: two processes on one device, the second with or without Reprise where the first has it.
// The second takes more than half of the device and gives it back, while the first goes through its tensors and asks
// what is free.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/e2e/support/driver_program.h"

extern char** environ;

namespace {

using program::kMiB;
constexpr size_t kNeighbourMiB = 160;  // of 256
constexpr const char* kSimulatedDevice = "REPRISE_SIM_SHARED";

// One word between the processes: a byte through a pipe.
void tell(int pipe) { (void)!write(pipe, "x", 1); }
void wait_for(int pipe) {
  char word = 0;
  if (read(pipe, &word, 1) != 1) std::_Exit(program::kFailed);
}

int neighbour(int from_first, int to_first) {
  program::open_device();
  wait_for(from_first);
  std::vector<CUdeviceptr> tensors;
  for (unsigned i = 0; i < kNeighbourMiB / 16; ++i) tensors.push_back(program::filled(16, 500 + i));
  tell(to_first);
  wait_for(from_first);
  bool right = true;
  for (unsigned i = 0; i < tensors.size(); ++i) right = right && program::word(tensors[i]) == 500 + i;
  for (const CUdeviceptr tensor : tensors) CHECK(cuMemFree(tensor));
  CHECK(cuCtxSynchronize());
  tell(to_first);
  return right ? 0 : program::kFailed;
}

pid_t start(char** arguments, bool managed, const int (&to)[2], const int (&from)[2]) {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (managed || std::strncmp(*variable, "LD_PRELOAD=", 11) != 0) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  const std::string in = std::to_string(to[0]), out = std::to_string(from[1]);
  const char* words[] = {arguments[0], "second", in.c_str(), out.c_str(), nullptr};
  for (const int end : {to[0], from[1]})
    fcntl(end, F_SETFD, 0);  // the others it must not have: each end of one is seen
  pid_t process = 0;
  const int failed =
      posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(words), variables.data());
  for (const int end : {to[0], from[1]}) close(end);
  return failed == 0 ? process : -1;
}

void read_all(const std::vector<CUdeviceptr>& tensors) {
  for (const CUdeviceptr tensor : tensors) std::printf("%u\n", program::word(tensor));
}

void tell_free() {
  size_t free_bytes = 0, total = 0;
  CHECK(cuMemGetInfo(&free_bytes, &total));
  std::printf("%zu of %zu MiB are free\n", free_bytes / kMiB, total / kMiB);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4) return neighbour(std::atoi(argv[2]), std::atoi(argv[3]));
  if (argc != 2) return 2;
  const bool asks = std::strcmp(argv[1], "info") == 0;
  char account[] = "/tmp/reprise-neighbour-XXXXXX";
  const int file = mkstemp(account);
  setenv(kSimulatedDevice, account, 1);
  program::open_device();
  std::vector<CUdeviceptr> tensors;
  for (unsigned i = 0; i < 4; ++i) tensors.push_back(program::filled(8, 100 + i));
  int to[2];
  int from[2];
  if (file < 0 || pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) return 2;
  const pid_t second = start(argv, std::strcmp(argv[1], "managed") == 0, to, from);
  tell(to[1]);
  wait_for(from[0]);
  for (unsigned i = 4; i < 8; ++i) tensors.push_back(program::filled(8, 100 + i));
  read_all(tensors);
  if (asks) tell_free();
  tell(to[1]);
  wait_for(from[0]);
  read_all(tensors);
  if (asks) tell_free();
  int status = 0;
  waitpid(second, &status, 0);
  std::printf("the neighbour: %d\n", status);
  unlink(account);
  return 0;
}
