#include "tools/report/view/travels.h"

#include "analyzer/plan/vertex_kinds.h"

namespace reprise::report {
namespace {

uint32_t of_program(const plan::Plan& plan, uint32_t tensor) {
  const uint32_t root = plan::root_of(plan.tensors, tensor);
  const uint32_t part_of = plan.tensors[root].part_of;
  return part_of == plan::kNone ? root : part_of;
}

}  // namespace

std::vector<uint32_t> numbers_of(const plan::Plan& plan) {
  std::vector<uint32_t> numbers(plan.tensors.size());
  uint32_t count = 0;
  for (uint32_t i = 0; i < numbers.size(); ++i) {
    if (of_program(plan, i) == i) numbers[i] = count++;
  }
  for (uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = numbers[of_program(plan, i)];
  return numbers;
}

std::vector<Travel> travels_of(const plan::Plan& plan) {
  std::vector<Travel> travels;
  const std::vector<uint32_t> numbers = numbers_of(plan);
  for (uint32_t i = 0; i < plan.tensors.size(); ++i) {
    if (of_program(plan, i) == i) travels.push_back({i, plan.tensors[i].recorded_allocation});
  }
  for (uint32_t i = 0; i < plan.tensors.size(); ++i) {
    Travel& travel = travels[numbers[i]];
    const bool again = plan.tensors[i].recompute_of != plan::kNone;
    (again ? travel.dropped_bytes : travel.bytes) += plan.tensors[i].size;
  }
  for (const plan::Vertex& vertex : plan.vertices) {
    if (!plan::copies(vertex.kind)) continue;
    Travel& travel = travels[numbers[vertex.tensor]];
    const bool in = plan::copies_in(vertex.kind);
    (in ? travel.in_bytes : vertex.clean ? travel.spared_bytes : travel.out_bytes) += plan.tensors[vertex.tensor].size;
  }
  return travels;
}

Spared spared_by(const plan::Plan& plan) {
  Spared spared;
  for (const Travel& one : travels_of(plan)) {
    spared.clean_bytes += one.spared_bytes;
    spared.dropped_bytes += one.dropped_bytes;
  }
  for (const plan::Call& call : plan.calls) {
    if (call.recompute_of == plan::kNone) continue;
    ++spared.launches;
    spared.launch_ns += call.duration_ns;
  }
  return spared;
}

}  // namespace reprise::report
