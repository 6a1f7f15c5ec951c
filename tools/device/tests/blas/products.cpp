#include "tools/device/tests/blas/products.h"

#include "tests/support/test.h"

namespace reprise::sim::blas {

Buffer::Buffer(size_t bytes, uint32_t seed) : bytes_(bytes) {
  EXPECT_EQ(cudaMalloc(&memory_, bytes), cudaSuccess);
  std::vector<uint8_t> pattern(bytes);
  uint32_t state = seed * 2654435761u + 1;
  for (uint8_t& byte : pattern) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  write(0, pattern.data(), bytes);
}

Buffer::~Buffer() { cudaFree(memory_); }

void Buffer::write(size_t offset, const void* from, size_t bytes) const {
  EXPECT_EQ(cudaMemcpy(at<>(offset), from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
}

std::vector<uint8_t> Buffer::read() const {
  std::vector<uint8_t> content(bytes_);
  EXPECT_EQ(cudaMemcpy(content.data(), memory_, bytes_, cudaMemcpyDeviceToHost), cudaSuccess);
  return content;
}

std::vector<size_t> differences(const std::vector<uint8_t>& one, const std::vector<uint8_t>& other) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < one.size(); ++i) {
    if (one[i] != other[i]) positions.push_back(i);
  }
  return positions;
}

Handle::Handle() { EXPECT_EQ(cublasCreate_v2(&handle_), CUBLAS_STATUS_SUCCESS); }
Handle::~Handle() { EXPECT_EQ(cublasDestroy_v2(handle_), CUBLAS_STATUS_SUCCESS); }

}  // namespace reprise::sim::blas
