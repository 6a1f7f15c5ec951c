#include "preload/exports/rows.h"

#include <cstring>

namespace reprise {
namespace {

constexpr Row kRows[] = {
#define REPRISE_ROW(symbol, row_class, touches, stream, outputs, waits, base, version) \
  {#symbol, #base, version, RowClass::row_class, Touches::touches, StreamArgument::stream, outputs, Waits::waits},
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
};
constexpr size_t kRowCount = sizeof kRows / sizeof kRows[0];

// An opaque call may touch anything, so it must find all memory where the program left it.
constexpr bool opaque_needs_all() {
  for (const Row& row : kRows) {
    if (row.row_class == RowClass::opaque && !needs_all_resident(row)) return false;
    if (row.row_class == RowClass::harmless && row.touches != Touches::nothing) return false;
  }
  return true;
}
static_assert(opaque_needs_all(), "hooks.def: an opaque row touches `unknown`, a harmless one `nothing`");

}  // namespace

const Row* rows(size_t* count) noexcept {
  *count = kRowCount;
  return kRows;
}

const Row& row(RowId id) noexcept { return kRows[static_cast<size_t>(id)]; }

bool per_thread_symbol(const char* symbol) noexcept {
  const size_t length = std::strlen(symbol);
  return length > 5 &&
         (std::strcmp(symbol + length - 5, "_ptsz") == 0 || std::strcmp(symbol + length - 5, "_ptds") == 0);
}

const char* name_of(RowClass row_class) noexcept {
  static constexpr const char* kNames[] = {"hooked", "harmless", "ordered", "opaque", "graph_update", "refused"};
  return kNames[static_cast<size_t>(row_class)];
}

const char* name_of(Touches touches) noexcept {
  static constexpr const char* kNames[] = {"nothing", "operands", "addresses", "unknown"};
  return kNames[static_cast<size_t>(touches)];
}

const char* name_of(Waits waits) noexcept {
  static constexpr const char* kNames[] = {"no", "event", "stream", "context", "device"};
  return kNames[static_cast<size_t>(waits)];
}

}  // namespace reprise
