#include "analyzer/plan/names.h"

namespace reprise::plan {

std::string_view name_of(VertexKind kind) {
  switch (kind) {
    case VertexKind::op:
      return "op";
    case VertexKind::release:
      return "release";
    case VertexKind::offload:
      return "offload";
    case VertexKind::reload:
      return "reload";
  }
  return "unknown";
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
  }
  return "unknown";
}

}  // namespace reprise::plan
