// The modelled clock of the simulated device, in recordings: how long operations took and how long an iteration is does
// not depend on what else the machine does.
#include "analyzer/machine/machine.h"
#include "preload/trace/reader.h"
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

// Each operation's kind, name and nanoseconds, in the program's order.
using Recording = Words;

Words cells(const std::string& line) {
  Words all;
  bool quoted = false;
  all.emplace_back();
  for (const char letter : line) {
    if (letter == '"') {
      quoted = !quoted;
    } else if (letter == ',' && !quoted) {
      all.emplace_back();
    } else {
      all.back() += letter;
    }
  }
  return all;
}

Outcome trainer(const Environment& more) {
  return run({built("bin/chargpt"), "--layers", "2", "--width", "64", "--context", "32", "--steps", "5"},
             merged(merged(simulated_device(), {{"REPRISE_SIM_MEMORY_RATE", "50MB"}}), more));
}

Recording record() {
  const Scratch scratch;
  well(trainer({{"LD_PRELOAD", built("lib/reprise/libreprise.so")},
                {"REPRISE_DRIVER", built("lib/sim/libcuda.so.1")},
                {"REPRISE_TRACE", scratch.path("trace")}}));
  const Outcome exported = well(run({built("bin/reprise"), "export", scratch.path("trace"), "--format", "csv"}));
  Recording recording;
  std::istringstream lines(exported.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line.substr(0, 13), "sequence,kind");
  while (std::getline(lines, line)) {
    const Words row = cells(line);
    if (row.size() < 8 || row[6].empty()) continue;
    const uint64_t start_ns = std::stoull(row[6]), end_ns = std::stoull(row[7]);
    recording.push_back(row[1] + " " + row[2] + " " + std::to_string(end_ns - start_ns));
  }
  return recording;
}

// Of the program without a recording, which copies to measure the link, and a busy host decides how much.
uint64_t modelled_ns() {
  const Scratch scratch;
  well(trainer({{"REPRISE_SIM_STATS", scratch.path("stats")}}));
  return read_stats(scratch.path("stats")).at("modelled_ns");
}

TEST(Clock, RecordingsAreTheSameBesideOtherWork) {
  const Recording alone = record();
  const uint64_t plain = modelled_ns();
  std::atomic<bool> ended{false};
  std::vector<std::thread> load;
  for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i) {
    load.emplace_back([&] {
      while (!ended.load(std::memory_order_relaxed)) {
      }
    });
  }
  const Recording beside = record();
  const uint64_t plain_beside = modelled_ns();
  ended = true;
  for (std::thread& thread : load) thread.join();
  EXPECT_GT(alone.size(), 500u);
  EXPECT_EQ(alone, beside);
  EXPECT_EQ(plain, plain_beside);
}

// What a run measures of the device is what the planner reads of the recording, by the same keys.
TEST(Clock, ARunMeasuresTheLinkAndHowLongMappingTakes) {
  const Scratch scratch;
  well(run({built("bin/chargpt"), "--layers", "1", "--width", "64", "--steps", "2"},
           merged(simulated_device(), {{"LD_PRELOAD", built("lib/reprise/libreprise.so")},
                                       {"REPRISE_DRIVER", built("lib/sim/libcuda.so.1")},
                                       {"REPRISE_BUDGET", "60%"},
                                       {"REPRISE_TRACE", scratch.path("trace")},
                                       {"REPRISE_SIM_GRANULARITY", "64KiB"},
                                       {"REPRISE_SIM_MEMORY_RATE", "400MB"},
                                       {"REPRISE_SIM_H2D", "16000000"},
                                       {"REPRISE_SIM_D2H", "8000000"},
                                       {"REPRISE_SIM_MAP", "96000"}})));
  auto trace = good(trace::read_trace(scratch.path("trace")));
  const analyzer::Machine machine = analyzer::machine_of(trace);
  EXPECT_NEAR(machine.h2d_bytes_per_s, 16e6, 1e6);
  EXPECT_NEAR(machine.d2h_bytes_per_s, 8e6, 5e5);
  EXPECT_NE(machine.latency_ns, analyzer::Machine{}.latency_ns);
  EXPECT_NEAR(static_cast<double>(machine.remap_ns_per_chunk), 3e6, 1e5);
}

}  // namespace
}  // namespace reprise::e2e
