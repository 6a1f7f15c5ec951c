// beside KIND [MIB [TENSORS [STEPS]]]: beside tensors of 4 MiB the program holds MIB (24) of device memory that Reprise
// does not make: by cuMemCreate from before the first tensor on (first) or after the last (after), managed (managed),
// of a pool that the driver serves (pool). given_back: as first, and the memory is gone before the tensors come.
#include <cuda.h>

#include <string>

#include "tests/e2e/reproductions/runtime_program.h"

namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kTensor = 4 * kMiB;
constexpr size_t kFloats = kTensor / sizeof(float);

void check_driver(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s: %d\n", call, static_cast<int>(result));
  std::exit(kFailed);
}
#define CHECK_DRIVER(call) check_driver((call), #call)

class Mapped {
 public:
  explicit Mapped(size_t bytes) : bytes_(bytes) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle handle = 0;
    CHECK_DRIVER(cuMemCreate(&handle, bytes, &properties, 0));
    CHECK_DRIVER(cuMemAddressReserve(&address_, bytes, 0, 0, 0));
    CHECK_DRIVER(cuMemMap(address_, bytes, 0, handle, 0));
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK_DRIVER(cuMemSetAccess(address_, bytes, &access, 1));
    CHECK_DRIVER(cuMemRelease(handle));  // it goes with its mapping
  }
  void give_back() { CHECK_DRIVER(cuMemUnmap(address_, bytes_)); }
  float* get() const { return reinterpret_cast<float*>(address_); }

 private:
  size_t bytes_;
  CUdeviceptr address_ = 0;
};

float* of_own_pool(size_t bytes) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  properties.maxSize = 2 * bytes;
  cudaMemPool_t pool;
  CHECK(cudaMemPoolCreate(&pool, &properties));
  float* memory = nullptr;
  CHECK(cudaMallocFromPoolAsync(&memory, bytes, pool, nullptr));
  CHECK(cudaStreamSynchronize(nullptr));
  return memory;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "first";
  const size_t bytes = (argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 24) * kMiB;
  const size_t count = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 8;
  const int steps = argc > 4 ? std::atoi(argv[4]) : 12;
  CHECK(cudaFree(nullptr));
  float* own = nullptr;
  if (kind == "first" || kind == "given_back") {
    Mapped mapped(bytes);
    if (kind == "first") own = mapped.get();
    if (kind == "given_back") mapped.give_back();
  }
  if (kind == "managed") CHECK(cudaMallocManaged(&own, bytes));
  if (kind == "pool") own = of_own_pool(bytes);
  std::vector<float*> tensors;
  for (unsigned i = 0; i < count; ++i) tensors.push_back(random_values(kFloats, i));
  if (kind == "after") own = Mapped(bytes).get();
  if (own != nullptr) LAUNCH(fill<<<blocks(kFloats), 256>>>(own, kFloats, 7));
  std::vector<float> values(kFloats);
  for (int step = 0; step < steps; ++step) {
    for (size_t i = 0; i < count; ++i) {
      LAUNCH(axpy<<<blocks(kFloats), 256>>>(tensors[i], tensors[(i + 1) % count], 0.5f, kFloats));
      if (own != nullptr) LAUNCH(axpy<<<blocks(kFloats), 256>>>(tensors[i], own, 0.25f, kFloats));
    }
    CHECK(cudaMemcpy(values.data(), tensors[0], kTensor, cudaMemcpyDeviceToHost));
    std::printf("%d %016llx\n", step, static_cast<unsigned long long>(hash(values)));
  }
}
