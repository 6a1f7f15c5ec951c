// `reprise simulate` and `reprise plan` on task graphs, as people call them.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "analyzer/bounds/linear_program.h"
#include "analyzer/plan/plan.h"
#include "tests/e2e/cli/installed.h"
#include "tests/support/trace_builder.h"
#include "tests/support/trace_file.h"

namespace reprise::tools::test {
namespace {

using analyzer::testing::kChunk;
using analyzer::testing::train_chain;

class SimulateCommand : public Installed {
 protected:
  // `count` weights of 2 MiB, each used by one kernel.
  std::string graph(int count, uint64_t duration_ns = 1'000'000) const {
    std::string tensors;
    std::string kernels;
    for (int i = 0; i < count; ++i) {
      const char* const comma = i == 0 ? "" : ",";
      tensors += fmt::format(R"({}{{"id":{},"bytes":2097152,"persistent":1}})", comma, i);
      kernels +=
          fmt::format(R"({}{{"name":"layer","duration_ns":{},"inputs":[{}],"outputs":[]}})", comma, duration_ns, i);
    }
    return write("layers.json", R"({"tensors":[)" + tensors + R"(],"kernels":[)" + kernels + "]}");
  }
  static Words columns(const std::string& line) {
    Words result;
    std::stringstream stream(line);
    for (std::string column; std::getline(stream, column, ',');) result.push_back(column);
    return result;
  }
  Words lines(const std::string& text) const {
    Words result;
    std::stringstream stream(text);
    for (std::string line; std::getline(stream, line);) result.push_back(line);
    return result;
  }
};

TEST_F(SimulateCommand, OneRowForEachBudgetAndPolicy) {
  const Finished finished = well(reprise({"simulate", graph(8), "--budget", "50%..100%:25%", "--policy", "disco,lru",
                                          "--machine", "a100", "--csv", path("tmp/a.csv")}));
  ASSERT_EQ(lines(finished.out).size(), 7u) << finished.out;
  EXPECT_TRUE(has(finished.err, "kernels take as long as they were recorded"));
  const Words csv = lines(read(path("tmp/a.csv")));
  ASSERT_EQ(csv.size(), 7u);
  EXPECT_EQ(csv[0].substr(0, 27), "budget_bytes,policy,plan_of");
  EXPECT_EQ(csv[1].substr(0, 20), "8388608,disco,disco,");
  // Everything fits: nothing moves, nothing is lost, and there is no plan.
  EXPECT_TRUE(has(csv[6], "lru,,8000000,8000000,8000000,100.000,100.000,0,0,0"));
}

TEST_F(SimulateCommand, SizesThatRoundAlikeAreShownToTheByte) {
  const Finished finished =
      reprise({"simulate", graph(8), "--budget", "8388608,8388609,12MiB,12MiB", "--policy", "lru", "--no-fluid"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const Words rows = lines(finished.out);
  ASSERT_EQ(rows.size(), 5u) << finished.out;
  EXPECT_EQ(rows[1].substr(0, 19), "8388608 bytes      ");
  EXPECT_EQ(rows[2].substr(0, 19), "8388609 bytes      ");
  EXPECT_EQ(rows[3].substr(0, 19), "12.0 MiB           ");
}

// 1 ms for a chunk in each direction and 0.8 ms of kernels: what has to move decides, and the fluid bound knows it.
TEST_F(SimulateCommand, TheFluidBoundStandsBesideThePlan) {
  const std::string file = graph(8, 100'000);
  const std::string head = R"({"format":"reprise-machine","version":1,"device":"x","memory_bytes":1,)";
  const std::string slow = write("slow.json", head + R"("h2d_bytes_per_second":2097152000,"copy_latency_ns":1})");
  const auto row = [&](Words more) {
    Words arguments =
        joined({"simulate", file, "--budget", "6MiB", "--machine", slow, "--csv", path("tmp/a.csv")}, more);
    well(reprise(arguments));
    const Words written = lines(read(path("tmp/a.csv")));
    const Words names = columns(written[0]);
    const auto at = std::find(names.begin(), names.end(), "fluid_ns") - names.begin();
    return std::pair(columns(written[1])[static_cast<size_t>(at)], std::stoull(columns(written[1])[3]));
  };
  const auto [bound, time] = row({});
  EXPECT_EQ(row({"--no-fluid"}).first, "") << "it is not known";
  EXPECT_GE(time, 5'000'000u) << "six of eight chunks come in, at 1 ms each";
  EXPECT_LE(time, 16'000'000u);
  if (!analyzer::LinearProgram::available()) GTEST_SKIP() << "libClp.so.1 is not installed";
  const uint64_t fluid = std::stoull(bound);
  EXPECT_GE(fluid, 5'000'000u);
  EXPECT_LE(fluid, time);
  // With one place to look at, the copies that go on during the other kernels count for nothing.
  EXPECT_LT(std::stoull(row({"--segments", "1"}).first), fluid);
  EXPECT_EQ(reprise({"simulate", file, "--budget", "6MiB", "--segments", "0"}).exit_code, 2);
}

// The page's data are the table's, and its scripts are whole.
TEST_F(SimulateCommand, ThePageHasTheCurves) {
  well(reprise({"simulate", graph(8, 10'000), "--budget", "25%..100%:25%", "--policy", "disco,lru", "--html",
                path("tmp/a.html"), "--csv", path("tmp/a.csv")}));
  const std::string page = read(path("tmp/a.html"));
  const size_t begin = page.find("id=\"data\">") + 10;
  const auto data = nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  const Words csv = lines(read(path("tmp/a.csv")));
  ASSERT_EQ(data["rows"].size(), 8u);
  ASSERT_EQ(csv.size(), 9u);
  for (size_t i = 0; i < 8; ++i) {
    const auto& row = data["rows"][i];
    const std::string start = row["budget"].dump() + "," + row["policy"].get<std::string>() + "," +
                              row["used"].get<std::string>() + "," + row["time"].dump() + ",";
    EXPECT_TRUE(begins(csv[i + 1], start)) << " against " << start;
  }
  EXPECT_GT(data["rows"][0]["time"], data["rows"][0]["compute"]);
  for (const char* part : {"function curveChart", "function theme", "keepFitting();", "timeSection();"}) {
    EXPECT_TRUE(has(page, part)) << part;
  }
  EXPECT_FALSE(has(page, "timelineSection"));  // the report's
  for (const char* request : {"<script src", "<img", "<link", "http-equiv", "@import", "fetch("}) {
    EXPECT_FALSE(has(page, request)) << request;
  }
}

// Tensors that change and find no room in the host's memory go to the SSD, iteration after iteration.
TEST_F(SimulateCommand, TheSsdWearsOut) {
  const std::string file = graph(64, 1'000'000);
  const std::string changing = write("changing.json", [&] {
    std::string text = read(file);
    for (size_t at = 0; (at = text.find("\"outputs\":[]", at)) != std::string::npos; ++at) {
      const size_t id = text.rfind("\"inputs\":[", at) + 10;
      text.replace(at, 12, "\"outputs\":[" + text.substr(id, text.find(']', id) - id) + "]");
    }
    return text;
  }());
  const std::string machine =
      write("ssd.json", R"({"format":"reprise-machine","version":1,"device":"x","memory_bytes":1,
    "ssd_read_bytes_per_second":1e9,"ssd_write_bytes_per_second":1e9,"ssd_bytes":1e12,"host_bytes":4096,
    "ssd_drive_writes_per_day":2})");
  const Finished finished = well(reprise({"simulate", changing, "--budget", "50%", "--policy", "disco", "--machine",
                                          machine, "--no-fluid", "--ssd", "--csv", path("tmp/a.csv")}));
  const Words csv = lines(read(path("tmp/a.csv")));
  const auto field = [&](const std::string& name) {
    std::stringstream names(csv[0]);
    std::stringstream values(csv[1]);
    std::string key;
    std::string value;
    while (std::getline(names, key, ',') && std::getline(values, value, ',')) {
      if (key == name) return value;
    }
    return std::string();
  };
  const double written = std::stod(field("ssd_written_bytes"));
  ASSERT_GT(written, 0);
  const double years = 2 * 5 * 365 * 1e12 / (written / (std::stod(field("time_ns")) / 1e9)) / (365 * 86400);
  EXPECT_NEAR(std::stod(field("ssd_years")), years, 0.001);
  EXPECT_TRUE(has(finished.out, " years"));

  // The replay has no such tier: plans, and simulations of what is planned, leave the SSD alone unless told.
  for (const Words& command : {Words{"simulate", "--no-fluid"}, {"simulate", "--no-fluid", "--no-ssd"}, {"plan"}}) {
    Words words = command;
    words.insert(words.begin() + 1, {changing, "--budget", "50%", "--policy", "disco", "--machine", machine});
    expect_refused(reprise(words), 1, "of host memory\n");
  }
}

TEST_F(SimulateCommand, TracesToo) {
  const std::string trace = write("a.trace", trace_bytes(train_chain(6, 4 * kChunk, 3)));
  EXPECT_TRUE(has(well(reprise({"simulate", trace, "--budget", "50%"})).out, "auto ("));
}

// Nothing is known of the trace's kernels, so no plan may repeat one; the graph's may be repeated.
TEST_F(SimulateCommand, ABoundWithRecomputeHasAColumnWhereSomethingMayBeComputedAgain) {
  const std::string trace = write("a.trace", trace_bytes(train_chain(6, 4 * kChunk, 3)));
  EXPECT_FALSE(has(lines(well(reprise({"simulate", trace, "--budget", "50%"})).out)[0], "joint"));
  const std::string graph = write("chain.json", R"({"tensors":[{"id":0,"bytes":2097152,"persistent":1},
      {"id":1,"bytes":2097152,"persistent":0},{"id":2,"bytes":2097152,"persistent":0},
      {"id":3,"bytes":2097152,"persistent":0},{"id":4,"bytes":2097152,"persistent":0}],"kernels":[
      {"name":"a","duration_ns":1000,"inputs":[0],"outputs":[1]},
      {"name":"b","duration_ns":1000,"inputs":[1],"outputs":[2]},
      {"name":"c","duration_ns":1000,"inputs":[2],"outputs":[3]},
      {"name":"d","duration_ns":1000,"inputs":[3,1],"outputs":[4]}]})");
  EXPECT_TRUE(has(lines(well(reprise({"simulate", graph, "--budget", "80%"})).out)[0], "joint"));
  EXPECT_FALSE(has(lines(well(reprise({"simulate", graph, "--budget", "80%", "--no-recompute"})).out)[0], "joint"));
}

TEST_F(SimulateCommand, TheHelpExplainsTheColumns) {
  const std::string help = reprise({"simulate", "--help"}).out;
  for (const char* column : {"Columns:", "at best,", "fluid,", "joint,", "SSD:"}) {
    EXPECT_TRUE(has(help, column)) << column;
  }
}

// For curves that end where nothing changes any more, as sizes: a percentage is one of the peak in all commands.
TEST_F(SimulateCommand, BudgetsAboveThePeakAreSizes) {
  const std::string trace = write("a.trace", trace_bytes(train_chain(6, 4 * kChunk, 3)));
  const std::string most = std::to_string(78 * kChunk);
  const Finished finished =
      reprise({"simulate", trace, "--no-fluid", "--budget", "100%," + most, "--csv", path("rows.csv")});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const auto rows = lines(read(path("rows.csv")));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(columns(rows[2])[0], most);
  EXPECT_EQ(columns(rows[2])[8], "0") << rows[2];
  const std::string why = "101%: a percentage is above 0% and at most 100%";
  expect_refused(reprise({"plan", trace, "--budget", "101%"}), 2, why);
  for (const char* budget : {"101%", "50%,101%", "50%..101%:10%", "101%..50%:10%", "50%..100%:101%"}) {
    expect_refused(reprise({"simulate", trace, "--budget", budget}), 2, why);
    expect_refused(reprise({"simulate", graph(4), "--budget", budget}), 2, why);
  }
}

TEST_F(SimulateCommand, ABudgetWithoutAPlanIsARowUnlessAllAre) {
  const std::string file = graph(4);
  const Finished some = well(reprise({"simulate", file, "--budget", "1MiB,100%,512KiB,256KiB"}));
  size_t reasons = 0;
  for (size_t at = 0; (at = some.out.find("so at least ", at)) != std::string::npos; ++at) ++reasons;
  EXPECT_EQ(reasons, 1u) << some.out;
  EXPECT_TRUE(has(some.out, "none: as above\n"));
  EXPECT_TRUE(has(some.out, "none: a budget of 1048576 bytes"));
  expect_refused(reprise({"simulate", file, "--budget", "1MiB"}), 1, "2097152 bytes");
}

TEST_F(SimulateCommand, OneLineForWhatMakesNoSense) {
  const std::string file = graph(2);
  expect_refused(reprise({"simulate", file, "--budget", "10%..50%"}), 2, "step");
  expect_refused(reprise({"simulate", file, "--budget", "10%..1GiB:5%"}), 2, "mixed");
  for (const std::string range : {"60%..100%:0", "60%..100%:0%", "1MiB..2MiB:0MiB"}) {
    expect_refused(reprise({"simulate", file, "--budget", range}), 2,
                   "--budget " + range + ": with a step of 0 it has no end; write for example 30%..100%:5%");
  }
  expect_refused(reprise({"simulate", file, "--budget", "0.001%..100%:0.001%"}), 2, "too many");
  expect_refused(reprise({"simulate", file, "--budget", "50%", "--policy", "best"}), 2, "best");
  expect_refused(reprise({"simulate", file, "--budget", "50%", "--machine", "moon"}), 2, "moon");
  expect_refused(reprise({"simulate", file, "--budget", "50%", "--chunk-bytes", "1"}), 2, "--chunk-bytes");
  expect_refused(reprise({"simulate", file, "--budget", "50%", "--csv", "/nonexistent/a.csv"}), 1, "/nonexistent");
  expect_refused(reprise({"simulate", path("no.json"), "--budget", "50%"}), 1, "no.json");
  expect_refused(reprise({"simulate", write("bad.json", "{"), "--budget", "50%"}), 1, "bad.json");
  expect_refused(reprise({"simulate", write("bad.trace", "{"), "--budget", "50%"}), 1, "bad.trace");
}

// --keep-order, --no-reorder, --whole-tensors, --no-ssd and --chunk, which the help no longer shows.
TEST_F(SimulateCommand, OldNamesOfOptionsAreStillAccepted) {
  const std::string file = graph(8, 100'000);
  const auto row = [&](Words more) {
    Words arguments = joined({"simulate", file, "--budget", "12MiB", "--policy", "reprise", "--machine", "a100",
                              "--no-fluid", "--csv", path("tmp/a.csv")},
                             more);
    well(reprise(arguments));
    const Words written = lines(read(path("tmp/a.csv")));
    const Words names = columns(written[0]);
    Words values = columns(written[1]);
    // How long planning took is never the same.
    values[static_cast<size_t>(std::find(names.begin(), names.end(), "planning_ns") - names.begin())].clear();
    return values;
  };
  const Words now = row({"--no-split-tensors", "--chunk-bytes", "3MiB"});
  EXPECT_NE(now, row({}));  // fewer tensors fit
  EXPECT_EQ(row({"--keep-order", "--whole-tensors", "--chunk", "3MiB"}), now);
  EXPECT_EQ(row({"--no-reorder", "--no-ssd", "--whole-tensors", "--chunk", "3MiB"}), now);
  const std::string help = reprise({"simulate", "--help"}).out;
  for (const char* option : {"--reorder", "--ssd", "--no-split-tensors", "--chunk-bytes"}) {
    EXPECT_TRUE(has(help, option));
  }
  for (const char* option : {"--keep-order", "--no-reorder", "--no-ssd", "--whole-tensors", "--chunk "}) {
    EXPECT_FALSE(has(help, option));
  }
}

// A table with noise has the planned time and that of the slowest seed, too.
TEST_F(SimulateCommand, NoiseAndFixedOrders) {
  const std::string file = graph(8, 100'000);
  const auto row = [&](Words more) {
    Words arguments =
        joined({"simulate", file, "--budget", "6MiB", "--machine", "a100", "--csv", path("tmp/a.csv")}, more);
    const Finished finished = well(reprise(arguments));
    return std::pair(finished.out, columns(lines(read(path("tmp/a.csv")))[1]));
  };
  const auto [plain, plain_csv] = row({});
  EXPECT_FALSE(has(plain, "slowest"));
  const auto [noisy, noisy_csv] = row({"--noise", "50%", "--seeds", "4"});
  EXPECT_TRUE(has(noisy, "planned    slowest"));
  ASSERT_EQ(noisy_csv.size(), plain_csv.size());
  const size_t last = noisy_csv.size() - 1;
  EXPECT_EQ(noisy_csv[last - 1], plain_csv[3]);  // the plan is the same
  EXPECT_NE(noisy_csv[3], plain_csv[3]);
  EXPECT_GT(std::stoull(noisy_csv[last]), std::stoull(noisy_csv[3]));
  EXPECT_EQ(row({"--noise", "50%", "--seeds", "4"}).second[3], noisy_csv[3]);
  EXPECT_NE(row({"--noise", "50%", "--seeds", "4", "--seed", "5"}).second[3], noisy_csv[3]);
  EXPECT_NE(row({"--noise", "50%", "--seeds", "4", "--regime", "20ms"}).second[3], noisy_csv[3]);
  EXPECT_EQ(row({"--dispatch", "fixed-best"}).second[3], plain_csv[3]);
  EXPECT_GE(std::stoull(row({"--dispatch", "fixed"}).second[3]), std::stoull(plain_csv[3]));
  expect_refused(reprise({"simulate", file, "--budget", "50%", "--noise", "20"}), 2, "--noise");
  expect_refused(reprise({"simulate", file, "--budget", "50%", "--noise", "-5%"}), 2, "--noise");
  expect_refused(reprise({"simulate", file, "--budget", "50%", "--regime", "20ms"}), 2, "--noise");
  expect_refused(reprise({"simulate", file, "--budget", "50%", "--noise", "9%", "--regime", "20"}), 2, "--regime");
  expect_refused(reprise({"simulate", file, "--budget", "50%", "--noise", "9%", "--seeds", "0"}), 2, "--seeds");
  expect_refused(reprise({"simulate", file, "--budget", "50%", "--dispatch", "random"}), 2, "fixed-best");
}

// Nothing enforces a plan for several devices, and `replay` says so before the program starts.
TEST_F(SimulateCommand, SeveralDevicesAreForSimulation) {
  const std::string file = write("two.json", R"({"devices": 2,
    "tensors": [{"id": 0, "bytes": 4194304, "persistent": 1}, {"id": 1, "bytes": 4194304, "persistent": 1},
                {"id": 2, "bytes": 4194304, "persistent": 1, "device": 1}, {"id": 3, "bytes": 2097152, "device": 1},
                {"id": 4, "bytes": 2097152}],
    "kernels": [{"duration_ns": 100000, "inputs": [0], "outputs": [4]}, {"kind": "peer", "inputs": [4], "outputs": [3]},
                {"duration_ns": 100000, "inputs": [1], "outputs": [1]},
                {"duration_ns": 100000, "device": 1, "inputs": [2, 3], "outputs": []}]})");
  const Finished finished = well(reprise({"simulate", file, "--budget", "70%,100%", "--machine", "a100x8"}));
  EXPECT_EQ(lines(finished.out).size(), 3u) << finished.out;
  expect_refused(reprise({"simulate", file, "--budget", "100%", "--machine", "a100"}), 2, "2 devices");
  well(reprise({"plan", file, "--budget", "70%", "-o", path("tmp/two.plan")}));
  expect_refused(reprise({"replay", "--plan", path("tmp/two.plan"), "--", "/bin/true"}), 1, "2 devices");
}

// Its tensors are no whole chunks, so that a plan within the bytes that are alive at once would move some: as of a
// recording, 100 % is the program as it is, and nothing moves.
TEST_F(SimulateCommand, AGraphWithinAllOfItsPeakMovesNothing) {
  std::string tensors;
  std::string kernels;
  for (int i = 0; i < 6; ++i) {
    const char* const comma = i == 0 ? "" : ",";
    tensors += fmt::format(R"({}{{"id":{},"bytes":3145728,"persistent":1}})", comma, i);
    kernels += fmt::format(R"({}{{"duration_ns":1000,"inputs":[{}],"outputs":[{}]}})", comma, i, i);
  }
  const std::string file = write("odd.json", R"({"tensors":[)" + tensors + R"(],"kernels":[)" + kernels + "]}");
  well(reprise({"simulate", file, "--budget", "90%,100%,18MiB", "--csv", path("tmp/odd.csv")}));
  const Words rows = lines(read(path("tmp/odd.csv")));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_NE(columns(rows[1]).at(8), "0") << "this tests nothing: " << rows[1];
  for (const size_t row : {2u, 3u}) {
    EXPECT_EQ(columns(rows[row]).at(0), "18874368");
    for (const size_t moved : {8u, 9u}) EXPECT_EQ(columns(rows[row]).at(moved), "0") << rows[row];
    for (const size_t percent : {6u, 7u}) EXPECT_EQ(columns(rows[row]).at(percent), "100.000") << rows[row];
    EXPECT_LE(std::stoull(columns(rows[row]).at(16)), std::stoull(columns(rows[row]).at(3))) << "the fluid bound";
  }
  const Finished whole = well(reprise({"plan", file, "--budget", "100%", "-o", path("tmp/odd.plan")}));
  EXPECT_FALSE(std::filesystem::exists(path("tmp/odd.plan")));
  EXPECT_TRUE(has(whole.err, "nothing has to move, so no plan was written\n"));
}

// No program belongs to a graph: none can be run or replayed.
TEST_F(SimulateCommand, WhatComesNextAfterAPlanOfAGraphIsNoReplay) {
  const Finished finished = reprise({"plan", graph(8), "--budget", "50%", "-o", path("tmp/a.plan")});
  EXPECT_FALSE(has(finished.err, "replay"));
  EXPECT_FALSE(has(finished.err, "program"));
  const std::string next = "; next: reprise report " + path("tmp/a.plan");
  EXPECT_TRUE(has(finished.err, next + "\n"));
  well(reprise({"report", path("tmp/a.plan"), "-o", path("tmp/a.html")}));
}

TEST_F(SimulateCommand, PlansComeFromGraphsToo) {
  const Finished finished =
      reprise({"plan", graph(8), "--budget", "50%", "--machine", "g10", "-o", path("tmp/a.plan")});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(plan::read_plan(path("tmp/a.plan")).ok());
  expect_refused(reprise({"plan", write("bad.json", "{}"), "--budget", "50%"}), 1, "bad.json");
  expect_refused(reprise({"plan", graph(8), "--budget", "50%", "--machine", "moon"}), 2, "moon");
}

}  // namespace
}  // namespace reprise::tools::test
