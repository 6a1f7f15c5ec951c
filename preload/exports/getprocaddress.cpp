#include "preload/exports/getprocaddress.h"

#include <cuda.h>
#include <pthread.h>

#include <cstring>

#include "preload/base/causes.h"
#include "preload/base/config.h"
#include "preload/base/export.h"
#include "preload/base/runtime.h"
#include "preload/driver/driver.h"
#include "preload/driver/resolve.h"
#include "preload/exports/rows.h"
#include "preload/tracking/handle_map.h"

namespace reprise {
namespace {

constinit HandleMap first_of_base;   // hash of a base name -> index + 1 of its first row in by_base
constinit HandleMap row_of_address;  // the driver's function -> row + 1; kAmbiguous where several rows share it
constinit HandleMap said_missing;    // hash of a name
constexpr uint64_t kAmbiguous = ~0ull;
pthread_once_t build_once = PTHREAD_ONCE_INIT;

// FNV-1a: short names, no length at hand.
uint64_t hash_name(const char* name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3ull;
  return hash | 1;
}

void build() {
  size_t count = 0;
  const Row* table = rows(&count);
  for (size_t row = 0; row < count; ++row) {
    const uint64_t base = hash_name(table[row].base);
    if (first_of_base.find(base) == 0) first_of_base.set(base, row + 1);
    const auto address = reinterpret_cast<uint64_t>(driver_address(row));
    if (address == 0) continue;
    row_of_address.set(address, row_of_address.find(address) == 0 ? row + 1 : kAmbiguous);
  }
}

// Of the rows with this base and kind of stream, the newest whose version is not above the one asked for. The rows of a
// base need not stand together, but the first one is known.
const Row* row_by_version(const Row* table, size_t count, const char* symbol, int version, bool per_thread) {
  const uint64_t first = first_of_base.find(hash_name(symbol));
  if (first == 0) return nullptr;
  const Row* best = nullptr;
  const Row* best_plain = nullptr;
  for (size_t row = first - 1; row < count; ++row) {
    if (std::strcmp(table[row].base, symbol) != 0 || table[row].version > version) continue;
    const bool own = per_thread_symbol(table[row].symbol);
    const Row** slot = own ? &best : &best_plain;
    if (own && !per_thread) continue;
    if (*slot == nullptr || table[row].version > (*slot)->version) *slot = &table[row];
  }
  // A function without a per-thread form is the same for both.
  return best != nullptr ? best : best_plain;
}

bool known_base(const char* symbol) {
  pthread_once(&build_once, build);
  return first_of_base.find(hash_name(symbol)) != 0;
}

// Programs ask for whole lists of names and call few of them: for those who look for a reason.
void say_missing(const char* symbol, const char* why) {
  const uint64_t name = hash_name(symbol);
  if (said_missing.find(name) != 0) return;
  said_missing.set(name, 1);
  say<Cause::call_missing>(symbol, why);
}

}  // namespace

void say_if_no_driver() noexcept {
  static bool said = false;
  if (driver_path() == nullptr && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
    say<Cause::no_driver>(driver_problem());
  }
}

bool only_known_calls() noexcept {
  if (watch_flags() != 0) return true;
  return !disabled() && (config().manages() || config().trace != nullptr);
}

void* replacement_for(const char* symbol, int version, bool per_thread, void* found) noexcept {
  if (symbol == nullptr || found == nullptr) return found;
  pthread_once(&build_once, build);
  size_t count = 0;
  const Row* table = rows(&count);
  const uint64_t known = row_of_address.find(reinterpret_cast<uint64_t>(found));
  const Row* row = nullptr;
  if (known != 0 && known != kAmbiguous && std::strcmp(table[known - 1].base, symbol) == 0) {
    row = &table[known - 1];
  } else {
    row = row_by_version(table, count, symbol, version, per_thread);
  }
  if (row == nullptr || row->row_class == RowClass::harmless) return found;
  return exported_address(static_cast<size_t>(row - table));
}

}  // namespace reprise

using reprise::driver;

namespace {

constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

// Why the program shall not have what the driver found for it; nullptr: it may.
const char* reason_to_hide(const char* symbol, void* found, int version, cuuint64_t flags) {
  using namespace reprise;
  if (std::strncmp(symbol, "cu", 2) != 0 || !only_known_calls()) return nullptr;
  if (!known_base(symbol)) return phrase<Cause::call_unknown>();
  if (version <= kNewestVersion) return nullptr;
  // The same function as for the newest version that is known, or a newer form with other parameters?
  void* known = nullptr;
  if (driver().cuGetProcAddress(symbol, &known, kNewestVersion, flags, nullptr) == CUDA_SUCCESS && known == found) {
    return nullptr;
  }
  return phrase<Cause::call_too_new>();
}

// true: `*function` is what the program gets.
bool replaced(const char* symbol, void** function, int version, cuuint64_t flags) {
  if (function == nullptr || *function == nullptr) return true;
  if (const char* why = reason_to_hide(symbol, *function, version, flags); why != nullptr) {
    reprise::say_missing(symbol, why);
    *function = nullptr;
    return false;
  }
  *function = reprise::replacement_for(symbol, version, (flags & kPerThread) != 0, *function);
  return true;
}

}  // namespace

// Both may be called before cuInit. A name that the driver does not know stays unknown, though this library may export
// it.
REPRISE_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                            CUdriverProcAddressQueryResult* status) {
  const CUresult result = driver().cuGetProcAddress(symbol, function, version, flags, status);
  if (result != CUDA_SUCCESS || replaced(symbol, function, version, flags)) return result;
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;  // documented: a name that is not found is no error
}

#undef cuGetProcAddress
REPRISE_EXPORT CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  const CUresult result = driver().cuGetProcAddress_v1(symbol, function, version, flags);
  return result != CUDA_SUCCESS || replaced(symbol, function, version, flags) ? result : CUDA_ERROR_NOT_FOUND;
}

// Runtimes, PyTorch and cuda.core decide by the version what they ask for.
REPRISE_EXPORT CUresult cuDriverGetVersion(int* version) {
  const CUresult result = driver().cuDriverGetVersion(version);
  reprise::say_if_no_driver();
  if (result == CUDA_SUCCESS && version != nullptr && *version > reprise::kNewestVersion &&
      reprise::only_known_calls()) {
    *version = reprise::kNewestVersion;
  }
  return result;
}
