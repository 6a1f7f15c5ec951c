// The driver as the program uses it: streams, kernels, and tensors that know which stream worked on them last, so that
// the next one waits: the program has no races. Callers: tables.cpp, program.cpp.
#pragma once
#include <array>

#include "tests/e2e/hidden/recipe.h"
#include "tests/e2e/support/driver_program.h"

namespace hidden {

struct Tensor {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  int last_stream = -1;
  bool pooled = false;  // by cuMemAllocAsync
};

class Device {
 public:
  // `serial`: waits for the device before each piece of work.
  Device(const std::string& cubin, int streams, bool serial);

  Tensor allocate(size_t bytes);
  // In the order of the stream, where that is how it will be freed.
  Tensor allocate(size_t bytes, int stream, Freeing freeing);
  Tensor zeros(size_t bytes, int stream);
  void free(Tensor* tensor, Freeing freeing);
  // The stream waits for the last work on the tensor.
  void use(Tensor* tensor, int stream);
  CUstream stream(int index) const { return streams_[static_cast<size_t>(index)]; }
  void synchronize() { CHECK(cuCtxSynchronize()); }

  template <typename... Parameters>
  void launch(const char* kernel, unsigned blocks, int stream, Parameters... parameters) {
    std::array<void*, sizeof...(Parameters)> addresses = {&parameters...};
    submit(kernel, blocks, stream, addresses.data());
  }

  // Orders it behind everything; with `polled` by a pinned copy and an event.
  std::vector<uint32_t> read(Tensor* tensor, bool polled);
  size_t peak() const { return peak_; }

 private:
  void submit(const char* kernel, unsigned blocks, int stream, void** parameters);

  std::map<std::string, CUfunction> functions_;
  std::vector<CUstream> streams_;
  bool serial_;
  CUmodule module_ = nullptr;
  void* pinned_ = nullptr;
  size_t live_ = 0, peak_ = 0;
};

inline unsigned blocks_for(uint32_t words) { return words < 4096 ? 1 : 4; }

}  // namespace hidden
