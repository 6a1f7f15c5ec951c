#include "analyzer/verify/unrolled.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace reprise::analyzer {
namespace {
constexpr size_t kBlock = 512;  // sources whose reach is followed at once
using Bits = std::array<uint64_t, kBlock / 64>;
}  // namespace

Unrolled::Unrolled(const plan::Plan& plan) : plan_(plan), vertices_(static_cast<uint32_t>(plan.vertices.size())) {
  const uint32_t nodes = vertices_ * kRounds;
  successors_.resize(nodes);
  std::vector<uint32_t> waiting(nodes, 0);
  for (uint32_t v = 0; v < vertices_; ++v) {
    for (const plan::Predecessor& predecessor : plan.vertices[v].predecessors) {
      for (uint32_t round = predecessor.distance; round < kRounds; ++round) {
        successors_[node(predecessor.vertex, round - predecessor.distance)].push_back(node(v, round));
        ++waiting[node(v, round)];
      }
    }
  }
  for (uint32_t n = 0; n < nodes; ++n) {
    if (waiting[n] == 0) order_.push_back(n);
  }
  for (size_t next = 0; next < order_.size(); ++next) {
    for (const uint32_t successor : successors_[order_[next]]) {
      if (--waiting[successor] == 0) order_.push_back(successor);
    }
  }
  if (order_.size() != nodes) order_.clear();
  position_.resize(nodes);
  for (uint32_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
}

std::string Unrolled::describe(uint32_t node) const {
  const uint32_t index = vertex_of(node);
  const plan::Vertex& vertex = plan_.vertices[index];
  const char* next = round_of(node) > 0 ? " of the next iteration" : "";
  switch (vertex.kind) {
    case plan::VertexKind::op:
      return fmt::format("{} ({}){}", index, plan_.calls[vertex.call].name, next);
    case plan::VertexKind::release:
      return fmt::format("{} (free of tensor {}){}", index, vertex.tensor, next);
    case plan::VertexKind::offload:
      return fmt::format("{} (offload of tensor {}){}", index, vertex.tensor, next);
    case plan::VertexKind::reload:
      return fmt::format("{} (reload of tensor {}){}", index, vertex.tensor, next);
  }
  return fmt::format("{}{}", index, next);
}

const Unrolled::Question* Unrolled::unanswered(std::vector<Question>& questions) const {
  // Sources in topological order, so that a block of them reaches only what stands behind it.
  const auto rank = [&](const Question& q) { return std::tuple(position_[q.from], position_[q.to]); };
  std::stable_sort(questions.begin(), questions.end(),
                   [&](const Question& a, const Question& b) { return rank(a) < rank(b); });
  const auto same = [](const Question& a, const Question& b) { return a.from == b.from && a.to == b.to; };
  questions.erase(std::unique(questions.begin(), questions.end(), same), questions.end());
  for (size_t first = 0; first < questions.size();) {
    size_t sources = 0;
    size_t last = first;
    for (; last < questions.size(); ++last) {
      if (last == first || questions[last].from != questions[last - 1].from) ++sources;
      if (sources > kBlock) break;
    }
    if (const Question* failed = unanswered_block(&questions[first], questions.data() + last)) return failed;
    first = last;
  }
  return nullptr;
}

const Unrolled::Question* Unrolled::unanswered_block(const Question* first, const Question* last) const {
  const uint32_t begin = position_[first->from];
  uint32_t end = begin;
  for (const Question* q = first; q != last; ++q) end = std::max(end, position_[q->to]);
  std::vector<Bits> reached(end - begin + 1, Bits{});
  size_t source = 0;
  for (const Question* q = first; q != last; ++q) {
    if (q != first && q->from != (q - 1)->from) ++source;
    const uint32_t from = position_[q->from];
    if (from <= end) reached[from - begin][source / 64] |= uint64_t{1} << (source % 64);
  }
  for (uint32_t at = begin; at <= end; ++at) {
    const Bits& bits = reached[at - begin];
    for (const uint32_t successor : successors_[order_[at]]) {
      const uint32_t to = position_[successor];
      if (to > end) continue;
      for (size_t word = 0; word < bits.size(); ++word) reached[to - begin][word] |= bits[word];
    }
  }
  source = 0;
  for (const Question* q = first; q != last; ++q) {
    if (q != first && q->from != (q - 1)->from) ++source;
    const uint32_t to = position_[q->to];
    const bool found =
        q->from != q->to && to > position_[q->from] && (reached[to - begin][source / 64] >> (source % 64) & 1) != 0;
    if (!found) return q;
  }
  return nullptr;
}

}  // namespace reprise::analyzer
