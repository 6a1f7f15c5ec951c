#include "preload/exports/getprocaddress.h"

#include <cuda.h>
#include <pthread.h>

#include <cstring>

#include "preload/base/export.h"
#include "preload/driver/driver.h"
#include "preload/exports/rows.h"
#include "preload/tracking/handle_map.h"

namespace reprise {
namespace {

constinit HandleMap first_of_base;   // hash of a base name -> index + 1 of its first row in by_base
constinit HandleMap row_of_address;  // the driver's function -> row + 1; kAmbiguous where several rows share it
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

}  // namespace

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

CUresult replaced(CUresult result, const char* symbol, void** function, int version, bool per_thread) {
  if (result == CUDA_SUCCESS && function != nullptr) {
    *function = reprise::replacement_for(symbol, version, per_thread, *function);
  }
  return result;
}

}  // namespace

// Both may be called before cuInit. A name that the driver does not know stays unknown, though this library may export
// it.
REPRISE_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                            CUdriverProcAddressQueryResult* status) {
  const CUresult result = driver().cuGetProcAddress(symbol, function, version, flags, status);
  return replaced(result, symbol, function, version, (flags & kPerThread) != 0);
}

#undef cuGetProcAddress
REPRISE_EXPORT CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  const CUresult result = driver().cuGetProcAddress_v1(symbol, function, version, flags);
  return replaced(result, symbol, function, version, (flags & kPerThread) != 0);
}
