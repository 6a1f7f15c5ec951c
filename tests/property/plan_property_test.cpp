// Properties of plans for random programs and budgets.
#include <rapidcheck.h>

#include "analyzer/planner/candidate.h"
#include "analyzer/planner/planner.h"
#include "analyzer/planner/to_plan.h"
#include "analyzer/policies/policy.h"
#include "analyzer/schedule/gap_choices.h"
#include "analyzer/verify/verify.h"
#include "tests/property/cases.h"
#include "tests/property/interpreter.h"
#include "tests/property/random_program.h"
#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

CaseOptions any_wishes() { return {*rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()}; }

TEST(PlanProperty, EveryOrderComputesWhatTheProgramComputes) {
  EXPECT_TRUE(rc::check("serial hashes in every topological order", [] {
    const Case item = any_case(any_wishes());
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    Interpreter interpreter(item.plan, 3);
    for (const Strategy& strategy : strategies(item.plan, random)) {
      const std::string difference = interpreter.compare(strategy.choose);
      if (!difference.empty()) RC_FAIL(strategy.name + ": " + difference + "\n" + plan::to_text(item.plan));
    }
  }));
}

// REPRISE_PROPERTY_ORDERS: how many for each plan.
TEST(PlanProperty, RandomOrdersStayInTheBudgetAndComputeTheSame) {
  const char* wished = std::getenv("REPRISE_PROPERTY_ORDERS");
  const unsigned long orders = wished != nullptr ? std::strtoul(wished, nullptr, 10) : 20;
  EXPECT_TRUE(rc::check("many random legal orders", [orders] {
    const Case item = any_case(any_wishes());
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    Interpreter interpreter(item.plan, 2);
    for (unsigned long i = 0; i < orders; ++i) {
      const std::string difference =
          interpreter.compare([&](const std::vector<uint32_t>& ready) { return size_t{random() % ready.size()}; });
      if (!difference.empty()) RC_FAIL(difference + "\n" + plan::to_text(item.plan));
    }
    RC_ASSERT(interpreter.peak_chunks() * item.plan.chunk_bytes + item.plan.reserved_bytes <= item.plan.budget_bytes);
    RC_CLASSIFY(interpreter.peak_chunks() == item.plan.chunk_count, "all chunks in use at once");
  }));
}

std::vector<uint64_t> hashes_of_ops(const plan::Plan& plan) {
  const SerialRun run = run_serially(plan, 2, false);
  std::vector<uint64_t> hashes;
  for (const std::vector<uint64_t>& round : run.op_hash) {
    for (uint32_t call = 0; call < plan.calls.size(); ++call) {
      if (plan.calls[call].kind == plan::CallKind::op) hashes.push_back(round[call]);
    }
  }
  return hashes;
}

TEST(PlanProperty, PartsAreTheProgramWithLargeTensorsApart) {
  EXPECT_TRUE(rc::check("the ops compute the same on parts, within the bounds", [] {
    const Case item = any_case({*rc::gen::arbitrary<bool>(), true});
    PlanOptions everything;
    everything.budget_bytes = bytes_for_everything(item.workload);
    everything.policy = "lru";
    const Result<plan::Plan> whole = make_plan(item.workload, everything);
    if (!whole.ok()) RC_FAIL(whole.status().message());
    RC_ASSERT(!plan::has_split_tensors(whole.value()));
    if (hashes_of_ops(item.plan) != hashes_of_ops(whole.value())) RC_FAIL(plan::to_text(item.plan));
    RC_ASSERT(item.plan.minimum_bytes <= item.workload.minimum_bytes);  // an op may need a part alone
    if (plan::reorders(item.plan)) return;                              // bounds are for kernels in the recorded order
    RC_ASSERT(item.plan.offload_bytes >= item.bounds.offload_bytes);
    RC_ASSERT(item.plan.reload_bytes >= item.bounds.reload_bytes);
    // Predictions are whole nanoseconds over two iterations.
    if (item.plan.predicted_ns + 1 < item.bounds.iteration_ns) {
      RC_FAIL(std::to_string(item.plan.predicted_ns) + " ns, but " + item.bounds.binding + " needs " +
              std::to_string(item.bounds.iteration_ns) + "\n" + plan::to_text(item.plan));
    }
  }));
}

TEST(PlanProperty, EveryPolicyKeepsItsPromises) {
  EXPECT_TRUE(rc::check("verified, in the budget, never below the bounds, auto is the best", [] {
    const Workload workload = any_workload();
    PlanOptions options;
    options.budget_bytes = any_budget(workload);
    uint64_t best = 0;
    for (const std::string& name : policy_names()) {
      options.policy = name;
      PlanSummary summary;
      const Result<plan::Plan> made = make_plan(workload, options, &summary);
      if (!made.ok()) RC_FAIL(name + ": " + made.status().message());
      if (!summary.refusal.ok()) RC_FAIL(name + ": " + summary.refusal.message());
      const plan::Plan& plan = made.value();
      if (const Status status = verify(plan); !status.ok()) RC_FAIL(name + ": " + status.message());
      RC_ASSERT(plan.chunk_count * plan.chunk_bytes + plan.reserved_bytes <= options.budget_bytes);
      // Predictions are whole nanoseconds over two iterations.
      if (plan.predicted_ns + 1 < summary.bounds.iteration_ns) {
        RC_FAIL(name + " takes " + std::to_string(plan.predicted_ns) + " ns, the bound is " +
                std::to_string(summary.bounds.iteration_ns) + "\n" + plan::to_text(plan));
      }
      if (name == "auto") {
        // What moves nothing is the program as it is, and taken even if moving would let more ops overlap.
        best = plan.offload_bytes + plan.reload_bytes == 0 ? 0 : plan.predicted_ns;
      } else if (plan.remap_count == 0 || workload.machine.remap_ns_per_chunk == 0) {
        RC_ASSERT(best <= plan.predicted_ns);
      }
    }
  }));
}

std::string text_of(const Schedule& schedule) {
  std::string text;
  for (const Stay& stay : schedule.stays) {
    text += std::to_string(stay.tensor) + " " + std::to_string(stay.begin) + ".." + std::to_string(stay.end) +
            (stay.wraps ? " wraps" : "") + " " + std::to_string(static_cast<int>(stay.arrival)) +
            std::to_string(static_cast<int>(stay.departure)) + "\n";
  }
  return text;
}

uint64_t any_capacity(const Workload& workload) {
  return (any_budget(workload) - workload.reserved_bytes) / workload.graph.chunk_bytes;
}

// What the search reads from a schedule, and writes.
TEST(PlanProperty, AScheduleIsItsChoices) {
  EXPECT_TRUE(rc::check("from a schedule to who is away when, and back", [] {
    const Workload workload = any_workload();
    const uint64_t capacity = any_capacity(workload);
    for (const Policy* policy : searched_policies()) {
      if (policy == &g10_late_policy()) continue;  // its stays last beyond their uses
      const Schedule schedule =
          policy->schedule({workload.graph, workload.machine, capacity, *rc::gen::arbitrary<bool>()});
      RC_ASSERT(text_of(GapChoices(workload.graph, schedule, capacity).schedule()) == text_of(schedule));
    }
  }));
}

TEST(PlanProperty, AnyChoicesWithRoomAreAPlan) {
  EXPECT_TRUE(rc::check("verified, serial hashes in random legal orders", [] {
    const Workload workload = any_workload();
    const uint64_t capacity = any_capacity(workload);
    GapChoices choices(workload.graph, disco_policy().schedule({workload.graph, workload.machine, capacity, true}),
                       capacity);
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    for (uint32_t i = 0; i < 2 * choices.gaps().size(); ++i) {
      const auto gap = static_cast<uint32_t>(random() % choices.gaps().size());
      const Gap& entry = choices.gaps()[gap];
      if (!entry.away || choices.has_room(entry)) choices.set_away(gap, !entry.away);
    }
    Scheduled scheduled{choices.schedule(), {}};
    scheduled.tiers = assign_tiers(workload.graph, workload.machine, scheduled.schedule);
    const Recipe recipe{&reprise_policy(), capacity, capacity, PlacementMode::by_begin, HomeOrder::longest_first, true};
    auto candidate = make_candidate(workload.graph, workload.machine, recipe, std::move(scheduled));
    RC_PRE(candidate.has_value() && candidate->tiers.fits);
    const plan::Plan plan =
        to_plan(workload, capacity * workload.graph.chunk_bytes + workload.reserved_bytes, std::move(*candidate));
    if (const Status status = verify(plan); !status.ok()) RC_FAIL(status.message() + "\n" + plan::to_text(plan));
    Interpreter interpreter(plan, 3);
    const std::string difference =
        interpreter.compare([&](const std::vector<uint32_t>& ready) { return size_t{random() % ready.size()}; });
    if (!difference.empty()) RC_FAIL(difference + "\n" + plan::to_text(plan));
  }));
}

// Plans that move nothing are the program as it is and count as best, those without remaps as better than those with
// them, and then the time counts. Holds for small graphs.
TEST(PlanProperty, MoreMemoryNeverHurts) {
  EXPECT_TRUE(rc::check("auto's time falls with the budget", [] {
    const Workload workload = any_workload();
    PlanOptions options;
    uint64_t budgets[] = {any_budget(workload), any_budget(workload)};
    std::sort(std::begin(budgets), std::end(budgets));
    const uint64_t chunks = (budgets[1] - workload.reserved_bytes) / workload.graph.chunk_bytes;
    RC_PRE(workload.graph.calls.size() * (chunks - workload.largest.chunks) <= kSmallerBudgetsEffort);
    std::pair<bool, uint64_t> before(true, ~uint64_t{0});
    for (const uint64_t budget : budgets) {
      options.budget_bytes = budget;
      const Result<plan::Plan> plan = make_plan(workload, options);
      if (!plan.ok()) RC_FAIL(plan.status().message());
      const bool remaps = plan.value().remap_count > 0 && workload.machine.remap_ns_per_chunk > 0;
      const bool moves = plan.value().offload_bytes + plan.value().reload_bytes > 0;
      const std::pair<bool, uint64_t> now(remaps, moves ? plan.value().predicted_ns : 0);
      if (now > before) {
        RC_FAIL("with " + std::to_string(budget) + " bytes " + std::to_string(now.second) + " ns, with less memory " +
                std::to_string(before.second));
      }
      before = now;
    }
  }));
}

TEST(PlanProperty, ADivergenceFindsEveryByte) {
  EXPECT_TRUE(rc::check("bytes survive at any prefix", [] {
    const Case item = any_case({.split_tensors = *rc::gen::arbitrary<bool>()});
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    for (const Strategy& strategy : strategies(item.plan, random)) {
      const auto submitted = static_cast<uint32_t>(random() % (item.plan.calls.size() + 1));
      const std::string loss = check_divergence(item.plan, submitted, random() % 8, strategy.choose);
      if (!loss.empty()) {
        RC_FAIL(strategy.name + " after " + std::to_string(submitted) + ": " + loss + "\n" + plan::to_text(item.plan));
      }
    }
  }));
}

TEST(PlanProperty, FeasibleExactlyFromTheSmallestBudget) {
  EXPECT_TRUE(rc::check("feasible iff budget >= minimum; told is what run needs", [] {
    const Workload workload = any_workload();
    RC_PRE(workload.minimum_bytes > 1);
    const Result<plan::Plan> least = make_plan(workload, options_for(workload.minimum_bytes));
    if (!least.ok()) RC_FAIL(least.status().message());
    const Result<plan::Plan> less = make_plan(workload, options_for(workload.minimum_bytes - 1));
    RC_ASSERT(!less.ok());
    RC_ASSERT(less.status().code() == StatusCode::infeasible);
    // Where the program itself takes less than its plan, that is the least, and from there on nothing has to move.
    const bool needless = holds_everything(workload, workload.minimum_bytes - 1);
    const std::string told = needless ? "nothing has to move" : std::to_string(least_budget(workload));
    RC_ASSERT(less.status().message().find(told) != std::string::npos);
  }));
}

TEST(PlanProperty, NothingMovesWhenEverythingFits) {
  EXPECT_TRUE(rc::check("no transfers at the peak", [] {
    const Workload workload = any_workload();
    const Result<plan::Plan> plan = make_plan(workload, options_for(bytes_for_everything(workload)));
    if (!plan.ok()) RC_FAIL(plan.status().message());
    if (plan.value().offload_bytes + plan.value().reload_bytes != 0) RC_FAIL(plan::to_text(plan.value()));
    RC_ASSERT(plan.value().remap_count == 0u);
  }));
}

TEST(PlanProperty, SameInputSamePlan) {
  EXPECT_TRUE(rc::check("determinism", [] {
    const trace::Trace trace = random_program(any_shape());
    PlanOptions options;
    options.budget_fraction = 0.7;
    const Result<plan::Plan> a = Planning(trace, options).plan(), b = Planning(trace, options).plan();
    RC_ASSERT(a.ok() == b.ok());
    if (a.ok()) RC_ASSERT(plan::serialize(a.value()) == plan::serialize(b.value()));
  }));
}

TEST(PlanProperty, NeverBelowTheBounds) {
  EXPECT_TRUE(rc::check("bounds hold", [] {
    const Case item = any_case();
    const uint64_t capacity = (item.plan.budget_bytes - item.plan.reserved_bytes) / item.plan.chunk_bytes;
    const Bounds bounds = bounds_of(item.workload.graph, capacity, item.workload.machine);
    RC_ASSERT(item.plan.offload_bytes >= bounds.offload_bytes);
    RC_ASSERT(item.plan.reload_bytes >= bounds.reload_bytes);
    // Predictions are whole nanoseconds over two iterations.
    if (item.plan.predicted_ns + 1 < bounds.iteration_ns) {
      RC_FAIL(std::to_string(item.plan.predicted_ns) + " ns, but " + bounds.binding + " needs " +
              std::to_string(bounds.iteration_ns) + "\n" + plan::to_text(item.plan));
    }
  }));
}

TEST(PlanProperty, SurvivesItsBinaryForm) {
  EXPECT_TRUE(rc::check("serialize and back", [] {
    const Case item = any_case(any_wishes());
    const Result<plan::Plan> again = plan::deserialize(plan::serialize(item.plan));
    RC_ASSERT(again.ok());
    RC_ASSERT(plan::to_text(again.value()) == plan::to_text(item.plan));
    RC_ASSERT(verify(again.value()).ok());
  }));
}

}  // namespace
}  // namespace reprise::analyzer
