#include "analyzer/verify/unrolled.h"

#include <fmt/format.h>

#include "analyzer/plan/names.h"
#include "analyzer/plan/vertex_kinds.h"
#include "preload/trace/names.h"

namespace reprise::analyzer {

Unrolled::Unrolled(const plan::Plan& plan)
    : plan_(plan), vertices_(static_cast<uint32_t>(plan.vertices.size())), place_(plan.vertices.size()) {
  size_t edges = 0;
  for (uint32_t place = 0; place < vertices_; ++place) {
    place_[plan.order[place]] = place;
    edges += plan.vertices[plan.order[place]].predecessors.size();
  }
  first_edge_.reserve(size_t{vertices_} + 1);
  edges_.reserve(edges);
  for (const uint32_t vertex : plan.order) {
    first_edge_.push_back(static_cast<uint32_t>(edges_.size()));
    for (const plan::Predecessor& predecessor : plan.vertices[vertex].predecessors) {
      edges_.push_back(place_[predecessor.vertex] | (predecessor.distance != 0 ? kBefore : 0));
    }
  }
  first_edge_.push_back(static_cast<uint32_t>(edges_.size()));
}

std::string Unrolled::number(uint32_t node) const {
  return fmt::format("{}{}", vertex_of(node), round_of(node) > 0 ? " of the next iteration" : "");
}

std::string Unrolled::describe(uint32_t node) const {
  const plan::Vertex& vertex = plan_.vertices[vertex_of(node)];
  std::string what = fmt::format("{} of tensor {}", plan::name_of(vertex.kind), vertex.tensor);
  if (plan::runs_op(vertex.kind)) {
    what = fmt::format("call {}, {}", vertex.call, trace::shown_name(plan_.calls[vertex.call].name));
  } else if (plan::frees(vertex.kind)) {
    what = fmt::format("call {}, the free of tensor {}", vertex.call, vertex.tensor);
  }
  return fmt::format("{} ({}){}", vertex_of(node), what, round_of(node) > 0 ? " of the next iteration" : "");
}

}  // namespace reprise::analyzer
