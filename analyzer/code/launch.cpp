#include "analyzer/code/launch.h"

#include <algorithm>

namespace reprise::code {
namespace {

constexpr uint32_t kMostBlocks = 1U << 20;

class Resolver {
 public:
  Resolver(const CodeFacts& facts, const LaunchWords& launch) : facts_(facts), launch_(launch) {}

  std::optional<Operands> resolve() {
    if (!facts_.known() || facts_.grade == Grade::hidden) return std::nullopt;
    // Addresses of a packed structure, which are in no word; what a tensor map describes.
    const bool packed =
        std::any_of(launch_.live.begin(), launch_.live.end(), [](uint32_t offset) { return offset % 8 != 0; });
    if (packed) return std::nullopt;
    Operands all;
    for (const auto& [site, instruction] : facts_.sites) {
      const auto found = words_of(site);
      if (!found || site.descriptor) return std::nullopt;
      if (site.how != How::write) all.read.insert(found->begin(), found->end());
      if (site.how != How::read) all.written.insert(found->begin(), found->end());
    }
    all.null = std::move(needed_null_);
    return all;
  }

 private:
  using Words = std::set<uint32_t>;

  std::optional<Words> words_of(const Site& site) {
    Words all;
    for (const std::set<Base>& choice : site.choices) {
      Words here;
      size_t fixed = 0;
      for (const Base& base : choice) {
        add(base, here);
        if (site.grade != Grade::closed && is_fixed_here(base)) ++fixed;
      }
      if (site.grade == Grade::closed) {
        for (const Base& base : site.numbers) add(base, here);
      }
      all.insert(here.begin(), here.end());
      // What was loaded is only a number if this is the address.
      const bool any_of_table = choice.size() == 1 && choice.begin()->kind == BaseKind::computed && !here.empty();
      if (site.grade != Grade::closed && here.size() + fixed != 1 && !any_of_table) return std::nullopt;
    }
    if (site.grade == Grade::closed) return leads_astray(site, all) ? std::nullopt : std::optional(all);
    Words numbers;
    for (const Base& base : site.numbers) add(base, numbers);
    return numbers.empty() ? std::optional(all) : std::nullopt;
  }

  // An address may be kept in another form, shifted for one: then no word shows it.
  bool leads_astray(const Site& site, const Words& found) {
    if (!site.derived || !found.empty()) return false;
    return std::any_of(site.choices.begin(), site.choices.end(), [&](const std::set<Base>& choice) {
      return std::any_of(choice.begin(), choice.end(), [&](const Base& base) {
        return base.kind == BaseKind::computed || (base.kind == BaseKind::parameter && !is_null(base));
      });
    });
  }

  bool is_null(const Base& base) {
    if (!launch_.null.contains(base.key)) return false;
    needed_null_.insert(base.key);
    return true;
  }

  bool is_fixed_here(const Base& base) {
    if (base.kind == BaseKind::parameter) return is_null(base);
    return base.kind == BaseKind::module || base.kind == BaseKind::driver || base.kind == BaseKind::heap;
  }

  void add(const Base& base, Words& words) const {
    if (base.kind == BaseKind::parameter && launch_.live.contains(base.key)) words.insert(base.key);
    if (base.kind == BaseKind::computed) add_computed(facts_.symbols.place(base.key), words);
  }

  void add_computed(const ComputedPlace& place, Words& words) const {
    const uint64_t blocks = uint64_t{launch_.grid[0]} * launch_.grid[1] * launch_.grid[2];
    if (place.index == 0 || launch_.parameters.empty() || blocks > kMostBlocks) {
      words.insert(launch_.live.begin(), launch_.live.end());
      return;
    }
    uint32_t block[3];
    for (block[2] = 0; block[2] < launch_.grid[2]; ++block[2]) {
      for (block[1] = 0; block[1] < launch_.grid[1]; ++block[1]) {
        for (block[0] = 0; block[0] < launch_.grid[0]; ++block[0]) {
          const uint32_t index = facts_.expressions.evaluate({true, place.index}, launch_.parameters, block);
          const uint32_t word = (place.displacement + index) & ~7U;
          if (launch_.live.contains(word)) words.insert(word);
        }
      }
    }
  }

  const CodeFacts& facts_;
  const LaunchWords& launch_;
  Words needed_null_;
};

}  // namespace

std::optional<Operands> operands_of(const CodeFacts& facts, const LaunchWords& launch) {
  return Resolver(facts, launch).resolve();
}

}  // namespace reprise::code
