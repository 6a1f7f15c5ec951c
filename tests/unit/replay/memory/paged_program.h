// A program without a dispatcher, for the tests of the pager: tensors, and kernels that check what they read. Callers:
// pager_test, pager_property_test.
#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "preload/footprint/slab.h"
#include "preload/trace/signature.h"
#include "replay/memory/pager.h"
#include "tests/unit/replay/memory/small_device.h"

namespace reprise::replay {

// Its tensors, and kernels that read and write the first word of each of their chunks.
class Program {
 public:
  explicit Program(uint64_t limit, uint64_t host_bytes = 64 * HostTier::kSlotUnit,
                   testing::Safety safety = testing::Safety::trusted)
      : device(limit, HostTier::kSlotUnit, host_bytes, safety), pager(&device.memory) {
    slab_.reset(device.memory.arena.slabs.base, 256 * device.chunk_bytes, device.chunk_bytes);
  }

  ResidentTensor& tensor(uint64_t chunks) {
    ResidentTensor& made = at(next_, chunks);
    next_ += (chunks + 1) * device.chunk_bytes;
    return made;
  }
  ResidentTensor& at(CUdeviceptr base, uint64_t chunks) {
    return *device.memory.tensors.insert(base, chunks * device.chunk_bytes, static_cast<uint32_t>(chunks));
  }
  ResidentTensor& small(uint64_t bytes, LaneIndex lane = kNoLane) {
    ResidentTensor& made = *device.memory.tensors.insert(slab_.allocate(bytes), bytes, 0);
    small_result = pager.allocated_small(made, lane);
    return made;
  }
  bool resident(ResidentTensor& tensor) { return device.memory.mover_of(tensor).is_resident(); }

  // A kernel that reads all of `set` and writes those of `written`. Wrong numbers are counted when it runs. It also
  // reads and writes `unseen`, of which the pager does not know; when these are not mapped, the program faults.
  CUresult kernel(LaneIndex lane, const std::vector<ResidentTensor*>& set, const std::vector<ResidentTensor*>& written,
                  const std::vector<ResidentTensor*>& unseen = {}) {
    CUresult result = pager.make_resident(set);
    if (result == CUDA_SUCCESS) result = device.memory.safety->before_work(lane);
    for (ResidentTensor* tensor : set) {
      if (result == CUDA_SUCCESS) result = device.memory.lanes.wait_on(lane, tensor->ready);
      if (result == CUDA_SUCCESS) result = device.memory.lanes.wait_on(lane, device.memory.mover_of(*tensor).ready);
    }
    if (result != CUDA_SUCCESS) return result;
    struct Part {
      CUdeviceptr address;
      uint64_t expected;  // 0: never written
      uint64_t value;     // 0: not written
      bool unseen;
    };
    std::vector<Part> parts;
    std::vector<ResidentTensor*> touched = set;
    touched.insert(touched.end(), unseen.begin(), unseen.end());
    for (const ResidentTensor* tensor : touched) {
      const bool hidden = std::find(set.begin(), set.end(), tensor) == set.end();
      const bool writes = hidden || std::find(written.begin(), written.end(), tensor) != written.end();
      for (uint64_t i = 0; i < std::max<uint64_t>(tensor->chunk_count, 1); ++i) {
        const CUdeviceptr address = tensor->base + i * device.chunk_bytes;
        uint64_t& value = values_[address];
        parts.push_back({address, value, writes ? trace::hash_mix(value, ++serial_) : 0, hidden});
        if (writes) value = parts.back().value;
      }
    }
    const LaneUse use = device.work(lane, [this, parts] {
      for (const Part& part : parts) {
        faulted = faulted || (part.unseen && !device.driver.mapped(part.address));
        if (faulted) return;
        if (part.expected != 0 && device.driver.read(part.address) != part.expected) ++wrong;
        if (part.value != 0) device.driver.write(part.address, part.value);
      }
    });
    for (ResidentTensor* tensor : set) device.memory.touched(*tensor, use, false);
    for (ResidentTensor* tensor : written) device.memory.touched(*tensor, use, true);
    return CUDA_SUCCESS;
  }
  void free(ResidentTensor& tensor) {
    for (uint64_t i = 0; i < std::max<uint64_t>(tensor.chunk_count, 1); ++i) {
      values_.erase(tensor.base + i * device.chunk_bytes);
    }
    LaneUses last;
    for (const LaneUse& use : device.memory.lanes.outstanding()) last.add(use.lane, use.position);
    if (tensor.chunk_count == 0) slab_.release(tensor.base, tensor.size);
    pager.forget(tensor, last);
  }

  testing::SmallDevice device;
  Pager pager;
  uint64_t wrong = 0;
  bool faulted = false;                  // nothing runs any more
  CUresult small_result = CUDA_SUCCESS;  // of the last small()

 private:
  CUdeviceptr next_ = device.memory.arena.ranges.base;
  std::map<CUdeviceptr, uint64_t> values_;
  footprint::Slab slab_;
  uint64_t serial_ = 0;
};

}  // namespace reprise::replay
