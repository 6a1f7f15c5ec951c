// The matcher accepts the calls of the plan's iteration over and over, and no call that differs: such a call leaves it
// where it is, so that the enforcer can say what was expected.
#include "replay/plan/matcher.h"

#include <rapidcheck.h>

#include <map>
#include <utility>

#include "tests/support/test.h"
#include "tests/unit/replay/plan/random_plan.h"

namespace reprise::replay {
namespace {

using plan::CallKind;
constexpr uint64_t kChunk = 4096;
constexpr Zone kManaged{uint64_t{1} << 40, 2000 * kChunk};
constexpr Zone kPlanZone{kManaged.base + 1000 * kChunk, 1000 * kChunk};

// With a null pointer, and what a launch has where it is none.
constexpr uint8_t kParameters[24] = {1, 2, 3};
constexpr uint8_t kOthers[24] = {1, 2, 3, 0, 0, 0, 0, 0, 0, 7};

// One call as a program makes it.
struct Live {
  CallKind kind = CallKind::op;
  Command command{};
  std::vector<Access> accesses;
  AllocateCall allocate{};
  FreeCall free{};
};

class Iteration {
 public:
  explicit Iteration(plan::Plan plan) {
    std::string why;
    for (size_t i = 0; i < plan.calls.size(); i += 2) {
      if (plan.calls[i].kind != CallKind::op) continue;
      plan.calls[i].audited = 0x1000 + i;
      if (i % 4 != 0) continue;
      plan.calls[i].flags |= plan::kCallProven;
      plan.calls[i].null_words = {8};
    }
    ok_ = make_plan_index(std::move(plan), kPlanZone, kChunk, &index_, &why);
    for (uint32_t t = 0; t < index_.persistent_count; ++t) persistent_.push_back(kManaged.base + (8 * t + 1) * kChunk);
    for (const plan::Call& call : index_.plan.calls) calls_.push_back(live(call));
  }
  bool ok() const { return ok_; }
  void begin(Matcher* matcher, uint64_t first) const { matcher->begin(&index_, persistent_, kManaged, first); }
  const std::vector<Live>& calls() const { return calls_; }
  const PlanIndex& index() const { return index_; }
  CUdeviceptr address(uint32_t tensor) const {
    return tensor < persistent_.size() ? persistent_[tensor] : index_.addresses[tensor];
  }

 private:
  Live live(const plan::Call& call) const {
    Live made;
    made.kind = call.kind;
    if (call.kind == CallKind::op) {
      made.command.op = call.op;
      made.command.flags = call.flags;
      made.command.signature = call.signature;
      const bool proven = (call.flags & plan::kCallProven) != 0;
      (proven ? made.command.code : made.command.kernel) = call.audited;
      made.command.parameters = kParameters;
      made.command.parameter_bytes = sizeof kParameters;
      for (const plan::OpAccess& access : call.accesses) {
        Access pointer{};
        pointer.address = address(access.tensor) + access.offset;
        pointer.offset = access.offset;
        pointer.parameter_offset = access.parameter_offset;
        made.accesses.push_back(pointer);
      }
      return made;
    }
    const uint64_t size = index_.plan.tensors[call.tensor].size;
    made.allocate.size = made.free.size = size;
    made.allocate.origin = call.origin;
    made.free.address = address(call.tensor);
    return made;
  }

  bool ok_ = false;
  PlanIndex index_;
  std::vector<CUdeviceptr> persistent_;
  std::vector<Live> calls_;
};

struct Answer {
  bool matched = false;
  Match match;
  CUdeviceptr address = 0;
};

Answer ask(Matcher& matcher, const Live& live) {
  Answer answer;
  Live call = live;
  call.command.accesses = call.accesses.data();
  call.command.access_count = static_cast<uint32_t>(call.accesses.size());
  switch (call.kind) {
    case CallKind::op:
      answer.matched = matcher.op(call.command, &answer.match);
      break;
    case CallKind::allocate:
    case CallKind::allocate_handover:
      answer.matched = matcher.allocate(call.allocate, &answer.match, &answer.address);
      break;
    case CallKind::free:
    case CallKind::free_handover:
    case CallKind::late_free:
      answer.matched = matcher.free(call.free, &answer.match);
      break;
  }
  return answer;
}

// Everything that makes a call another one, for each kind of call.
struct Mutation {
  const char* name;
  std::function<bool(Live*)> apply;  // false: not for this call
};

bool op_with_pointers(const Live* call) { return call->kind == CallKind::op && !call->accesses.empty(); }

bool pointer(Live* call, const std::function<void(Access*)>& change) {
  if (!op_with_pointers(call)) return false;
  change(&call->accesses.back());
  return true;
}

std::vector<Mutation> mutations() {
  const auto op = [](Live* call) { return call->kind == CallKind::op; };
  return {
      {"another kernel or shape", [=](Live* call) { return op(call) && ++call->command.signature; }},
      {"another kernel than the audited one",
       [=](Live* call) { return op(call) && call->command.kernel != 0 && ++call->command.kernel; }},
      {"a kernel that may do more than it was audited for",
       [=](Live* call) {
         const bool audited = op(call) && call->command.kernel != 0;
         call->command.kernel = 0;
         return audited;
       }},
      {"another kernel than the proven one",
       [=](Live* call) { return op(call) && call->command.code != 0 && ++call->command.code; }},
      {"another word than the null that the proof needs",
       [=](Live* call) {
         call->command.parameters = kOthers;
         return op(call) && call->command.code != 0;
       }},
      {"a launch that a library's call declares",
       [=](Live* call) { return op(call) && (call->command.flags ^= trace::kOpDeclared) != 0; }},
      {"another word of a known kernel",
       [=](Live* call) {
         const bool known = op(call) && (call->command.kernel != 0 || call->command.code != 0);
         return known && pointer(call, [](Access* a) { a->parameter_offset += 8; });
       }},
      {"another kind of op",
       [=](Live* call) {
         call->command.op = trace::OpKind::copy_peer;
         return op(call);
       }},
      {"opaque",
       [=](Live* call) {
         call->command.flags ^= trace::kOpOpaque;
         return op(call);
       }},
      {"another tensor", [](Live* call) { return pointer(call, [](Access* a) { a->address += 4 * kChunk; }); }},
      {"another offset",
       [](Live* call) {
         return pointer(call, [](Access* a) {
           a->address += 8;
           a->offset += 8;
         });
       }},
      {"a pointer less",
       [](Live* call) {
         const bool can = op_with_pointers(call);
         if (can) call->accesses.pop_back();
         return can;
       }},
      {"a pointer more",
       [](Live* call) {
         const bool can = op_with_pointers(call);
         if (can) call->accesses.push_back(call->accesses.back());
         return can;
       }},
      {"another size", [](Live* call) { return call->kind == CallKind::allocate && ++call->allocate.size; }},
      {"another origin",
       [](Live* call) {
         call->allocate.origin = trace::Origin::pool;
         return call->kind == CallKind::allocate;
       }},
      {"another address",
       [](Live* call) { return call->kind == CallKind::free && (call->free.address += kChunk) != 0; }},
  };
}

bool same_call(const Live& a, const Live& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == CallKind::allocate) return a.allocate.size == b.allocate.size && a.allocate.origin == b.allocate.origin;
  if (a.kind == CallKind::free) return a.free.address == b.free.address;
  if (a.command.signature != b.command.signature || a.command.op != b.command.op) return false;
  return std::equal(a.accesses.begin(), a.accesses.end(), b.accesses.begin(), b.accesses.end(),
                    [](const Access& x, const Access& y) { return x.address == y.address && x.offset == y.offset; });
}

bool is_free(const Live& call) { return call.kind == CallKind::free; }

TEST(MatcherPropertyTest, AcceptsTheIterationAndRejectsEveryOtherCall) {
  EXPECT_TRUE(rc::check("exactly the recorded call is accepted", [] {
    const Iteration iteration(testing::RandomPlan(kChunk).take());
    RC_ASSERT(iteration.ok());
    const auto first = testing::uniform<uint64_t>(0, 1000);
    const auto count = static_cast<uint32_t>(iteration.calls().size());
    Matcher matcher;
    iteration.begin(&matcher, first);
    for (uint64_t round = 0; round < 3; ++round) {
      for (uint32_t i = 0; i < count; ++i) {
        const Live& right = iteration.calls()[i];
        for (const Mutation& mutation : mutations()) {
          Live wrong = right;
          if (!mutation.apply(&wrong)) continue;
          RC_ASSERT(!ask(matcher, wrong).matched);
          RC_ASSERT(matcher.next() == i && matcher.iteration() == first + round);
        }
        for (const Live& other : iteration.calls()) {  // left out, twice, or in another order
          if (is_free(right) || is_free(other) || same_call(other, right)) continue;
          RC_ASSERT(!ask(matcher, other).matched);
        }
        const Answer answer = ask(matcher, right);
        RC_ASSERT(answer.matched);
        RC_ASSERT(answer.match.call == i && answer.match.iteration == first + round);
        if (right.kind == CallKind::allocate) {
          RC_ASSERT(answer.address == iteration.address(iteration.index().plan.calls[i].tensor));
        }
      }
    }
    RC_ASSERT(matcher.next() == 0u && matcher.iteration() == first + 3);
    RC_ASSERT(matcher.end().empty());
  }));
}

// As of a plan for iterations whose sizes vary. `one_kernel`: something is known of the launches' kernels.
plan::Plan with_any_size(plan::Plan plan, bool one_kernel) {
  for (plan::Call& call : plan.calls) {
    call.flags |= plan::kCallAnySize;
    if (call.kind != CallKind::op) continue;
    if (!one_kernel && call.op == trace::OpKind::launch) call.flags |= plan::kCallAnyKernel;
    uint32_t named = 0;
    for (plan::OpAccess& access : call.accesses) {
      access.size = access.offset = 0;
      if (call.op != trace::OpKind::launch || access.parameter_offset != trace::kNoParameter) ++named;
    }
    call.signature = trace::op_structure(call.op, call.signature, named);
  }
  return plan;
}

TEST(MatcherPropertyTest, WhereSizesVaryASmallerTensorTakesThePlace) {
  EXPECT_TRUE(rc::check("any size up to the plan's", [] {
    const bool one_kernel = testing::uniform(0, 2) == 0;
    const Iteration iteration(with_any_size(testing::RandomPlan(kChunk).take(), one_kernel));
    RC_ASSERT(iteration.ok());
    const plan::Plan& plan = iteration.index().plan;
    Matcher matcher;
    iteration.begin(&matcher, 0);
    for (uint64_t round = 0; round < 3; ++round) {
      std::map<uint32_t, uint64_t> sizes;
      for (uint32_t i = 0; i < plan.calls.size(); ++i) {
        const plan::Call& call = plan.calls[i];
        Live live = iteration.calls()[i];
        if (call.kind == CallKind::allocate) {
          Live larger = live;
          ++larger.allocate.size;
          RC_ASSERT(!ask(matcher, larger).matched);
          live.allocate.size = sizes[call.tensor] = testing::uniform<uint64_t>(1, live.allocate.size + 1);
        }
        if (call.kind == CallKind::op) {
          live.command.signature = testing::uniform<uint64_t>(0, 1000);
          live.command.name = call.name.c_str();
          Live other = live;
          other.command.name = "another kernel";
          const bool launch = call.op == trace::OpKind::launch;
          if (launch && one_kernel) RC_ASSERT(!ask(matcher, other).matched);
          if (launch && !one_kernel) live.command.name = other.command.name;
          for (size_t k = 0; !launch && k < live.accesses.size(); ++k) {
            const uint32_t tensor = call.accesses[k].tensor;
            const uint64_t size = sizes.count(tensor) != 0 ? sizes[tensor] : plan.tensors[tensor].size;
            Live part = live;
            part.accesses[k].size = size + 1;
            RC_ASSERT(!ask(matcher, part).matched);
            live.accesses[k].size = size;
          }
        }
        const Answer answer = ask(matcher, live);
        RC_ASSERT(answer.matched);
        RC_ASSERT(answer.match.call == i);
      }
    }
  }));
}

// What free_windows() says, from the plan's text alone: between two iterations at `at` and at `at` + 1 calls.
class Needs {
 public:
  explicit Needs(const PlanIndex& index) : index_(index), plan_(index.plan), calls_(plan_.calls.size()) {}

  // May the free at `call` come when `next` is expected, counted from the start of its iteration?
  bool may_come_before(size_t call, size_t next) const {
    const plan::Call& free = plan_.calls[call];
    if (call == 0 || free.kind != CallKind::free) return next == call;
    if (next == call) return true;
    const plan::Tensor& tensor = plan_.tensors[free.tensor];
    if (next > call) {
      for (size_t passed = call + 1; passed < next; ++passed) {
        if (needs(free, tensor, passed)) return false;
      }
      return true;
    }
    if (next <= tensor.allocate_call) return false;
    const auto is_free = [](const plan::Call& one) { return one.kind == CallKind::free; };
    const auto calls = plan_.calls.begin();
    if (std::all_of(calls + static_cast<ptrdiff_t>(next), calls + static_cast<ptrdiff_t>(call), is_free)) return true;
    return !uses(free.vertex, next, call);
  }

 private:
  bool is_op(uint32_t v) const { return plan_.vertices[v].kind == plan::VertexKind::op; }

  // Does the release wait for an op or a free of [from, to)?
  bool uses(uint32_t v, size_t from, size_t to) const {
    for (const plan::Predecessor& p : plan_.vertices[v].predecessors) {
      if (p.distance != 0) continue;
      if (plan_.vertices[p.vertex].call != plan::kNone) {
        if (plan_.vertices[p.vertex].call >= from && plan_.vertices[p.vertex].call < to) return true;
      } else if (uses(p.vertex, from, to)) {
        return true;
      }
    }
    return false;
  }

  // Does call `at`, of this or the next iteration, wait for the release, or take the tensor's place?
  bool needs(const plan::Call& free, const plan::Tensor& tensor, size_t at) const {
    const plan::Call& call = plan_.calls[at % calls_];
    if (call.kind == CallKind::op) {
      return std::any_of(depend_.at(free.vertex).begin(), depend_.at(free.vertex).end(),
                         [&](const auto& need) { return need == std::pair(call.vertex, at / calls_); });
    }
    if (call.kind != CallKind::allocate) return false;
    const plan::Tensor& other = plan_.tensors[call.tensor];
    if (&other == &tensor) return true;
    const auto end = [](const plan::Tensor& one) { return one.slab_offset + std::max<uint64_t>(one.size, 1); };
    if (other.chunk_count != 0 || tensor.chunk_count != 0) return false;  // random plans have no placements
    return other.slab_offset < end(tensor) && tensor.slab_offset < end(other);
  }

  // By vertex: what waits for it, with the iteration, up to an op.
  std::map<uint32_t, std::vector<std::pair<uint32_t, size_t>>> dependents() const {
    std::map<uint32_t, std::vector<std::pair<uint32_t, size_t>>> found;
    for (uint32_t v = 0; v < plan_.vertices.size(); ++v) {
      std::vector<std::pair<uint32_t, size_t>> left{{v, 0}};
      for (size_t i = 0; i < left.size(); ++i) {
        const auto [from, round] = left[i];
        if (i != 0 && is_op(from)) continue;
        for (uint32_t to = 0; to < plan_.vertices.size(); ++to) {
          for (const plan::Predecessor& p : plan_.vertices[to].predecessors) {
            const std::pair<uint32_t, size_t> next{to, round + p.distance};
            if (p.vertex != from || next.second > 1) continue;
            if (std::find(left.begin() + 1, left.end(), next) == left.end()) left.push_back(next);
          }
        }
      }
      found[v].assign(left.begin() + 1, left.end());
    }
    return found;
  }

  const PlanIndex& index_;
  const plan::Plan& plan_;
  const size_t calls_;
  const std::map<uint32_t, std::vector<std::pair<uint32_t, size_t>>> depend_ = dependents();
};

TEST(MatcherPropertyTest, AFreeComesBetweenTheLastUseAndTheNextNeedOfItsPlace) {
  EXPECT_TRUE(rc::check("one free moves", [] {
    const Iteration iteration(testing::RandomPlan(kChunk).take());
    RC_ASSERT(iteration.ok());
    const Needs needs(iteration.index());
    const size_t count = iteration.calls().size();
    std::vector<size_t> frees;
    for (size_t i = 0; i < count; ++i) {
      if (is_free(iteration.calls()[i])) frees.push_back(i);
    }
    if (frees.empty()) return;
    const size_t moved = frees[testing::uniform<size_t>(0, frees.size())];
    const size_t to = testing::uniform<size_t>(0, 2 * count);
    Matcher matcher;
    iteration.begin(&matcher, 5);
    // What is behind the free cannot come when it may not be passed, nor the free where it may not come early.
    bool expected = needs.may_come_before(moved, to);
    for (size_t at = 0; at < to || at <= moved; ++at) {
      if (at == to) {
        const Answer early = ask(matcher, iteration.calls()[moved]);
        if (early.matched && early.match.call != moved) return;  // another small tensor lived at the address
        RC_ASSERT(early.matched == expected);
        if (!expected) return;
        RC_ASSERT(early.match.iteration == 5u);
      }
      if (at == moved) continue;
      if (at % count == moved && at != moved) return;
      const bool due = at > moved && to > moved && !needs.may_come_before(moved, at + 1);
      const Answer answer = ask(matcher, iteration.calls()[at % count]);
      RC_LOG() << "free " << moved << " before " << to << ", call " << at << " of " << count << " until "
               << iteration.index().windows[moved].until << "\n"
               << plan::to_text(iteration.index().plan);
      RC_ASSERT(answer.matched == !due);
      if (due) return;
      RC_ASSERT(answer.match.call == at % count && answer.match.iteration == 5 + at / count);
    }
    if (to <= moved) return;
    const Answer late = ask(matcher, iteration.calls()[moved]);
    RC_ASSERT(late.matched && late.match.call == moved && late.match.iteration == 5u);
  }));
}

// x is allocated, used with the persistent w, and freed.
plan::Plan small_plan() {
  plan::Plan plan;
  plan.chunk_bytes = kChunk;
  plan.tensors.resize(2);
  plan.tensors[0].size = plan.tensors[1].size = 2 * kChunk;
  plan.tensors[0].chunk_count = plan.tensors[1].chunk_count = 2;
  plan.tensors[1].allocate_call = 0;
  plan.tensors[1].free_call = 2;
  plan.calls.resize(3);
  plan.calls[0].kind = CallKind::allocate;
  plan.calls[0].tensor = plan.calls[2].tensor = 1;
  plan.calls[1].signature = 5;
  plan.calls[1].name = "a_kernel";
  plan.calls[1].accesses = {{0, trace::kAccessRead, 16, 0}, {1, trace::kAccessWrite, 0, 0}};
  plan.calls[2].kind = CallKind::free;
  plan.vertices.resize(2);
  plan.calls[1].vertex = 0;
  plan.calls[2].vertex = 1;
  plan.vertices[0].call = 1;
  plan.vertices[1].kind = plan::VertexKind::release;
  plan.vertices[1].call = 2;
  plan.vertices[1].tensor = 1;
  plan.order = {0, 1};
  return plan;
}

TEST(MatcherTest, PointersToWhatIsNotManagedAreNotCompared) {
  const Iteration iteration(small_plan());
  Matcher matcher;
  iteration.begin(&matcher, 0);
  ASSERT_TRUE(ask(matcher, iteration.calls()[0]).matched);
  Live call = iteration.calls()[1];
  Access pinned{};
  for (const uint64_t address : {uint64_t{64}, kManaged.base + kManaged.bytes, kManaged.base - 1}) {
    pinned.address = address;
    call.accesses.insert(call.accesses.begin() + 1, pinned);
  }
  EXPECT_TRUE(ask(matcher, call).matched);
}

TEST(MatcherTest, AnOverdueFreeIsForgottenWhenThePlanBeginsAgain) {
  const Iteration iteration(small_plan());
  Matcher matcher;
  iteration.begin(&matcher, 0);
  ASSERT_TRUE(ask(matcher, iteration.calls()[0]).matched);
  ASSERT_TRUE(ask(matcher, iteration.calls()[1]).matched);
  ASSERT_FALSE(ask(matcher, iteration.calls()[0]).matched) << "the tensor is still there";
  EXPECT_EQ(matcher.expected_call().kind, CallKind::free);
  iteration.begin(&matcher, 1);
  EXPECT_EQ(matcher.expected_call().kind, CallKind::allocate);
}

// Under a plan nothing is read back: what a table points to may be known to the plan alone.
TEST(MatcherTest, ATablesPointeesAreThePlansOrFewer) {
  for (const auto kind : {trace::OpKind::launch, trace::OpKind::copy_device_to_device}) {
    plan::Plan plan = small_plan();
    plan.calls[1].op = kind;
    plan.calls[1].accesses[0].parameter_offset = kind == trace::OpKind::launch ? 8 : trace::kNoParameter;
    const Iteration iteration(std::move(plan));
    const bool launch = kind == trace::OpKind::launch;
    const auto matched = [&](const std::function<void(Live*)>& change) {
      Matcher matcher;
      iteration.begin(&matcher, 0);
      EXPECT_TRUE(ask(matcher, iteration.calls()[0]).matched);
      Live call = iteration.calls()[1];
      change(&call);
      return ask(matcher, call).matched;
    };
    EXPECT_TRUE(matched([](Live*) {}));
    EXPECT_EQ(matched([](Live* call) { call->accesses.pop_back(); }), launch);
    EXPECT_FALSE(matched([](Live* call) { call->accesses.erase(call->accesses.begin()); }));
    EXPECT_FALSE(matched([](Live* call) { call->accesses.back().address += 4 * kChunk; }));
    EXPECT_FALSE(matched([](Live* call) {  // one that the plan knows as an operand only
      call->accesses.back().address = call->accesses.front().address;
      call->accesses.back().offset = call->accesses.front().offset;
    }));
  }
}

TEST(MatcherTest, PointeesThatOnlyThePlanKnowsAreTold) {
  plan::Plan plan = small_plan();
  plan.calls[1].op = trace::OpKind::launch;
  plan.calls[1].accesses[0].parameter_offset = 8;
  const Iteration iteration(plan);
  Matcher matcher;
  iteration.begin(&matcher, 0);
  ASSERT_TRUE(ask(matcher, iteration.calls()[0]).matched);
  Match match;
  match.call = 1;
  EXPECT_FALSE(matcher.knows_pointees({}));
  ASSERT_TRUE(matcher.knows_pointees(match));
  std::vector<Access> accesses = iteration.calls()[1].accesses;
  uint64_t bytes = 0;
  matcher.add_pointees(match, &accesses, &bytes);
  EXPECT_EQ(accesses.size(), plan.calls[1].accesses.size()) << "the call names all of them";
  EXPECT_EQ(bytes, 0u);
  const plan::OpAccess& known = plan.calls[1].accesses.back();
  accesses.pop_back();
  matcher.add_pointees(match, &accesses, &bytes);
  ASSERT_EQ(accesses.size(), plan.calls[1].accesses.size());
  EXPECT_EQ(accesses.back().address - accesses.back().offset, iteration.address(known.tensor));
  EXPECT_EQ(bytes, plan.tensors[known.tensor].size);
}

TEST(MatcherTest, SaysWhatItExpects) {
  const Iteration iteration(small_plan());
  Matcher matcher;
  iteration.begin(&matcher, 7);
  EXPECT_EQ(matcher.expected(), "allocate 8192");
  ask(matcher, iteration.calls()[0]);
  EXPECT_EQ(matcher.expected(), "a_kernel");
  ask(matcher, iteration.calls()[1]);
  EXPECT_EQ(matcher.expected(), "free 8192");
  ask(matcher, iteration.calls()[2]);
  EXPECT_EQ(matcher.iteration(), 8u);
}

TEST(MatcherTest, BeginsAnewWithOtherAddresses) {
  const Iteration iteration(small_plan());
  Matcher matcher;
  iteration.begin(&matcher, 0);
  ask(matcher, iteration.calls()[0]);
  matcher.end();
  const std::vector<CUdeviceptr> elsewhere = {kManaged.base + 500 * kChunk};
  matcher.begin(&iteration.index(), elsewhere, kManaged, 4);
  EXPECT_EQ(matcher.next(), 0u);
  ASSERT_TRUE(ask(matcher, iteration.calls()[0]).matched);
  EXPECT_FALSE(ask(matcher, iteration.calls()[1]).matched) << "the weight is where it was before";
  Live moved = iteration.calls()[1];
  moved.accesses[0].address = elsewhere[0] + 16;
  EXPECT_TRUE(ask(matcher, moved).matched);
}

// A tensor that one iteration frees and allocates anew: it keeps its address, and until it is allocated the range is
// open.
TEST(MatcherTest, AHandoverIsOpenBetweenItsFreeAndItsAllocation) {
  plan::Plan plan = small_plan();
  plan.tensors[1].allocate_call = plan.tensors[1].free_call = plan::kNone;
  plan.calls[0].kind = CallKind::free_handover;
  plan.calls[2].kind = CallKind::allocate_handover;
  plan.calls[1].accesses.pop_back();
  plan.vertices.pop_back();
  plan.order.pop_back();
  plan.calls[0].vertex = plan.calls[2].vertex = plan::kNone;
  const Iteration iteration(std::move(plan));
  ASSERT_TRUE(iteration.ok());
  Matcher matcher;
  iteration.begin(&matcher, 0);
  EXPECT_EQ(matcher.expected(), "free 8192");
  Live wrong = iteration.calls()[0];
  wrong.free.address += 1;
  EXPECT_FALSE(ask(matcher, wrong).matched);
  ASSERT_TRUE(ask(matcher, iteration.calls()[0]).matched);
  ASSERT_TRUE(ask(matcher, iteration.calls()[1]).matched);
  EXPECT_EQ(matcher.expected(), "allocate 8192");
  const Answer allocated = ask(matcher, iteration.calls()[2]);
  ASSERT_TRUE(allocated.matched);
  EXPECT_EQ(allocated.address, iteration.address(1));
  EXPECT_TRUE(matcher.end().empty());
  iteration.begin(&matcher, 1);
  ASSERT_TRUE(ask(matcher, iteration.calls()[0]).matched);
  const std::vector<OpenHandover> open = matcher.end();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].address, iteration.address(1));
  EXPECT_EQ(open[0].size, 2 * kChunk);
  EXPECT_TRUE(matcher.end().empty()) << "told once";
}

}  // namespace
}  // namespace reprise::replay
