// What comes and leaves ahead of calls: no more than Belady's rule moves, at no time more than there is room for, and
// predicted calls as good as known ones.
#include "replay/lookahead/window_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace reprise::replay {
namespace {

using Calls = std::vector<std::vector<uint64_t>>;

std::vector<Mover> movers_of(const std::vector<uint64_t>& names) {
  std::vector<Mover> movers;
  for (const uint64_t name : names) movers.push_back(Mover{name});
  return movers;
}

Calls drawn(std::mt19937_64& random, uint64_t names, size_t count) {
  Calls calls(count);
  for (auto& call : calls) {
    std::set<uint64_t> few;
    for (uint64_t i = 0, most = 1 + random() % 3; i < most; ++i) few.insert(1 + random() % names);
    call.assign(few.begin(), few.end());
  }
  return calls;
}

void add(CallHistory& history, const std::vector<uint64_t>& call, uint64_t signature) {
  history.add(signature, false, movers_of(call));
  for (const uint64_t name : call) history.set_chunks(Mover{name}, 1);
}

// How many arrivals there are at least: what is used furthest in the future leaves (a second, plain implementation).
uint64_t least_arrivals(const Calls& calls, uint64_t room) {
  std::set<uint64_t> there;
  uint64_t arrivals = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto next_use = [&](uint64_t name) {
      for (size_t j = i + 1; j < calls.size(); ++j) {
        if (std::find(calls[j].begin(), calls[j].end(), name) != calls[j].end()) return j;
      }
      return calls.size();
    };
    const auto is_needed = [&](uint64_t name) {
      return std::find(calls[i].begin(), calls[i].end(), name) != calls[i].end();
    };
    for (const uint64_t name : calls[i]) {
      if (there.contains(name)) continue;
      ++arrivals;
      if (there.size() == room) {
        uint64_t victim = 0;
        for (const uint64_t one : there) {
          if (!is_needed(one) && (victim == 0 || next_use(one) > next_use(victim))) victim = one;
        }
        there.erase(victim);
      }
      there.insert(name);
    }
  }
  return arrivals;
}

// Performs the moves, each when it may be first; the arrivals.
uint64_t performed_arrivals(WindowPlan& plan, const CallHistory& history, const Calls& calls, uint64_t room) {
  std::set<Mover> there;
  uint64_t arrivals = 0;
  plan.restart(0, room, room);
  for (HistoryIndex next = 0; next < calls.size(); ++next) {
    plan.extend(history, next);
    for (auto move = plan.moves().begin(); move != plan.moves().end();) {
      const bool leaves = move->kind == Move::Kind::leave;
      if (leaves ? move->at > next : there.size() == room) break;
      if (leaves) {
        EXPECT_EQ(there.erase(move->mover), 1u);
      } else {
        EXPECT_GE(move->at, next);
        ++arrivals;
        there.insert(move->mover);
      }
      move = plan.moves().erase(move);
    }
    for (const uint64_t name : calls[next]) EXPECT_TRUE(there.contains(Mover{name})) << "op " << next;
  }
  return arrivals;
}

TEST(WindowPlanTest, MovesNoMoreThanBeladysRuleAndInTime) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    const Calls calls = drawn(random, 4 + random() % 20, 20 + random() % 200);
    const uint64_t room = 3 + random() % 8;
    CallHistory history;
    uint64_t signature = 1;
    for (const auto& call : calls) add(history, call, ++signature);
    WindowPlan plan;
    EXPECT_EQ(performed_arrivals(plan, history, calls, room), least_arrivals(calls, room)) << "round " << round;
  }
}

TEST(WindowPlanTest, StopsWhereThereIsNoRoom) {
  CallHistory history;
  add(history, {1, 2}, 1);
  add(history, {1, 2, 3}, 2);
  WindowPlan plan;
  plan.restart(0, 2, 2);
  plan.extend(history, 0);
  EXPECT_EQ(plan.cursor(), 1u);
  EXPECT_TRUE(plan.set_limit(3));
  plan.extend(history, 0);
  EXPECT_EQ(plan.cursor(), 2u);
  EXPECT_FALSE(plan.set_limit(2));
}

// Tensors of an iteration are new ones, with the places of those before; weights stay.
class RepeatingTest : public testing::Test {
 protected:
  static constexpr uint64_t kOps = 40;
  std::vector<uint64_t> call(uint64_t iteration, uint64_t op) const {
    const uint64_t first = 1000 * (iteration + 1);
    if (op <= 20) return {1 + op % 5, first + op};
    return {1 + op % 5, first + op, first + 40 - op};
  }
  void run(uint64_t iterations, uint64_t more) {
    for (uint64_t i = 0; i < iterations; ++i) {
      for (uint64_t op = 0; op < (i + 1 == iterations ? more : kOps); ++op) perform(i, op);
    }
  }
  void perform(uint64_t iteration, uint64_t op) { add(history_, call(iteration, op), 7 + op % 11); }
  CallHistory history_;
};

TEST_F(RepeatingTest, WhatComesIsWhatCameLastTime) {
  run(3, 10);
  ASSERT_EQ(history_.end(), history_.tail() + kOps);
  const HistoryOp next = history_.predicted(history_.tail());
  EXPECT_EQ(next.signature, 7 + 10 % 11u);
  EXPECT_EQ(next.movers.front(), Mover{1 + 10 % 5});
  // Op 38 reads what op 2 of this iteration has made, though its ancestor was another tensor.
  EXPECT_EQ(history_.next_use(Mover{3002}, history_.tail() - 1), history_.tail() + 28);
  EXPECT_EQ(history_.predicted(history_.tail() + 28).movers.back(), Mover{3002});
}

TEST_F(RepeatingTest, AnotherCallIsNotForeseen) {
  run(3, 10);
  const uint64_t foreseen = history_.foreseen(), unforeseen = history_.unforeseen();
  add(history_, {1}, 99);
  EXPECT_EQ(history_.foreseen(), foreseen);
  EXPECT_EQ(history_.unforeseen(), unforeseen + 1);
  EXPECT_EQ(history_.end(), history_.tail());
}

TEST_F(RepeatingTest, PlansForTensorsThatAreStillToCome) {
  run(3, 1);
  WindowPlan plan;
  plan.restart(history_.tail(), 30, 30);
  plan.extend(history_, history_.tail());
  EXPECT_GT(plan.cursor(), history_.tail() + 20);
  for (uint64_t op = 1; op < 20; ++op) {
    const HistoryIndex index = history_.tail();
    perform(2, op);
    EXPECT_TRUE(plan.confirm(history_, index)) << "op " << op;
  }
  const HistoryIndex index = history_.tail();
  add(history_, {1, 2}, 5);
  EXPECT_FALSE(plan.confirm(history_, index));
}

// Tensors of each iteration have other sizes than those before, for which they were planned.
class VaryingTest : public RepeatingTest {
 protected:
  void name(uint64_t op) {
    const HistoryIndex index = history_.tail();
    for (const uint64_t one : call(2, op)) history_.set_chunks(Mover{one}, one < 1000 ? 1 : 1 + one % 3);
    history_.add(7 + op % 11, false, movers_of(call(2, op)));
    confirmed_ = plan_.confirm(history_, index);
  }
  WindowPlan plan_;
  bool confirmed_ = false;
};

TEST_F(VaryingTest, MovesAreOfTheSizesThatTensorsHave) {
  run(3, 1);
  plan_.restart(history_.tail(), 100, 100);
  plan_.extend(history_, history_.tail());
  ASSERT_GT(plan_.cursor(), history_.tail() + 20);
  for (uint64_t op = 1; op < 20; ++op) {
    name(op);
    ASSERT_TRUE(confirmed_) << "op " << op;
  }
  uint64_t named = 0;
  for (const Move& move : plan_.moves()) {
    if (static_cast<uint64_t>(move.mover) < 3000) continue;
    EXPECT_EQ(move.chunks, history_.chunks_of(move.mover));
    ++named;
  }
  EXPECT_GT(named, 10u);
}

TEST_F(VaryingTest, WhatIsTooLargeForTheRoomIsPlannedAnew) {
  run(3, 1);
  plan_.restart(history_.tail(), 12, 12);
  plan_.extend(history_, history_.tail());
  for (uint64_t op = 1; op < 20 && (op == 1 || confirmed_); ++op) name(op);
  EXPECT_FALSE(confirmed_);
}

// An iteration allocates x, uses it twice and frees it.
class OneAndTheNext : public testing::Test {
 protected:
  static constexpr uint64_t kOps = 5;
  void perform(uint64_t op) {
    const uint64_t x = 100 + op / kOps;
    const Calls calls = {{x}, {x, 1}, {2}, {3}, {2, 3}};
    const HistoryIndex index = history_.tail();
    add(history_, calls[op % kOps], 1 + op % kOps);
    plan_.confirm(history_, index);
    if (op % kOps != 1) return;
    history_.add_free(Mover{x});
    plan_.freed(history_, Mover{x});
  }
  std::vector<Move> moves_of(uint64_t name) {
    std::vector<Move> found;
    for (const Move& move : plan_.moves()) {
      if (move.mover == Mover{name}) found.push_back(move);
    }
    return found;
  }
  CallHistory history_;
  WindowPlan plan_;
};

TEST_F(OneAndTheNext, AreToldApartWhileBothHaveOneName) {
  for (uint64_t op = 0; op <= 2 * kOps; ++op) perform(op);
  const HistoryIndex now = history_.tail();
  EXPECT_EQ(history_.next_use(Mover{102}, now), CallHistory::kNever) << "it will be freed";
  EXPECT_EQ(history_.next_use(Mover{102}, now + 3, true), now + 4) << "of the next one";
  plan_.restart(now, 10, 10);
  plan_.is_there(history_, Mover{102}, 1);
  plan_.extend(history_, now);
  perform(2 * kOps + 1);
  plan_.extend(history_, now);
  ASSERT_EQ(moves_of(102).size(), 1u);
  EXPECT_EQ(moves_of(102)[0].at, now + 4);
  EXPECT_EQ(moves_of(102)[0].lives_later, 1u) << "the one that is there is not meant";
  for (uint64_t op = 2 * kOps + 2; op <= 3 * kOps; ++op) perform(op);
  ASSERT_EQ(moves_of(103).size(), 1u);
  EXPECT_EQ(moves_of(103)[0].lives_later, 0u);
}

// The window ends with the op behind which x is freed, and the free is read when that op has been.
TEST_F(OneAndTheNext, AFreeThatWasForeseenEndsOneLife) {
  for (uint64_t op = 0; op <= 2 * kOps + 2; ++op) perform(op);
  plan_.restart(history_.tail(), 10, 10);
  plan_.extend(history_, history_.tail());
  ASSERT_EQ(plan_.cursor(), 3 * kOps + 2);
  for (uint64_t op = 2 * kOps + 3; op <= 3 * kOps + 1; ++op) perform(op);
  plan_.extend(history_, history_.tail());
  ASSERT_FALSE(moves_of(103).empty());
  EXPECT_EQ(moves_of(103).back().at, 4 * kOps);
  EXPECT_EQ(moves_of(103).back().lives_later, 1u);
}

// An iteration of weights and of tensors that each iteration allocates and frees, some of them in the next one. The
// program is ahead of the device by any number of ops; what it frees is read behind the op before, perhaps after the
// window was planned.
class Loop {
 public:
  explicit Loop(uint64_t seed) : random_(seed), ops_(8 + random_() % 30), weights_(2 + random_() % 6) {
    for (uint64_t i = 0, count = 2 + random_() % 12; i < count; ++i) {
      Transient one{random_() % ops_, 0, {}};
      one.freed_behind = one.first + random_() % (ops_ - 1);
      for (uint64_t op = one.first; op <= one.freed_behind; ++op) {
        if (op == one.first || random_() % 3 == 0) one.uses.insert(op);
      }
      transients_.push_back(one);
    }
    for (uint64_t op = 0; op < ops_; ++op) weight_of_.push_back(1 + random_() % weights_);
    for (HistoryIndex op = 0; op < ops_ * kIterations; ++op) most_ = std::max<uint64_t>(most_, names_of(op).size());
    room_ = most_ + random_() % 4;
  }

  // Ops of the last iterations that did not find what they need.
  uint64_t missed() {
    uint64_t missed = 0;
    for (HistoryIndex next = 0; next < ops_ * kIterations; ++next) {
      read(std::min(ops_ * kIterations, next + 1 + random_() % (2 * ops_)));
      if (random_() % ops_ == 0) replan_ = true;
      step(next);
      for (const uint64_t name : names_of(next)) {
        if (there_.contains(Mover{name})) continue;
        missed += next >= 5 * ops_ ? 1 : 0;
        bring(Mover{name}, names_of(next));
      }
      for (const uint64_t name : freed_behind(next)) end_life(Mover{name});
    }
    return missed;
  }

 private:
  static constexpr uint64_t kIterations = 10;
  struct Transient {
    uint64_t first, freed_behind;
    std::set<uint64_t> uses;  // counted from the iteration that allocates it
  };

  std::vector<uint64_t> names_of(HistoryIndex index) const {
    std::vector<uint64_t> names{weight_of_[index % ops_]};
    for_each_life(index, [&](const Transient& one, uint64_t op, uint64_t name) {
      if (one.uses.contains(op)) names.push_back(name);
    });
    return names;
  }
  std::vector<uint64_t> freed_behind(HistoryIndex index) const {
    std::vector<uint64_t> names;
    for_each_life(index, [&](const Transient& one, uint64_t op, uint64_t name) {
      if (one.freed_behind == op) names.push_back(name);
    });
    return names;
  }
  // What was allocated in this iteration, and in the one before.
  template <typename Do>
  void for_each_life(HistoryIndex index, Do&& act) const {
    for (uint64_t back = 0; back < 2 && back <= index / ops_; ++back) {
      for (size_t i = 0; i < transients_.size(); ++i) {
        act(transients_[i], index % ops_ + back * ops_, 1000 * (index / ops_ - back + 1) + i);
      }
    }
  }
  void read(HistoryIndex end) {
    for (HistoryIndex index = history_.tail(); index < end; ++index) {
      add(history_, names_of(index), 1 + index % ops_);
      if (!plan_.confirm(history_, index)) replan_ = true;
      if (random_() % 4 == 0) plan_.extend(history_, std::min(plan_.cursor(), index));
      for (const uint64_t name : freed_behind(index)) {
        history_.add_free(Mover{name});
        plan_.freed(history_, Mover{name});
      }
    }
  }
  void step(HistoryIndex next) {
    if (replan_ || plan_.cursor() < next) {
      plan_.restart(next, room_ - there_.size(), room_);
      for (const Mover mover : there_) plan_.is_there(history_, mover, 1);
      replan_ = false;
    }
    plan_.extend(history_, next);
    for (auto& moves = plan_.moves(); !moves.empty(); moves.pop_front()) {
      const Move& move = moves.front();
      if (move.kind == Move::Kind::leave) {
        if (move.at > next) break;
        there_.erase(move.mover);
      } else if (move.lives_later > 0) {
        break;
      } else if (!there_.contains(move.mover) && !dead_.contains(move.mover)) {
        if (there_.size() == room_) break;
        there_.insert(move.mover);
      }
    }
  }
  void end_life(Mover mover) {
    there_.erase(mover);
    dead_.insert(mover);
  }
  void bring(Mover mover, const std::vector<uint64_t>& needed) {
    replan_ = true;
    const auto is_needed = [&](Mover one) {
      return std::find(needed.begin(), needed.end(), static_cast<uint64_t>(one)) != needed.end();
    };
    if (there_.size() == room_) there_.erase(std::find_if_not(there_.begin(), there_.end(), is_needed));
    there_.insert(mover);
  }

  std::mt19937_64 random_;
  uint64_t ops_, weights_;
  uint64_t most_ = 0, room_ = 0;
  std::vector<Transient> transients_;
  std::vector<uint64_t> weight_of_;
  CallHistory history_;
  WindowPlan plan_;
  std::set<Mover> there_, dead_;
  bool replan_ = true;
};

TEST(WindowPlanTest, MissesNothingOfALoopOnceItIsKnown) {
  for (uint64_t seed = 0; seed < 500; ++seed) EXPECT_EQ(Loop(seed).missed(), 0u) << "seed " << seed;
}

// Nothing is known of 7 as the window begins.
TEST(WindowPlanTest, WhatIsNotUsedWhereItMightHaveBeenLeavesFirst) {
  CallHistory history;
  add(history, {8}, 1);
  add(history, {9}, 2);
  add(history, {8}, 3);
  WindowPlan plan;
  plan.restart(0, 1, 1);
  plan.is_there(history, Mover{7}, 1);
  plan.extend(history, 0);
  ASSERT_EQ(plan.moves().size(), 3u);
  EXPECT_EQ(plan.moves()[1].kind, Move::Kind::leave);
  EXPECT_EQ(plan.moves()[1].mover, Mover{7});
}

TEST_F(RepeatingTest, ForgetsWhatIsLongAgo) {
  for (uint64_t i = 0; i < 2000; ++i) {
    for (uint64_t op = 0; op < kOps; ++op) {
      perform(i, op);
      history_.add_free(Mover{1000 * (i + 1) + (op > 20 ? 40 - op : 0)});
    }
  }
  EXPECT_GT(history_.foreseen(), 79000u);
  EXPECT_EQ(history_.next_use(Mover{1005}, 0), CallHistory::kNever);
}

}  // namespace
}  // namespace reprise::replay
