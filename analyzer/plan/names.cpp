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
    case CallKind::give_up:
      return "give-up";
    case CallKind::renew:
      return "renew";
  }
  return "unknown";
}

}  // namespace reprise::plan
