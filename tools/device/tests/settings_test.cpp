// Settings of the simulated device: the rows of variables.def, read from the environment of a process of their own.
#include "tools/device/base/settings.h"

#include "tests/support/test.h"

namespace reprise::sim {
namespace {

// settings() reads once a process: each test asks in a child, which ends with 0 when `right`.
void end_with(bool right) { std::_Exit(right ? 0 : 1); }

TEST(Settings, HaveTheDefaultsOfTheirRows) {
  const auto child = [] {
    const Settings& s = settings();
    end_with(s.memory_bytes == 8ull << 30 && s.granularity == 2ull << 20 && s.h2d_bytes_per_second == 16ull << 30 &&
             s.d2h_bytes_per_second == 16ull << 30 && s.latency.nanoseconds == 0 && s.architecture == 90 &&
             s.devices == 1 && s.context_bytes == 0 && s.queue_depth == 1024 && s.poison && s.stats_path == nullptr &&
             s.memory_bytes_per_second == 0 && s.launch_time.nanoseconds == 0 && s.kernel_times == nullptr &&
             !s.strict);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "^$");
}

TEST(Settings, AreReadByTheirType) {
  const auto child = [] {
    setenv("REPRISE_SIM_MEMORY", "64M", 1);
    setenv("REPRISE_SIM_H2D", "0", 1);
    setenv("REPRISE_SIM_LATENCY", "2.5", 1);
    setenv("REPRISE_SIM_DEVICES", "64", 1);
    setenv("REPRISE_SIM_POISON", "1", 1);
    setenv("REPRISE_SIM_STRICT", "yes", 1);
    setenv("REPRISE_SIM_STATS", "/tmp/stats", 1);
    setenv("REPRISE_SIM_QUEUE_DEPTH", "", 1);
    const Settings& s = settings();
    end_with(s.memory_bytes == 64ull << 20 && s.h2d_bytes_per_second == 0 && s.latency.nanoseconds == 2500 &&
             s.devices == 64 && s.poison && s.strict && s.stats_path == std::string("/tmp/stats") &&
             s.queue_depth == 1024);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "^$");
}

// A kind value of each row that has one; a new row wants one here.
struct Kind {
  const char* name;
  const char* standard;
  const char* value;
};
const char* kind_value(const std::string& name) {
  if (name == "REPRISE_SIM_QUEUE_DEPTH") return "1000000";
  if (name == "REPRISE_SIM_POISON") return "0";
  return nullptr;
}
const Kind kKinds[] = {
#define REPRISE_VARIABLE(field, name, Field, values, standard, help)
#define REPRISE_LONE_VARIABLE(name, values, standard, help)
#define REPRISE_KIND(field, name, Field, kind, values, standard, help) {name, standard, kind_value(name)},
#include "tools/device/base/variables.def"
#undef REPRISE_VARIABLE
#undef REPRISE_LONE_VARIABLE
};

TEST(Settings, WhatIsKinderThanAGpuIsSaidAndIsNoDefault) {
  for (const Kind& row : kKinds) {
    ASSERT_NE(row.value, nullptr) << row.name;
    const auto child = [&](const char* value) {
      setenv(row.name, value, 1);
      settings();
      end_with(true);
    };
    const std::string said = std::string("simulated device: ") + row.name + "=" + row.value + ": kinder than a GPU\n$";
    EXPECT_EXIT(child(row.value), testing::ExitedWithCode(0), said);
    EXPECT_EXIT(child(row.standard), testing::ExitedWithCode(0), "^$");
  }
}

const char* const kNames[] = {
#define REPRISE_VARIABLE(field, name, Field, values, standard, help) name,
#define REPRISE_LONE_VARIABLE(name, values, standard, help) name,
#include "tools/device/base/variables.def"
#undef REPRISE_VARIABLE
#undef REPRISE_LONE_VARIABLE
};
const std::pair<std::string, std::string> kSources[] = {
#define REPRISE_VARIABLE(field, name, Field, values, standard, help)
#define REPRISE_LONE_VARIABLE(name, values, standard, help)
#define REPRISE_FROM(name, source) {name, source},
#include "tools/device/base/variables.def"
#undef REPRISE_VARIABLE
#undef REPRISE_LONE_VARIABLE
};

// A knob without documentation says so: then a GPU may be otherwise.
TEST(Settings, EachSaysByWhichDocumentationADeviceIsLikeThat) {
  ASSERT_EQ(std::size(kNames), std::size(kSources));
  for (size_t i = 0; i < std::size(kNames); ++i) {
    EXPECT_EQ(kSources[i].first, kNames[i]) << "in the order of the table";
    EXPECT_NE(kSources[i].second, "") << kNames[i];
  }
}

// Times, sizes and counters are no kindness: what a device of any size and speed may do.
TEST(Settings, NothingElseIsSaidOfWhatHoldsAnyway) {
  const auto child = [] {
#define REPRISE_VARIABLE(field, name, Field, values, standard, help) \
  if (*standard != 0) setenv(name, standard, 1);
#define REPRISE_TRAIT(field, name, Field, values, standard, help)
#define REPRISE_LONE_VARIABLE(name, values, standard, help)
#include "tools/device/base/variables.def"
#undef REPRISE_VARIABLE
#undef REPRISE_LONE_VARIABLE
    settings();
    end_with(true);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "^$");
}

// Texts are names of files, and those that cannot be opened are told where they are.
TEST(Settings, EachIsCheckedByItsRow) {
  const std::pair<std::string, std::string> rows[] = {
#define REPRISE_VARIABLE(field, name, Field, values, standard, help) {name, values},
#define REPRISE_LONE_VARIABLE(name, values, standard, help)
#include "tools/device/base/variables.def"
#undef REPRISE_VARIABLE
#undef REPRISE_LONE_VARIABLE
  };
  for (const auto& [name, values] : rows) {
    if (values == "path") continue;
    const auto child = [&name = name] {
      setenv(name.c_str(), "ja!", 1);
      settings();
      end_with(true);
    };
    EXPECT_EXIT(child(), testing::ExitedWithCode(0), "simulated device: " + name + "=ja! cannot be read") << name;
  }
}

TEST(Settings, WhatIsImpossibleIsSaidAndTheDefaultHolds) {
  const auto child = [] {
    setenv("REPRISE_SIM_GRANULARITY", "3MiB", 1);
    setenv("REPRISE_SIM_ARCHITECTURE", "9", 1);
    setenv("REPRISE_SIM_DEVICES", "65", 1);
    setenv("REPRISE_SIM_QUEUE_DEPTH", "0", 1);
    setenv("REPRISE_SIM_LATENCY", "-1", 1);
    setenv("REPRISE_SIM_MEMORY", "plenty", 1);
    const Settings& s = settings();
    end_with(s.granularity == 2ull << 20 && s.architecture == 90 && s.devices == 1 && s.queue_depth == 1024 &&
             s.latency.nanoseconds == 0 && s.memory_bytes == 8ull << 30);
  };
  const char* const said =
      "REPRISE_SIM_MEMORY=plenty cannot be read.*\n.*GRANULARITY=3MiB.*\n.*LATENCY=-1.*\n.*ARCHITECTURE=9 "
      ".*\n.*DEVICES=65.*\n.*QUEUE_DEPTH=0";
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), said);
}

}  // namespace
}  // namespace reprise::sim
