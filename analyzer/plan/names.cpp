#include "analyzer/plan/names.h"

#include <cstring>

#include "analyzer/plan/vertex_kinds.h"

namespace reprise::plan {

const char* name_of(Safety safety) {
  constexpr const char* kNames[] = {"strict", "audited", "trusted", "proven"};
  return kNames[static_cast<size_t>(safety)];
}

bool read_safety(const char* name, Safety* safety) {
  for (const Safety known : {Safety::strict, Safety::proven, Safety::audited, Safety::trusted}) {
    if (std::strcmp(name, name_of(known)) != 0) continue;
    *safety = known;
    return true;
  }
  return false;
}

std::string_view name_of(VertexKind kind) {
  const VertexTraits* const traits = find_traits(kind);
  return traits == nullptr ? "unknown" : traits->name;
}

std::string_view name_of(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::data:
      return "data";
    case EdgeKind::memory:
      return "memory";
    case EdgeKind::program:
      return "program";
  }
  return "unknown";
}

std::string_view name_of(CallKind kind) {
  switch (kind) {
    case CallKind::allocate:
      return "allocate";
    case CallKind::free:
      return "free";
    case CallKind::op:
      return "op";
    case CallKind::free_handover:
      return "free-handover";
    case CallKind::allocate_handover:
      return "allocate-handover";
    case CallKind::late_free:
      return "late-free";
  }
  return "unknown";
}

}  // namespace reprise::plan
