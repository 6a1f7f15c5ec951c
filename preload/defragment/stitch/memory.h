// What the stitching allocator needs of a device: physical chunks of one size, and addresses to map them at. The
// driver's version is preload/defragment; tests and bench/defragment bring models without a device. Caller: Stitcher.
#pragma once
#include <cstdint>

namespace reprise::stitch {

enum class Result : uint8_t {
  ok,
  out_of_memory,  // the device has no such chunk, or no addresses, left
  failed,         // anything else; the implementation keeps the driver's error
};

class Memory {
 public:
  // Makes one physical chunk.
  virtual Result create(uint64_t* handle) noexcept = 0;
  // The chunk is mapped nowhere any more.
  virtual void destroy(uint64_t handle) noexcept = 0;

  // Reserves addresses for `count` chunks and maps these there, in order, for reading and writing. A chunk may be
  // mapped at several places at once. On an error nothing is left behind.
  virtual Result map(const uint64_t* handles, uint32_t count, uint64_t* address) noexcept = 0;
  // Unmaps `count` chunks from `address` on: all of what map() mapped there, or a part.
  virtual void unmap(uint64_t address, uint32_t count) noexcept = 0;
  // Gives back addresses that map() reserved; `count` as there. All of them are unmapped.
  virtual void unreserve(uint64_t address, uint32_t count) noexcept = 0;

  // Returns when all work is over that was submitted before what it used was freed.
  virtual void settle() noexcept = 0;

 protected:
  ~Memory() = default;
};

}  // namespace reprise::stitch
