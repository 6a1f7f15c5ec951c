// What values of a plan are called when people read them. Callers: the plan's text form and the exports; those of the
// trace are in preload/trace/names.h.
#pragma once
#include <string_view>

#include "analyzer/plan/plan.h"

namespace reprise::plan {

// "op", "release", ... A value that no enumerator has is "unknown".
std::string_view name_of(VertexKind kind);
std::string_view name_of(EdgeKind kind);
std::string_view name_of(CallKind kind);

}  // namespace reprise::plan
