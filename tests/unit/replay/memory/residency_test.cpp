// The state of a tensor's bytes against a plain model: random verbs, each of which changes what the model says, and
// debug builds stop at those that it forbids.
#include "replay/memory/residency.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/replay/uniform.h"

namespace reprise::replay {
namespace {

// One mark for each question.
struct Model {
  bool small = false;     // lives in a block
  bool chunks = false;    // it occupies its chunks
  bool mapped = false;    // its addresses lead to them
  bool written = false;   // by the program
  bool on_host = false;   // the host has its bytes, too
  bool given_up = false;  // a launch makes them again
  bool lost = false;

  bool away() const { return !small && !chunks && !lost; }
  bool there() const { return chunks && mapped; }
};

struct Verb {
  const char* name;
  std::function<void(Residency&)> of;
  std::function<bool(const Model&)> allowed;
  std::function<void(Model&)> change;
};

const std::vector<Verb>& verbs() {
  const auto always = [](const Model&) { return true; };
  static const std::vector<Verb> all = {
      {"settle_in", [](Residency& r) { r.settle_in(); }, [](const Model& m) { return m.away() || m.there(); },
       [](Model& m) {
         m.chunks = m.mapped = true;
         m.given_up = false;
       }},
      {"begin_departure", [](Residency& r) { r.begin_departure(); },
       [](const Model& m) { return m.there() && !m.given_up; }, [](Model& m) { m.mapped = false; }},
      {"stay", [](Residency& r) { r.stay(); }, [](const Model& m) { return m.chunks && !m.mapped; },
       [](Model& m) { m.mapped = true; }},
      {"left", [](Residency& r) { r.left(); }, [](const Model& m) { return m.away() || m.chunks; },
       [](Model& m) { m.chunks = m.mapped = false; }},
      {"lose", [](Residency& r) { r.lose(); }, [](const Model& m) { return m.away() || (m.chunks && !m.given_up); },
       [](Model& m) {
         m.chunks = m.mapped = m.given_up = false;
         m.lost = true;
       }},
      {"wrote", [](Residency& r) { r.wrote(); }, [](const Model& m) { return m.small || (m.there() && !m.given_up); },
       [](Model& m) {
         m.written = true;
         m.on_host = false;
       }},
      {"host_copy_made",
       [](Residency& r) {
         r.host_copy_made({1, 7});
       },
       [](const Model& m) { return m.chunks && !m.given_up; }, [](Model& m) { m.on_host = m.written; }},
      {"host_copy_dropped", [](Residency& r) { r.host_copy_dropped(); }, always, [](Model& m) { m.on_host = false; }},
      {"drop", [](Residency& r) { r.drop(); }, [](const Model& m) { return m.there() && !m.given_up; },
       [](Model& m) { m.given_up = true; }},
      {"remade", [](Residency& r) { r.remade(); }, [](const Model& m) { return m.there(); },
       [](Model& m) {
         m.written = true;
         m.given_up = false;
       }},
      {"not_remade", [](Residency& r) { r.not_remade(); }, [](const Model& m) { return m.there(); },
       [](Model& m) {
         m.chunks = m.mapped = false;
         m.given_up = true;
       }},
      {"end_drop", [](Residency& r) { r.end_drop(); }, always, [](Model& m) { m.given_up = false; }},
  };
  return all;
}

void expect_same(const Residency& residency, const Model& model) {
  RC_ASSERT(residency.is_resident() == model.chunks);
  RC_ASSERT(residency.is_away() == model.away());
  RC_ASSERT(residency.is_lost() == model.lost);
  RC_ASSERT(residency.is_written() == model.written);
  RC_ASSERT(residency.host_valid() == model.on_host);
  RC_ASSERT(residency.needs_copy() == (model.written && !model.on_host));
  RC_ASSERT(residency.is_gone() == (model.away() && model.written && !model.on_host && !model.given_up));
}

TEST(ResidencyTest, AnswersAsThePlainModel) {
  EXPECT_TRUE(rc::check("each verb changes what it says, and nothing else", [] {
    Model model;
    model.small = testing::one_in(8);
    Residency residency(model.small ? Residency::State::in_block : Residency::State::away);
    for (int steps = testing::uniform(1, 60); steps > 0; --steps) {
      const Verb& verb = testing::one_of(verbs());
      if (!verb.allowed(model)) continue;
      if (std::string(verb.name) == "lose" && !testing::one_in(8)) continue;  // little follows
      verb.of(residency);
      verb.change(model);
      expect_same(residency, model);
      // An arrival is seen as a whole by the model: it comes to an end at once, either way.
      if (model.away() && testing::one_in(3)) {
        residency.begin_arrival();
        RC_ASSERT(!residency.is_resident() && !residency.is_away() && !residency.is_gone());
        const bool arrives = testing::one_in(2);
        arrives ? residency.settle_in() : residency.turn_back();
        model.chunks = model.mapped = arrives;
        model.given_up = false;
        expect_same(residency, model);
      }
    }
  }));
}

// Each state as the shortest way there, and all verbs in it.
TEST(ResidencyTest, DebugBuildsStopAtWhatIsNotAllowed) {
  const std::vector<std::vector<const char*>> ways = {
      {},      {"settle_in"}, {"settle_in", "begin_departure"}, {"settle_in", "drop"}, {"settle_in", "drop", "left"},
      {"lose"}};
  const auto named = [](const char* name) {
    return *std::find_if(verbs().begin(), verbs().end(),
                         [&](const Verb& verb) { return std::string(verb.name) == name; });
  };
  uint32_t forbidden = 0;
  for (const Verb& verb : verbs()) {
    for (const auto& way : ways) {
      Model model;
      Residency residency;
      for (const char* const name : way) {
        named(name).of(residency);
        named(name).change(model);
      }
      if (verb.allowed(model)) {
        verb.of(residency);
        continue;
      }
      ++forbidden;
      EXPECT_DEBUG_DEATH(verb.of(residency), "") << verb.name << " after " << way.size();
    }
    Residency arriving;
    arriving.begin_arrival();
    const std::string name = verb.name;
    if (name == "settle_in" || name == "host_copy_dropped" || name == "end_drop") continue;
    ++forbidden;
    EXPECT_DEBUG_DEATH(verb.of(arriving), "") << verb.name << " while arriving";
    Residency small(Residency::State::in_block);
    if (name == "wrote") continue;
    ++forbidden;
    EXPECT_DEBUG_DEATH(verb.of(small), "") << verb.name << " in a block";
  }
  EXPECT_EQ(forbidden, 54u);
}

TEST(ResidencyTest, ACopyIsReadyWhenItSays) {
  Residency residency;
  residency.settle_in();
  residency.wrote();
  residency.host_copy_made({3, 5});
  EXPECT_EQ(residency.host_ready().lane, 3u);
  EXPECT_EQ(residency.host_ready().position, 5u);
  residency.wrote();
  residency.host_copy_found();
  EXPECT_TRUE(residency.host_valid());
  EXPECT_EQ(residency.host_ready().position, 5u) << "of the copy that is there";
}

TEST(KeepingTest, OneKeepsATensorAtATime) {
  Keeping kept;
  kept.hand_over();
  EXPECT_TRUE(kept.in_handover());
  kept.taken_over();
  EXPECT_FALSE(kept.in_handover() || kept.is_freed_late());
  kept.freed_late();
  EXPECT_TRUE(kept.is_freed_late());
  EXPECT_FALSE(kept.in_handover());
}

}  // namespace
}  // namespace reprise::replay
