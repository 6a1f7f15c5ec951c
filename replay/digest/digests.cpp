#include "replay/digest/digests.h"

#include <algorithm>

#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"

extern "C" const unsigned char reprise_digest_kernel[];  // digest.S

namespace reprise::replay {
namespace {

constexpr unsigned kThreads = 256;
constexpr uint64_t kWordsPerThread = 8;  // at least, so that small tensors take few blocks
constexpr uint64_t kMostBlocks = 2048;   // enough to keep the memory of any device busy

}  // namespace

bool Digests::available() noexcept {
  if (state_ == State::not_asked) state_ = load() ? State::available : State::none;
  return state_ == State::available;
}

bool Digests::load() noexcept {
  size_t bytes = 0;
  void* host = nullptr;
  const bool loaded = driver().cuModuleLoadData(&module_, reprise_digest_kernel) == CUDA_SUCCESS &&
                      driver().cuModuleGetFunction(&kernel_, module_, "reprise_digest") == CUDA_SUCCESS &&
                      driver().cuModuleGetFunction(&tell_, module_, "reprise_digest_tell") == CUDA_SUCCESS &&
                      driver().cuModuleGetGlobal(&sums_, &bytes, module_, "reprise_digest_sums") == CUDA_SUCCESS &&
                      bytes == kCells * kCellBytes &&
                      driver().cuMemHostAlloc(&host, kCells * kCellBytes, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS &&
                      driver().cuMemHostGetDevicePointer(&told_, host, 0) == CUDA_SUCCESS;
  if (!loaded) return false;
  host_ = static_cast<uint64_t*>(host);
  free_.reserve(kCells);
  for (DigestCell cell = kCells; cell-- > 0;) free_.push_back(cell);
  return true;
}

DigestCell Digests::take() noexcept {
  if (free_.empty()) return kNoDigest;
  const DigestCell cell = free_.back();
  free_.pop_back();
  return cell;
}

void Digests::give_back(DigestCell* cell) noexcept {
  if (*cell != kNoDigest && state_ != State::not_asked) free_.push_back(*cell);
  *cell = kNoDigest;
}

CUresult Digests::broken(CUresult result, CUstream stream) noexcept {
  if (result == CUDA_SUCCESS) return result;
  state_ = State::none;
  driver().cuStreamSynchronize(stream);
  return result;
}

CUresult Digests::begin(DigestCell cell, CUstream stream) noexcept {
  return broken(driver().cuMemsetD32Async(device_cell(cell), 0, kCellBytes / 4, stream), stream);
}

CUresult Digests::add(DigestCell cell, CUdeviceptr address, uint64_t bytes, uint64_t place, CUstream stream) noexcept {
  const uint64_t words = (bytes + 7) / 8;
  const uint64_t per_block = kThreads * kWordsPerThread;
  const auto blocks = static_cast<unsigned>(std::clamp<uint64_t>((words + per_block - 1) / per_block, 1, kMostBlocks));
  auto size = static_cast<unsigned long long>(bytes);
  auto word = static_cast<unsigned long long>(place / 8);
  void* parameters[] = {&address, &size, &word, &cell};
  const Performing moving(Performing::kMoves);
  return broken(driver().cuLaunchKernel(kernel_, blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr), stream);
}

CUresult Digests::finish(DigestCell cell, CUstream stream) noexcept {
  CUdeviceptr to = told_ + cell * kCellBytes;
  void* parameters[] = {&cell, &to};
  const Performing moving(Performing::kMoves);
  return broken(driver().cuLaunchKernel(tell_, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), stream);
}

bool Digests::equal(DigestCell a, DigestCell b) const noexcept {
  return host_[2 * uint64_t{a}] == host_[2 * uint64_t{b}] && host_[2 * uint64_t{a} + 1] == host_[2 * uint64_t{b} + 1];
}

void Digests::close() noexcept {
  if (host_ != nullptr) driver().cuMemFreeHost(host_);
  if (module_ != nullptr) driver().cuModuleUnload(module_);
  host_ = nullptr;
  module_ = nullptr;
  state_ = State::not_asked;
  free_.clear();
}

}  // namespace reprise::replay
