#include "tests/e2e/hidden/recipe.h"

#include <cstdio>
#include <map>

namespace hidden {
namespace {

class Draws {
 public:
  Draws(uint64_t seed, const std::vector<std::string>& options) : seed_(seed) {
    for (size_t i = 0; i + 1 < options.size(); i += 2) fixed_[options[i]] = std::stoull(options[i + 1]);
  }

  // [low, high], or what the option --NAME says. `index`: of the group that it is drawn for.
  uint64_t draw(const char* name, uint64_t low, uint64_t high, uint64_t index = 0) {
    const auto fixed = fixed_.find(std::string("--") + name);
    known_.push_back(std::string("--") + name);
    if (fixed != fixed_.end()) return fixed->second;
    uint64_t hash = (seed_ + 1) * 0x9E3779B97F4A7C15ull + index * 0xD1B54A32D192ED03ull;
    for (const char* at = name; *at != 0; ++at) hash = (hash ^ static_cast<unsigned char>(*at)) * 1099511628211ull;
    for (int i = 0; i < 3; ++i) hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9ull;
    return low + (hash >> 16) % (high - low + 1);
  }

  int number(const char* name, uint64_t low, uint64_t high, uint64_t index = 0) {
    return static_cast<int>(draw(name, low, high, index));
  }

  bool all_known() const {
    for (const auto& [name, value] : fixed_) {
      bool known = false;
      for (const auto& one : known_) known = known || one == name;
      if (!known) {
        std::fprintf(stderr, "hidden_program: no option %s\n", name.c_str());
        return false;
      }
    }
    return true;
  }

 private:
  uint64_t seed_;
  std::map<std::string, uint64_t> fixed_;
  std::vector<std::string> known_;
};

// Multiples of four bytes, from an eighth of a chunk to six.
size_t tensor_bytes(Draws& draws, const char* name, const Recipe& recipe, uint64_t index) {
  return draws.draw(name, recipe.chunk / 32, recipe.chunk / 2, index) * 4 * (1 + index % 3);
}

void draw_table(Draws& draws, const Recipe& recipe, bool hard, uint64_t g, Group* group) {
  Table& table = group->table;
  table.count = static_cast<uint32_t>(draws.draw("targets", 2, 4, g));
  table.coding = kPlain;
  if (hard) table.coding = static_cast<uint32_t>(draws.draw("coding", 0, kCodings - 1, g));
  const uint32_t entry = table.coding == kList ? 16 : 8;
  const uint64_t spread = draws.draw("stride", 0, 5, g);
  table.stride = entry + (spread == 4 && hard ? 3u : spread == 5 ? 48u : 0u);
  const uint64_t offset = draws.draw("offset", 0, 3, g);
  table.offset = offset == 2 && hard ? 3u : offset == 3 ? 40u : 0u;
  table.key = (draws.draw("key", 1, 0x7FFF, g) << 32) + draws.draw("key_low", 1, 1u << 30, g) * 4;
  group->place = Place::own;
  const uint64_t place = draws.draw("place", 0, hard ? 9 : 7, g);
  if (place == 7) group->place = Place::inside;
  if (place == 8) group->place = Place::pinned;
  if (place == 9) group->place = Place::managed;
  group->build = static_cast<Build>(draws.draw("build", 0, 11, g));
  const int often = draws.number("build_every", 0, 5, g);
  group->build_every = often <= 2 ? 0 : often <= 4 ? 1 : draws.number("build_period", 2, 5, g);
  group->rotate_from = draws.number("rotate_from", 2, static_cast<uint64_t>(2 * recipe.iterations), g);
  group->renewed = draws.number("renewed", 0, 3, g) == 0;
}

Group draw_group(Draws& draws, const Recipe& recipe, bool hard, uint64_t g) {
  Group group;
  draw_table(draws, recipe, hard, g, &group);
  group.targets = static_cast<Targets>(draws.draw("target_kind", 0, 3, g));
  if (group.build == Build::range) group.targets = Targets::interior;
  if (group.targets == Targets::transient) group.build_every = 1;
  group.target_bytes = draws.draw("target_words", recipe.chunk / 32, recipe.chunk / 2, g) * 4;
  group.filled_hidden = draws.number("filled_hidden", 0, 3, g) == 3;
  group.launched_always = draws.number("launched_always", 0, 7, g) != 0;
  const int use = draws.number("use", 0, 3, g);
  if (use >= 2) {
    group.period = static_cast<uint32_t>(draws.draw("period", 2, 5, g));
    group.phase = static_cast<uint32_t>(draws.draw("phase", 0, group.period - 1, g));
  }
  if (use % 2 == 1) group.first = static_cast<uint32_t>(draws.draw("first", 5, 10, g));
  return group;
}

}  // namespace

bool make_recipe(uint64_t seed, const std::vector<std::string>& options, Recipe* recipe) {
  Draws draws(seed, options);
  recipe->seed = seed;
  recipe->chunk = draws.draw("chunk", 16384, 16384);
  recipe->iterations = draws.number("iterations", 11, 15);
  recipe->streams = draws.number("streams", 1, 4);
  recipe->ops = draws.number("ops", 10, 34);
  const int irregular = draws.number("irregular", 0, 9);
  recipe->irregular = irregular == 9 ? 1 : irregular == 8 ? 2 : 0;
  recipe->digest = static_cast<Digest>(draws.draw("digest", 0, 2));
  recipe->freeing = static_cast<Freeing>(draws.draw("freeing", 0, 2));
  recipe->serial = draws.number("serial", 0, 0) == 1;
  recipe->polled = draws.number("polled", 0, 2) == 0;
  const uint64_t weights = draws.draw("weights", 5, 14);
  for (uint64_t i = 0; i < weights; ++i) recipe->weights.push_back(tensor_bytes(draws, "weight", *recipe, i));
  // Every other program has tables of plain, aligned words in device memory alone: those that can be read.
  const bool hard = draws.number("hard", 0, 1) == 1;
  const uint64_t groups = draws.draw("groups", 1, 3);
  for (uint64_t g = 0; g < groups; ++g) recipe->groups.push_back(draw_group(draws, *recipe, hard, g));
  return draws.all_known();
}

void describe(const Recipe& recipe) {
  std::fprintf(stderr,
               "%d iterations, %d streams, %d ops, irregular %d, digest %d, freeing %d, polled %d, %zu weights\n",
               recipe.iterations, recipe.streams, recipe.ops, recipe.irregular, static_cast<int>(recipe.digest),
               static_cast<int>(recipe.freeing), recipe.polled ? 1 : 0, recipe.weights.size());
  for (const Group& group : recipe.groups) {
    std::fprintf(stderr,
                 "group: coding %u, stride %u, offset %u, build %d every %d, rotated from %d, place %d, renewed %d, "
                 "%u targets of kind %d, %zu bytes, filled hidden %d, launched always %d, followed when %% %u == %u "
                 "from %u on\n",
                 group.table.coding, group.table.stride, group.table.offset, static_cast<int>(group.build),
                 group.build_every, group.rotate_from, static_cast<int>(group.place), group.renewed ? 1 : 0,
                 group.table.count, static_cast<int>(group.targets), group.target_bytes, group.filled_hidden ? 1 : 0,
                 group.launched_always ? 1 : 0, group.period, group.phase, group.first);
  }
}

}  // namespace hidden
