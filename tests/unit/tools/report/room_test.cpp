// What is said and advised where the device has less room than the budget.
#include "tests/support/test.h"
#include "tests/unit/tools/report/sample_inputs.h"
#include "tools/report/report.h"

namespace reprise::report {
namespace {

constexpr char kRoom[] =
    R"({"kind":"room","total_bytes":37748736,"elsewhere_bytes":18874368,"headroom_bytes":1048576,"room_bytes":17825792})"
    "\n";
constexpr char kWhoHasIt[] =
    "of its 36.0 MiB other programs and the driver hold 18.0 MiB, and 1.0 MiB are kept free for the driver";

// Whatever the budget: what helps is room on the device.
TEST(Room, ADeviceThatOthersFillIsNotTheBudgetsFault) {
  const auto run = [](const std::string& least) {
    return parse_run_log(kRoom + std::string("{\"kind\":\"shortage\",\"call\":\"embed\",\"needed_bytes\":4194304,") +
                         "\"least_bytes\":" + least +
                         "}\n{\"kind\":\"end\",\"budget_bytes\":8388608,\"peak_device_bytes\":2097152}\n");
  };
  const RunLog full = run("0");
  Inputs inputs{nullptr, nullptr, &full};
  inputs.ending = "exit code 1";
  EXPECT_TRUE(has(verdict_section(inputs).dump(), "the device had no room for that: " + std::string(kWhoHasIt)));
  EXPECT_FALSE(has(verdict_section(inputs).dump(), "budget"));
  const Json advice = advice_section(inputs).at(0);
  EXPECT_EQ(advice.at("title"), "Run it where the device has room");
  EXPECT_TRUE(has(advice.at("detail"), "run it when other programs have ended"));
  const RunLog small = run("9437184");
  inputs.log = &small;
  EXPECT_TRUE(
      has(verdict_section(inputs).dump(), "more than the budget of 8.0 MiB leaves: at least 9.0 MiB are needed"));
  EXPECT_EQ(advice_section(inputs).at(0).at("title"), "Give it at least 9.0 MiB");
}

// The budget is enough, and more of it would be no help.
TEST(Room, WhereTheDeviceHadNoRoomForAPlanNoBudgetIsAdvised) {
  const auto run = [](const std::string& budget) {
    return parse_run_log(R"({"kind":"start","mode":"run","budget_bytes":)" + budget + "}\n" + kRoom +
                         R"({"kind":"on_demand","cause":"no_room","reason":"no plan fits","least_bytes":23068672})" +
                         "\n" + R"({"kind":"end","peak_device_bytes":16777216,"offload_bytes":1})");
  };
  const RunLog log = run("23068672");
  Inputs inputs{nullptr, nullptr, &log};
  inputs.minimum_bytes = 22 << 20;
  EXPECT_TRUE(has(verdict_section(inputs).dump(), "without a plan: the device had no room for one"));
  const Json advice = advice_section(inputs).at(0);
  EXPECT_EQ(advice.at("title"), "Run it where the device has room for 22.0 MiB");
  EXPECT_EQ(advice.at("detail"),
            "A plan takes 22.0 MiB at the least, and the device had room for 17.0 MiB: " + std::string(kWhoHasIt) +
                ". So run it when other programs have ended, or on a device with more memory.");
  // Nor one that would do on another device.
  inputs.curve.policy = "disco";
  inputs.curve.compute_ns = 350;
  for (const uint64_t full_speed : {uint64_t{21} << 20, uint64_t{24} << 20}) {
    inputs.curve.full_speed_bytes = full_speed;
    inputs.curve.points = {{uint64_t{22} << 20, 900, 8}, {full_speed, 355, 4}};
    EXPECT_FALSE(has(advice_section(inputs).dump(), "--budget"));
  }
  const RunLog less = run("20971520");
  inputs.log = &less;
  EXPECT_TRUE(has(advice_section(inputs).dump(), "The budget of 20.0 MiB is less, too."));
  EXPECT_EQ(advice_section(inputs).at(0).at("command"), "--budget 22MiB");
}

TEST(Room, APlanThatTheDeviceHadNoRoomForIsNotToldToHaveALargerBudget) {
  const RunLog log = parse_run_log(R"({"kind":"start","mode":"replay","budget_bytes":23068672}
{"kind":"plan"}
)" + std::string(kRoom) + R"({"kind":"on_demand","cause":"refused","reason":"why","plan":0}
{"kind":"end","peak_device_bytes":16777216,"offload_bytes":1})");
  Inputs inputs{nullptr, nullptr, &log};
  inputs.minimum_bytes = 18 << 20;
  EXPECT_EQ(advice_section(inputs).at(0).at("title"), "Run it where the device has room for the plan");
  EXPECT_FALSE(has(advice_section(inputs).dump(), "larger --budget"));
  inputs.minimum_bytes = 17 << 20;
  EXPECT_EQ(advice_section(inputs).at(0).at("title"), "Plan for what the device has room for");
  EXPECT_EQ(advice_section(inputs).at(0).at("command"), "--budget 17MiB");
}

// What held was the device, so that is not said of the budget.
TEST(Room, ABudgetAboveTheDevicesRoomIsNotWhatCanShrink) {
  const RunLog log = parse_run_log(R"({"kind":"start","mode":"run","budget_bytes":1073741824})" + std::string("\n") +
                                   kRoom + R"({"kind":"end","iterations_planned":3,"peak_device_bytes":16777216})");
  Inputs inputs{nullptr, nullptr, &log};
  inputs.curve.policy = "disco";
  inputs.curve.compute_ns = 350;
  inputs.curve.full_speed_bytes = 15 << 20;
  inputs.curve.points = {{15 << 20, 355, 4}};
  const Json advice = advice_section(inputs);
  EXPECT_FALSE(has(advice.dump(), "can shrink"));
  EXPECT_EQ(advice.at(0).at("title"), "15.0 MiB would do") << advice;
  EXPECT_EQ(advice.at(0).at("detail").get<std::string>().find(
                "What held was the device's room of 17.0 MiB, not the budget of 1.0 GiB: with 2.0 MiB less an "
                "iteration is still within 2 % of computing alone, as planned"),
            0u)
      << advice;
  EXPECT_EQ(advice.at(0).at("command"), "--budget 15MiB");
}

// A program that was interrupted at once has said nothing of its memory.
TEST(Room, WhatARunLogWithoutItsEndDoesNotSayIsNotNone) {
  const RunLog log = parse_run_log(R"({"kind":"start","mode":"run","budget_bytes":23068672})");
  Inputs inputs{nullptr, nullptr, &log};
  inputs.ending = "signal 2 (Interrupt)";
  EXPECT_EQ(verdict_section(inputs).at("text"),
            "The program ended with signal 2 (Interrupt) before it could say what it used.");
  EXPECT_FALSE(has(cards_section(inputs).dump(), "0 B"));
}

// Rounded they are one.
TEST(Room, ABudgetThatIsAByteTooSmallIsNotTheOneThatIsEnough) {
  const RunLog log = parse_run_log(R"({"kind":"start","mode":"run","budget_bytes":31457279}
{"kind":"on_demand","cause":"too_small","reason":"why"}
{"kind":"end","peak_device_bytes":16777216,"offload_bytes":1})");
  Inputs inputs{nullptr, nullptr, &log};
  inputs.minimum_bytes = 30 << 20;
  const Json advice = advice_section(inputs).at(0);
  EXPECT_EQ(advice.at("title"), "Give it at least 30.0 MiB");
  EXPECT_EQ(advice.at("detail"), "No plan fits into 31457279 bytes, however long the program runs.");
}

// What a program would have done is not known when a call got no memory, nor what its peak would have been.
TEST(Room, OfAProgramThatDiedForWantOfMemoryNothingIsGuessed) {
  const RunLog log = parse_run_log(R"({"kind":"start","mode":"run","budget_percent":50}
)" + std::string(kRoom) + R"({"kind":"shortage","call":"embed","needed_bytes":4194304,"least_bytes":0}
{"kind":"on_demand","cause":"no_iteration","reason":"with other tensors each time"}
{"kind":"end","budget_bytes":3145728,"peak_device_bytes":2097152,"peak_footprint_bytes":6291456})");
  Inputs inputs{nullptr, nullptr, &log};
  inputs.ending = "exit code 1";
  inputs.no_iteration = "with other tensors each time";
  const std::string data = make_data(inputs).dump();
  EXPECT_FALSE(has(data, "other tensors each time"));
  EXPECT_TRUE(has(data, "No plan was made: a call got no memory before an iteration was found."));
  EXPECT_TRUE(has(data, "was 6.0 MiB (34 %); budget 50 % of the peak, which was 3.0 MiB by then"));
  EXPECT_TRUE(has(data, "never exceeded the budget of 50 % of the peak, which was 3.0 MiB by then"));
  inputs.ending = "";
  EXPECT_TRUE(has(make_data(inputs).dump(), "was 6.0 MiB (34 %); budget 3.0 MiB"));
}

// It died in its first iteration: what keeps it from being planned is not that it does not repeat itself.
TEST(Room, WhereHostMemoryIsFullMoreOfItIsAdvised) {
  const auto run = [](const std::string& needed) {
    return parse_run_log(R"({"kind":"start","mode":"run","budget_bytes":31457280}
{"kind":"host_full","needed_bytes":)" +
                         needed + R"(,"host_bytes":4194304}
{"kind":"on_demand","cause":"no_repetition","reason":"the program ended before its calls repeated"}
{"kind":"end","peak_device_bytes":31457280,"peak_footprint_bytes":35651584,"offload_bytes":2621440})");
  };
  const RunLog log = run("5242880");
  Inputs inputs{nullptr, nullptr, &log};
  inputs.ending = "exit code 1";
  inputs.no_iteration = "its memory grows or changes with every one";
  EXPECT_EQ(verdict_section(inputs).at("text"),
            "The program ended with exit code 1; until then it used 30.0 MiB of device memory, for 34.0 MiB that it "
            "had asked for. It got no memory: what was off the device needed at least 5.0 MiB of host memory, and 4.0 "
            "MiB are allowed.");
  const Json advice = advice_section(inputs);
  EXPECT_EQ(advice.at(0).at("title"), "Allow at least 5.0 MiB of host memory, or a larger budget");
  EXPECT_EQ(advice.at(0).at("command"), "--host-memory 5MiB");
  const std::string all = make_data(inputs).dump() + make_summary(inputs);
  EXPECT_FALSE(has(all, "grows or changes"));
  EXPECT_FALSE(has(all, "Let it repeat itself"));
  EXPECT_TRUE(has(all, "the program got no memory before an iteration was found"));
  inputs.ending = "";  // it could do without what it was refused
  EXPECT_EQ(advice_section(inputs).at(0).at("title"), "Let it repeat itself") << advice_section(inputs);
  EXPECT_EQ(advice_section(inputs).at(1).at("title"), "Allow at least 5.0 MiB of host memory, or a larger budget");
  const RunLog system = run("4194304");  // allowed, and not there
  inputs = {nullptr, nullptr, &system};
  inputs.ending = "exit code 1";
  EXPECT_EQ(advice_section(inputs).at(0).at("title"), "Run it where the host has more memory");
  EXPECT_TRUE(has(verdict_section(inputs).dump(), "and the system did not give as much"));
}

// Both figures may stand on a page: what the one is more than the other.
TEST(Room, APeakAboveTheRoomIsExplained) {
  Sample sample;
  const auto said = [&] { return sentences_section(sample.inputs()).dump(); };
  const uint64_t peak = peak_of_run(sample.log);
  sample.log.room = RoomFigures{uint64_t{1} << 30, 0, 1 << 20, peak};
  EXPECT_FALSE(has(said(), "That is more than the"));
  sample.log.room->room = peak - (1 << 20);
  EXPECT_TRUE(has(
      said(),
      "the peak was 9.0 MiB. That is more than the 8.0 MiB that the device had room for when that was looked at last"));
}

// A plan for this budget is none that could be made.
TEST(Room, WhereNoPlanFitsIntoTheBudgetNoneIsAdvised) {
  const auto advice = [](const plan::Plan* plan, uint64_t least, const std::string& budget) {
    const RunLog log = parse_run_log(R"({"kind":"start","mode":"replay","budget_bytes":)" + budget + "}\n" +
                                     R"({"kind":"plan"}
{"kind":"on_demand","cause":"refused","reason":"why","plan":0}
{"kind":"end","peak_device_bytes":8388608,"offload_bytes":1})");
    Inputs inputs{nullptr, plan, &log};
    inputs.minimum_bytes = least;
    return advice_section(inputs);
  };
  const Sample sample;  // it takes 9.0 MiB at the least
  const Json known = advice(&sample.plan, 0, "8388608");
  EXPECT_EQ(known.at(0).at("title"), "Give it at least 9.0 MiB (75 % of the peak)") << known;
  EXPECT_EQ(known.at(0).at("detail"), "No plan fits into 8.0 MiB, however long the program runs.");
  EXPECT_EQ(known.at(0).at("command"), "--budget 9MiB");
  EXPECT_EQ(advice(nullptr, 9 << 20, "8388608").at(0).at("title"), "Give it at least 9.0 MiB");
  EXPECT_EQ(advice(&sample.plan, 0, "9437184").at(0).at("title"), "Make room for the plan");
}

// NVIDIA's tools know nothing of the simulated device.
TEST(Room, WhoHoldsASimulatedDeviceIsNotAskedOfNvidiaSmi) {
  const auto command = [](const std::string& device) {
    const RunLog log =
        parse_run_log(R"({"kind":"start","mode":"run","budget_bytes":23068672,"device":")" + device + "\"}\n" + kRoom +
                      R"({"kind":"on_demand","cause":"no_room","reason":"why","least_bytes":23068672}
{"kind":"end","peak_device_bytes":16777216,"offload_bytes":1})");
    return advice_section({nullptr, nullptr, &log}).at(0).at("command").get<std::string>();
  };
  EXPECT_EQ(command("NVIDIA H100"), "nvidia-smi");
  EXPECT_EQ(command("Reprise Simulated Device"), "");
}

}  // namespace
}  // namespace reprise::report
