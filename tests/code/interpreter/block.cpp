// The flow of control: which threads of a warp run next, where those that diverged meet again, barriers of blocks.
#include <algorithm>
#include <numeric>

#include "tests/code/interpreter/machine.h"

namespace reprise::sass {
namespace {

constexpr uint32_t kAll = 0xffffffff;
constexpr uint32_t kTurn = 400;      // instructions of a warp before another one runs
constexpr uint32_t kPatience = 100;  // branches of a group before another one of its warp runs

class WarpRunner {
 public:
  WarpRunner(Machine& machine, Block& block, Warp& warp) : machine_(machine), block_(block), warp_(warp) {}

  // Whether anything ran.
  bool run() {
    uint32_t steps = 0;
    while (steps < kTurn && machine_.stopped == Stop::none) {
      active_ = choose();
      if (active_ == 0) break;
      step();
      ++steps;
    }
    return steps != 0;
  }

 private:
  uint32_t running() const {
    uint32_t lanes = 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) lanes |= uint32_t{warp_.state[lane] == State::running} << lane;
    return lanes & warp_.live;
  }

  uint32_t at(uint32_t pc, uint32_t lanes) const {
    uint32_t there = 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) there |= uint32_t{warp_.pc[lane] == pc} << lane;
    return there & lanes;
  }

  // The threads at one place: those that ran last, until they wait. Compilers keep constants in uniform registers also
  // where threads have diverged, so that a group is not interrupted; only one that goes round for long is.
  uint32_t choose() {
    const uint32_t lanes = running();
    if (lanes == 0) return 0;
    uint32_t group = at(warp_.current, lanes);
    const bool waits = branched_ && ++warp_.patience > kPatience;
    if (group == 0 || (group != lanes && waits)) {
      warp_.patience = 0;
      uint32_t rest = lanes;
      for (uint64_t skip = machine_.order() % static_cast<uint32_t>(std::popcount(lanes)); skip > 0; --skip)
        rest &= rest - 1;
      warp_.current = warp_.pc[std::countr_zero(rest)];
      group = at(warp_.current, lanes);
    }
    branched_ = false;
    return group;
  }

  template <typename Do>
  static void each(uint32_t lanes, const Do& act) {
    for (; lanes != 0; lanes &= lanes - 1) act(static_cast<uint32_t>(std::countr_zero(lanes)));
  }

  void go(uint32_t lanes, uint32_t pc) {
    each(lanes, [&](uint32_t lane) { warp_.pc[lane] = pc; });
  }

  void wait(uint32_t lanes, State state) {
    each(lanes, [&](uint32_t lane) { warp_.state[lane] = state; });
  }

  uint32_t guarded() const {
    const code::Guard guard = operation_->source->guard;
    if (guard.always()) return active_;
    const bool uniform = guard.predicate >= code::kUniformPredicate && guard.predicate != code::kTrue;
    const uint32_t number = guard.predicate == code::kTrue ? kTruth : guard.predicate % 8;
    const uint32_t lanes = uniform ? (warp_.up >> number & 1) != 0 ? kAll : 0 : warp_.p[number];
    return active_ & (guard.negated ? ~lanes : lanes);
  }

  void refuse(const char* why) {
    machine_.stop(Stop::not_interpreted, std::string(why) + std::string(operation_->source->text.substr(0, 60)));
  }

  void step() {
    ++machine_.clock;
    if (machine_.left-- == 0) return machine_.stop(Stop::too_long, "");
    pc_ = warp_.current;
    operation_ = &(*machine_.program.code)[pc_];
    if (operation_->source->row.effect == code::Effect::beyond) return machine_.stop(Stop::trap, "beyond the end");
    const uint32_t lanes = guarded();
    go(active_, pc_ + 1);
    warp_.current = pc_ + 1;
    if (lanes == 0) return;
    if (!operation_->problem.empty()) return machine_.stop(Stop::not_interpreted, operation_->problem);
    Context context{machine_, block_, warp_, *operation_, lanes};
    if (operation_->flow == Flow::next) return operation_->run(context);
    flow(context, lanes);
  }

  void flow(const Context& context, uint32_t lanes) {
    switch (operation_->flow) {
      case Flow::branch:
        return branch(context, lanes);
      case Flow::computed_branch:
        return branch_computed(context, lanes);
      case Flow::leave:
        return leave(context, lanes);
      case Flow::open:
        return open(context, lanes);
      case Flow::meet:
        each(lanes, [&](uint32_t lane) { warp_.waits[lane] = warp_.b[barrier(context)][lane]; });
        wait(lanes, State::meeting);
        return release();
      case Flow::detach:
        each(lanes, [&](uint32_t lane) { warp_.meetings[warp_.b[barrier(context)][lane]].members &= ~(1U << lane); });
        return release();
      case Flow::gather:
        return gather(context, lanes);
      case Flow::block:
        return block(context, lanes);
      case Flow::call:
        if (const auto to = target()) go(lanes, *to);
        return;
      case Flow::give_back:
        return give_back(context, lanes);
      default:
        return refuse("");
    }
  }

  std::optional<uint32_t> target() {
    const auto& names = operation_->source->targets;
    const bool computed = operation_->flow == Flow::call && !operation_->operands.empty();
    if (names.size() == 1 && !computed) {
      if (const auto label = machine_.program.listing->label(names[0])) return label;
      if (const auto function = machine_.program.listing->function(names[0])) return function;
    }
    refuse("where it leads is not known: ");
    return std::nullopt;
  }

  uint32_t barrier(const Context& context) const {
    for (const Operand& operand : context.operation.operands) {
      if (operand.is(Kind::barrier)) return operand.number;
    }
    return 0;
  }

  // A mask in front of the label; all threads where there is none.
  uint32_t mask(const Context& context, uint32_t lane) const {
    if (context.count() == 0 || context.operand(0).is(Kind::predicate)) return kAll;
    return context.whole(context.operand(0), lane);
  }

  void branch(const Context& context, uint32_t lanes) {
    const auto to = target();
    if (!to) return;
    const bool together = active_ == (mask_of_first(context, lanes) & warp_.live);
    if (context.has(Part::DIV) || context.has(Part::CONV)) {
      if (together == context.has(Part::CONV)) go(lanes, *to);
      return;
    }
    for (const Operand& operand : context.operation.operands) {
      if (!operand.is(Kind::predicate) && !operand.is(Kind::uniform_predicate)) return refuse("");
      each(lanes, [&](uint32_t lane) { lanes &= context.truth(operand, lane) ? kAll : ~(1U << lane); });
    }
    if (context.has(Part::ANY) && lanes != 0) lanes = active_;
    if (context.has(Part::ALL) && lanes != active_) lanes = 0;
    go(lanes, *to);
    branched_ = true;
    const bool first =
        lanes != 0 && machine_.order() % 2 == 0;  // which of two groups runs first is the machine's to say
    if (lanes == active_ || first) warp_.current = *to;
  }

  uint32_t mask_of_first(const Context& context, uint32_t lanes) const {
    const bool asked = context.has(Part::DIV) || context.has(Part::CONV);
    return asked ? mask(context, static_cast<uint32_t>(std::countr_zero(lanes))) : kAll;
  }

  // A place in the function: only those that are listed.
  void branch_computed(const Context& context, uint32_t lanes) {
    const code::Instruction& source = *operation_->source;
    each(lanes, [&](uint32_t lane) {
      const uint32_t place = source.offset + 16 + context.bits(context.operand(0), lane) + context.operand(0).value;
      const auto to = machine_.program.listing->at(source.section, place);
      const bool listed = to && std::any_of(source.targets.begin(), source.targets.end(), [&](std::string_view name) {
                            return machine_.program.listing->label(name) == to;
                          });
      if (!listed) return refuse("not to a listed place: ");
      warp_.pc[lane] = *to;
    });
  }

  void leave(const Context& context, uint32_t lanes) {
    for (const Operand& operand : context.operation.operands) {
      each(lanes, [&](uint32_t lane) { lanes &= context.truth(operand, lane) ? kAll : ~(1U << lane); });
    }
    warp_.live &= ~lanes;
    wait(lanes, State::gone);
    release();
  }

  void open(const Context& context, uint32_t lanes) {
    const auto to = target();
    if (!to) return;
    const auto number = static_cast<uint32_t>(warp_.meetings.size());
    warp_.meetings.push_back({lanes, *to});
    each(lanes, [&](uint32_t lane) { warp_.b[barrier(context)][lane] = number; });
  }

  void gather(const Context& context, uint32_t lanes) {
    const bool all = context.has(Part::ALL) || context.count() == 0;
    each(lanes, [&](uint32_t lane) { warp_.waits[lane] = all ? kAll : mask(context, lane); });
    wait(lanes, State::gathering);
    release();
  }

  void block(const Context& context, uint32_t lanes) {
    if (!context.has(Part::SYNC) || !context.needs(1)) return refuse("");
    each(lanes, [&](uint32_t lane) {
      warp_.waits[lane] = context.whole(context.operand(0), lane) & 15;
      warp_.count[lane] = context.count() > 1 ? context.whole(context.operand(1), lane) : 0;
    });
    wait(lanes, State::blocked);
  }

  void give_back(const Context& context, uint32_t lanes) {
    each(lanes, [&](uint32_t lane) {
      const uint64_t place = context.pair(context.operand(0), lane);
      const auto& names = operation_->source->targets;
      uint64_t to = (place - kCode) / 16;
      if (place < kCode) {
        const auto base = names.size() == 1 ? machine_.program.listing->function(names[0]) : std::nullopt;
        if (!base) return refuse("a return to nowhere: ");
        to = *base + place / 16;
      }
      if (to >= machine_.program.code->size()) return refuse("a return to nowhere: ");
      warp_.pc[lane] = static_cast<uint32_t>(to);
    });
  }

  uint32_t waiting(State state, uint32_t for_what) const {
    uint32_t lanes = 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      lanes |= uint32_t{warp_.state[lane] == state && warp_.waits[lane] == for_what} << lane;
    }
    return lanes & warp_.live;
  }

  // Lets those go on that all others have come to.
  void release() {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t what = warp_.waits[lane];
      if (warp_.state[lane] == State::meeting) {
        const uint32_t here = waiting(State::meeting, what);
        if ((warp_.meetings[what].members & warp_.live & ~here) != 0) continue;
        if (what != 0) go(here, warp_.meetings[what].target);
        wait(here, State::running);
      } else if (warp_.state[lane] == State::gathering) {
        const uint32_t here = waiting(State::gathering, what);
        if ((what & warp_.live & ~here) == 0) wait(here, State::running);
      }
    }
  }

  Machine& machine_;
  Block& block_;
  Warp& warp_;
  const Operation* operation_ = nullptr;
  uint32_t pc_ = 0;
  uint32_t active_ = 0;
  bool branched_ = false;
};

template <typename Do>
void each_lane(Block& block, const Do& act) {
  for (auto& warp : block.warps) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((warp->live >> lane & 1) != 0) act(*warp, lane);
    }
  }
}

// Whether threads went on from a barrier of the block.
bool release_barriers(Block& block) {
  uint32_t live = 0;
  uint32_t here[16] = {};
  uint32_t wanted[16] = {};
  each_lane(block, [&](Warp& warp, uint32_t lane) {
    ++live;
    if (warp.state[lane] != State::blocked) return;
    ++here[warp.waits[lane]];
    wanted[warp.waits[lane]] = warp.count[lane];
  });
  bool released = false;
  for (uint32_t barrier = 0; barrier < 16; ++barrier) {
    if (here[barrier] == 0 || here[barrier] < (wanted[barrier] == 0 ? live : wanted[barrier])) continue;
    released = true;
    each_lane(block, [&](Warp& warp, uint32_t lane) {
      if (warp.state[lane] == State::blocked && warp.waits[lane] == barrier) warp.state[lane] = State::running;
    });
  }
  return released;
}

std::unique_ptr<Warp> make_warp(Machine& machine, uint32_t number) {
  auto warp = std::make_unique<Warp>();
  warp->number = number;
  const uint32_t threads = std::min(kLanes, machine.dimensions.threads() - number * kLanes);
  warp->live = threads == kLanes ? kAll : (1U << threads) - 1;
  // What nothing has set may be anything.
  for (auto& lanes : warp->r) {
    for (uint32_t& value : lanes) value = machine.clean ? 0 : static_cast<uint32_t>(machine.order());
  }
  for (uint32_t& value : warp->p) value = machine.clean ? 0 : static_cast<uint32_t>(machine.order());
  warp->p[kTruth] = kAll;
  std::fill(std::begin(warp->pc), std::end(warp->pc), machine.program.entry);
  warp->current = machine.program.entry;
  return warp;
}

void run_block(Machine& machine, uint32_t number) {
  const Dimensions& d = machine.dimensions;
  Block block{.id = {number % d.grid[0], number / d.grid[0] % d.grid[1], number / d.grid[0] / d.grid[1]},
              .number = number,
              .shared = std::vector<uint8_t>(machine.program.shared_bytes),
              .warps = {}};
  const uint32_t warps = (d.threads() + kLanes - 1) / kLanes;
  for (uint32_t warp = 0; warp < warps; ++warp) block.warps.push_back(make_warp(machine, warp));
  std::vector<uint32_t> order(warps);
  std::iota(order.begin(), order.end(), 0);
  const auto alive = [&] {
    return std::any_of(block.warps.begin(), block.warps.end(), [](auto& w) { return w->live; });
  };
  while (machine.stopped == Stop::none && alive()) {
    std::shuffle(order.begin(), order.end(), machine.order);
    bool ran = false;
    for (const uint32_t warp : order) ran = WarpRunner(machine, block, *block.warps[warp]).run() || ran;
    if (!release_barriers(block) && !ran) machine.stop(Stop::stuck, "threads wait for each other");
  }
}

}  // namespace

void run(Machine& machine) {
  std::vector<uint32_t> blocks(machine.dimensions.blocks());
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), machine.order);
  for (const uint32_t block : blocks) {
    if (machine.stopped == Stop::none) run_block(machine, block);
  }
}

}  // namespace reprise::sass
