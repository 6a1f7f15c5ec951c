// The GPU as the trainer uses it: streams, launches, and tensors that are allocated one by one.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include "options.h"

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "chargpt: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// Thrown when --stop-after says so.
struct Stopped {};

class Device {
 public:
  explicit Device(const Options& options)
      : stop_after_(options.stop_after),
        order_(options.free_order),
        async_(options.async_memory),
        shuffle_(options.seed) {
    check(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~Device() {
    free_now();
    check(cudaStreamDestroy(copy), "cudaStreamDestroy");
    check(cudaStreamDestroy(compute), "cudaStreamDestroy");
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void* allocate(size_t bytes) {
    void* memory = nullptr;
    check(async_ ? cudaMallocAsync(&memory, bytes, compute) : cudaMalloc(&memory, bytes), "cudaMalloc");
    live_bytes_ += bytes;
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
    return memory;
  }
  // Frees at once, or with the others of this layer when the order is not that of the last use.
  void release(void* memory, size_t bytes) {
    if (order_ == FreeOrder::last_use)
      free_memory(memory, bytes);
    else
      waiting_.emplace_back(memory, bytes);
  }
  void free_now() {
    if (order_ == FreeOrder::reversed) std::reverse(waiting_.begin(), waiting_.end());
    // Not std::shuffle: its result may differ between libraries.
    for (size_t i = waiting_.size(); order_ == FreeOrder::shuffled && i > 1; --i) {
      std::swap(waiting_[i - 1], waiting_[shuffle_() % i]);
    }
    for (const auto& [memory, bytes] : waiting_) free_memory(memory, bytes);
    waiting_.clear();
  }

  template <typename... Parameters, typename... Arguments>
  void launch(void (*kernel)(Parameters...), dim3 grid, int block, Arguments... arguments) {
    if (stop_after_ != 0 && launches_ == stop_after_) throw Stopped{};
    ++launches_;
    kernel<<<grid, static_cast<unsigned>(block), 0, compute>>>(arguments...);
    check(cudaGetLastError(), "kernel launch");
  }

  long launches() const { return launches_; }
  size_t peak_bytes() const { return peak_bytes_; }

  cudaStream_t compute = nullptr;
  cudaStream_t copy = nullptr;

 private:
  void free_memory(void* memory, size_t bytes) {
    live_bytes_ -= bytes;
    check(async_ ? cudaFreeAsync(memory, compute) : cudaFree(memory), "cudaFree");
  }

  long launches_ = 0;
  long stop_after_;
  FreeOrder order_;
  bool async_;
  std::mt19937 shuffle_;
  std::vector<std::pair<void*, size_t>> waiting_;
  size_t live_bytes_ = 0;
  size_t peak_bytes_ = 0;
};

// Memory on the device, owned. Freed when dropped: the backward pass drops each activation after its last use.
template <typename T>
class Array {
 public:
  Array() = default;
  Array(Device& device, size_t count)
      : device_(&device), data_(static_cast<T*>(device.allocate(count * sizeof(T)))), count_(count) {}
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array&& other) noexcept {
    Array moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Array() { drop(); }

  void drop() {
    if (data_ != nullptr) device_->release(data_, count_ * sizeof(T));
    data_ = nullptr;
    count_ = 0;
  }
  T* data() const { return data_; }
  size_t count() const { return count_; }
  int size() const { return static_cast<int>(count_); }

 private:
  void swap(Array& other) {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
  }

  Device* device_ = nullptr;
  T* data_ = nullptr;
  size_t count_ = 0;
};
using Tensor = Array<float>;
