// What driver-API programs share. Each is an ordinary program that knows nothing of Reprise: it prints what it read,
// and ends with exit code 3 and one line on stderr at the first call that answers an error.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace program {

inline constexpr size_t kMiB = 1 << 20;
inline constexpr int kFailed = 3;

inline const char* name_of(CUresult result) {
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  return name == nullptr ? "?" : name;
}

// _Exit ends the process at once: other threads may still be using the driver.
inline void (*leave)(int) = std::_Exit;

inline void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s: %s\n", call, name_of(result));
  leave(kFailed);
}

#define CHECK(call) program::check((call), #call)

// Device `ordinal` with its primary context current.
inline CUcontext open_device(int ordinal = 0) {
  CHECK(cuInit(0));
  CUdevice device = 0;
  CHECK(cuDeviceGet(&device, ordinal));
  CUcontext context = nullptr;
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  return context;
}

inline CUmodule load(const std::string& cubin) {
  CUmodule module = nullptr;
  CHECK(cuModuleLoad(&module, cubin.c_str()));
  return module;
}

inline CUfunction function(CUmodule module, const char* name) {
  CUfunction found = nullptr;
  CHECK(cuModuleGetFunction(&found, module, name));
  return found;
}

inline CUstream new_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, flags));
  return stream;
}

// The default stream, then those that block and those that do not by turns.
inline std::vector<CUstream> streams(int count) {
  std::vector<CUstream> all(1, nullptr);
  for (int i = 1; i < count; ++i) all.push_back(new_stream(i % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
  return all;
}

// What `to` does next waits for what `from` has been given.
inline void order(CUstream from, CUstream to) {
  CUevent event = nullptr;
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CHECK(cuEventRecord(event, from));
  CHECK(cuStreamWaitEvent(to, event, 0));
  CHECK(cuEventDestroy(event));
}

// `mebibytes` of device memory, every word of it `value` on return: non-blocking streams do not wait for a fill.
inline CUdeviceptr filled(size_t mebibytes, unsigned value) {
  CUdeviceptr tensor = 0;
  CHECK(cuMemAlloc(&tensor, mebibytes * kMiB));
  CHECK(cuMemsetD32(tensor, value, mebibytes * kMiB / 4));
  CHECK(cuCtxSynchronize());
  return tensor;
}

inline unsigned word(CUdeviceptr address) {
  unsigned value = 0;
  CHECK(cuMemcpyDtoH(&value, address, sizeof value));
  return value;
}

inline constexpr uint64_t kHashSeed = 1469598103934665603ull;

inline uint64_t hash_of(const std::vector<uint32_t>& words, uint64_t hash = kHashSeed) {
  for (const uint32_t word : words) hash = (hash ^ word) * 1099511628211ull;
  return hash;
}

inline void print(const std::string& what, uint64_t hash) {
  std::printf("%s %016llx\n", what.c_str(), static_cast<unsigned long long>(hash));
}

// Options of a random program: CUBIN SEED ITERATIONS, then --NAME NUMBER, or --NAME alone for a flag.
struct RandomOptions {
  std::string cubin;
  uint64_t seed = 1;
  int iterations = 8;
};

inline void parse(int argc, char** argv, RandomOptions* options, const std::map<std::string, int*>& numbers,
                  const std::map<std::string, bool*>& flags = {}) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s CUBIN SEED ITERATIONS [options]\n", argv[0]);
    std::exit(2);
  }
  options->cubin = argv[1];
  options->seed = std::strtoull(argv[2], nullptr, 10);
  options->iterations = std::atoi(argv[3]);
  for (int i = 4; i < argc; ++i) {
    if (const auto flag = flags.find(argv[i]); flag != flags.end()) {
      *flag->second = true;
    } else if (const auto number = numbers.find(argv[i]); number != numbers.end() && i + 1 < argc) {
      *number->second = std::atoi(argv[++i]);
    }
  }
}

}  // namespace program
