// A function of a library, forwarded to the one that the caller would have got without us, and the list of what such a
// call declares. Callers: the exports of this room.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "preload/calls/declared.h"
#include "preload/driver/resolve.h"
#include "preload/trace/format.h"

namespace reprise::libraries {

inline constexpr uint64_t kNotInitialized = 1;  // CUBLAS_STATUS_NOT_INITIALIZED: no library has the function

// All parameters are words: integers and addresses, each in a register or in eight bytes of the stack.
template <typename... Words>
using WordFunction = uint64_t(Words...);

// nullptr: there is none. `known` keeps it for the callers behind the first one.
template <typename Function>
Function* next(std::atomic<void*>& known, const char* symbol, const void* caller) noexcept {
  void* found = known.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = symbol_behind(caller, symbol);
    known.store(found, std::memory_order_release);
  }
  return reinterpret_cast<Function*>(found);
}

// In an export's body: `own`, the function that the caller would have got.
#define REPRISE_NEXT(symbol, type)          \
  static std::atomic<void*> known{nullptr}; \
  auto* const own = next<type>(known, #symbol, __builtin_return_address(0))

class DeclaredOperands {
 public:
  void add_read(uint64_t address) noexcept { add(address, trace::kAccessRead); }
  void add_written(uint64_t address) noexcept { add(address, trace::kAccessRead | trace::kAccessWrite); }
  // The list ends with this object.
  DeclaredCall call(bool complete) const noexcept { return {operands_.data(), count_, complete && fits_}; }

 private:
  void add(uint64_t address, uint32_t mode) noexcept {
    if (address == 0) return;
    fits_ = fits_ && count_ < operands_.size();
    if (fits_) operands_[count_++] = {address, mode};
  }

  std::array<DeclaredOperand, kMostDeclared> operands_;
  uint32_t count_ = 0;
  bool fits_ = true;
};

}  // namespace reprise::libraries
