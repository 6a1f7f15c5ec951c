// What a run finds out about kernels: it is what their source says, doubts stay doubts, and the program never notices.
#include <cxxabi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/plan/plan.h"
#include "preload/facts/store.h"
#include "preload/trace/names.h"
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

using facts::Answer;
using facts::KernelFacts;

struct Examined {
  Outcome plain;
  Outcome managed;
  std::vector<KernelFacts> all;
};

Environment examining(const Scratch& scratch, const std::string& budget, const Environment& more = {}) {
  return merged(merged(preloaded(budget), {{"REPRISE_EXAMINE", "60"}, {"REPRISE_FACTS", scratch.path("facts")}}), more);
}

std::vector<KernelFacts> facts_in(const Scratch& scratch) {
  std::vector<std::string> problems;
  auto all = facts::Store(scratch.path("facts")).all(&problems);
  EXPECT_TRUE(problems.empty()) << problems.front();
  return all;
}

Examined examine(const std::vector<std::string>& argv, const Scratch& scratch, const std::string& budget = "70%",
                 const Environment& more = {}) {
  Examined examined;
  examined.plain = run(argv, simulated_device());
  examined.managed = run(argv, examining(scratch, budget, more));
  EXPECT_EQ(examined.plain.exit_code, 0) << examined.plain.err;
  EXPECT_EQ(examined.managed.exit_code, 0) << examined.managed.err;
  EXPECT_EQ(examined.managed.out, examined.plain.out) << examined.managed.err;
  examined.all = facts_in(scratch);
  return examined;
}

std::string use_of(const KernelFacts& known, const facts::SlotEvidence& slot) {
  const Answer writes = facts::writes(known, slot.parameter_offset);
  if (writes == Answer::no) return "reads";
  if (writes == Answer::unknown) return "?";
  return facts::reads(known, slot.parameter_offset) == Answer::no ? "writes" : "updates";
}

// "pure 0:reads 8:writes", by name.
std::map<std::string, std::string> answers(const std::vector<KernelFacts>& all) {
  std::map<std::string, std::string> said;
  for (const KernelFacts& known : all) {
    std::string& text = said[trace::short_name(known.name)];
    text = facts::pure(known) == Answer::yes ? "pure" : facts::pure(known) == Answer::no ? "not pure" : "?";
    for (const auto& slot : known.slots)
      text += " " + std::to_string(slot.parameter_offset) + ":" + use_of(known, slot);
  }
  return said;
}

const std::map<std::string, std::string> kHabits = {
    {"scale", "pure 0:reads 8:writes"},         {"accumulate", "pure 0:reads 8:updates"},
    {"first_half", "pure 0:reads 8:updates"},   {"clear", "pure 0:writes"},  // in the first iteration it clears numbers
    {"gather", "pure 0:? 8:reads 16:writes"},                                // other indices could lead anywhere
    {"step", "pure 0:updates 8:reads"},         {"count", "pure 0:updates 8:updates"},    // it writes a part
    {"add_in_place", "pure 0:updates 8:reads"}, {"shift", "pure 0:reads 8:? 16:writes"},  // a bias of zeros
};  // by_table: an address in its operand leads to more

TEST(Facts, AreWhatTheSourceSays) {
  for (const char* safety : {"strict", "trusted"}) {
    const Scratch scratch;
    const Examined examined = examine({built("bin/facts_program")}, scratch, "70%", {{"REPRISE_SAFETY", safety}});
    EXPECT_EQ(answers(examined.all), kHabits) << safety;
  }
}

// While its rate is zero the step looks as if it read only; the first step that moves takes that back.
TEST(Facts, AreTakenBackByALaunchThatDoesMore) {
  const Scratch scratch;
  const std::vector<std::string> argv = {built("bin/facts_program"), "3", "3"};
  EXPECT_EQ(answers(examine(argv, scratch).all)["step"], "pure 0:reads 8:reads");
  EXPECT_EQ(answers(examine({built("bin/facts_program"), "3", "0"}, scratch).all), kHabits);
}

// A bias that is all zero says nothing; once it is not, a launch is examined that tells.
TEST(Facts, AreLookedForAsLongAsSomethingIsOpen) {
  const Scratch scratch;
  EXPECT_EQ(answers(examine({built("bin/facts_program"), "20"}, scratch).all)["shift"],
            "pure 0:reads 8:reads 16:writes");
}

// Launches of a kernel that has been looked at often enough are left alone.
TEST(Facts, AreFoundOutOnce) {
  const Scratch scratch;
  const std::vector<std::string> argv = {built("bin/facts_program"), "9"};
  const std::set<std::string> open = {"gather", "shift"};
  examine(argv, scratch);
  const Environment again = {{"REPRISE_RUN_LOG", scratch.path("log")}};
  const Examined second = examine(argv, scratch, "70%", again);
  for (const auto& line : lines_of(read_run_log(scratch.path("log")), "examine")) {
    const bool more = open.contains(trace::short_name(line["kernel"].get<std::string>()));
    EXPECT_EQ(line["outcome"], more ? "examined" : "not_examined") << line;
  }
  for (const KernelFacts& known : second.all) {
    EXPECT_LE(known.launches, open.contains(trace::short_name(known.name)) ? 12u : 4u) << known.name;
    EXPECT_GE(known.launches, 4u) << known.name;
  }
}

TEST(Facts, AreNotLookedForWhereKernelsShareVariables) {
  const Scratch scratch;
  EXPECT_TRUE(examine({built("bin/carrying_program"), "4"}, scratch, "50%").all.empty());
}

TEST(Facts, NothingIsExaminedWithoutTimeOrMemory) {
  const Scratch scratch;
  const std::vector<std::string> argv = {built("bin/facts_program")};
  EXPECT_TRUE(examine(argv, scratch, "70%", {{"REPRISE_EXAMINE", "0"}}).all.empty());
  for (const KernelFacts& known : examine(argv, scratch, "70%", {{"REPRISE_EXAMINE_MEMORY", "1KiB"}}).all) {
    ADD_FAILURE() << known.name;
  }
}

// The parameters of a mangled kernel that are addresses: is what they lead to constant?
std::vector<bool> constant_operands(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  std::vector<bool> constant;
  const std::string whole = text ? text.get() : "";
  size_t at = whole.find('(') + 1;
  while (at < whole.size()) {
    const size_t end = std::min(whole.find(',', at), whole.rfind(')'));
    const std::string parameter = whole.substr(at, end - at);
    if (parameter.find('*') != std::string::npos) constant.push_back(parameter.find("const*") != std::string::npos);
    at = end + 1;
  }
  return constant;
}

// The trainer's source says of each operand whether it is constant; only what holds indices stays unknown.
TEST(Facts, OfTheTrainerAreThoseOfItsSource) {
  const Scratch scratch;
  const std::vector<std::string> argv = {
      built("bin/chargpt"), "--layers", "2",       "--width", "32",      "--heads", "2",
      "--context",          "16",       "--batch", "4",       "--steps", "6"};
  const Examined examined = examine(argv, scratch);
  EXPECT_GE(examined.all.size(), 15u);
  size_t unknown = 0;
  for (const KernelFacts& known : examined.all) {
    EXPECT_EQ(facts::pure(known), Answer::yes) << known.name;
    const std::vector<bool> constant = constant_operands(known.name);
    ASSERT_LE(known.slots.size(), constant.size()) << known.name;
    for (const auto& slot : known.slots) {
      const Answer writes = facts::writes(known, slot.parameter_offset);
      if (writes == Answer::unknown) ++unknown;
      const size_t place = slot.parameter_offset / 8;  // in all its kernels addresses come first
      ASSERT_LT(place, constant.size()) << known.name;
      EXPECT_NE(writes, constant[place] ? Answer::yes : Answer::no) << known.name << " operand " << place;
    }
  }
  EXPECT_LE(unknown, 6u);
}

// Kernels of drawn natures, some of which are not what they look like: none of their launches may leave a trace.
TEST(Facts, RandomProgramsNeverNotice) {
  for (int seed = 1; seed <= 8; ++seed) {
    const Scratch scratch;
    const std::string text = std::to_string(seed);
    const std::vector<std::string> argv = {built("bin/random_program"), built("bin/hash_kernels.cubin"), text, "10"};
    const Environment natures = {{"REPRISE_SIM_KERNELS", text}, {"REPRISE_SIM_KERNELS_LIE", seed % 2 == 0 ? "1" : "0"}};
    const Outcome plain = run(argv, merged(simulated_device(), natures));
    const Outcome managed = run(argv, examining(scratch, seed % 3 == 0 ? "45%" : "80%", natures));
    EXPECT_EQ(managed.exit_code, 0) << managed.err;
    EXPECT_EQ(managed.out, plain.out) << "seed " << seed << ": " << managed.err;
    EXPECT_EQ(facts_in(scratch).size(), 3u);
  }
}

// A slow link, and an optimizer that needs all activations again: what can be computed again need not travel.
TEST(Facts, MakeASimulatedPlanFaster) {
  const Scratch scratch;
  const std::vector<std::string> argv = {
      built("bin/chargpt"), "--layers", "3",       "--width", "64",      "--heads", "4",
      "--context",          "32",       "--batch", "8",       "--steps", "6"};
  examine(argv, scratch, "100%",
          {{"REPRISE_TRACE", scratch.path("trace")}, {"REPRISE_SIM_H2D", "40MiB"}, {"REPRISE_SIM_D2H", "40MiB"}});
  const auto simulate = [&](const std::string& folder) {
    return run({built("bin/reprise"), "simulate", scratch.path("trace"), "--budget", "60%", "--no-fluid",
                "--no-split-tensors", "--csv", scratch.path("csv")},
               {{"REPRISE_FACTS", folder}});
  };
  const auto moved = [&] {
    const std::string csv = read_file(scratch.path("csv"));
    const size_t line = csv.find('\n') + 1;
    std::vector<std::string> names;
    std::vector<std::string> values;
    const auto split = [](const std::string& text, std::vector<std::string>* into) {
      for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        into->push_back(text.substr(at, end - at));
        at = end + 1;
      }
    };
    split(csv.substr(0, line - 1), &names);
    split(csv.substr(line, csv.find('\n', line) - line), &values);
    double bytes = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "offload_bytes" || names[i] == "reload_bytes") bytes += std::stod(values[i]);
    }
    return bytes;
  };
  const Outcome without = simulate("/nonexistent");
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_NE(without.err.find("is known for 0 % of the computing"), std::string::npos) << without.err;
  const double moved_without = moved();
  const Outcome with = simulate(scratch.path("facts"));
  EXPECT_EQ(with.exit_code, 0) << with.err;
  EXPECT_EQ(with.err.find("is known for"), std::string::npos) << with.err;
  EXPECT_LT(moved(), 0.8 * moved_without);
}

// Plans for both kinds of safety compare what facts call unchanged; those for trusted safety compute again, too.
TEST(Facts, AreUsedByPlans) {
  const Scratch scratch;
  const std::vector<std::string> argv = {
      built("bin/chargpt"), "--layers", "3",       "--width", "64",      "--heads", "4",
      "--context",          "32",       "--batch", "8",       "--steps", "6"};
  examine(argv, scratch, "100%",
          {{"REPRISE_TRACE", scratch.path("trace")}, {"REPRISE_SIM_H2D", "40MiB"}, {"REPRISE_SIM_D2H", "40MiB"}});
  const auto plan = [&](const std::string& safety, const std::string& budget, const std::vector<std::string>& more) {
    std::vector<std::string> all = {
        built("bin/reprise"), "plan", scratch.path("trace"), "--budget", budget, "--safety", safety, "-o",
        scratch.path("plan")};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome made = run(all, {{"REPRISE_FACTS", "/nonexistent"}});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    const Result<plan::Plan> result = plan::read_plan(scratch.path("plan"));
    EXPECT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(made.err.find("recomputed") != std::string::npos, plan::recomputes(result.value())) << made.err;
    return result.value();
  };
  const auto compares = [](const plan::Plan& made) {
    return std::any_of(made.vertices.begin(), made.vertices.end(), [](const plan::Vertex& v) { return v.clean; });
  };
  const std::vector<std::string> facts = {"--facts", scratch.path("facts")};
  const plan::Plan strict = plan("strict", "30%", facts);
  EXPECT_TRUE(compares(strict));
  EXPECT_FALSE(plan::recomputes(strict));
  EXPECT_FALSE(plan::drops_what_is_only_read(strict));
  EXPECT_TRUE(plan::recomputes(plan("trusted", "60%", facts)));
  EXPECT_FALSE(plan::recomputes(plan("trusted", "60%", {"--facts", scratch.path("facts"), "--no-recompute"})));
  const std::pair<const char*, std::vector<std::string>> unknown[] = {
      {"strict", {"--no-facts"}}, {"trusted", {"--facts", scratch.path("trace")}}, {"trusted", {}}};
  for (const auto& [safety, none] : unknown) {
    const plan::Plan without = plan(safety, "30%", none);
    EXPECT_FALSE(compares(without)) << safety;
    EXPECT_FALSE(plan::recomputes(without)) << safety;
  }
}

// What is damaged, or of another version, is told once and examined anew.
TEST(Facts, DamagedFilesAreToldAndMadeAnew) {
  const Scratch scratch;
  const std::vector<std::string> argv = {built("bin/facts_program")};
  examine(argv, scratch);
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(scratch.path("facts"))) files.push_back(entry.path().string());
  ASSERT_EQ(files.size(), kHabits.size());
  std::ofstream(files[0]) << "reprise facts 9\n";
  std::ofstream(files[1], std::ios::app) << "slot\n";
  fs::copy_file(files[2], files[3], fs::copy_options::overwrite_existing);
  const Outcome managed = run(argv, examining(scratch, "70%"));
  EXPECT_EQ(managed.exit_code, 0) << managed.err;
  for (size_t i : {0u, 1u, 3u}) {
    const size_t first = managed.err.find(files[i]);
    EXPECT_NE(first, std::string::npos) << managed.err;
    EXPECT_EQ(managed.err.find(files[i], first + 1), std::string::npos) << managed.err;
  }
  EXPECT_EQ(managed.err.find(files[2]), std::string::npos) << managed.err;
  EXPECT_EQ(answers(facts_in(scratch)), kHabits);
}

TEST(Facts, TheCommandListsExplainsAndForgets) {
  const Scratch scratch;
  examine({built("bin/facts_program")}, scratch);
  const Environment here = {{"REPRISE_FACTS", scratch.path("facts")}};
  const Outcome list = run({built("bin/reprise"), "facts"}, here);
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_NE(list.out.find("scale  0:reads 8:writes"), std::string::npos) << list.out;
  const Outcome one = run({built("bin/reprise"), "facts", "accumulate"}, here);
  EXPECT_NE(one.out.find("operand at 8, 512 KiB: updates. overwritten 0, updated "), std::string::npos) << one.out;
  EXPECT_EQ(one.out.find("scale"), std::string::npos);
  EXPECT_EQ(run({built("bin/reprise"), "facts", "accumulate", "--remove"}, here).exit_code, 0);
  EXPECT_EQ(facts_in(scratch).size(), kHabits.size() - 1);
  const Outcome none = run({built("bin/reprise"), "facts", "accumulate"}, here);
  EXPECT_NE(none.exit_code, 0);
  EXPECT_NE(none.err.find("nothing is known of a kernel named accumulate"), std::string::npos) << none.err;
  EXPECT_EQ(run({built("bin/reprise"), "facts", "--remove"}, here).exit_code, 0);
  EXPECT_TRUE(facts_in(scratch).empty());
}

}  // namespace
}  // namespace reprise::e2e
