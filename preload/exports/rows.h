// hooks.def as data: every exported function with all that is known about it, its address here and the driver's.
// Callers: the thunks' slow paths, hooks that forward, cuGetProcAddress, `reprise doctor --calls`, tests.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace reprise {

enum class RowClass : uint8_t { hooked, harmless, ordered, opaque, graph_update, refused };
enum class Touches : uint8_t { nothing, ends, operands, addresses, unknown };
enum class Waits : uint8_t { no, event, stream, context, device };

// The words of hooks.def are those of the enumerators above; of the stream argument, `no` and s0, s1, ...
enum class StreamArgument : int8_t { no = -1, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9 };

struct Row {
  const char* symbol;
  const char* base;  // without _v2, _ptsz, ...
  int version;       // at which cuGetProcAddress gives this form
  RowClass row_class;
  Touches touches;
  StreamArgument stream;
  uint32_t outputs;  // bit i: parameter i points to what the call writes on the host
  Waits waits;
};

// The number of a row, by its symbol: RowId::k_cuMemFree_v2.
enum class RowId : uint16_t {
#define REPRISE_ROW(symbol, ...) k_##symbol,
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
};
inline constexpr size_t kRowCount = 0
#define REPRISE_ROW(...) +1
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
    ;

// The CUDA version whose driver the rows describe. What drivers have gained since is in no row.
inline constexpr int kNewestVersion = std::max({
#define REPRISE_ROW(symbol, row_class, touches, stream, outputs, waits, base, version) version,
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
});

const Row* rows(size_t* count) noexcept;
const Row& row(RowId id) noexcept;

// May the call reach memory that its arguments do not tell, or does the driver look at addresses during it? Then all of
// the program's memory has to be resident before the driver gets it.
constexpr bool needs_all_resident(const Row& row) noexcept {
  return row.touches == Touches::unknown || row.touches == Touches::addresses;
}

// Does the symbol's suffix say that stream 0 is the per-thread default stream?
// Here, so that the simulated device, which has the same rows and none of our functions, asks it, too.
constexpr bool per_thread_symbol(std::string_view symbol) noexcept {
  return symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
}

// Our function of this row (thunks).
void* exported_address(size_t row) noexcept;

// The driver's function of this row, nullptr when it lacks it (thunks).
void* driver_address(size_t row) noexcept;

// The word of hooks.def, for people.
const char* name_of(RowClass row_class) noexcept;
const char* name_of(Touches touches) noexcept;
const char* name_of(Waits waits) noexcept;

}  // namespace reprise
