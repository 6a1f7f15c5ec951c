// Figures that several sections name: the same everywhere, and none where nothing is known.
#include "tests/support/test.h"
#include "tests/unit/tools/report/sample_inputs.h"

namespace reprise::report {
namespace {

// Strict safety maps with each move, whatever a plan counts; and a mean is no whole number.
TEST(Figures, MappingCallsAreAPredictionWithTrustedSafetyAlone) {
  Sample sample;
  uint64_t calls = 41;
  for (RunIteration& it : sample.log.iterations) {
    if (it.planned) it.vmm_calls = calls++;
  }
  const auto row = [&] {
    for (const Json& one : totals_section(sample.inputs())) {
      if (one.at("label") == "Memory-mapping calls") return one;
    }
    return Json();
  };
  EXPECT_EQ(row().at("predicted"), "0") << "logs of before had no safety";
  EXPECT_EQ(row().at("measured"), "41.5");
  sample.log.safety = "strict";
  EXPECT_EQ(row().at("predicted"), "");
  EXPECT_TRUE(has(row().at("note"), "mean of 2 planned iterations"));
  sample.log.safety = "trusted";
  EXPECT_EQ(row().at("predicted"), "0");
  Inputs alone = sample.inputs();
  alone.log = nullptr;
  for (const Json& one : totals_section(alone)) {
    if (one.at("label") != "Memory-mapping calls") continue;
    EXPECT_EQ(one.at("note"), "with --safety trusted; strict maps with each move besides") << "a plan is of no safety";
  }
}

// A smallest budget that is given in per cent is typed so: rounded down it would be too small.
TEST(Figures, APercentageOfASmallestBudgetIsOneThatIsEnough) {
  EXPECT_EQ(percent_that_holds(30 << 20, 66 << 20), "46 %") << "45.5";
  EXPECT_EQ(percent_that_holds(301, 1000), "31 %");
  EXPECT_EQ(percent_that_holds(300, 1000), "30 %");
  EXPECT_EQ(percent_that_holds(1000, 1000), "100 %");
  EXPECT_EQ(percent_that_holds(0, 0), "0 %");
  for (uint64_t part = 1; part <= 100; ++part) {
    const uint64_t percent = std::stoull(percent_that_holds(part, 100));
    EXPECT_GE(static_cast<uint64_t>(static_cast<double>(percent) / 100 * 100.0), part) << "0.29 * 100 is below 29";
  }
  Sample sample;
  Inputs inputs = sample.inputs();
  inputs.minimum_bytes = inputs.curve.full_speed_bytes = (uint64_t{12} << 20) / 1000 * 304;
  EXPECT_TRUE(has(advice_section(inputs).dump(), "MiB (31 % of the peak) at the least"));
  const Inputs recording{&sample.trace};
  Inputs with_least = recording;
  with_least.minimum_bytes = collect_facts(recording).peak_before / 1000 * 304;
  EXPECT_TRUE(has(verdict_section(with_least).dump(), "(31 %)"));
}

// The table of tensors is of the plan, the card of the run: where the two differ by copies that were left out, both say
// so.
TEST(Figures, WhatARunMovedLessThanPlannedIsSaid) {
  Sample sample;
  const auto card = [&] { return cards_section(sample.inputs()).dump(); };
  EXPECT_FALSE(has(card(), "less than planned"));
  EXPECT_EQ(tensor_table_section(sample.inputs()).at("left_bytes"), 0);
  for (RunIteration& it : sample.log.iterations) {
    if (!it.planned) continue;
    it.spared_bytes = 3 << 20;
    it.offload_bytes -= 3 << 20;
  }
  EXPECT_TRUE(has(card(), "1.0 MiB out, 4.0 MiB back; 3.0 MiB less than planned, as the host had them already;"));
  EXPECT_EQ(tensor_table_section(sample.inputs()).at("left_bytes"), 3 << 20);
  const auto said = [&] { return sentences_section(sample.inputs()).dump(); };
  EXPECT_TRUE(has(said(), "the plan had predicted 750 ns (+8 %), with"));
  sample.plan.predicted_ns = 900;
  EXPECT_TRUE(has(said(), "the plan had predicted 900 ns (-10 %; 3.0 MiB less copied out than planned), with"));
  for (plan::Vertex& vertex : sample.plan.vertices) vertex.clean = vertex.kind == plan::VertexKind::offload;
  EXPECT_FALSE(has(card(), "less than planned")) << "the plan knew: ";
}

// A plan of whole chunks may take more than the bytes that the program asks for.
TEST(Figures, APlanIsCalledLowerWhereItIs) {
  Sample sample;
  const auto about = [&] { return iteration_memory_section(sample.inputs()).at("about").get<std::string>(); };
  EXPECT_TRUE(has(about(), "as planned: lower at its peak."));
  for (plan::Tensor& tensor : sample.plan.tensors) tensor.size = 1;
  EXPECT_FALSE(has(about(), "lower"));
  EXPECT_TRUE(has(about(), "in whole chunks"));
}

// In the verdict, in the card, and beside the same bytes as a budget: that one is typed, so it must be enough.
TEST(Figures, APercentageOfThePeakIsRoundedOneWay) {
  Sample sample;
  sample.log.peak_device_bytes = 32 << 20;
  sample.log.outside_bytes = 0;
  sample.log.budget_bytes = 33 << 20;
  sample.log.peak_footprint_bytes = 56 << 20;
  Inputs inputs = sample.inputs();
  inputs.curve.policy = "lru";
  inputs.curve.peak_bytes = 56 << 20;
  inputs.curve.points = {{32 << 20, 100, 0}};
  EXPECT_EQ(budget_curve_section(inputs).at("points").at(0).at(3), "58 %");
  const std::string text = verdict_section(inputs).at("text").get<std::string>() + text_of_cards(cards_section(inputs));
  EXPECT_TRUE(has(text, "instead of 56.0 MiB (58 %)"));
  EXPECT_TRUE(has(text, "was 56.0 MiB (58 %)"));
}

// What a device takes for them is more: only the end of a log, a trace or a plan says how much.
TEST(Figures, APeakIsNotComparedWithTheBytesOfTensors) {
  const std::string start = R"({"kind":"start","budget_bytes":67108864}
{"kind":"memory","device_bytes":62914560,"requested_bytes":66060288}
)";
  const RunLog cut = parse_run_log(start);
  const Inputs inputs{nullptr, nullptr, &cut};
  EXPECT_TRUE(has(make_summary(inputs), "; until then it used 60.0 MiB of device memory, no iteration"))
      << "\nit may have asked for more between two samples";
  const std::string cards = text_of_cards(cards_section(inputs));
  EXPECT_TRUE(has(cards, "60.0 MiB; what the program had asked for is not known; budget"));
  EXPECT_FALSE(has(make_data(inputs).dump(), "instead of"));
  const RunLog whole = parse_run_log(start + R"({"kind":"end","peak_device_bytes":62914560,)" +
                                     R"("peak_requested_bytes":66060288})" + "\n");
  const std::string verdict = verdict_section({nullptr, nullptr, &whole}).dump();
  EXPECT_TRUE(has(verdict, "It ran in 60.0 MiB for tensors of 63.0 MiB"));
}

// The page is read without stderr, and some messages begin with a name.
TEST(Figures, WhatWasSaidOnStderrIsASentence) {
  const RunLog log =
      parse_run_log(R"({"kind":"warning","message":"the budget is 16.0 MiB, but the device has room for less"}
{"kind":"warning","message":"gelu works on more. Ask for 2 GiB."}
{"kind":"end"})");
  const std::string text = text_of(sentences_section({nullptr, nullptr, &log}));
  EXPECT_TRUE(
      has(text, "note: While it ran, Reprise said: the budget is 16.0 MiB, but the device has room for less.\n"));
  EXPECT_TRUE(has(text, "Reprise said: gelu works on more. Ask for 2 GiB.\n"));
}

// In the table and under the peak.
TEST(Figures, AnAllocationWithoutACallSiteSaysWhy) {
  Sample sample;
  const auto shown = [&] { return sites_section({&sample.trace}).dump() + peak_section({&sample.trace}).dump(); };
  const char* const paused = "(not recorded: allocated while a plan was followed, when nothing is recorded)";
  const char* const unwalked = "(not recorded: its call stack could not be walked)";
  size_t allocations = 0;
  for (trace::Event& event : sample.trace.events) {
    auto* allocate = std::get_if<trace::Allocate>(&event);
    if (allocate == nullptr) continue;
    allocate->record.call_site = 0;
    if (allocations++ % 2 == 0) allocate->record.header.flags = trace::kCaughtUp;
  }
  ASSERT_GE(allocations, 2u);
  EXPECT_EQ(sites_section({&sample.trace}).size(), 2u);
  EXPECT_GE(count_of(shown(), paused), 1u) << shown();
  EXPECT_GE(count_of(shown(), unwalked), 1u) << shown();
  EXPECT_EQ(count_of(peak_section({&sample.trace}).dump(), "(not recorded)"), 0u) << shown();
  sample.trace.call_sites.clear();
  EXPECT_GE(count_of(shown(), "(not recorded: the recording has no call stacks)"), 1u) << shown();
}

// And whether that matters.
TEST(Figures, BuffersThatCouldNotBeReadAreCountedInWords) {
  const auto said = [](const std::string& safety, int count) {
    const RunLog log = parse_run_log(R"({"kind":"start","safety":")" + safety + R"("}
{"kind":"end","buffers_not_scanned":)" +
                                     std::to_string(count) + "}");
    return text_of(sentences_section({nullptr, nullptr, &log}));
  };
  const char* const one = "A buffer that may hold addresses could not be read: what kernels reach through it is not";
  EXPECT_TRUE(has(said("strict", 1), one) && has(said("strict", 1), "such an access is right or faults."));
  EXPECT_TRUE(has(said("audited", 1), "such an access is right or faults."));
  EXPECT_TRUE(has(said("trusted", 1), "may get wrong bytes, and nothing says so; --safety strict tells."));
  EXPECT_TRUE(
      has(said("strict", 3),
          "Buffers that may hold addresses could not be read, 3 times: what kernels reach through them is not known"));
  EXPECT_FALSE(has(said("strict", 0), "could not be read"));
}

// Its log has no end, and it is no program that was killed; the budget was none.
TEST(Figures, OfAProgramThatCouldNotBeManagedNothingIsSaidButThat) {
  Sample sample;
  const RunLog log = parse_run_log(R"log({"kind":"warning","message":"this device's memory cannot be managed"}
{"kind":"not_managed","reason":"64 GiB of addresses are needed (ulimit -v)"}
{"kind":"program_end","exit_code":0,"signal":0}
)log");
  Inputs inputs{&sample.trace, nullptr, &log};
  inputs.budget_bytes = 1 << 20;
  inputs.peak_bytes = 52 << 20;
  inputs.minimum_bytes = 8 << 20;
  EXPECT_EQ(make_summary(inputs),
            "peak 52.0 MiB, without a budget: device memory could not be managed (64 GiB of addresses are needed "
            "(ulimit -v))");
  inputs.ran_here = true;
  EXPECT_EQ(make_summary(inputs), "peak 52.0 MiB, without a budget: device memory could not be managed")
      << "told twice";
  const Json data = make_data(inputs);
  EXPECT_EQ(data.at("verdict").at("text"),
            "Device memory could not be managed: 64 GiB of addresses are needed (ulimit -v). The program ran without a "
            "budget, and used 52.0 MiB at most.");
  for (const char* wrong : {"killed", "on demand", "--budget", "no end", "not known"}) {
    EXPECT_FALSE(has(data.dump(), wrong)) << wrong << " in\n";
  }
  ASSERT_EQ(data.at("advice").size(), 1u);
  EXPECT_EQ(data.at("advice").at(0).at("command"), "ulimit -v unlimited");
  EXPECT_EQ(data.at("budget"), 0);
  inputs.ending = "exit code 3";
  EXPECT_TRUE(has(make_summary(inputs), "; the program ended with exit code 3"));
  EXPECT_TRUE(has(verdict_section(inputs).dump(), "at most, and ended with exit code 3."));
}

// A log that was cut short does not say how many there were.
TEST(Figures, MappingCallsAreCountedWhereTheLogEnds) {
  const std::string start = "{\"kind\":\"start\",\"safety\":\"strict\"}\n";
  const RunLog whole = parse_run_log(start + "{\"kind\":\"end\",\"vmm_calls\":58}\n"), cut = parse_run_log(start);
  EXPECT_TRUE(has(text_of_cards(cards_section({nullptr, nullptr, &whole})), "58 memory-mapping calls in all"));
  EXPECT_FALSE(has(text_of_cards(cards_section({nullptr, nullptr, &cut})), "memory-mapping calls"));
  EXPECT_TRUE(has(text_of(sentences_section({nullptr, nullptr, &whole})), "That took 58 memory-mapping calls in all."));
  EXPECT_FALSE(has(text_of(sentences_section({nullptr, nullptr, &cut})), "in all"));
}

// An evaluation is planned, and the steps between train on demand: most is moved there.
TEST(Figures, WhatIsMovedOnDemandIsSaidWhereItIsMost) {
  const auto said = [](const std::string& out_in_all) {
    const RunLog log = parse_run_log(
        "{\"kind\":\"activate\",\"iteration\":2}\n"
        "{\"kind\":\"iteration\",\"index\":2,\"mode\":\"planned\",\"offload_bytes\":1048576,\"reload_bytes\":0}\n"
        "{\"kind\":\"end\",\"iterations_planned\":1,\"offload_bytes\":" +
        out_in_all + ",\"reload_bytes\":104857600}\n");
    return text_of(sentences_section({nullptr, nullptr, &log}));
  };
  const std::string text = said("105906176");
  EXPECT_TRUE(has(text, "note: On demand, outside of planned iterations, 200 MiB were moved; within them 1.0 MiB."));
  const RunLog planned = parse_run_log(
      "{\"kind\":\"iteration\",\"index\":2,\"mode\":\"planned\",\"offload_bytes\":1048576,\"reload_bytes\":0}\n"
      "{\"kind\":\"end\",\"iterations_planned\":1,\"offload_bytes\":1148576,\"reload_bytes\":0}\n");
  EXPECT_FALSE(has(text_of(sentences_section({nullptr, nullptr, &planned})), "outside of planned"));
}

// However often it repeats: a call that needs all of it leaves nothing to move.
TEST(Figures, WhatOneCallNeedsAtOnceIsAdvisedBeforeRepeating) {
  const auto advised = [](const std::string& device_bytes) {
    const RunLog log = parse_run_log(
        "{\"kind\":\"start\",\"mode\":\"run\",\"budget_percent\":60}\n"
        "{\"kind\":\"on_demand\",\"cause\":\"no_repetition\",\"reason\":\"its calls never repeated\"}\n"
        "{\"kind\":\"end\",\"budget_bytes\":7549747,\"offload_bytes\":4096,\"peak_footprint_bytes\":12582912,\"peak_"
        "device_bytes\":" +
        device_bytes + "}\n");
    return advice_section({nullptr, nullptr, &log}).dump();
  };
  EXPECT_TRUE(has(advised("12582912"), "Give it at least 12.0 MiB"));
  EXPECT_FALSE(has(advised("12582912"), "Let it repeat itself"));
  EXPECT_TRUE(has(advised("7340032"), "Let it repeat itself"));
}

}  // namespace
}  // namespace reprise::report
