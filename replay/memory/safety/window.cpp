#include "replay/memory/safety/window.h"

#include "preload/driver/driver.h"

namespace reprise::replay {

CUresult Window::open(ChunkPool* chunks, Mappings* mappings, uint64_t most_chunks) noexcept {
  chunks_ = chunks;
  mappings_ = mappings;
  const uint64_t chunk_bytes = chunks->chunk_bytes();
  const CUresult result = driver().cuMemAddressReserve(&base_, most_chunks * chunk_bytes, chunk_bytes, 0, 0);
  if (result != CUDA_SUCCESS) base_ = 0;
  most_chunks_ = result == CUDA_SUCCESS ? most_chunks : 0;
  return result;
}

CUresult Window::show(ChunkIndex chunk, CUdeviceptr* address) noexcept {
  if (chunk >= most_chunks_) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = base_ + chunk * chunks_->chunk_bytes();
  if (mappings_->find(*address) != nullptr) return CUDA_SUCCESS;
  return mappings_->map(*address, {chunk});
}

void Window::close() noexcept {
  if (base_ != 0) driver().cuMemAddressFree(base_, most_chunks_ * chunks_->chunk_bytes());
  base_ = 0;
}

}  // namespace reprise::replay
