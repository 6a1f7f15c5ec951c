// Environment variables of the preloaded library.
#include "preload/base/config.h"

#include "preload/files/file_names.h"
#include "tests/support/said.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

std::map<std::string, std::string>& variables() {
  static std::map<std::string, std::string> instance;
  return instance;
}
const char* look_up(const char* name) {
  const auto found = variables().find(name);
  return found != variables().end() ? found->second.c_str() : nullptr;
}
Config read(std::map<std::string, std::string> values) {
  variables() = std::move(values);
  return read_config(look_up);
}
uint64_t bytes(const char* text) {
  Amount amount;
  return parse_amount(text, &amount) ? amount.bytes : 0;
}
bool readable(const char* text) {
  Amount amount;
  return parse_amount(text, &amount);
}

TEST(FileNames, ArePerRankProcessAndHost) {
  variables() = {{"SLURM_PROCID", "3"}};
  const std::string process = std::to_string(getpid());
  EXPECT_EQ(expanded_name("a-%r.run", look_up), "a-3.run");
  EXPECT_EQ(expanded_name("%p/%r%r", look_up), process + "/33");
  EXPECT_EQ(expanded_name("%h", look_up).find('%'), std::string::npos);
  EXPECT_EQ(expanded_name("50%.run %", look_up), "50%.run %") << "what means nothing stays";
  for (const char* name : {"a-%r.run", "100%", "%%r", "%%%"}) {
    EXPECT_EQ(expanded_name(protected_name(name), look_up), name);
  }
  variables() = {{"SLURM_PROCID", "3"}, {"RANK", "1"}};
  EXPECT_EQ(expanded_name("%r", look_up), "1") << "torchrun within a Slurm task";
  variables() = {{"RANK", "../x"}};
  EXPECT_EQ(expanded_name("%r", look_up), "0") << "no number";
}

TEST(Amount, ReadsSizes) {
  EXPECT_EQ(bytes("4096"), 4096u);
  EXPECT_EQ(bytes("12GiB"), 12ull << 30);
  EXPECT_EQ(bytes("800MiB"), 800ull << 20);
  EXPECT_EQ(bytes("800 MiB"), 800ull << 20);
  EXPECT_EQ(bytes("1.5g"), 3ull << 29);
  EXPECT_EQ(bytes("2GB"), 2000000000u);
  EXPECT_EQ(bytes("1TiB"), 1ull << 40);
  EXPECT_EQ(bytes("64k"), 65536u);
}

TEST(Amount, ReadsShares) {
  Amount amount;
  ASSERT_TRUE(parse_amount("62.5%", &amount));
  EXPECT_DOUBLE_EQ(amount.fraction, 0.625);
  EXPECT_EQ(amount.bytes, 0u);
  EXPECT_TRUE(amount.given());
  EXPECT_FALSE(Amount{}.given());
}

TEST(DeviceBudget, MayBeWhatIsFree) {
  EXPECT_TRUE(read({{"REPRISE_BUDGET", "free"}}).budget.free);
  EXPECT_TRUE(read({{"REPRISE_BUDGET", "free"}}).budget.given());
  EXPECT_FALSE(read({{"REPRISE_BUDGET", "12GiB"}}).budget.free);
  EXPECT_FALSE(readable("free")) << "host memory, say, is another matter";
}

TEST(Amount, RefusesWhatIsNone) {
  for (const char* text :
       {"", "GiB", "-1GiB", "0", "0%", "101%", "12 apples", "0x10", "inf", "nan", "1e30", "12GiBx"}) {
    EXPECT_FALSE(readable(text)) << text;
  }
  EXPECT_FALSE(parse_amount(nullptr, nullptr));
}

TEST(Config, HasDefaults) {
  const Config settings = read({});
  EXPECT_FALSE(settings.disable);
  EXPECT_FALSE(settings.budget.given());
  EXPECT_EQ(settings.trace, nullptr);
  EXPECT_STREQ(settings.policy, "auto");
  EXPECT_DOUBLE_EQ(settings.host_memory.fraction, 0.8);
  EXPECT_TRUE(settings.call_sites);
}

TEST(Config, ReadsEveryKind) {
  const Config settings = read({{"REPRISE_DISABLE", "yes"},
                                {"REPRISE_BUDGET", "50%"},
                                {"REPRISE_TRACE", "/tmp/a.trace"},
                                {"REPRISE_ACTIVITY", "events"},
                                {"REPRISE_KEEP", "0"}});
  EXPECT_TRUE(settings.disable);
  EXPECT_DOUBLE_EQ(settings.budget.fraction, 0.5);
  EXPECT_STREQ(settings.trace, "/tmp/a.trace");
  EXPECT_STREQ(settings.activity, "events");
  EXPECT_FALSE(settings.keep);
}

TEST(Config, TakesTheDefaultForWhatItCannotRead) {
  testing::internal::CaptureStderr();
  const Config settings = read({{"REPRISE_BUDGET", "plenty"},
                                {"REPRISE_ACTIVITY", "guess"},
                                {"REPRISE_LOG", "warnings"},
                                {"REPRISE_KEEP", "2"}});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(settings.budget.given());
  EXPECT_STREQ(settings.activity, "auto");
  EXPECT_STREQ(settings.log, "warn");
  EXPECT_FALSE(settings.keep);
  EXPECT_TRUE(has_cause(said, Cause::variable_unreadable,
                        {{"variable", "REPRISE_BUDGET"}, {"value", "plenty"}, {"used", phrase<Cause::as_if_unset>()}}));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 4) << said;
}

// One that cannot be read is meant to switch something off.
TEST(Config, TheOffSwitchIsReadAsTheOthersAre) {
  for (const auto& [text, off] : std::map<std::string, bool>{{"", false},
                                                             {"0", false},
                                                             {"no", false},
                                                             {"false", false},
                                                             {"off", false},
                                                             {"1", true},
                                                             {"yes", true},
                                                             {"ja", true}}) {
    setenv("REPRISE_DISABLE", text.c_str(), 1);
    EXPECT_EQ(disabled(), off) << text;
  }
  unsetenv("REPRISE_DISABLE");
}

TEST(Amount, SaysWhatIsWrongWithIt) {
  const std::map<std::string, std::string> reasons = {
      {"105%", phrase<Cause::above_all>()},       {"0%", phrase<Cause::no_share>()},
      {"-5%", phrase<Cause::no_share>()},         {"-1GiB", phrase<Cause::no_amount>()},
      {"0", phrase<Cause::no_amount>()},          {"1e30", phrase<Cause::too_much>()},
      {"900TiB", phrase<Cause::too_much>()},      {"12Gi", phrase<Cause::not_an_amount>()},
      {"plenty%", phrase<Cause::not_an_amount>()}};
  for (const auto& [text, reason] : reasons) EXPECT_EQ(why_no_amount(text), reason) << text;
}

// ... and said: whoever has misspelt it wonders why Reprise does nothing.
TEST(Config, AnOffSwitchThatCannotBeReadIsNamed) {
  const auto said = [](const char* text) {
    setenv("REPRISE_DISABLE", text, 1);
    testing::internal::CaptureStderr();
    say_unreadable_switch();
    return testing::internal::GetCapturedStderr();
  };
  for (const char* text : {"", "0", "1", "yes", "off"}) EXPECT_EQ(said(text), "") << text;
  EXPECT_TRUE(has_cause(said("ja"), Cause::switch_unreadable, {{"value", "ja"}}));
  unsetenv("REPRISE_DISABLE");
}

// What no row can read is told, of each row: one that takes any text can have no bad value but a file's name.
TEST(Config, EachVariableIsCheckedByItsRow) {
  size_t count = 0;
  const ConfigVariable* const table = config_variables(&count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_STRNE(table[i].type, "text") << table[i].name;
    if (std::strcmp(table[i].type, "path") == 0) continue;
    testing::internal::CaptureStderr();
    read({{table[i].name, "ja!"}});
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find(std::string("reprise: ") + table[i].name + "=ja! is not readable"), 0u) << said;
  }
}

// As good as none, however it is written.
TEST(Config, ASwitchThatIsOffLacksNothing) {
  for (const char* off : {"0", "no", "off", "false"}) {
    testing::internal::CaptureStderr();
    say_without_effect(read({{"REPRISE_KEEP", off}}), look_up);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << off;
  }
}

// They are those of which reading the configuration says that it cannot.
TEST(Config, WhatItCannotReadIsToldBeforehand) {
  const std::vector<std::string> names = {"REPRISE_BUDGET", "REPRISE_ACTIVITY", "REPRISE_TRACE", "REPRISE_EXAMINE",
                                          "REPRISE_KEEP",   "REPRISE_POLICY",   "REPRISE_LOG",   "REPRISE_HOST_MEMORY"};
  for (const char* text : {"", "105%", "50%", "1", "0", "warn", "events", "-1", "lots", "1GiB", "5000000000"}) {
    for (const std::string& name : names) {
      testing::internal::CaptureStderr();
      read({{name, text}});
      const bool refused = !testing::internal::GetCapturedStderr().empty();
      const std::vector<ConfigVariable> told = unreadable_variables(look_up);
      ASSERT_EQ(told.size(), refused ? 1u : 0u) << name << "=" << text;
      if (refused) {
        EXPECT_EQ(told[0].name, name);
      }
    }
  }
}

TEST(Config, AnEmptyVariableIsNotSet) { EXPECT_FALSE(read({{"REPRISE_BUDGET", ""}}).budget.given()); }

template <Cause kCause, typename... Values>
std::string line(const Values&... values) {
  return "reprise: " + words<kCause>(values...) + "\n";
}

TEST(Config, MisspeltVariablesAreNamed) {
  const char* const environment[] = {"REPRISE_BUGDET=50%",
                                     "REPRISE_BUDGET=1GiB",
                                     "REPRISE_HOSTMEMORY=1",
                                     "REPRISE_BUILD=/x",
                                     "REPRISE_SIM_MEMORY=1",
                                     "REPRISE_SIM_KEEP=1",
                                     "REPRISE_TORCH_PYTHON=",
                                     "HOME=/root",
                                     "REPRISE_TEST_PLAN=1",
                                     "REPRISE_REPORT=a.html",
                                     nullptr};
  testing::internal::CaptureStderr();
  say_misspelt(environment);
  say_misspelt(nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), line<Cause::variable_misspelt>("BUGDET", "BUDGET") +
                                                        line<Cause::variable_misspelt>("HOSTMEMORY", "HOST_MEMORY") +
                                                        line<Cause::variable_unknown>("REPORT"));
}

std::string without_effect(const std::map<std::string, std::string>& variables) {
  const Config settings = read(variables);
  testing::internal::CaptureStderr();
  say_without_effect(settings, look_up);
  return testing::internal::GetCapturedStderr();
}

std::string idle(const char* variable, const char* needs) {
  return line<Cause::variable_without_effect>(variable, needs);
}

TEST(Config, VariablesThatChangeNothingAreNamed) {
  EXPECT_EQ(without_effect({{"REPRISE_RUN_LOG", "a.run"}, {"REPRISE_TRACE", "a.trace"}, {"REPRISE_AUDIT", "0"}}),
            idle("REPRISE_RUN_LOG", phrase<Cause::unless_managing>()));
  EXPECT_EQ(without_effect({{"REPRISE_RUN_LOG", "a.run"}, {"REPRISE_BUDGET", "50%"}, {"REPRISE_POLICY", "lru"}}), "");
  EXPECT_EQ(without_effect({{"REPRISE_RUN_LOG", "a.run"}, {"REPRISE_PLAN", "a.plan"}, {"REPRISE_SAFETY", "strict"}}),
            "");
  EXPECT_EQ(without_effect({{"REPRISE_RUN_LOG", "a.run"}, {"REPRISE_DEFRAGMENT", "1"}}), "");
  EXPECT_EQ(without_effect({{"REPRISE_PLAN", "a.plan"}, {"REPRISE_POLICY", "lru"}, {"REPRISE_AUDIT_ITERATIONS", "3"}}),
            idle("REPRISE_AUDIT_ITERATIONS", phrase<Cause::unless_audit>()) +
                idle("REPRISE_POLICY", phrase<Cause::unless_planning>()));
}

TEST(Config, VariablesOfPlansAndRecordingsThatChangeNothingAreNamed) {
  const std::map<std::string, std::string> of_plans = {
      {"REPRISE_PLAN", "a.plan"}, {"REPRISE_WAIT_FOR_PLAN", "1"}, {"REPRISE_KEEP", "1"}, {"REPRISE_CALL_SITES", "0"}};
  EXPECT_EQ(without_effect(of_plans), idle("REPRISE_WAIT_FOR_PLAN", phrase<Cause::unless_planning>()) +
                                          idle("REPRISE_KEEP", phrase<Cause::unless_planning>()) +
                                          idle("REPRISE_CALL_SITES", phrase<Cause::unless_recording>()));
  EXPECT_EQ(without_effect({{"REPRISE_FACTS", "folder"}, {"REPRISE_ACTIVITY", "events"}, {"REPRISE_CALL_SITES", "1"}}),
            idle("REPRISE_FACTS", phrase<Cause::unless_managing>()) +
                idle("REPRISE_ACTIVITY", phrase<Cause::unless_timed>()));
  EXPECT_EQ(without_effect({{"REPRISE_TRACE", "a.trace"}, {"REPRISE_ACTIVITY", "events"}, {"REPRISE_CALL_SITES", "0"}}),
            "");
  EXPECT_EQ(without_effect({{"REPRISE_BUDGET", "50%"},
                            {"REPRISE_WAIT_FOR_PLAN", "1"},
                            {"REPRISE_KEEP", "1"},
                            {"REPRISE_FACTS", "folder"},
                            {"REPRISE_ACTIVITY", "none"},
                            {"REPRISE_CALL_SITES", "0"}}),
            "");
}

TEST(Config, TableNamesEachVariableOnce) {
  size_t count = 0;
  const ConfigVariable* table = config_variables(&count);
  std::set<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(names.insert(table[i].name).second) << table[i].name;
    EXPECT_EQ(std::strncmp(table[i].name, "REPRISE_", 8), 0);
    EXPECT_GT(std::strlen(table[i].help), 10u);
  }
  EXPECT_EQ(names.count("REPRISE_DISABLE"), 1u);
}

}  // namespace
}  // namespace reprise
