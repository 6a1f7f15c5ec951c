// One row for each kind of vertex: its name and what it does. Callers ask what a vertex does, not which kind it is, so
// that a new kind needs a row here, and code only where its meaning is decided: where it is made (memgraph/build.cpp),
// timed (simulate/timing.cpp), verified (verify/chunks.cpp, conflicts.cpp) and run (replay: plan_index.cpp,
// transfers.cpp). Those are switches that the compiler checks.
#pragma once
#include <string_view>

#include "analyzer/plan/plan.h"

namespace reprise::plan {

struct VertexTraits {
  VertexKind kind;
  std::string_view name;
  bool call = false;  // of the recorded program
  bool in = false;    // copies a tensor to the device
  bool out = false;   // copies a tensor off the device
};

inline constexpr VertexTraits kVertexKinds[] = {
    {.kind = VertexKind::op, .name = "op", .call = true},
    {.kind = VertexKind::release, .name = "release", .call = true},
    {.kind = VertexKind::offload, .name = "offload", .out = true},
    {.kind = VertexKind::reload, .name = "reload", .in = true},
};

// Returns nullptr if no enumerator has this value.
constexpr const VertexTraits* find_traits(VertexKind kind) {
  for (const VertexTraits& row : kVertexKinds) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

constexpr bool copies_in(VertexKind kind) { return find_traits(kind) != nullptr && find_traits(kind)->in; }
constexpr bool copies_out(VertexKind kind) { return find_traits(kind) != nullptr && find_traits(kind)->out; }
constexpr bool copies(VertexKind kind) { return copies_in(kind) || copies_out(kind); }

}  // namespace reprise::plan
