// Faults planted in plans that recompute, a row each: wherever one can be planted, the verifier finds it. Prints by
// which of its rules.
#include "tests/unit/analyzer/verify/recompute_chain.h"

namespace reprise::analyzer {
namespace {

using namespace testing;
using plan::kNone;
using plan::Plan;
using plan::VertexKind;

// ---- What is where in a plan -------------------------------------------------------------------------------------

using Indices = std::vector<uint32_t>;

template <typename Wanted>
Indices calls_where(const Plan& plan, Wanted wanted) {
  Indices found;
  for (uint32_t call = 0; call < plan.calls.size(); ++call) {
    if (wanted(plan.calls[call])) found.push_back(call);
  }
  return found;
}
Indices repeats_in(const Plan& plan) {
  return calls_where(plan, [](const plan::Call& call) { return call.recompute_of != kNone; });
}
Indices tensors_of(const plan::Call& call, bool written) {
  Indices found;
  for (const plan::OpAccess& access : call.accesses) {
    if (writes(access) == written) found.push_back(access.tensor);
  }
  return found;
}
bool uses(const plan::Call& call, uint32_t tensor) {
  return std::any_of(call.accesses.begin(), call.accesses.end(),
                     [&](const plan::OpAccess& access) { return access.tensor == tensor; });
}
// The program's ops that use the tensor.
Indices users_of(const Plan& plan, uint32_t tensor) {
  return calls_where(plan, [&](const plan::Call& call) { return call.recompute_of == kNone && uses(call, tensor); });
}
uint32_t release_of(const Plan& plan, uint32_t tensor) { return plan.calls[plan.tensors[tensor].free_call].vertex; }

// ---- How a fault is planted ----------------------------------------------------------------------------------------

// Which vertices come before `vertex` in the same iteration, itself among them.
std::vector<uint8_t> ancestors(const Plan& plan, uint32_t vertex) {
  std::vector<uint8_t> found(plan.vertices.size(), 0);
  Indices queue = {vertex};
  found[vertex] = 1;
  while (!queue.empty()) {
    const uint32_t at = queue.back();
    queue.pop_back();
    for (const plan::Predecessor& p : plan.vertices[at].predecessors) {
      if (p.distance != 0 || found[p.vertex] != 0) continue;
      found[p.vertex] = 1;
      queue.push_back(p.vertex);
    }
  }
  return found;
}

// `vertex` does not wait for `other` any more, directly or not. `distance` 1: but for that of the iteration before.
void detach(Plan* plan, uint32_t vertex, uint32_t other, bool by_an_iteration = false) {
  auto& predecessors = plan->vertices[vertex].predecessors;
  const auto leads_back = [&](const plan::Predecessor& p) {
    return p.distance == 0 && ancestors(*plan, p.vertex)[other] != 0;
  };
  if (!by_an_iteration) std::erase_if(predecessors, leads_back);
  for (plan::Predecessor& p : predecessors) p.distance = leads_back(p) ? 1 : p.distance;
}

// In the plan's order `vertex`, with all that it waits for, comes before `other`, which it does not wait for.
void move_before(Plan* plan, uint32_t vertex, uint32_t other) {
  const std::vector<uint8_t> first = ancestors(*plan, vertex);
  const auto at = std::find(plan->order.begin(), plan->order.end(), other);
  Indices order(plan->order.begin(), at);
  const Indices before = order;
  std::copy_if(at, plan->order.end(), std::back_inserter(order), [&](uint32_t v) { return first[v] != 0; });
  std::copy_if(at, plan->order.end(), std::back_inserter(order), [&](uint32_t v) { return first[v] == 0; });
  plan->order = std::move(order);
}

// Does `vertex` wait for `other` of the iteration before, directly or not?
bool waits_for_the_one_before(const Plan& plan, uint32_t vertex, uint32_t other) {
  const std::vector<uint8_t> here = ancestors(plan, vertex);
  for (uint32_t v = 0; v < plan.vertices.size(); ++v) {
    for (const plan::Predecessor& p : plan.vertices[v].predecessors) {
      if (here[v] != 0 && p.distance == 1 && ancestors(plan, p.vertex)[other] != 0) return true;
    }
  }
  return false;
}

// Without this call, which has no vertex of its own any more.
void erase_call(Plan* plan, uint32_t gone) {
  const auto shift = [&](uint32_t& call) { call -= call != kNone && call > gone ? 1 : 0; };
  plan->calls.erase(plan->calls.begin() + gone);
  for (plan::Call& call : plan->calls) shift(call.recompute_of);
  for (plan::Vertex& vertex : plan->vertices) shift(vertex.call);
  for (plan::Tensor& tensor : plan->tensors) {
    shift(tensor.allocate_call);
    shift(tensor.free_call);
  }
}

using Broken = std::vector<Plan>;

// `early` runs before `late`, for which it should wait: it may, or the plan's own order says so.
void runs_early(const Plan& good, uint32_t early, uint32_t late, Broken* broken) {
  if (ancestors(good, early)[late] == 0 || early == late) return;
  Plan may = good;
  detach(&may, early, late);
  Plan does = may;
  move_before(&does, early, late);
  broken->push_back(std::move(may));
  broken->push_back(std::move(does));
}

// Who takes a chunk of the tensor's need not wait for the op that uses it.
void taken_early(const Plan& good, uint32_t tensor, uint32_t user, Broken* broken) {
  const std::vector<uint32_t>& chunks = good.placements[good.tensors[tensor].home].chunks;
  for (uint32_t v = 0; v < good.vertices.size(); ++v) {
    for (const plan::Acquire& acquire : good.vertices[v].acquires) {
      const std::vector<uint32_t>& taken = good.placements[acquire.placement].chunks;
      const bool shared = std::find_first_of(taken.begin(), taken.end(), chunks.begin(), chunks.end()) != taken.end();
      if (!shared || acquire.tensor == tensor) continue;
      const size_t before = broken->size();
      runs_early(good, v, user, broken);
      if (broken->size() != before || ancestors(good, user)[v] == 0) continue;
      // The user comes behind it, so it is the next iteration's that takes the chunk from the user.
      Plan plan = good;
      std::erase_if(plan.vertices[v].predecessors, [](const plan::Predecessor& p) { return p.distance == 1; });
      const bool waited = waits_for_the_one_before(good, v, user);
      if (waited && !waits_for_the_one_before(plan, v, user)) broken->push_back(std::move(plan));
    }
  }
}

template <typename Spoil>
void with(const Plan& good, Broken* broken, Spoil spoil) {
  broken->push_back(good);
  spoil(broken->back());
}

// ---- The faults ----------------------------------------------------------------------------------------------------

void parameters_of_the_iteration_before(const Plan& good, Broken* broken) {
  for (const uint32_t call : repeats_in(good)) {
    const uint32_t again = good.calls[call].vertex;
    const uint32_t first = good.calls[good.calls[call].recompute_of].vertex;
    with(good, broken, [&](Plan& plan) {
      detach(&plan, again, first, true);
      move_before(&plan, again, first);
    });
  }
}

void inputs_not_back(const Plan& good, Broken* broken) {
  for (const uint32_t call : repeats_in(good)) {
    const std::vector<uint8_t> before = ancestors(good, good.calls[call].vertex);
    for (const uint32_t input : tensors_of(good.calls[call], false)) {
      for (uint32_t v = 0; v < good.vertices.size(); ++v) {
        const plan::Vertex& vertex = good.vertices[v];
        if (vertex.kind != VertexKind::reload || vertex.tensor != input || before[v] == 0) continue;
        with(good, broken, [&](Plan& plan) {
          plan.reload_bytes -= plan.tensors[input].size;
          erase_vertex(plan, v);
        });
      }
    }
  }
}

// By the calls between the first launch and the repeat.
template <typename Spoil>
void meanwhile(const Plan& good, Broken* broken, Spoil spoil) {
  for (const uint32_t call : repeats_in(good)) {
    for (uint32_t between = good.calls[call].recompute_of + 1; between < call; ++between) {
      const plan::Call& entry = good.calls[between];
      if (entry.kind != plan::CallKind::op || entry.recompute_of != kNone) continue;
      with(good, broken, [&](Plan& plan) { spoil(plan, plan.calls[call], plan.calls[between]); });
    }
  }
}

void inputs_in_another_version(const Plan& good, Broken* broken) {
  meanwhile(good, broken, [](Plan& plan, const plan::Call& repeat, plan::Call& between) {
    for (plan::OpAccess access : plan.calls[repeat.recompute_of].accesses) {
      if (writes(access)) continue;
      access.mode = trace::kAccessWrite;
      between.accesses.push_back(access);
    }
  });
}

void an_opaque_op_meanwhile(const Plan& good, Broken* broken) {
  meanwhile(good, broken, [](Plan&, const plan::Call&, plan::Call& between) { between.flags |= trace::kOpOpaque; });
}

template <typename Spoil>
void each_repeat(const Plan& good, Broken* broken, Spoil spoil) {
  for (const uint32_t call : repeats_in(good)) {
    with(good, broken, [&](Plan& plan) { spoil(plan, plan.calls[call], plan.calls[plan.calls[call].recompute_of]); });
  }
}

void an_impure_kernel(const Plan& good, Broken* broken) {
  each_repeat(good, broken, [](Plan&, plan::Call&, plan::Call& first) { first.pure = false; });
}
void another_kernel(const Plan& good, Broken* broken) {
  each_repeat(good, broken, [](Plan&, plan::Call& repeat, plan::Call&) { repeat.signature ^= 1; });
}
void a_repeat_of_a_repeat(const Plan& good, Broken* broken) {
  const Indices repeats = repeats_in(good);
  for (size_t i = 1; i < repeats.size(); ++i) {
    with(good, broken, [&](Plan& plan) { plan.calls[repeats[i]].recompute_of = repeats[i - 1]; });
  }
}
void another_operand(const Plan& good, Broken* broken) {
  for (const uint32_t call : repeats_in(good)) {
    for (uint32_t other = 0; other < good.tensors.size(); ++other) {
      const Indices inputs = tensors_of(good.calls[call], false);
      if (plan::root_of(good.tensors, inputs[0]) == plan::root_of(good.tensors, other)) continue;
      with(good, broken, [&](Plan& plan) {
        for (plan::OpAccess& access : plan.calls[call].accesses) {
          if (!writes(access)) access.tensor = other;
        }
      });
    }
  }
}
void an_output_that_has_changed_since(const Plan& good, Broken* broken) {
  for (const uint32_t persistent : {0u, 1u}) {
    each_repeat(good, broken, [&](Plan&, plan::Call& repeat, plan::Call& first) {
      for (plan::Call* call : {&repeat, &first}) {
        call->accesses.push_back({persistent, trace::kAccessWrite, 0, 0, 64});
      }
    });
  }
}
void dropped_and_never_made_again(const Plan& good, Broken* broken) {
  each_repeat(good, broken, [](Plan&, plan::Call& repeat, plan::Call&) {
    std::erase_if(repeat.accesses, [](const plan::OpAccess& access) { return writes(access); });
  });
}
void no_memory_for_the_repeat(const Plan& good, Broken* broken) {
  each_repeat(good, broken,
              [](Plan& plan, plan::Call& repeat, plan::Call&) { plan.vertices[repeat.vertex].acquires.clear(); });
}

void lost_without_a_copy(const Plan& good, Broken* broken) {
  for (uint32_t v = 0; v < good.vertices.size(); ++v) {
    if (good.vertices[v].kind != VertexKind::offload) continue;
    with(good, broken, [&](Plan& plan) {
      plan.offload_bytes -= good.vertices[v].clean ? 0 : plan.tensors[good.vertices[v].tensor].size;
      erase_vertex(plan, v);
    });
  }
}

// The vertex that drops what each repeat makes, and the repeat's.
template <typename Visit>
void each_drop(const Plan& good, Visit visit) {
  for (const uint32_t call : repeats_in(good)) {
    for (const uint32_t made : tensors_of(good.calls[call], true)) {
      const uint32_t before = good.tensors[made].recompute_of;
      if (before != kNone) visit(before, made, release_of(good, before), good.calls[call].vertex);
    }
  }
}

void the_repeat_before_the_drop(const Plan& good, Broken* broken) {
  each_drop(good, [&](uint32_t, uint32_t, uint32_t drop, uint32_t again) { runs_early(good, again, drop, broken); });
}
void the_drop_before_the_last_reader(const Plan& good, Broken* broken) {
  each_drop(good, [&](uint32_t life, uint32_t, uint32_t, uint32_t) {
    for (const uint32_t user : users_of(good, life)) taken_early(good, life, good.calls[user].vertex, broken);
  });
}
void the_consumer_before_the_repeat(const Plan& good, Broken* broken) {
  each_drop(good, [&](uint32_t, uint32_t life, uint32_t, uint32_t again) {
    for (const uint32_t user : users_of(good, life)) runs_early(good, good.calls[user].vertex, again, broken);
  });
}
void the_end_before_the_consumer(const Plan& good, Broken* broken) {
  each_drop(good, [&](uint32_t, uint32_t life, uint32_t, uint32_t) {
    for (const uint32_t user : users_of(good, life)) taken_early(good, life, good.calls[user].vertex, broken);
  });
}
void an_input_that_goes_before_the_repeat(const Plan& good, Broken* broken) {
  for (const uint32_t call : repeats_in(good)) {
    for (const uint32_t input : tensors_of(good.calls[call], false)) {
      if (good.tensors[input].home != kNone) taken_early(good, input, good.calls[call].vertex, broken);
    }
  }
}
void a_chain_in_the_wrong_order(const Plan& good, Broken* broken) {
  for (const uint32_t maker : repeats_in(good)) {
    for (const uint32_t made : tensors_of(good.calls[maker], true)) {
      for (const uint32_t user : repeats_in(good)) {
        if (user == maker || !uses(good.calls[user], made)) continue;
        runs_early(good, good.calls[user].vertex, good.calls[maker].vertex, broken);
      }
    }
  }
}

// The program's free ends the life that the plan ends earlier, or one that goes on.
void no_late_free(const Plan& good, Broken* broken) {
  for (uint32_t call = 0; call < good.calls.size(); ++call) {
    if (good.calls[call].kind != plan::CallKind::late_free) continue;
    with(good, broken, [&](Plan& plan) {
      const uint32_t tensor = plan.calls[call].tensor;
      const uint32_t ended = plan.tensors[tensor].free_call;
      plan.calls[call].kind = plan::CallKind::free;
      plan.calls[call].vertex = plan.calls[ended].vertex;
      plan.vertices[plan.calls[call].vertex].call = call;
      plan.tensors[tensor].free_call = call;
      erase_call(&plan, ended);
    });
    with(good, broken, [&](Plan& plan) { plan.calls[call].inserted = true; });
  }
}

// What takes memory takes a placement that another tensor has all the time.
void a_home_that_is_anothers(const Plan& good, Broken* broken) {
  for (const uint32_t call : repeats_in(good)) {
    for (uint32_t other = 0; other < good.tensors.size(); ++other) {
      const plan::Tensor& theirs = good.tensors[other];
      if (!theirs.resident_at_start || theirs.home == kNone) continue;
      Plan plan = good;
      bool changed = false;
      for (plan::Acquire& acquire : plan.vertices[plan.calls[call].vertex].acquires) {
        std::vector<uint32_t>& chunks = plan.placements[acquire.placement].chunks;
        const std::vector<uint32_t>& occupied = plan.placements[theirs.home].chunks;
        // While it is away others may be there.
        const bool moves = std::any_of(plan.vertices.begin(), plan.vertices.end(), [&](const plan::Vertex& vertex) {
          return vertex.kind != VertexKind::op && vertex.tensor == other;
        });
        if (moves || std::find(chunks.begin(), chunks.end(), occupied[0]) != chunks.end()) continue;
        chunks[0] = occupied[0];
        changed = true;
      }
      if (changed) broken->push_back(std::move(plan));
    }
  }
}

void lives_that_are_no_ones(const Plan& good, Broken* broken) {
  each_drop(good, [&](uint32_t life, uint32_t again, uint32_t, uint32_t) {
    for (uint32_t other = 0; other < again; ++other) {
      if (good.tensors[other].size != good.tensors[again].size || other == life) continue;
      with(good, broken, [&](Plan& plan) { plan.tensors[again].recompute_of = other; });
    }
    with(good, broken, [&](Plan& plan) { plan.tensors[again].recompute_of = kNone; });
  });
}

// Nothing of the next iteration waits for what this one does.
void the_next_iteration_before_the_end(const Plan& good, Broken* broken) {
  with(good, broken, [](Plan& plan) {
    for (plan::Vertex& vertex : plan.vertices) {
      std::erase_if(vertex.predecessors, [](const plan::Predecessor& p) { return p.distance == 1; });
    }
  });
}

// The program makes a later call only when it has waited for the consumer, whose repeat waits for that call.
void a_repeat_that_waits_for_what_is_called_later(const Plan& good, Broken* broken) {
  each_drop(good, [&](uint32_t, uint32_t life, uint32_t, uint32_t again) {
    for (const uint32_t user : users_of(good, life)) {
      for (uint32_t later = user + 1; later < good.calls.size(); ++later) {
        const uint32_t vertex = good.calls[later].vertex;
        if (vertex == kNone || good.calls[later].inserted || ancestors(good, vertex)[again] != 0) continue;
        with(good, broken, [&](Plan& plan) {
          move_before(&plan, vertex, again);
          plan.vertices[again].predecessors.push_back({vertex, plan::EdgeKind::program, 0});
          for (uint32_t c = user + 1; c < plan.calls.size(); ++c) plan.calls[c].waited = user + 1;
        });
      }
    }
  });
}

struct Fault {
  const char* name;
  void (*plant)(const Plan& good, Broken* broken);
};

constexpr Fault kFaults[] = {
    {"a repeat with the parameters of the iteration before", parameters_of_the_iteration_before},
    {"a repeat whose inputs are not back", inputs_not_back},
    {"a repeat whose inputs were written since", inputs_in_another_version},
    {"an op between that may write anything", an_opaque_op_meanwhile},
    {"a repeat of a kernel that is not pure", an_impure_kernel},
    {"a repeat of another kernel", another_kernel},
    {"a repeat of a repeat", a_repeat_of_a_repeat},
    {"a repeat with another operand", another_operand},
    {"a repeat that overwrites what has changed since", an_output_that_has_changed_since},
    {"a drop, and nothing makes it again", dropped_and_never_made_again},
    {"a repeat into no memory", no_memory_for_the_repeat},
    {"a departure without a copy behind a write", lost_without_a_copy},
    {"the repeat before the drop", the_repeat_before_the_drop},
    {"the drop before the last reader", the_drop_before_the_last_reader},
    {"the repeat too late for its consumer", the_consumer_before_the_repeat},
    {"the end of the last life before the consumer", the_end_before_the_consumer},
    {"an input that goes before the repeat", an_input_that_goes_before_the_repeat},
    {"a chain in the wrong order", a_chain_in_the_wrong_order},
    {"the program's free frees what a repeat needs", no_late_free},
    {"a home that is another tensor's", a_home_that_is_anothers},
    {"lives of another tensor, or of none", lives_that_are_no_ones},
    {"the next iteration before the end of this one", the_next_iteration_before_the_end},
    {"a repeat that waits for what is called later", a_repeat_that_waits_for_what_is_called_later},
};

// What the verifier says, and the rule behind it (verify.h).
struct Rule {
  const char* words;
  const char* name;
};
constexpr Rule kRules[] = {
    {"not a valid plan", "structure"},
    {"which recomputes call", "recompute"},
    {"does not hold what the program left", "recompute"},
    {"cannot be made again before call", "recompute"},
    {"block for ever", "V7"},
    {"may be overwritten", "V3"},
    {"is lost", "V3"},
    {"is not on the device", "V4"},
    {"may not be in its chunks", "V4"},
    {"may run before", "V2/V5"},
    {"at the end, as it has at the start", "V8"},
    {"", "another rule"},
};
const char* rule_of(const std::string& message) {
  for (const Rule& rule : kRules) {
    if (message.find(rule.words) != std::string::npos) return rule.name;
  }
  return "";
}

// Plans for programs of several forms, and for as many budgets as they have.
std::vector<Plan> good_plans() {
  std::vector<Plan> plans;
  for (const bool keeps : {true, false}) {
    for (const int makers : {1, 2, 3}) {
      for (const uint64_t chunks : {uint64_t{1}, uint64_t{2}}) {
        const Workload workload =
            chain({.keeps = keeps, .makers = makers, .chunks = chunks, .work_chunks = 3 * chunks});
        const TaskGraph graph = recomputed(workload);
        for (uint64_t budget = 3 * chunks; budget <= 8 * chunks; ++budget) {
          Result<Plan> plan = planned(workload, graph, budget);
          if (plan.ok() && plan::recomputes(plan.value())) plans.push_back(std::move(plan.value()));
        }
      }
    }
  }
  return plans;
}

TEST(PlantedFaults, EachIsFound) {
  const std::vector<Plan> plans = good_plans();
  ASSERT_GE(plans.size(), 20u);
  for (const Plan& plan : plans) ASSERT_TRUE(verify(plan).ok()) << verify(plan).message();
  for (const Fault& fault : kFaults) {
    std::map<std::string, int> found;  // by rule
    std::string example;
    int planted = 0;
    for (const Plan& good : plans) {
      Broken broken;
      fault.plant(good, &broken);
      for (const Plan& plan : broken) {
        ++planted;
        const Status status = verify(plan);
        EXPECT_FALSE(status.ok()) << fault.name << "\n" << plan::to_text(plan);
        if (status.ok()) return;
        ++found[rule_of(status.message())];
        if (example.empty()) example = status.message();
      }
    }
    EXPECT_GT(planted, 0) << fault.name << ": cannot be planted anywhere, so this proves nothing";
    std::printf("%-55s %5d planted, found by", fault.name, planted);
    for (const auto& [rule, times] : found) std::printf(" %s (%d)", rule.c_str(), times);
    std::printf("\n    %s\n", example.c_str());
  }
}

}  // namespace
}  // namespace reprise::analyzer
