// Calls rows of hooks.def that end or change memory (`ends`) on a second device, right behind a launch there that takes
// long to reach the driver. `ends_program CUBIN` lists the rows; `ends_program CUBIN NAME...` calls these and prints of
// each whether it came behind the launch. Rows that are only forwarded need no valid arguments: what is looked at is
// when the driver gets them. A hooked row has a case here, or counts as forgotten.
#include <cuda.h>
#include <dlfcn.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace {

struct Ender {
  const char* name;
  bool hooked;
};

constexpr bool same(const char* a, const char* b) { return std::string_view(a) == b; }

constexpr struct {
  const char* name;
  const char* row_class;
  const char* touches;
} kRows[] = {
#define REPRISE_ROW(symbol, row_class, touches, ...) {#symbol, #row_class, #touches},
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
};

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::printf("error: %s: %d\n", call, static_cast<int>(result));
  std::exit(3);
}
#define CHECK(call) check((call), #call)

using Arguments = std::array<uint64_t, 8>;
constexpr size_t kBytes = 1 << 20;

template <typename T>
uint64_t number(T value) {
  return (uint64_t)value;  // a handle, an address or a number
}

class Devices {
 public:
  explicit Devices(const char* cubin) : cubin_(cubin) {
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&managed_, 0));
    CHECK(cuCtxSetCurrent(managed_));
    CUdeviceptr memory = 0;
    CHECK(cuMemAlloc(&memory, kBytes));  // Reprise manages this device
    CHECK(cuDevicePrimaryCtxRetain(&second_, 1));
    CHECK(cuCtxSetCurrent(second_));
    CHECK(cuModuleLoad(&module_, cubin));
    CHECK(cuModuleGetFunction(&mix2_, module_, "mix2"));
    for (CUdeviceptr& operand : operands_) CHECK(cuMemAlloc(&operand, kBytes));
    launch();  // the first one of its shape is waited for
    CHECK(cuCtxSynchronize());
  }

  void launch() {
    unsigned salt = 1;
    unsigned words = kBytes / 4;
    void* parameters[] = {&operands_[0], &operands_[1], &salt, &words};
    CHECK(cuLaunchKernel(mix2_, words / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  }

  CUresult finish() { return cuCtxSynchronize(); }

  // Arguments that the row's hook takes for real; false: it has no case.
  bool prepare(const std::string& name, Arguments* arguments) {
    const auto found = cases_.find(name);
    if (found == cases_.end()) return false;
    *arguments = found->second();
    return true;
  }

 private:
  uint64_t allocated() { return operands_[0]; }
  uint64_t allocated_async() {
    CUdeviceptr memory = 0;
    CHECK(cuMemAllocAsync(&memory, kBytes, nullptr));
    return memory;
  }
  uint64_t allocated_host() {
    void* memory = nullptr;
    CHECK(cuMemHostAlloc(&memory, kBytes, 0));
    return number(memory);
  }
  uint64_t registered() {
    void* const memory = std::aligned_alloc(4096, kBytes);
    CHECK(cuMemHostRegister(memory, kBytes, 0));
    return number(memory);
  }
  uint64_t pool() {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
    CUmemoryPool made = nullptr;
    CHECK(cuMemPoolCreate(&made, &properties));
    return number(made);
  }
  uint64_t mapped() {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr range = 0;
    CHECK(cuMemGetAllocationGranularity(&granularity_, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(cuMemCreate(&handle, granularity_, &properties, 0));
    CHECK(cuMemAddressReserve(&range, granularity_, 0, 0, 0));
    CHECK(cuMemMap(range, granularity_, 0, handle, 0));
    return range;
  }
  uint64_t module() {
    CUmodule made = nullptr;
    CHECK(cuModuleLoad(&made, cubin_));
    return number(made);
  }
  uint64_t library() {
    CUlibrary made = nullptr;
    CHECK(cuLibraryLoadFromFile(&made, cubin_, nullptr, nullptr, 0, nullptr, nullptr, 0));
    return number(made);
  }
  uint64_t graph() {
    CUgraph made = nullptr;
    CUgraphExec executable = nullptr;
    CHECK(cuGraphCreate(&made, 0));
    CHECK(cuGraphInstantiate(&executable, made, 0));
    return number(executable);
  }
  uint64_t context() {
    CUcontext made = nullptr;
    CHECK(cuCtxCreate(&made, nullptr, 0, 1));
    CHECK(cuCtxSetCurrent(second_));
    return number(made);
  }

  const char* cubin_;
  CUcontext managed_ = nullptr;
  CUcontext second_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction mix2_ = nullptr;
  CUdeviceptr operands_[2] = {};
  size_t granularity_ = 0;
  CUmemAccessDesc access_{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const std::map<std::string, std::function<Arguments()>> cases_ = {
      {"cuMemFree_v2", [this] { return Arguments{allocated()}; }},
      {"cuMemFreeAsync", [this] { return Arguments{allocated_async()}; }},
      {"cuMemFreeAsync_ptsz", [this] { return Arguments{allocated_async()}; }},
      {"cuMemFreeHost", [this] { return Arguments{allocated_host()}; }},
      {"cuMemHostUnregister", [this] { return Arguments{registered()}; }},
      {"cuMemPoolDestroy", [this] { return Arguments{pool()}; }},
      {"cuMemPoolSetAccess",
       [this] {
         return Arguments{pool(), number(&access_), 1};
       }},
      {"cuMemUnmap",
       [this] {
         return Arguments{mapped(), granularity_};
       }},
      {"cuArrayDestroy", [] { return Arguments{}; }},  // the simulated device has no arrays
      {"cuMipmappedArrayDestroy", [] { return Arguments{}; }},
      {"cuModuleUnload", [this] { return Arguments{module()}; }},
      {"cuLibraryUnload", [this] { return Arguments{library()}; }},
      {"cuGraphExecDestroy", [this] { return Arguments{graph()}; }},
      {"cuCtxDestroy", [this] { return Arguments{context()}; }},
      {"cuCtxDestroy_v2", [this] { return Arguments{context()}; }},
      {"cuCtxEnablePeerAccess", [this] { return Arguments{number(managed_)}; }},
      {"cuDevicePrimaryCtxRelease", [] { return Arguments{1}; }},
      {"cuDevicePrimaryCtxRelease_v2", [] { return Arguments{1}; }},
      {"cuDevicePrimaryCtxReset", [] { return Arguments{1}; }},
      {"cuDevicePrimaryCtxReset_v2", [] { return Arguments{1}; }},
  };
};

// REPRISE_SIM_FAIL makes each launch take twice this long to reach the driver.
constexpr auto kShort = std::chrono::milliseconds(20);

const char* order_of(Devices& devices, const std::string& name, bool hooked) {
  Arguments arguments{};
  if (!devices.prepare(name, &arguments) && hooked) return "has no case";
  auto* const call =
      reinterpret_cast<CUresult (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t)>(
          dlsym(RTLD_DEFAULT, name.c_str()));
  if (call == nullptr) return "is not exported";
  devices.launch();
  const auto begin = std::chrono::steady_clock::now();
  const auto& a = arguments;
  call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
  return std::chrono::steady_clock::now() - begin >= kShort ? "behind" : "overtakes";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    for (const auto& row : kRows) {
      if (same(row.touches, "ends")) std::printf("%s %s\n", row.name, row.row_class);
    }
    return 0;
  }
  Devices devices(argv[1]);
  for (int i = 2; i < argc; ++i) {
    bool hooked = false;
    for (const auto& row : kRows) hooked |= same(row.name, argv[i]) && same(row.row_class, "hooked");
    std::printf("%s %s\n", argv[i], order_of(devices, argv[i], hooked));
    std::fflush(stdout);
    if (hooked) return 0;  // its objects, or its device, are gone
    devices.finish();
  }
  return 0;
}
