// The slow paths of thunks.S: finding a driver function, what happens before an ordered call, refusing one.
#include <cuda.h>

#include "preload/base/causes.h"
#include "preload/base/guard.h"
#include "preload/driver/driver.h"
#include "preload/driver/resolve.h"
#include "preload/exports/barriers.h"
#include "preload/exports/rows.h"
#include "preload/tracking/streams.h"

extern "C" {
extern void* reprise_slots[];
extern void* const reprise_exports[];
void* reprise_resolve_row(uint32_t row) noexcept;
void* reprise_before_row(uint32_t row, uint64_t* saved) noexcept;
CUresult reprise_refuse_row(uint32_t row) noexcept;
}

namespace reprise {
namespace {

// Where the thunk left the call's arguments (keep_arguments_and_call in thunks.S): six registers, and further on,
// behind what else is saved, the rest on the caller's stack.
constexpr size_t kRegisters = 6;
constexpr size_t kStackArguments = 26;

constexpr size_t place_of(size_t index) noexcept {
  return index < kRegisters ? index : kStackArguments + index - kRegisters;
}

// The stream that a call of this row works on: its argument, where NULL is the default stream that the symbol means;
// without one, the default stream.
CUstream stream_of(const Row& row, const uint64_t* saved) noexcept {
  const auto kind = per_thread_symbol(row.symbol) ? DefaultStream::per_thread : DefaultStream::legacy;
  CUstream stream = nullptr;
  if (row.stream != StreamArgument::no) {
    stream = reinterpret_cast<CUstream>(saved[place_of(static_cast<size_t>(row.stream))]);
  }
  return explicit_stream(stream, kind);
}

// A thunk jumps to answer_instead() in the driver function's place where Reprise answers the call; it may overwrite the
// argument registers, as any function may.
thread_local CUresult answer __attribute__((tls_model("initial-exec"))) = CUDA_SUCCESS;
CUresult answer_instead() noexcept { return answer; }

void* resolved[kRowCount];  // what the slot holds once it is resolved; before, the slot leads to the look-up
bool said_refused[kRowCount];

}  // namespace

void* exported_address(size_t row) noexcept { return reprise_exports[row]; }

void* driver_address(size_t row) noexcept { return driver_symbol(reprise::row(RowId(row)).symbol); }

}  // namespace reprise

void* reprise_resolve_row(uint32_t row) noexcept {
  using namespace reprise;
  if (void* known = __atomic_load_n(&resolved[row], __ATOMIC_ACQUIRE); known != nullptr) return known;
  void* address = driver_address(row);
  // A function that this driver is too old for: the code for a driver function name that does not exist.
  if (address == nullptr) address = reinterpret_cast<void*>(&detail::driver_entry_missing);
  __atomic_store_n(&resolved[row], address, __ATOMIC_RELEASE);
  __atomic_store_n(&reprise_slots[row], address, __ATOMIC_RELEASE);
  return address;
}

void* reprise_before_row(uint32_t row, uint64_t* saved) noexcept {
  using namespace reprise;
  if (const HookScope scope; scope) {
    const Row& facts = reprise::row(RowId(row));
    CUstream stream = stream_of(facts, saved);
    answer = before_barrier(facts, &stream, saved[0]);
    if (answer != CUDA_SUCCESS) return reinterpret_cast<void*>(&answer_instead);
    // A callee's arguments are its own to change.
    if (stream != stream_of(facts, saved) && facts.stream != StreamArgument::no) {
      saved[place_of(static_cast<size_t>(facts.stream))] = reinterpret_cast<uint64_t>(stream);
    }
  }
  return reprise_resolve_row(row);
}

CUresult reprise_refuse_row(uint32_t row) noexcept {
  using namespace reprise;
  if (!__atomic_exchange_n(&said_refused[row], true, __ATOMIC_RELAXED)) {
    say<Cause::call_not_supported>(reprise::row(RowId(row)).symbol);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}
