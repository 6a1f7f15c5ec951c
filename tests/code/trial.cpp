#include "tests/code/trial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/code/draw.h"

namespace reprise::sass {
namespace {

constexpr uint32_t kDynamicShared = 16384;
constexpr uint32_t kReservedShared = 1024;  // of the driver's, where kernels of sm_90 do not begin
constexpr uint32_t kMostPromotions = 40;

// One run of a drawn launch.
struct Outcome {
  Scene scene;
  Stop stopped = Stop::none;
  std::string why;
  uint64_t ran = 0;
};

struct Sets {
  std::set<size_t> read;
  std::set<size_t> written;
};

std::set<size_t> objects_of(const std::set<uint32_t>& words, const Scene& scene) {
  std::set<size_t> objects;
  for (const uint32_t word : words) {
    if (word + 8 > scene.parameters.size()) continue;
    uint64_t address = 0;
    std::memcpy(&address, scene.parameters.data() + word, 8);
    if (const auto object = scene.world.find(address)) objects.insert(*object);
  }
  return objects;
}

// Without those of variables, which no word leads to.
Sets touched(const Scene& scene) {
  Sets sets;
  for (size_t n = 0; n < scene.world.objects().size(); ++n) {
    const Object& object = scene.world.objects()[n];
    if (object.of_module) continue;
    if (object.read) sets.read.insert(n);
    if (object.written) sets.written.insert(n);
  }
  return sets;
}

std::vector<size_t> lacking(const std::set<size_t>& touched, const std::set<size_t>& claimed) {
  std::vector<size_t> objects;
  std::set_difference(touched.begin(), touched.end(), claimed.begin(), claimed.end(), std::back_inserter(objects));
  return objects;
}

class Trial {
 public:
  Trial(const Subject& subject, const images::KernelCode& kernel, const Wishes& wishes, const code::Truth* truth)
      : subject_(subject),
        kernel_(kernel),
        wishes_(wishes),
        truth_(truth),
        surroundings_(surroundings_of(subject.cubin, kernel.name)),
        facts_(code::analyse(subject.listing, subject.image, kernel)) {}

  Verdict run() {
    verdict_.kernel = kernel_.name;
    const auto entry = subject_.listing.function(kernel_.name);
    if (!entry || kernel_.parameters_at == 0 || !kernel_.parameters_known) {
      verdict_.refused = "no text, or unknown parameters";
      return std::move(verdict_);
    }
    program_.listing = &subject_.listing;
    program_.code = &subject_.code;
    program_.entry = *entry;
    program_.shared_bytes = kReservedShared + surroundings_.shared_bytes + kDynamicShared;
    choose_pointers();
    for (uint32_t attempt = 0; attempt < wishes_.attempts && verdict_.ended < wishes_.launches; ++attempt) {
      attempt_launch(mixed(wishes_.seed, attempt));
      if (!verdict_.refused.empty() && verdict_.ended == 0 && attempt >= 5) break;
    }
    return std::move(verdict_);
  }

 private:
  // Those that the truth or the facts name; what else is one shows when accesses lead nowhere.
  void choose_pointers() {
    if (truth_ != nullptr) pointers_ = truth_->launch.live;
    if (truth_ != nullptr || !facts_.known()) return;
    for (const auto& [base, uses] : facts_.uses) {
      if (base.kind == code::BaseKind::parameter && uses.any()) pointers_.insert(base.key);
    }
  }

  // `again`: on what another run left.
  Outcome interpret(const Draw& draw, uint64_t places, uint64_t order, Scene* again = nullptr) {
    Outcome outcome{again != nullptr ? std::move(*again) : make_scene(draw, surroundings_, places), Stop::none, "", 0};
    fill_banks(program_, draw, outcome.scene, surroundings_, kernel_.parameters_at);
    Machine machine{
        program_, outcome.scene.world, draw.dimensions, std::mt19937_64(order), wishes_.instructions, 0, Stop::none,
        ""};
    machine.clean = clean_;
    sass::run(machine);
    outcome.stopped = machine.stopped;
    outcome.why = machine.why;
    outcome.ran = machine.clock;
    return outcome;
  }

  void attempt_launch(uint64_t seed) {
    Draw draw = draw_launch(kernel_, pointers_, surroundings_.most_threads, seed, truth_);
    Outcome outcome = interpret(draw, seed, seed);
    while (outcome.stopped == Stop::outside && truth_ == nullptr && promote(seed, draw, outcome)) {
    }
    if (outcome.stopped != Stop::none) note_stop(outcome);
    if (outcome.stopped != Stop::none && outcome.stopped != Stop::too_long) return;
    const Sets sets = touched(outcome.scene);
    if (sets.read.empty() && sets.written.empty()) {
      if (outcome.stopped == Stop::none) ++verdict_.idle;
      return;
    }
    // What was touched was touched, also where that took too long.
    if (outcome.stopped == Stop::none) ++verdict_.ended;
    compare(draw, outcome, sets);
  }

  void note_stop(const Outcome& outcome) {
    if (outcome.stopped == Stop::not_interpreted) verdict_.refused = outcome.why;
    if (outcome.stopped == Stop::outside) {
      ++verdict_.outside;
    } else if (outcome.stopped != Stop::not_interpreted) {
      ++verdict_.cut;
    }
    constexpr const char* kNames[] = {"", "not interpreted: ", "", "trap: ", "too long", "stuck: "};
    verdict_.last = kNames[static_cast<size_t>(outcome.stopped)] + outcome.why;
  }

  // Makes an address of another word, if the launch then comes further.
  bool promote(uint64_t seed, Draw& draw, Outcome& outcome) {
    std::vector<uint32_t> words;
    for (uint32_t word = 0; word + 8 <= draw.numbers.size(); word += 8) {
      if (!pointers_.contains(word)) words.push_back(word);
    }
    std::shuffle(words.begin(), words.end(), std::mt19937_64(seed));
    for (const uint32_t word : words) {
      if (promotions_++ >= kMostPromotions) return false;
      std::set<uint32_t> more = pointers_;
      more.insert(word);
      Draw other = draw_launch(kernel_, more, surroundings_.most_threads, seed, truth_);
      if (!other.pointers.contains(word)) continue;
      Outcome further = interpret(other, seed, seed);
      if (further.stopped == Stop::outside && further.why == outcome.why) continue;
      pointers_ = more;
      draw = std::move(other);
      outcome = std::move(further);
      return true;
    }
    return false;
  }

  std::optional<code::Operands> claim(const Draw& draw, const Scene& scene) const {
    auto claimed = code::operands_of(facts_, words_of(draw, scene));
    if (wishes_.fault == 1 && claimed && !claimed->read.empty()) claimed->read.erase(claimed->read.begin());
    if (wishes_.fault == 2 && claimed && !claimed->written.empty()) claimed->written.erase(claimed->written.begin());
    if (wishes_.fault == 3 && !claimed && facts_.known()) claimed.emplace();
    return claimed;
  }

  std::string contradiction(const Draw& draw, const Scene& scene, const Sets& sets) const {
    const auto claimed = claim(draw, scene);
    if (!claimed) return "";
    const auto read = lacking(sets.read, objects_of(claimed->read, scene));
    const auto written = lacking(sets.written, objects_of(claimed->written, scene));
    if (read.empty() && written.empty()) return "";
    return fmt::format("reads objects {}, writes {} that no claimed word leads to; claimed: reads {}, writes {}", read,
                       written, claimed->read, claimed->written);
  }

  // An index may lead from one object into another by chance, but not at other addresses, too.
  bool stays(const Draw& draw, const std::string& found) {
    for (uint64_t places = 1; places <= 3; ++places) {
      const Outcome outcome = interpret(draw, mixed(draw.seed, places), draw.seed);
      const bool ran = outcome.stopped == Stop::none || outcome.stopped == Stop::too_long;
      if (!ran || contradiction(draw, outcome.scene, touched(outcome.scene)) != found) return false;
    }
    return true;
  }

  void compare(const Draw& draw, Outcome& outcome, const Sets& sets) {
    const auto claimed = claim(draw, outcome.scene);
    const bool follows =
        std::any_of(sets.read.begin(), sets.read.end(), [&](size_t n) { return n >= outcome.scene.hidden; }) ||
        std::any_of(sets.written.begin(), sets.written.end(), [&](size_t n) { return n >= outcome.scene.hidden; });
    if (follows) ++verdict_.followed;
    if (truth_ != nullptr) compare_with_truth(draw, outcome, sets);
    ++(claimed ? verdict_.compared : verdict_.unclaimed);
    if (!claimed) return;
    if (const std::string found = contradiction(draw, outcome.scene, sets); !found.empty()) {
      if (stays(draw, found)) {
        verdict_.wrong.push_back(fmt::format("{} (seed {})", found, draw.seed));
      } else {
        ++verdict_.strayed;
      }
      return;
    }
    const bool repeats = wishes_.fault == 5 ? facts_.known() : facts_.repeats();
    const auto both = objects_of(claimed->written, outcome.scene);
    const auto read = objects_of(claimed->read, outcome.scene);
    const bool meet = std::any_of(both.begin(), both.end(), [&](size_t n) { return read.contains(n); });
    if (repeats && !meet && outcome.stopped == Stop::none) repeat(draw, outcome);
  }

  void compare_with_truth(const Draw& draw, const Outcome& outcome, const Sets& sets) {
    if (truth_->hidden) return;
    const auto read = lacking(sets.read, objects_of(truth_->operands.read, outcome.scene));
    const auto written = lacking(sets.written, objects_of(truth_->operands.written, outcome.scene));
    if (read.empty() && written.empty()) return;
    const Outcome again = interpret(draw, mixed(draw.seed, 1), draw.seed);
    const Sets other = touched(again.scene);
    if (other.read != sets.read || other.written != sets.written) return;
    verdict_.against_truth.push_back(fmt::format("reads objects {}, writes {} (seed {})", read, written, draw.seed));
  }

  // In another order from the same memory, and once more on what the first run left.
  void repeat(const Draw& draw, Outcome& first) {
    World::Likeness found = run_again(draw, first);
    ++verdict_.repeated;
    if (found == World::Likeness::differ && wishes_.fault == 0) {
      // What no instruction sets is not the same every time; where that shows, no program launches it like this.
      clean_ = true;
      Outcome clean = interpret(draw, draw.seed, draw.seed);
      if (run_again(draw, clean) != World::Likeness::differ) {
        ++verdict_.unset;
        found = World::Likeness::same;
      }
      clean_ = false;
    }
    if (found == World::Likeness::raced) ++verdict_.raced;
    if (found == World::Likeness::differ) verdict_.wrong.push_back(fmt::format("does not repeat (seed {})", draw.seed));
  }

  World::Likeness run_again(const Draw& draw, Outcome& first) {
    Outcome second = interpret(draw, draw.seed, mixed(draw.seed, 77));
    if (wishes_.fault == 4) flip(second.scene);
    const World::Likeness found = likeness(first, second);
    if (found != World::Likeness::same) return found;
    Outcome third = interpret(draw, draw.seed, mixed(draw.seed, 78), &second.scene);
    return likeness(first, third);
  }

  static World::Likeness likeness(Outcome& a, Outcome& b) {
    if (b.stopped != Stop::none) return World::Likeness::differ;
    return World::compare(a.scene.world, b.scene.world);
  }

  static void flip(Scene& scene) {
    for (const Object& object : scene.world.objects()) {
      if (!object.written) continue;
      uint8_t byte = 0;
      scene.world.read(object.base, &byte, 1);
      byte ^= 1;
      scene.world.change(object.base, &byte, 1);
      return;
    }
  }

  const Subject& subject_;
  const images::KernelCode& kernel_;
  const Wishes wishes_;
  const code::Truth* truth_;
  const Surroundings surroundings_;
  const code::CodeFacts facts_;
  Program program_;
  std::set<uint32_t> pointers_;
  uint32_t promotions_ = 0;
  bool clean_ = false;  // registers are 0 before they are set
  Verdict verdict_;
};

}  // namespace

std::vector<Operation> decode_all(const code::Listing& listing) {
  std::vector<Operation> code;
  code.reserve(listing.code().size());
  for (const code::Instruction& instruction : listing.code()) code.push_back(decode(instruction));
  return code;
}

Verdict try_kernel(const Subject& subject, const images::KernelCode& kernel, const Wishes& wishes,
                   const code::Truth* truth) {
  return Trial(subject, kernel, wishes, truth).run();
}

}  // namespace reprise::sass
