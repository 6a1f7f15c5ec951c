// An ordinary driver-API program, linked to libcuda.so.1 as such programs are. Run under the preloaded library by
// boot_test.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

extern "C" void reprise_mark(const char* name) __attribute__((weak));

namespace {

int work() {
  CUdeviceptr memory = 0;
  if (cuMemAlloc(&memory, 1 << 20) != CUDA_SUCCESS) return 10;
  if (cuMemsetD32Async(memory, 7, 1024, nullptr) != CUDA_SUCCESS) return 11;
  if (reprise_mark != nullptr) reprise_mark("step");
  if (cuCtxSynchronize() != CUDA_SUCCESS) return 12;
  if (cuMemFree(memory) != CUDA_SUCCESS) return 13;
  return 0;
}

// The child's calls reach the driver and leave the parent's recording alone.
int in_child() {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

// main returns while other threads are in the middle of their calls.
int exit_with_threads(CUcontext context) {
  static std::atomic<bool> started{false};
  for (int i = 0; i < 3; ++i) {
    std::thread([context] {
      cuCtxSetCurrent(context);
      started = true;
      for (;;) work();
    }).detach();
  }
  while (!started) std::this_thread::yield();
  std::exit(5);
}

int look_up() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  void* mine = dlsym(library, "cuMemAlloc_v2");
  void* linked = reinterpret_cast<void*>(&cuMemAlloc);
  Dl_info info{};
  dladdr(mine, &info);
  std::printf("%s %s\n", mine == linked ? "same" : "different", info.dli_fname);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "work";
  if (std::strcmp(what, "idle") == 0) return 3;
  if (std::strcmp(what, "lookup") == 0) return look_up();
  if (cuInit(0) != CUDA_SUCCESS) return 20;
  CUcontext context = nullptr;
  if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) return 21;
  if (std::strcmp(what, "fork") == 0) {
    const int child = in_child();
    return child != 0 ? child : work();
  }
  if (std::strcmp(what, "nested") == 0) {
    const int inner = std::system("/proc/$PPID/exe work");
    return inner != 0 ? 30 : work();
  }
  if (std::strcmp(what, "threads") == 0) return exit_with_threads(context);
  if (std::strcmp(what, "abort") == 0) {
    work();
    std::abort();
  }
  std::puts("output");
  return work();
}
