#include "preload/exports/rows.h"

namespace reprise {
namespace {

constexpr Row kRows[] = {
#define REPRISE_ROW(symbol, row_class, touches, stream, outputs, waits, base, version) \
  {#symbol, #base, version, RowClass::row_class, Touches::touches, StreamArgument::stream, outputs, Waits::waits},
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
};

// An opaque call may touch anything, so it must find all memory where the program left it; a hook knows its operands.
constexpr bool touches_fits_class(const Row& row) {
  if (row.row_class == RowClass::opaque) return needs_all_resident(row);
  if (row.row_class == RowClass::harmless) return row.touches == Touches::nothing;
  if (row.row_class == RowClass::hooked) return !needs_all_resident(row);
  return row.touches != Touches::operands;
}
constexpr bool all_touches_fit() {
  for (const Row& row : kRows) {
    if (!touches_fits_class(row)) return false;
  }
  return true;
}
static_assert(all_touches_fit(),
              "hooks.def: an opaque row touches `unknown`, a harmless one `nothing`, a hooked one `nothing`, `ends` or "
              "`operands`, no other one `operands`");

}  // namespace

const Row* rows(size_t* count) noexcept {
  *count = kRowCount;
  return kRows;
}

const Row& row(RowId id) noexcept { return kRows[static_cast<size_t>(id)]; }

const char* name_of(RowClass row_class) noexcept {
  static constexpr const char* kNames[] = {"hooked", "harmless", "ordered", "opaque", "graph_update", "refused"};
  return kNames[static_cast<size_t>(row_class)];
}

const char* name_of(Touches touches) noexcept {
  static constexpr const char* kNames[] = {"nothing", "ends", "operands", "addresses", "unknown"};
  return kNames[static_cast<size_t>(touches)];
}

const char* name_of(Waits waits) noexcept {
  static constexpr const char* kNames[] = {"no", "event", "stream", "context", "device"};
  return kNames[static_cast<size_t>(waits)];
}

}  // namespace reprise
