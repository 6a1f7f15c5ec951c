#include "tests/e2e/bend/recipe.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace program {
namespace {

using Random = std::mt19937_64;
using Ids = std::vector<size_t>;

bool has(const Ids& ids, size_t id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

Op new_tensor(size_t id, int stream, size_t bytes, unsigned value) {
  return {What::fill, stream, {id}, bytes, value, By::caller};
}

// `count` different ones.
Ids draw_operands(Random& random, const Ids& from, size_t count) {
  Ids drawn;
  while (drawn.size() < count) {
    const size_t id = from[random() % from.size()];
    if (!has(drawn, id)) drawn.push_back(id);
  }
  return drawn;
}

Ids persistent_ids(const Shape& shape) {
  Ids ids(shape.persistent);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  return ids;
}

// All that there is before the op at `at`.
Ids alive_at(const Ops& ops, size_t at, const Shape& shape) {
  Ids alive = persistent_ids(shape);
  for (size_t i = 0; i < at; ++i) {
    if (ops[i].what == What::fill) alive.push_back(ops[i].tensors[0]);
    if (ops[i].what == What::release) alive.erase(std::find(alive.begin(), alive.end(), ops[i].tensors[0]));
  }
  return alive;
}

size_t unused_id(const Ops& ops, const Shape& shape) {
  size_t next = shape.persistent;
  for (const Op& op : ops) {
    for (const size_t id : op.tensors) next = std::max(next, id + 1);
  }
  return next;
}

using Position = Ops::difference_type;

void leave_out(Ops* ops, size_t at) {
  const Op gone = (*ops)[at];
  ops->erase(ops->begin() + static_cast<Position>(at));
  if (gone.what != What::fill) return;  // what is not freed here is freed where the iteration ends
  ops->erase(std::remove_if(ops->begin(), ops->end(), [&](const Op& op) { return has(op.tensors, gone.tensors[0]); }),
             ops->end());
}

// Returns false if nothing of the kind can be done there.
bool diverge_at(Random& random, const Shape& shape, Ops* ops, size_t at) {
  Op& op = (*ops)[at];
  const auto insert = [&](const Op& more, size_t behind = 0) {
    ops->insert(ops->begin() + static_cast<Position>(at + behind), more);
  };
  const Ids alive = alive_at(*ops, at, shape);
  const int stream = static_cast<int>(random() % shape.streams);
  const auto mix = [&] {
    return Op{What::mix, stream, draw_operands(random, alive, 2 + random() % 3), 0, static_cast<unsigned>(random()),
              By::caller};
  };
  switch (random() % 11) {
    case 0:
      insert(mix());
      return true;
    case 1:  // an evaluation in between
      for (uint64_t more = 3 + random() % 12; more > 0; --more) insert(mix());
      return true;
    case 2:
      for (uint64_t more = random() % 2 == 0 ? 1 : 2 + random() % 16; more > 0 && at < ops->size(); --more) {
        leave_out(ops, at);
      }
      return true;
    case 3:  // another kernel
      if (op.what != What::mix) return false;
      if (op.tensors.size() == 2) {
        op.what = What::copy;
      } else {
        op.tensors.pop_back();
      }
      return true;
    case 4:
      if (op.what != What::fill) return false;
      op.bytes = draw_bytes(random, shape.sizes);
      return true;
    case 5: {  // another operand
      const size_t other = alive[random() % alive.size()];
      if ((op.what != What::mix && op.what != What::copy) || has(op.tensors, other)) return false;
      op.tensors[random() % op.tensors.size()] = other;
      return true;
    }
    case 6:
      ops->resize(at);
      return true;
    case 7:
      insert({What::read, 0, {alive[random() % alive.size()]}, 0, 0, By::caller});
      return true;
    case 8: {  // one tensor more, which may stay until the iteration ends
      const size_t id = unused_id(*ops, shape);
      Op use = mix();
      use.tensors[0] = id;
      if (random() % 2 == 0) insert({What::release, stream, {id}, 0, 0, By::caller});
      insert(use);
      insert(new_tensor(id, stream, draw_bytes(random, shape.sizes), use.value));
      return true;
    }
    case 9:
      if (op.what == What::release || op.stream == stream) return false;
      op.stream = stream;
      return true;
    default: {  // another order
      if (at + 1 == ops->size()) return false;
      Op& next = (*ops)[at + 1];
      for (const size_t id : op.tensors) {
        if (has(next.tensors, id)) return false;
      }
      std::swap(op, next);
      return true;
    }
  }
}

}  // namespace

size_t draw_bytes(Random& random, const Sizes& sizes) {
  const auto max_kib = static_cast<uint64_t>(sizes.max_kib);
  if (sizes.spread == 0) {
    const uint64_t kib = 1 + random() % max_kib;
    return (random() % 4 == 0 ? 1 + random() % 24 : kib) * 1024;  // a quarter of them small
  }
  // Each doubling as often as the next one.
  uint64_t low = 4;
  while (low * 2 <= max_kib && random() % 5 != 0) low *= 2;
  const uint64_t high = std::min<uint64_t>(low * 2, max_kib);
  return (low + (high > low ? random() % (high - low) : 0)) * 1024;
}

Ops draw_ops(Random& random, const Shape& shape, int count, unsigned first_value) {
  Ops ops;
  Ids alive = persistent_ids(shape);
  size_t next = shape.persistent;
  for (int i = 0; i < count; ++i) {
    const int stream = static_cast<int>(random() % shape.streams);
    switch (random() % 8) {
      case 0:
      case 1:
        ops.push_back(
            new_tensor(next, stream, draw_bytes(random, shape.sizes), first_value + static_cast<unsigned>(i)));
        alive.push_back(next++);
        break;
      case 2: {
        if (alive.size() == shape.persistent) break;
        const size_t victim = shape.persistent + random() % (alive.size() - shape.persistent);
        ops.push_back({What::release, stream, {alive[victim]}, 0, 0, By::caller});
        alive.erase(alive.begin() + static_cast<Ids::difference_type>(victim));
        break;
      }
      case 3: {
        const size_t from = alive[random() % alive.size()];
        const size_t to = alive[random() % alive.size()];
        if (from != to) ops.push_back({What::copy, stream, {from, to}, 0, 0, By::caller});
        break;
      }
      default: {
        const size_t operands = 2 + random() % 3;
        ops.push_back(
            {What::mix, stream, draw_operands(random, alive, operands), 0, static_cast<unsigned>(i), By::caller});
        break;
      }
    }
  }
  return ops;
}

void diverge(Random& random, const Shape& shape, Ops* ops) {
  while (!ops->empty() && !diverge_at(random, shape, ops, random() % ops->size())) {
  }
}

std::vector<LateFree> loosen(Random& random, const Shape& shape, size_t most, bool waits, Ops* ops) {
  ops->erase(std::remove_if(ops->begin(), ops->end(), [](const Op& op) { return op.what == What::release; }),
             ops->end());
  std::map<size_t, size_t> last_use;
  for (size_t i = 0; i < ops->size(); ++i) {
    for (const size_t id : (*ops)[i].tensors) {
      if (id >= shape.persistent) last_use[id] = i;
    }
  }
  const size_t end = ops->size();
  const bool lingers = random() % 4 == 0;
  std::multimap<size_t, Op> frees;  // by the op that they come before
  std::vector<LateFree> late;
  std::vector<std::pair<size_t, size_t>> order(last_use.begin(), last_use.end());
  std::shuffle(order.begin(), order.end(), random);
  for (const auto& [id, last] : order) {
    const uint64_t draw = random() % 4;
    const By by = draw < 2 ? By::caller : draw == 2 && !waits ? By::other_thread_later : By::other_thread;
    const Op free = {What::release, 0, {id}, 0, 0, by};
    const size_t before = last + 1 + random() % (most + 1);
    if (before > end && lingers) {
      late.push_back({free, before - end});
    } else {
      frees.emplace(std::min(before, end), free);
    }
  }
  Ops merged;
  for (size_t i = 0; i <= end; ++i) {
    const auto [first, behind] = frees.equal_range(i);
    for (auto free = first; free != behind; ++free) merged.push_back(free->second);
    if (i < end) merged.push_back((*ops)[i]);
  }
  *ops = merged;
  return late;
}

}  // namespace program
