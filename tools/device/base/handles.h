// Handles that the program holds: a kind, a generation and a slot, never an address. So a wrong, stale or foreign
// handle is told from a good one without touching what it points to. Callers: every API function with a handle
// argument.
//
//   bits 40..43 kind   24..39 generation   0..23 slot
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace reprise::sim {

enum class HandleKind : uint8_t {
  context = 1,
  stream,
  event,
  module,
  function,
  library,
  kernel,
  memory,
  pool,
  graph,
  graph_node,
  graph_exec,
  user_object,
};

// Objects of one kind by handle. get() takes no lock: a slot's block never moves. Removing an object that another
// thread uses at the same time is the program's error, as with the real driver.
template <typename T, typename Handle, HandleKind kKind>
class HandleTable {
 public:
  // Returns the new handle, 0 when all slots are taken.
  Handle add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    uint32_t index;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      index = count_;
      if (index >= kBlocks * kBlockSlots) return Handle{};
      if (index % kBlockSlots == 0)
        blocks_[index / kBlockSlots].store(new Slot[kBlockSlots], std::memory_order_release);
      ++count_;
    }
    Slot& slot = slot_at(index);
    slot.object = std::move(object);
    const uint16_t generation = static_cast<uint16_t>(slot.next_generation++);
    if (slot.next_generation == 0) slot.next_generation = 1;
    slot.generation.store(generation, std::memory_order_release);
    return to_handle((static_cast<uint64_t>(kKind) << 40) | (static_cast<uint64_t>(generation) << 24) | index);
  }

  // The object, or nullptr when the handle is not a live one of this kind.
  T* get(Handle handle) const {
    const Slot* slot = find(handle);
    return slot == nullptr ? nullptr : slot->object.get();
  }
  std::shared_ptr<T> share(Handle handle) const {
    const Slot* slot = find(handle);
    return slot == nullptr ? nullptr : slot->object;
  }

  // Ends the handle; the object lives on as long as a shared_ptr to it is held.
  std::shared_ptr<T> remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    Slot* slot = const_cast<Slot*>(find(handle));
    if (slot == nullptr) return nullptr;
    slot->generation.store(0, std::memory_order_release);
    free_.push_back(static_cast<uint32_t>(bits(handle) & 0xFFFFFF));
    return std::exchange(slot->object, nullptr);
  }

  std::vector<std::pair<Handle, std::shared_ptr<T>>> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<Handle, std::shared_ptr<T>>> result;
    for (uint32_t i = 0; i < count_; ++i) {
      const Slot& slot = slot_at(i);
      const uint64_t generation = slot.generation.load(std::memory_order_relaxed);
      if (generation == 0) continue;
      result.emplace_back(to_handle((static_cast<uint64_t>(kKind) << 40) | (generation << 24) | i), slot.object);
    }
    return result;
  }

  static bool is_kind(Handle handle) { return bits(handle) >> 40 == static_cast<uint64_t>(kKind); }

 private:
  static constexpr uint32_t kBlockSlots = 4096;
  static constexpr uint32_t kBlocks = 4096;
  struct Slot {
    std::atomic<uint16_t> generation{0};  // 0: free
    uint16_t next_generation = 1;
    std::shared_ptr<T> object;
  };

  static uint64_t bits(Handle handle) { return (uint64_t)handle; }   // NOLINT: pointer or integer
  static Handle to_handle(uint64_t value) { return (Handle)value; }  // NOLINT: pointer or integer
  Slot& slot_at(uint32_t index) const {
    return blocks_[index / kBlockSlots].load(std::memory_order_acquire)[index % kBlockSlots];
  }
  const Slot* find(Handle handle) const {
    if (!is_kind(handle)) return nullptr;
    const uint32_t index = static_cast<uint32_t>(bits(handle) & 0xFFFFFF);
    const Slot* block = blocks_[index / kBlockSlots].load(std::memory_order_acquire);
    if (block == nullptr) return nullptr;
    const Slot& slot = block[index % kBlockSlots];
    const uint16_t generation = static_cast<uint16_t>(bits(handle) >> 24);
    return generation != 0 && slot.generation.load(std::memory_order_acquire) == generation ? &slot : nullptr;
  }

  mutable std::mutex mutex_;
  std::atomic<Slot*> blocks_[kBlocks] = {};
  std::vector<uint32_t> free_;
  uint32_t count_ = 0;
};

}  // namespace reprise::sim
