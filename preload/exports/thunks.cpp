// The slow paths of thunks.S: finding a driver function, what happens before an ordered call, refusing one.
#include <cuda.h>

#include <cstring>

#include "preload/base/guard.h"
#include "preload/base/log.h"
#include "preload/driver/driver.h"
#include "preload/driver/resolve.h"
#include "preload/exports/barriers.h"
#include "preload/exports/rows.h"

extern "C" {
extern void* reprise_slots[];
extern void* const reprise_exports[];
void* reprise_resolve_row(uint32_t row) noexcept;
void* reprise_before_row(uint32_t row, uint64_t first_argument) noexcept;
CUresult reprise_refuse_row(uint32_t row) noexcept;
}

namespace reprise {
namespace {

constexpr Row kRows[] = {
#define REPRISE_ROW(symbol, row_class, base, version) {#symbol, #base, version, RowClass::row_class},
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
};
constexpr size_t kRowCount = sizeof kRows / sizeof kRows[0];

void* resolved[kRowCount];  // what the slot holds once it is resolved; before, the slot leads to the look-up
bool said_refused[kRowCount];

}  // namespace

const Row* rows(size_t* count) noexcept {
  *count = kRowCount;
  return kRows;
}

void* exported_address(size_t row) noexcept { return reprise_exports[row]; }

void* driver_address(size_t row) noexcept { return driver_symbol(kRows[row].symbol); }

bool per_thread_symbol(const char* symbol) noexcept {
  const size_t length = std::strlen(symbol);
  return length > 5 &&
         (std::strcmp(symbol + length - 5, "_ptsz") == 0 || std::strcmp(symbol + length - 5, "_ptds") == 0);
}

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

void* reprise_before_row(uint32_t row, uint64_t first_argument) noexcept {
  using namespace reprise;
  if (const HookScope scope; scope) before_barrier(kRows[row], first_argument);
  return reprise_resolve_row(row);
}

CUresult reprise_refuse_row(uint32_t row) noexcept {
  using namespace reprise;
  if (!__atomic_exchange_n(&said_refused[row], true, __ATOMIC_RELAXED)) {
    log_line(LogLevel::warn, "%s is not supported while memory is managed (REPRISE_DISABLE=1 turns management off)",
             kRows[row].symbol);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}
