// Device memory with known content, and a handle, for the tests of the cuBLAS stand-ins.
#pragma once
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

namespace reprise::sim::blas {

// Device memory that is filled with a pattern of `seed`, and freed with the object.
class Buffer {
 public:
  explicit Buffer(size_t bytes, uint32_t seed = 1);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  template <typename T = void>
  T* at(size_t index = 0) const {
    if constexpr (std::is_void_v<T>) {
      return static_cast<uint8_t*>(memory_) + index;
    } else {
      return static_cast<T*>(memory_) + index;
    }
  }
  void write(size_t offset, const void* from, size_t bytes) const;
  std::vector<uint8_t> read() const;

 private:
  void* memory_ = nullptr;
  size_t bytes_;
};

// Positions at which two contents differ.
std::vector<size_t> differences(const std::vector<uint8_t>& one, const std::vector<uint8_t>& other);

class Handle {
 public:
  Handle();
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator cublasHandle_t() const { return handle_; }

 private:
  cublasHandle_t handle_ = nullptr;
};

}  // namespace reprise::sim::blas
