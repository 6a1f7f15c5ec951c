// Digests of bytes on the device: 128 bits, computed and told to the host by kernels of ours (digest.cu). What gives
// up bytes because others are known to be the same compares digests first. Callers: the pager and the plan executor, on
// the dispatcher thread.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <vector>

namespace reprise::replay {

// A place for one digest, on the device and on the host.
using DigestCell = uint32_t;
inline constexpr DigestCell kNoDigest = 0xffffffff;

class Digests {
 public:
  static constexpr uint32_t kCells = 4096;  // as many as digest.cu has

  // Can this device compute digests? Loads the kernel into the current context when asked first.
  bool available() noexcept;

  // A cell of one's own; kNoDigest when all are taken. What is given back must not be with the driver any more, or be
  // taken next for work on the same stream.
  DigestCell take() noexcept;
  void give_back(DigestCell* cell) noexcept;

  // The digest of a tensor on `stream`: begin, add for each part of its bytes, finish. `place`: the part's first byte
  // in the tensor, a multiple of 8 as the address is. The cell can be compared once that work is complete. Errors: the
  // driver's; then no digest is available from here on, and the cell holds none.
  CUresult begin(DigestCell cell, CUstream stream) noexcept;
  CUresult add(DigestCell cell, CUdeviceptr address, uint64_t bytes, uint64_t place, CUstream stream) noexcept;
  CUresult finish(DigestCell cell, CUstream stream) noexcept;
  bool equal(DigestCell a, DigestCell b) const noexcept;

  // The context ends: nothing may be computed any more.
  void close() noexcept;

 private:
  enum class State : uint8_t { not_asked, available, none };
  bool load() noexcept;
  // What was issued of the digest before a call is refused has been done: its memory may go.
  CUresult broken(CUresult result, CUstream stream) noexcept;
  CUdeviceptr device_cell(DigestCell cell) const noexcept { return sums_ + cell * kCellBytes; }

  static constexpr uint64_t kCellBytes = 16;
  State state_ = State::not_asked;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  CUfunction tell_ = nullptr;
  CUdeviceptr sums_ = 0;
  uint64_t* host_ = nullptr;  // pinned, two words a cell
  CUdeviceptr told_ = 0;      // the same, for the device
  std::vector<DigestCell> free_;
};

}  // namespace reprise::replay
