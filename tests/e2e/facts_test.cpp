// What a run finds out about kernels: it is what their source says, doubts stay doubts, and the program never notices.
#include <regex>

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
  Words problems;
  auto all = facts::Store(scratch.path("facts")).all(&problems);
  EXPECT_TRUE(problems.empty()) << problems.front();
  return all;
}

Examined examine(const Words& argv, const Scratch& scratch, const std::string& budget = "70%",
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
    {"scale", "pure 0:reads 8:writes"},
    {"accumulate", "pure 0:reads 8:updates"},
    {"first_half", "pure 0:reads 8:updates"},
    {"clear", "pure 0:writes"},                // in the first iteration it clears numbers
    {"gather", "pure 0:? 8:reads 16:writes"},  // other indices could lead anywhere
    {"step", "pure 0:updates 8:reads"},
    {"count", "pure 0:updates 8:updates"},  // it writes a part
    {"add_in_place", "pure 0:updates 8:reads"},
    {"shift", "pure 0:reads 8:? 16:writes"},        // a bias of zeros
    {"split", "pure 0:reads 8:updates 16:writes"},  // its semaphore is left alone: with another one it waits for good
};                                                  // by_table: an address in its operand leads to more

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
  const Words argv = {built("bin/facts_program"), "3", "3"};
  EXPECT_EQ(answers(examine(argv, scratch).all)["step"], "pure 0:reads 8:reads");
  EXPECT_EQ(answers(examine({built("bin/facts_program"), "3", "0"}, scratch).all), kHabits);
}

// A bias that is all zero says nothing; once it is not, a launch is examined that tells. Nothing is planned at 100 %.
TEST(Facts, AreLookedForAsLongAsSomethingIsOpen) {
  const Scratch scratch;
  EXPECT_EQ(answers(examine({built("bin/facts_program"), "20"}, scratch, "100%").all)["shift"],
            "pure 0:reads 8:reads 16:writes");
}

// Launches of a kernel that has been looked at often enough are left alone.
TEST(Facts, AreFoundOutOnce) {
  const Scratch scratch;
  const Words argv = {built("bin/facts_program"), "9"};
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

// A launch that does not end keeps the device for good: the program is told, and ends.
TEST(Facts, AKernelThatWaitsForGoodIsToldAndEndsTheProgram) {
  const Scratch scratch;
  const Outcome got = run({built("bin/facts_program"), "6", "0", "2"}, examining(scratch, "70%"));
  EXPECT_EQ(got.exit_code, 3) << got.err;  // the program's own
  EXPECT_TRUE(has_cause(
      got.err, Cause::trial_failed,
      {{"kernel", "waits"}, {"how", phrase<Cause::trial_hung>()}, {"from", "other bytes where it had not written"}}));
  EXPECT_EQ(std::count(got.out.begin(), got.out.end(), '\n'), 2) << got.out;
}

TEST(Facts, AreNotLookedForWhereKernelsShareVariables) {
  const Scratch scratch;
  EXPECT_TRUE(examine({built("bin/carrying_program"), "4"}, scratch, "50%").all.empty());
}

TEST(Facts, NothingIsExaminedWithoutTimeOrMemory) {
  const Scratch scratch;
  const Words argv = {built("bin/facts_program")};
  EXPECT_TRUE(examine(argv, scratch, "70%", {{"REPRISE_EXAMINE", "0"}}).all.empty());
  for (const KernelFacts& known : examine(argv, scratch, "70%", {{"REPRISE_EXAMINE_MEMORY", "1KiB"}}).all) {
    ADD_FAILURE() << known.name;
  }
}

// What the trainer's source says of a kernel's operand: constant ones are read. The first use of another one decides:
// it is set there ("writes"), or what was there is used ("updates"). "?": it holds indices, or may be missing.
struct SourceOperand {
  std::string use;
  bool may_be_unknown = false;
};

SourceOperand operand_in(const std::string& parameter, const std::string& body) {
  const std::regex last_word("(\\w+)\\s*$");
  std::smatch name;
  EXPECT_TRUE(std::regex_search(parameter, name, last_word)) << parameter;
  const std::string word = "\\b" + name[1].str() + "\\b";
  if (parameter.find("const ") < parameter.find('*')) {
    const bool indices = parameter.find("const int*") != std::string::npos;
    return {"reads", indices || std::regex_search(body, std::regex(word + " [!=]= nullptr"))};
  }
  const std::regex advanced(word + " \\+= [^;]*;");  // its address, not its content
  const std::string rest = std::regex_replace(body, advanced, "");
  std::smatch first;
  EXPECT_TRUE(std::regex_search(rest, first, std::regex(word + "(\\[[^\\]]*\\])?( [-+*/]?=[^=]| \\+ )?"))) << parameter;
  const std::string then = first[2].str();
  const bool passed_on = first[1].length() == 0 && then == " + ";
  return {then.rfind(" = ", 0) == 0 || passed_on ? "writes" : "updates"};
}

// By kernel and parameter offset: in all of its kernels addresses come first.
std::map<std::string, std::map<uint32_t, SourceOperand>> kernels_in(const std::string& source) {
  std::map<std::string, std::map<uint32_t, SourceOperand>> kernels;
  const std::regex kernel("__global__ void(?: __launch_bounds__\\(\\w+\\))?\\s+(\\w+)\\(([^)]*)\\) \\{");
  for (std::sregex_iterator at(source.begin(), source.end(), kernel), end; at != end; ++at) {
    const auto begin = static_cast<size_t>(at->position() + at->length());
    const std::string body = source.substr(begin, source.find("\n}", begin) - begin);
    std::istringstream parameters((*at)[2].str());
    uint32_t offset = 0;
    for (std::string parameter; std::getline(parameters, parameter, ','); offset += 8) {
      if (parameter.find('*') != std::string::npos) kernels[(*at)[1]][offset] = operand_in(parameter, body);
    }
  }
  return kernels;
}

// All its kernels are known, and `reprise facts` says of each what the source says.
TEST(Facts, OfTheTrainerAreThoseOfItsSource) {
  const auto kernels = kernels_in(read_file(REPRISE_CHARGPT_KERNELS));
  ASSERT_GE(kernels.size(), 18u);
  const Scratch scratch;
  examine({built("bin/chargpt"), "--layers", "2", "--width", "32", "--heads", "2", "--context", "16", "--batch", "4",
           "--steps", "6"},
          scratch);
  const Outcome said = run({built("bin/reprise"), "facts"}, {{"REPRISE_FACTS", scratch.path("facts")}});
  std::istringstream lines(said.out);
  std::string line;
  std::getline(lines, line);  // the heads of the columns
  size_t known = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string pure;
    std::string launches;
    std::string name;
    std::string audited;
    words >> pure >> launches >> audited >> name;
    const auto kernel = kernels.find(name);
    ASSERT_NE(kernel, kernels.end()) << line;
    EXPECT_EQ(pure, "pure") << line;
    std::map<uint32_t, std::string> uses;
    for (std::string use; words >> use;) uses[static_cast<uint32_t>(std::stoul(use))] = use.substr(use.find(':') + 1);
    for (const auto& [offset, operand] : kernel->second) {
      const std::string use = uses.count(offset) != 0 ? uses[offset] : "?";
      if (operand.may_be_unknown && use == "?") continue;
      EXPECT_EQ(use, operand.use) << name << " at " << offset;
    }
    EXPECT_LE(uses.size(), kernel->second.size()) << line;
    ++known;
  }
  EXPECT_EQ(known, kernels.size()) << said.out;
}

// Kernels of drawn natures, some of which are not what they look like: none of their launches may leave a trace.
TEST(Facts, RandomProgramsNeverNotice) {
  for (int seed = 1; seed <= 8; ++seed) {
    const Scratch scratch;
    const std::string text = std::to_string(seed);
    const Words argv = {built("bin/random_program"), built("bin/hash_kernels.cubin"), text, "10"};
    const Environment natures = {{"REPRISE_SIM_KERNELS", text}, {"REPRISE_SIM_KERNELS_LIE", seed % 2 == 0 ? "1" : "0"}};
    const Outcome plain = run(argv, merged(simulated_device(), natures));
    const Outcome managed = well(run(argv, examining(scratch, seed % 3 == 0 ? "45%" : "80%", natures)));
    EXPECT_EQ(managed.out, plain.out) << "seed " << seed << ": " << managed.err;
    EXPECT_EQ(facts_in(scratch).size(), 3u);
  }
}

// A slow link, and an optimizer that needs all activations again: what can be computed again need not travel.
TEST(Facts, MakeASimulatedPlanFaster) {
  const Scratch scratch;
  const Words argv = {built("bin/chargpt"), "--layers", "3",       "--width", "64",      "--heads", "4",
                      "--context",          "32",       "--batch", "8",       "--steps", "6"};
  examine(argv, scratch, "100%",
          {{"REPRISE_TRACE", scratch.path("trace")},
           {"REPRISE_SIM_H2D", "40MiB"},
           {"REPRISE_SIM_D2H", "40MiB"},
           {"REPRISE_SIM_MEMORY_RATE", "1600MB"}});  // times that do not depend on how busy the machine is
  const auto simulate = [&](const std::string& folder) {
    return run({built("bin/reprise"), "simulate", scratch.path("trace"), "--budget", "60%", "--no-fluid", "--safety",
                "trusted", "--csv", scratch.path("csv")},
               {{"REPRISE_FACTS", folder}});
  };
  const auto moved = [&] {
    const std::string csv = read_file(scratch.path("csv"));
    const size_t line = csv.find('\n') + 1;
    Words names;
    Words values;
    const auto split = [](const std::string& text, Words* into) {
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
  EXPECT_TRUE(has(well(simulate("/nonexistent")).err, "is known for 0 % of the computing"));
  const double moved_without = moved();
  EXPECT_FALSE(has(well(simulate(scratch.path("facts"))).err, "is known for"));
  EXPECT_LT(moved(), 0.8 * moved_without);
}

// Plans for both kinds of safety compare what facts call unchanged; those for trusted safety compute again, too.
TEST(Facts, AreUsedByPlans) {
  const Scratch scratch;
  const Words argv = {built("bin/chargpt"), "--layers", "3",       "--width", "64",      "--heads", "4",
                      "--context",          "32",       "--batch", "8",       "--steps", "6"};
  examine(argv, scratch, "100%",
          {{"REPRISE_TRACE", scratch.path("trace")}, {"REPRISE_SIM_H2D", "40MiB"}, {"REPRISE_SIM_D2H", "40MiB"}});
  const auto plan = [&](const std::string& safety, const std::string& budget, const Words& more) {
    Words all = joined({built("bin/reprise"), "plan", scratch.path("trace"), "--budget", budget, "--safety", safety,
                        "-o", scratch.path("plan")},
                       more);
    const Outcome made = well(run(all, {{"REPRISE_FACTS", "/nonexistent"}}));
    const Result<plan::Plan> result = plan::read_plan(scratch.path("plan"));
    EXPECT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(made.err.find("recomputed") != std::string::npos, plan::recomputes(result.value())) << made.err;
    return result.value();
  };
  const auto compares = [](const plan::Plan& made) {
    return std::any_of(made.vertices.begin(), made.vertices.end(), [](const plan::Vertex& v) { return v.clean; });
  };
  const Words facts = {"--facts", scratch.path("facts")};
  const plan::Plan strict = plan("strict", "30%", facts);
  EXPECT_TRUE(compares(strict));
  EXPECT_FALSE(plan::recomputes(strict));
  EXPECT_FALSE(plan::drops_what_is_only_read(strict));
  EXPECT_TRUE(plan::recomputes(plan("trusted", "60%", facts)));
  EXPECT_FALSE(plan::recomputes(plan("trusted", "60%", {"--facts", scratch.path("facts"), "--no-recompute"})));
  const std::pair<const char*, Words> unknown[] = {
      {"strict", {"--no-facts"}}, {"trusted", {"--facts", scratch.path("trace")}}, {"trusted", {}}};
  for (const auto& [safety, none] : unknown) {
    const plan::Plan without = plan(safety, "30%", none);
    EXPECT_FALSE(compares(without)) << safety;
    EXPECT_FALSE(plan::recomputes(without)) << safety;
  }
}

// How an entry of the cache may be another one than it was: as what it is told.
struct Damage {
  const char* name;
  const char* told;  // part of the line that says so
  void (*damage)(const std::string& file, const std::string& of_another_kernel);
};

const Damage kDamages[] = {
    {"older", "version",
     [](const std::string& file, const std::string&) {
       std::string text = read_file(file);
       write_file(file, text.replace(0, text.find('\n'), "reprise facts 0"));
     }},
    {"newer", "version", [](const std::string& file, const std::string&) { write_file(file, "reprise facts 9\n"); }},
    {"flipped", "is not used",
     [](const std::string& file, const std::string&) {
       std::string text = read_file(file);
       text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
       write_file(file, text);
     }},
    {"truncated", "is not used",
     [](const std::string& file, const std::string&) {
       const std::string text = read_file(file);
       write_file(file, text.substr(0, text.size() / 2));
     }},
    {"empty", "is not used", [](const std::string& file, const std::string&) { write_file(file, ""); }},
    {"longer", "is not used",
     [](const std::string& file, const std::string&) { write_file(file, read_file(file) + "slot\n"); }},
    {"foreign", "of another kernel",
     [](const std::string& file, const std::string& other) { write_file(file, read_file(other)); }},
};

// Whatever happened to entries of the cache: each is told in one line, and examined anew; the others hold.
TEST(Facts, DamagedEntriesAreToldAndMadeAnew) {
  const Scratch scratch;
  const Words argv = {built("bin/facts_program")};
  examine(argv, scratch);
  Words files;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path("facts"))) {
    files.push_back(entry.path().string());
  }
  ASSERT_EQ(files.size(), kHabits.size());
  ASSERT_GT(files.size(), std::size(kDamages));
  const std::string& untouched = files.back();
  for (size_t i = 0; i < std::size(kDamages); ++i) kDamages[i].damage(files[i], untouched);
  const auto lines_about = [](const std::string& text, const std::string& file) {
    Words found;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(file) != std::string::npos) found.push_back(line);
    }
    return found;
  };
  const Outcome listed = run({built("bin/reprise"), "facts"}, {{"REPRISE_FACTS", scratch.path("facts")}});
  const Outcome managed = well(run(argv, examining(scratch, "70%")));
  EXPECT_EQ(managed.out, run(argv, simulated_device()).out);
  for (size_t i = 0; i < std::size(kDamages); ++i) {
    for (const std::string& text : {listed.err, managed.err}) {
      const Words told = lines_about(text, files[i]);
      ASSERT_EQ(told.size(), 1u) << kDamages[i].name << "\n" << text;
      EXPECT_TRUE(has(told[0], kDamages[i].told)) << kDamages[i].name;
    }
  }
  EXPECT_TRUE(lines_about(managed.err, untouched).empty()) << managed.err;
  EXPECT_EQ(answers(facts_in(scratch)), kHabits);
}

TEST(Facts, TheCommandListsExplainsAndForgets) {
  const Scratch scratch;
  examine({built("bin/facts_program")}, scratch);
  const Environment here = {{"REPRISE_FACTS", scratch.path("facts")}};
  EXPECT_TRUE(has(well(run({built("bin/reprise"), "facts"}, here)).out, "scale  0:reads 8:writes"));
  const Outcome one = run({built("bin/reprise"), "facts", "accumulate"}, here);
  EXPECT_TRUE(has(one.out, "operand at 8, 512 KiB: updates. overwritten 0, written 0, updated "));
  EXPECT_FALSE(has(one.out, "scale"));
  well(run({built("bin/reprise"), "facts", "accumulate", "--remove"}, here));
  EXPECT_EQ(facts_in(scratch).size(), kHabits.size() - 1);
  const Outcome none = run({built("bin/reprise"), "facts", "accumulate"}, here);
  EXPECT_NE(none.exit_code, 0);
  EXPECT_TRUE(has(none.err, "nothing is known of a kernel named accumulate"));
  well(run({built("bin/reprise"), "facts", "--remove"}, here));
  EXPECT_TRUE(facts_in(scratch).empty());
}

}  // namespace
}  // namespace reprise::e2e
