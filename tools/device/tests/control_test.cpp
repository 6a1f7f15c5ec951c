// What only the simulated device has: its counters, faults on demand, activity records, capacity, poison.
#include "preload/driver/nvml.h"
#include "preload/driver/sim_abi.h"
#include "tools/device/tests/driver.h"

#define SIM(name) (reinterpret_cast<decltype(&::name)>(::reprise::sim_test::symbol(#name)))

namespace reprise::sim_test {
namespace {

class Control : public DriverTest {
 protected:
  RepriseSimStats stats() {
    RepriseSimStats now = {};
    SIM(repriseSimGetStats)(0, &now);
    return now;
  }
};

TEST_F(Control, CountsBytesCopiesAndLaunches) {
  const RepriseSimStats before = stats();
  const CUdeviceptr memory = ints(1 << 20, 1);
  read_ints(memory, 10);
  ASSERT_CU(add(memory, 1, 10));
  ASSERT_CU(CU(cuCtxSynchronize)());
  const RepriseSimStats after = stats();
  EXPECT_EQ(4u << 20, after.used_bytes - before.used_bytes);
  EXPECT_EQ(2u, after.copies - before.copies);
  EXPECT_EQ(4u << 20, after.copied_bytes_h2d - before.copied_bytes_h2d);
  EXPECT_EQ(40u, after.copied_bytes_d2h - before.copied_bytes_d2h);
  EXPECT_EQ(1u, after.launches - before.launches);
  EXPECT_EQ(before.unsupported_calls, after.unsupported_calls);
}

// PyTorch registers a callback as it starts; strict mode, which aborts on calls that are not implemented, must not end
// it.
TEST_F(Control, LogCallbacksAreAcceptedAndHearNothing) {
  const RepriseSimStats before = stats();
  bool heard = false;
  const CUlogsCallback listen = [](void* data, CUlogLevel, char*, size_t) { *static_cast<bool*>(data) = true; };
  CUlogsCallbackHandle first = nullptr, second = nullptr;
  ASSERT_CU(CU(cuLogsRegisterCallback)(listen, &heard, &first));
  ASSERT_CU(CU(cuLogsRegisterCallback)(listen, &heard, &second));
  EXPECT_NE(nullptr, first);
  EXPECT_NE(first, second);
  EXPECT_CU(CU(cuLogsRegisterCallback)(listen, &heard, nullptr));  // the handle is optional
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuLogsRegisterCallback)(nullptr, &heard, &first));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree)(1));
  EXPECT_FALSE(heard);
  EXPECT_CU(CU(cuLogsUnregisterCallback)(first));
  EXPECT_CU(CU(cuLogsUnregisterCallback)(second));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuLogsUnregisterCallback)(nullptr));
  EXPECT_EQ(before.unsupported_calls, stats().unsupported_calls);
}

// As drivers do (decision 0026): small allocations share blocks, large ones are rounded.
TEST_F(Control, AllocationsAreChargedInBlocks) {
  const uint64_t before = stats().used_bytes;
  const auto taken = [&] { return stats().used_bytes - before; };
  std::vector<CUdeviceptr> small(20);
  for (CUdeviceptr& each : small) ASSERT_CU(CU(cuMemAlloc)(&each, 100'000));
  EXPECT_EQ(2u << 20, taken());
  CUdeviceptr one_more = 0;
  ASSERT_CU(CU(cuMemAlloc)(&one_more, 100'000));
  EXPECT_EQ(4u << 20, taken());
  CUdeviceptr large = 0;
  ASSERT_CU(CU(cuMemAlloc)(&large, (2u << 20) + 1));
  EXPECT_EQ(8u << 20, taken());
  EXPECT_CU(CU(cuMemFree)(large));
  EXPECT_CU(CU(cuMemFree)(one_more));
  EXPECT_EQ(2u << 20, taken());
  for (const CUdeviceptr each : small) EXPECT_CU(CU(cuMemFree)(each));
  EXPECT_EQ(0u, taken());
}

TEST_F(Control, PeakStaysUntilReset) {
  const uint64_t used = stats().used_bytes;
  SIM(repriseSimResetPeak)(0);
  CUdeviceptr memory = allocate(32u << 20);
  ASSERT_CU(CU(cuMemFree)(memory));
  EXPECT_EQ(used + (32u << 20), stats().peak_bytes);
  SIM(repriseSimResetPeak)(0);
  EXPECT_EQ(used, stats().peak_bytes);
}

TEST_F(Control, TheNthCallFails) {
  ASSERT_EQ(0, SIM(repriseSimInjectFault)("cuMemAlloc", 2, CUDA_ERROR_OUT_OF_MEMORY));
  CUdeviceptr memory = 0;
  EXPECT_CU(CU(cuMemAlloc)(&memory, 16));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc)(&memory, 16));
  EXPECT_CU(CU(cuMemAlloc)(&memory, 16));
}

// REPRISE_SIM_FAIL, as CMakeLists.txt sets it for this process: the third call takes 30 ms longer, the second of these
// fails, and what the shim's calls would answer concerns nobody here.
TEST_F(Control, TheEnvironmentNamesTheNthCall) {
  void* host = nullptr;
  ASSERT_CU(CU(cuMemHostAlloc)(&host, 16, 0));
  unsigned flags = 0;
  EXPECT_CU(CU(cuMemHostGetFlags)(&flags, host));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, CU(cuMemHostGetFlags)(&flags, host));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_CU(CU(cuMemHostGetFlags)(&flags, host));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(30));
  EXPECT_CU(CU(cuMemHostGetFlags)(&flags, host));
  ASSERT_CU(CU(cuMemFreeHost)(host));
}

TEST_F(Control, FaultsNameExactlyOneFunction) {
  ASSERT_EQ(0, SIM(repriseSimInjectFault)("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY));
  CUdeviceptr memory = 0;
  EXPECT_CU(CU(cuMemAllocAsync)(&memory, 16, nullptr));
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc)(&memory, 16));
}

TEST_F(Control, AKernelFailsLater) {
  IN_A_PROCESS_OF_ITS_OWN();
  ASSERT_EQ(0, SIM(repriseSimInjectFault)("launch-execution", 2, CUDA_ERROR_LAUNCH_FAILED));
  const CUdeviceptr memory = ints(1, 0);
  EXPECT_CU(add(memory, 1, 1));
  EXPECT_CU(add(memory, 1, 1));
  EXPECT_EQ(CUDA_ERROR_LAUNCH_FAILED, CU(cuCtxSynchronize)());
  CUdeviceptr more = 0;
  EXPECT_EQ(CUDA_ERROR_LAUNCH_FAILED, CU(cuMemAlloc)(&more, 16));
}

// cuda.h: then the context is to be destroyed; of other errors of kernels, that the process is to be ended.
TEST_F(Control, AFailedAssertionEndsItsContextAlone) {
  IN_A_PROCESS_OF_ITS_OWN();
  ASSERT_EQ(0, SIM(repriseSimInjectFault)("launch-execution", 1, CUDA_ERROR_ASSERT));
  EXPECT_CU(launch("empty", {}));
  EXPECT_EQ(CUDA_ERROR_ASSERT, CU(cuCtxSynchronize)());
  CUcontext other = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_CU(CU(cuCtxCreate)(&other, nullptr, 0, device_));
  EXPECT_CU(CU(cuMemAlloc)(&memory, 16));
  ASSERT_CU(CU(cuCtxSetCurrent)(context_));
  EXPECT_EQ(CUDA_ERROR_ASSERT, CU(cuMemAlloc)(&memory, 16));
}

TEST_F(Control, ActivitiesHaveTheIdsOfTheirCalls) {
  const CUdeviceptr memory = ints(4, 0);
  CUstream stream = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  SIM(repriseSimActivityEnable)(1);
  SIM(repriseSimActivityPush)(41);
  ASSERT_CU(add(memory, 1, 4, stream));
  SIM(repriseSimActivityPush)(42);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 0, 16, stream));
  SIM(repriseSimActivityPop)();
  SIM(repriseSimActivityPop)();
  int word = 0;
  ASSERT_CU(CU(cuMemcpyDtoHAsync)(&word, memory, 4, stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  SIM(repriseSimActivityEnable)(0);
  RepriseSimActivity records[8] = {};
  ASSERT_EQ(3u, SIM(repriseSimActivityRead)(records, 8));
  EXPECT_EQ(41u, records[0].id);
  EXPECT_EQ(0u, records[0].engine);
  EXPECT_EQ(42u, records[1].id);
  EXPECT_EQ(4u, records[1].engine);
  EXPECT_EQ(0u, records[2].id);
  EXPECT_EQ(2u, records[2].engine);
  for (int i = 0; i < 3; ++i) EXPECT_GE(records[i].end_ns, records[i].start_ns);
  EXPECT_GE(records[1].start_ns, records[0].end_ns);
  EXPECT_EQ(0u, SIM(repriseSimActivityRead)(records, 8));
}

TEST_F(Control, OverlapIsTheTimeOfBoth) {
  CUstream stream = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr memory = allocate(1u << 20);
  void* pinned = nullptr;
  ASSERT_CU(CU(cuMemHostAlloc)(&pinned, 1u << 20, 0));
  const RepriseSimStats before = stats();
  {
    Gate gate;
    int* flag = gate.flag();
    ASSERT_CU(launch("hold", {&flag}));
    while (CU(cuStreamQuery)(nullptr) == CUDA_ERROR_NOT_READY && stats().compute_busy_ns == before.compute_busy_ns) {
    }
    ASSERT_CU(CU(cuMemcpyHtoDAsync)(memory, pinned, 1u << 20, stream));
    ASSERT_CU(CU(cuStreamSynchronize)(stream));
  }
  const RepriseSimStats after = stats();
  const uint64_t copy = after.copy_busy_ns - before.copy_busy_ns;
  EXPECT_GT(copy, 0u);
  EXPECT_EQ(copy, after.overlap_busy_ns - before.overlap_busy_ns);
  EXPECT_GE(after.compute_busy_ns - before.compute_busy_ns, copy);
}

// An allocation whose kernels have no twin: dataflow hashing shows which memory a launch took for its operands.
class Hashed : public Control {
 protected:
  void hash(CUdeviceptr operand) { ASSERT_CU(launch("hashed", {&operand})); }
  std::vector<int> content(CUdeviceptr from) { return read_ints(from, 64); }
  decltype(&repriseSimAllocated) allocated_ = SIM(repriseSimAllocated);
  decltype(&repriseSimFreed) freed_ = SIM(repriseSimFreed);
  decltype(&repriseSimPerform) perform_ = SIM(repriseSimPerform);
};

TEST_F(Hashed, MemoryThatNobodyWroteIsNoInput) {
  const CUdeviceptr first = allocate(256), second = allocate(256);
  ASSERT_CU(CU(cuMemsetD32)(second, 77, 64));
  ASSERT_CU(CU(cuMemFree)(second));
  const CUdeviceptr again = allocate(256);  // holds what the freed one held
  hash(first);
  hash(again);
  EXPECT_EQ(content(first), content(again));
  ASSERT_CU(CU(cuMemsetD32)(first, 1, 32));
  ASSERT_CU(CU(cuMemsetD32)(again, 2, 32));
  hash(first);
  hash(again);
  EXPECT_NE(content(first), content(again));
}

TEST_F(Hashed, CopiesCarryWhatWasWritten) {
  const CUdeviceptr from[] = {allocate(256), allocate(256)};
  const CUdeviceptr to[] = {allocate(256), allocate(256)};
  for (int i = 0; i < 2; ++i) {
    ASSERT_CU(CU(cuMemsetD32)(from[i], 5, 16));
    ASSERT_CU(CU(cuMemsetD32)(to[i], static_cast<unsigned>(i), 64));
    ASSERT_CU(CU(cuMemcpyDtoD)(to[i], from[i], 256));
    hash(to[i]);
  }
  EXPECT_EQ(content(to[0]), content(to[1])) << "what lies behind the 16 words is undefined in both";
}

TEST_F(Hashed, BytesThatTheShimMovesAreNotWritten) {
  const CUdeviceptr moved = allocate(256), plain = allocate(256);
  const std::vector<int> bytes(64, 9);
  perform_(kRepriseSimMoves);
  ASSERT_CU(CU(cuMemcpyHtoD)(moved, bytes.data(), 256));
  perform_(0);
  hash(moved);
  hash(plain);
  EXPECT_EQ(content(moved), content(plain));
}

// Nor what a kernel of the shim's own has for operand: by the program's order, another allocation may be there by now.
TEST_F(Hashed, KernelsOfTheShimWriteNothingOfThePrograms) {
  CUdeviceptr seen = allocate(256);
  const CUdeviceptr plain = allocate(256);
  int value = 9;
  perform_(kRepriseSimMoves);
  ASSERT_CU(launch("store", {&seen, &value}));
  perform_(0);
  hash(seen);
  hash(plain);
  EXPECT_EQ(content(seen), content(plain));
}

// Memory of our own, in which the shim places allocations: A, and behind its end B at the same address.
TEST_F(Hashed, ALaunchMeansTheAllocationsOfItsCall) {
  const CUdeviceptr arena = ints(128, 3);
  const auto run = [&](uint64_t at) {
    ASSERT_CU(CU(cuMemsetD32)(arena, 3, 128));
    perform_(at);
    hash(arena);
    perform_(0);
  };
  allocated_(arena, 128, 10);
  run(11);
  const std::vector<int> as_a = read_ints(arena, 128);
  EXPECT_EQ(as_a[32], 3);
  EXPECT_NE(as_a[31], 3);
  freed_(arena, 12);
  allocated_(arena, 256, 13);
  run(14);
  const std::vector<int> as_b = read_ints(arena, 128);
  EXPECT_NE(as_b[63], 3);
  EXPECT_EQ(as_b[64], 3);
  run(11);  // called before, performed now
  EXPECT_EQ(read_ints(arena, 128)[32], 3);
  freed_(arena, 15);
  run(11);
  EXPECT_EQ(read_ints(arena, 128)[32], 3) << "long after both have ended";
  EXPECT_NE(read_ints(arena, 128)[31], 3);
}

TEST_F(Hashed, AFreeWhoseThreadWaitsHidesNoneThatWasCalledLater) {
  const CUdeviceptr arena = allocate(256), other = allocate(256);
  allocated_(other, 256, 10);
  allocated_(arena, 128, 20);
  freed_(arena, 5000);
  allocated_(arena, 256, 5001);
  freed_(other, 30);  // told last
  ASSERT_CU(CU(cuMemsetD32)(arena, 3, 64));
  perform_(4000);
  hash(arena);
  perform_(0);
  EXPECT_EQ(content(arena)[32], 3) << "the launch was made while the shorter one was there";
  EXPECT_NE(content(arena)[31], 3);
}

TEST_F(Control, FreshMemoryIsNotZero) {
  const CUdeviceptr large = allocate(4u << 20);
  const std::vector<int> seen = read_ints(large, 1u << 20);
  EXPECT_EQ(0, std::count(seen.begin(), seen.end(), 0));
  const RepriseSimStats before = stats();
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  CUmemGenericAllocationHandle chunk = 0;
  CUdeviceptr base = 0;
  ASSERT_CU(CU(cuMemCreate)(&chunk, 2u << 20, &properties, 0));
  ASSERT_CU(CU(cuMemAddressReserve)(&base, 2u << 20, 0, 0, 0));
  ASSERT_CU(CU(cuMemMap)(base, 2u << 20, 0, chunk, 0));
  CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_CU(CU(cuMemSetAccess)(base, 2u << 20, &access, 1));
  const std::vector<int> mapped = read_ints(base, 1u << 19);
  EXPECT_EQ(0, std::count(mapped.begin(), mapped.end(), 0));
  const RepriseSimStats after = stats();
  EXPECT_EQ(1u, after.create_calls - before.create_calls);
  EXPECT_EQ(1u, after.map_calls - before.map_calls);
  EXPECT_EQ(1u, after.set_access_calls - before.set_access_calls);
}

// REPRISE_SIM_MAP, as CMakeLists.txt sets it for this process.
TEST_F(Control, MappingTakesItsTime) {
  constexpr size_t kUnit = 2u << 20;
  const auto timed = [](auto call) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_CU(call());
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr base = 0;
  ASSERT_CU(CU(cuMemAddressReserve)(&base, 7 * kUnit, 0, 0, 0));
  const auto map = [&](unsigned at, unsigned units) {
    CUmemGenericAllocationHandle chunk = 0;
    EXPECT_CU(CU(cuMemCreate)(&chunk, units * kUnit, &properties, 0));
    return timed([&] { return CU(cuMemMap)(base + at * kUnit, units * kUnit, 0, chunk, 0); });
  };
  const auto give = [&](unsigned at, unsigned units) {
    return timed([&] { return CU(cuMemSetAccess)(base + at * kUnit, units * kUnit, &access, 1); });
  };
  // One chunk, two chunks in a call, one of four times the bytes, of 20 ms each.
  EXPECT_GE(map(0, 1), 0.4);
  EXPECT_GE(give(0, 1), 12);
  map(1, 1);
  map(2, 1);
  EXPECT_GE(give(1, 2), 24);
  map(3, 4);
  const double large = give(3, 4);
  EXPECT_GE(large, 12);
  EXPECT_LT(large, 24);  // by bytes: 48
  const double four = timed([&] { return CU(cuMemUnmap)(base, 7 * kUnit); });
  EXPECT_GE(four, 4 * 7.6);
  EXPECT_LT(four, 7 * 7.6);  // by bytes: 53.2
}

TEST_F(Control, CapacityIsTheEnvironments) {
  size_t total = 0;
  ASSERT_CU(CU(cuDeviceTotalMem)(&total, device_));
  EXPECT_EQ(1u << 30, total);
  const uint64_t used = stats().used_bytes;
  CUdeviceptr memory = 0;
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc)(&memory, (1u << 30) - used + 1));
  EXPECT_EQ(used, stats().used_bytes);
}

TEST_F(Control, DevicesAreApart) {
  int count = 0;
  ASSERT_CU(CU(cuDeviceGetCount)(&count));
  ASSERT_EQ(2, count);
  CUcontext second = nullptr;
  ASSERT_CU(CU(cuCtxCreate)(&second, nullptr, 0, 1));
  const uint64_t used = stats().used_bytes;
  const CUdeviceptr there = ints(256, 9);
  EXPECT_EQ(used, stats().used_bytes);
  RepriseSimStats other = {};
  SIM(repriseSimGetStats)(1, &other);
  EXPECT_GE(other.used_bytes, 1024u);
  ASSERT_CU(CU(cuCtxSetCurrent)(context_));
  const CUdeviceptr here = ints(256, 0);
  ASSERT_CU(CU(cuMemcpyPeer)(here, context_, there, second, 1024));
  EXPECT_EQ(std::vector<int>(256, 9), read_ints(here, 256));
  ASSERT_CU(CU(cuCtxEnablePeerAccess)(second, 0));
  EXPECT_EQ(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, CU(cuCtxEnablePeerAccess)(second, 0));
  ASSERT_CU(CU(cuCtxDestroy)(second));
}

TEST_F(Control, WhatNobodyWroteSaysSo) {
  const uint64_t before = stats().unsupported_calls;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR descriptor = {};
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, CU(cuArrayCreate)(&array, &descriptor));
  EXPECT_EQ(before + 1, stats().unsupported_calls);
}

template <typename... Arguments>
int nvml_answer(const char* name, Arguments... arguments) {
  return reinterpret_cast<int (*)(Arguments...)>(symbol(name))(arguments...);
}
int processes(nvml::Device device, unsigned* count, nvml::ProcessInfo* infos) {
  return nvml_answer("nvmlDeviceGetComputeRunningProcesses_v3", device, count, infos);
}
int device_of(const char* name, nvml::Device* device) { return nvml_answer("nvmlDeviceGetHandleByUUID", name, device); }

TEST_F(Control, ProcessesOfADeviceAreThoseWithAContext) {
  constexpr const char* kFirst = "GPU-72657072-6973-652d-7369-6d2d64657600";
  nvml::Device first = nullptr;
  unsigned count = 0;
  EXPECT_EQ(device_of(kFirst, &first), nvml::kUninitialized);
  EXPECT_EQ(processes(first, &count, nullptr), nvml::kUninitialized);
  ASSERT_EQ(nvml_answer("nvmlInit_v2"), nvml::kSuccess);
  ASSERT_EQ(device_of(kFirst, &first), nvml::kSuccess);
  nvml::Device second = nullptr;
  ASSERT_EQ(device_of("GPU-72657072-6973-652d-7369-6d2d64657601", &second), nvml::kSuccess);
  nvml::Device none = nullptr;
  for (const char* name : {"GPU-72657072-6973-652d-7369-6d2d64657602", "72657072-6973-652d-7369-6d2d64657600", "GPU-",
                           "", "GPU-726570726973652d73696d2d64657600", "MIG-72657072-6973-652d-7369-6d2d64657600",
                           "GPU-72657072-6973-652d-7369-6d2d64657600x"}) {
    EXPECT_EQ(device_of(name, &none), nvml::kNotFound) << name;
  }
  EXPECT_EQ(device_of(nullptr, &none), nvml::kInvalidArgument);
  EXPECT_EQ(processes(none, &count, nullptr), nvml::kInvalidArgument);
  EXPECT_EQ(processes(first, nullptr, nullptr), nvml::kInvalidArgument);

  EXPECT_EQ(processes(first, &count, nullptr), nvml::kInsufficientSize);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(processes(first, &count, nullptr), nvml::kInvalidArgument);
  nvml::ProcessInfo infos[4] = {};
  count = 4;
  ASSERT_EQ(processes(first, &count, infos), nvml::kSuccess);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(infos[0].pid, static_cast<unsigned>(getpid()));
  EXPECT_EQ(infos[0].used_bytes, stats().used_bytes);

  count = 0;
  EXPECT_EQ(processes(second, &count, nullptr), nvml::kSuccess) << "none has a context there";
  CUcontext there = nullptr;
  ASSERT_CU(CU(cuCtxCreate)(&there, nullptr, 0, 1));
  EXPECT_EQ(processes(second, &count, nullptr), nvml::kInsufficientSize);
  ASSERT_CU(CU(cuCtxDestroy)(there));
  count = 0;
  EXPECT_EQ(processes(second, &count, nullptr), nvml::kSuccess) << "it has ended";
}

}  // namespace
}  // namespace reprise::sim_test
