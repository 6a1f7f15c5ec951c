// One row for each kind of vertex: its name and what it does. Callers ask what a vertex does, not which kind it is. So
// a new kind needs a row here, and code only where its meaning is decided: where it is made (memgraph/build.cpp), timed
// (simulate/timing.cpp), proved (verify/chunks.cpp) and run (replay/dispatch/transfers.cpp).
#pragma once
#include <cstddef>
#include <iterator>
#include <string_view>

#include "analyzer/plan/plan.h"

namespace reprise::plan {

struct VertexTraits {
  VertexKind kind;
  std::string_view name;
  bool op = false;     // runs the op of a call
  bool frees = false;  // ends a tensor, where the program frees it: nothing runs
  bool in = false;     // copies a tensor to the device
  bool out = false;    // copies a tensor off the device
};

inline constexpr VertexTraits kVertexKinds[] = {
    {.kind = VertexKind::op, .name = "op", .op = true},
    {.kind = VertexKind::release, .name = "release", .frees = true},
    {.kind = VertexKind::offload, .name = "offload", .out = true},
    {.kind = VertexKind::reload, .name = "reload", .in = true},
};

// Returns nullptr if no enumerator has this value. Rows stand in the order of the enumerators, which begin with 1.
constexpr const VertexTraits* find_traits(VertexKind kind) {
  const size_t row = static_cast<size_t>(kind) - 1;
  return row < std::size(kVertexKinds) ? &kVertexKinds[row] : nullptr;
}
static_assert([] {
  for (const VertexTraits& row : kVertexKinds) {
    if (find_traits(row.kind) != &row) return false;
  }
  return true;
}());

constexpr bool runs_op(VertexKind kind) { return find_traits(kind) != nullptr && find_traits(kind)->op; }
constexpr bool frees(VertexKind kind) { return find_traits(kind) != nullptr && find_traits(kind)->frees; }
constexpr bool copies_in(VertexKind kind) { return find_traits(kind) != nullptr && find_traits(kind)->in; }
constexpr bool copies_out(VertexKind kind) { return find_traits(kind) != nullptr && find_traits(kind)->out; }
constexpr bool copies(VertexKind kind) { return copies_in(kind) || copies_out(kind); }
// The program makes the call itself; Vertex::call has its index.
constexpr bool is_call(VertexKind kind) { return runs_op(kind) || frees(kind); }

}  // namespace reprise::plan
