// The buffers that CUPTI fills with records. CUPTI 13 takes one for each thread that calls the driver, and some
// besides. Its callbacks carry no user pointer, so there is one set a process. Callers: the CUPTI source.
#pragma once
#include <cupti.h>

#include <atomic>

namespace reprise {

class CuptiBuffers {
 public:
  // false: no memory.
  bool create() noexcept;

  // A free buffer, nullptr when all are taken. On any thread, in CUPTI.
  uint8_t* take(size_t* bytes) noexcept;
  // It waits for next_completed(). Not one of ours, as another tool's that registered its callbacks meanwhile: left
  // alone.
  void complete(uint8_t* bytes, size_t valid) noexcept;

  struct Completed {
    uint8_t* bytes = nullptr;
    size_t valid = 0;
  };
  // Calls `read` for each that is complete, and takes it back. One thread at a time.
  template <typename Read>
  void read_completed(Read read) noexcept {
    for (Buffer* buffer = completed_.exchange(nullptr, std::memory_order_acquire); buffer != nullptr;) {
      Buffer* const next = buffer->next;
      read(Completed{buffer->bytes, buffer->valid});
      buffer->taken.store(false, std::memory_order_release);
      buffer = next;
    }
  }

 private:
  static constexpr size_t kBytes = 1u << 20;
  static constexpr uint32_t kCount = 256;  // address space; memory only where records were

  struct Buffer {
    std::atomic<bool> taken{false};
    uint8_t* bytes = nullptr;
    size_t valid = 0;
    Buffer* next = nullptr;
  };
  Buffer all_[kCount];
  std::atomic<Buffer*> completed_{nullptr};
};

}  // namespace reprise
