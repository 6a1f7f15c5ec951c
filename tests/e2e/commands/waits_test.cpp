// How long the device waited: what the run log counts by the host's clock, and what device times of one iteration show,
// are one figure for any program, budget, link and number of streams.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

struct Setting {
  const char* name;
  const char* to_device;  // the link's bytes a second
  const char* to_host;
  const char* memory_rate;  // of the modelled clock; "": kernels take what the host takes for them
  const char* budget;
  const char* safety;
  std::string program;    // in bin/
  const char* map = "0";  // microseconds that the driver takes for 2 MiB
};

void PrintTo(const Setting& setting, std::ostream* stream) { *stream << setting.name; }

Words words_of(const std::string& text) {
  std::istringstream stream(text);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word == "CUBIN" ? built("bin/hash_kernels.cubin") : word);
  words.front() = built("bin/" + words.front());
  return words;
}

class Waits : public testing::TestWithParam<Setting> {
 protected:
  Outcome reprise(const Words& words, const Words& program = {}) const {
    Environment environment = {{"REPRISE_SIM_H2D", GetParam().to_device},
                               {"REPRISE_SIM_D2H", GetParam().to_host},
                               {"REPRISE_SIM_MAP", GetParam().map}};
    if (*GetParam().memory_rate != 0) environment["REPRISE_SIM_MEMORY_RATE"] = GetParam().memory_rate;
    Outcome outcome = well(e2e::reprise(words, program, environment));
    return outcome;
  }
  json data_of(const Words& files) const {
    Words arguments = joined({"report", "--json", "-o", file("page.json")}, files);
    reprise(arguments);
    return json::parse(read_file(file("page.json")));
  }
  std::string file(const std::string& name) const { return scratch_.path(name); }

  Scratch scratch_;
};

// The parts of the measured iteration's bar whose names contain one of the words.
double part_of(const json& bar, const Words& words) {
  double sum = 0;
  for (const json& part : bar.at("parts")) {
    for (const std::string& word : words) {
      if (part.at("what").get<std::string>().find(word) != std::string::npos) sum += part.at("ns").get<double>();
    }
  }
  return sum;
}

// The table's causes are parts of one whole, and the card of what moves says what they say.
void expect_one_name_each(const json& data) {
  std::set<std::string> late;
  for (const json& row : data.at("totals")) {
    const std::string label = row.at("label");
    if (label.find("Waiting: launched late") == 0) late.insert(label.substr(9));
  }
  for (const std::string& one : late) {
    EXPECT_TRUE(one == "launched late by the program" || one == "launched late by the replay") << one;
  }
  double copies = 0;
  for (const json& one : data.at("waits").at("by_transfer")) {
    const std::string what = one.at("what");
    if (what == "an offload" || what == "a reload" || what.find("a comparison") == 0)
      copies += one.at("ns").get<double>();
  }
  const std::string cards = data.at("cards").dump();
  EXPECT_EQ(cards.find("; computing did not wait for it") != std::string::npos, copies == 0) << cards << copies;
  EXPECT_EQ(cards.find("; computing waited ") != std::string::npos, copies > 0) << cards << copies;
}

// One run with the plan.
struct Measured {
  json bar = {};
  double stall = -1, wall = 0;
  std::string row = {};

  double waits() const { return part_of(bar, {"waiting: "}) - part_of(bar, {"late by the program", "program's"}); }
  // The host looks at the device now and then, and what makes it late makes it look late, too.
  double off() const { return 0.06 * wall + 1e6; }
  bool agrees() const {
    const double moved = part_of(bar, {"room had to be made first", "a tensor was away"});
    const double of_no_transfer = part_of(bar, {"late", "before the first", "not known"});
    return stall >= moved - off() && stall <= moved + of_no_transfer + off() && std::abs(waits() - stall) <= off();
  }
};

Measured measured_of(const json& data, const std::vector<json>& log) {
  Measured found{data.at("time_went").at(1)};
  const std::string name = found.bar.at("name");
  EXPECT_TRUE(has(name, "measured (iteration ")) << data.at("time_went").dump(1);
  const uint64_t index = std::stoull(name.substr(std::min(name.size(), name.find("(iteration ") + 11)));
  for (const json& line : log) {
    if (line.at("kind") != "iteration" || line.at("index") != index) continue;
    found.stall = line.at("stall_ns");
    found.wall = line.at("wall_ns");
    found.row = "," + line.at("wall_ns").dump() + "," + line.at("stall_ns").dump() + ",";
  }
  return found;
}

// Where others have the processors, the host's clock shows what the device's does not: once in three runs they agree.
TEST_P(Waits, OfTheRunLogAreThoseOfTheMeasuredIteration) {
  const Words program = words_of(GetParam().program);
  const std::string safety = GetParam().safety;
  reprise({"record", "--device", "sim", "-o", file("a.trace")}, program);
  reprise({"plan", file("a.trace"), "--budget", GetParam().budget, "--safety", safety, "-o", file("a.plan")});
  json data;
  Measured measured;
  for (int tries = 0; tries < 3 && (tries == 0 || !measured.agrees()); ++tries) {
    std::filesystem::remove(file("a.run"));
    reprise({"replay", "--device", "sim", "--plan", file("a.plan"), "--safety", safety, "--run-log", file("a.run")},
            program);
    std::filesystem::remove(file("page.json"));
    data = data_of({file("a.trace"), file("a.plan"), file("a.run")});
    measured = measured_of(data, read_run_log(file("a.run")));
  }
  EXPECT_TRUE(measured.agrees()) << measured.bar.dump(1) << measured.stall << " of " << measured.wall;
  // Kernels that the program has called wait for the driver to map.
  const double by_program = GetParam().map == std::string("0") ? 0 : part_of(measured.bar, {"late by the program"});
  EXPECT_LT(by_program, 0.2 * measured.wall) << measured.bar.dump(1);
  expect_one_name_each(data);
  EXPECT_TRUE(has(reprise({"export", "--format", "csv", file("a.run")}).out, measured.row)) << measured.row;
  std::filesystem::remove(file("page.json"));
  EXPECT_EQ(data_of({file("a.run")}).at("time_went").at(0), data.at("time_went").at(0));
}

constexpr char kTrainer[] = "chargpt --width 64 --heads 4 --seed 1 ";

INSTANTIATE_TEST_SUITE_P(
    Links, Waits,
    testing::Values(Setting{"slow_to_the_host", "60MiB", "25MiB", "", "62%", "strict",
                            std::string(kTrainer) + "--layers 3 --batch 8 --steps 7"},
                    Setting{"slow_to_the_device", "15MiB", "200MiB", "", "75%", "strict",
                            std::string(kTrainer) + "--layers 3 --batch 8 --steps 7"},
                    Setting{"equal_and_trusted", "30MiB", "30MiB", "", "58%", "trusted",
                            std::string(kTrainer) + "--layers 2 --batch 6 --steps 7"},
                    Setting{"fast", "20GiB", "20GiB", "", "62%", "strict",
                            std::string(kTrainer) + "--layers 3 --batch 8 --async-memory --steps 7"},
                    Setting{"modelled", "60MiB", "25MiB", "200MiB", "62%", "strict",
                            std::string(kTrainer) + "--layers 3 --batch 8 --steps 7"},
                    Setting{"three_streams", "60MiB", "60MiB", "", "55%", "trusted",
                            "random_program CUBIN 13 8 --ops 60 --streams 3"},
                    Setting{"five_streams", "30MiB", "60MiB", "", "70%", "strict",
                            "random_program CUBIN 14 8 --ops 60 --streams 5 --async"},
                    Setting{"steps_of_layers", "60MiB", "40MiB", "", "70%", "strict", "phases_program CUBIN steps 8"},
                    Setting{"inference", "60MiB", "100MiB", "", "60%", "strict", "inference_program 6 256 2048 8 0 0"},
                    Setting{"little_room", "100MiB", "30MiB", "200MiB", "90%", "trusted",
                            std::string(kTrainer) + "--layers 2 --batch 8 --steps 7"},
                    Setting{"slow_mapping", "200MiB", "200MiB", "", "62%", "strict",
                            std::string(kTrainer) + "--layers 3 --batch 8 --steps 7", "160000"}),
    [](const testing::TestParamInfo<Setting>& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace reprise::e2e
