#include "tools/report/report.h"

#include <regex>

#include "tests/support/sample.h"
#include "tests/support/test.h"
#include "tests/unit/tools/report/sample_inputs.h"
#include "tools/report/page.h"
#include "tools/report/view/timeline.h"
#include "tools/report/view/waits.h"

namespace reprise::report {
namespace {

using tools::test::sample_plan;
using tools::test::sample_run_log;
using tools::test::sample_trace;

std::string first_difference(const std::string& before, const std::string& now) {
  std::istringstream left(before);
  std::istringstream right(now);
  std::string a;
  std::string b;
  for (int number = 1;; ++number) {
    const bool more = static_cast<bool>(std::getline(left, a));
    if (more != static_cast<bool>(std::getline(right, b))) return "one is shorter at line " + std::to_string(number);
    if (!more) return "";
    if (a != b) return "line " + std::to_string(number) + ": " + a + " became " + b;
  }
}

// A line for what fits on one, so that a difference is told by its place.
std::string laid_out(const Json& value, size_t indent = 0) {
  std::string text = value.dump();
  if (!value.is_structured() || indent + text.size() <= 120) return text;
  text = value.is_object() ? "{" : "[";
  for (const auto& [key, child] : value.items()) {
    text += (text.size() == 1 ? "\n" : ",\n") + std::string(indent + 1, ' ');
    text += (value.is_object() ? Json(key).dump() + ": " : "") + laid_out(child, indent + 1);
  }
  return text + "\n" + std::string(indent, ' ') + (value.is_object() ? "}" : "]");
}

// REPRISE_UPDATE_GOLDEN=1 writes the file anew, to be read before it is committed.
void expect_golden(const std::string& path, const Json& now) {
  if (std::getenv("REPRISE_UPDATE_GOLDEN") != nullptr) write_file(path, laid_out(now) + "\n");
  EXPECT_EQ(first_difference(read_file(path), laid_out(now) + "\n"), "");
}

TEST(Report, TheDataOfTheSampleIsAsItWas) {
  const Sample sample;
  expect_golden(REPRISE_GOLDEN "/report.json", make_data(sample.inputs()));
}

TEST(Report, AnyOneOfTheInputsIsEnough) {
  const Sample sample;
  EXPECT_EQ(make_data({&sample.trace}).at("kernels").size(), 2u);
  EXPECT_EQ(make_data({nullptr, &sample.plan}).at("timelines").at(0).at("name"), "Predicted");
  EXPECT_EQ(make_data({nullptr, nullptr, &sample.log}).at("iterations").size(), 3u);
}

TEST(Report, ThePageIsOneFileThatLoadsNothing) {
  const Sample sample;
  Json data = make_data(sample.inputs());
  data["program"] = "</script><script>alert(1)</script> {{script}} {{style}} {{data}}";
  const std::string page = make_page(data);
  EXPECT_FALSE(has(page, "</script><script>alert"));
  EXPECT_TRUE(has(page, "dygraphs is MIT-licenced")) << "the chart library comes with its licence";
  for (const char* outside : {"http://", "https://", "<link", "src=", "@import", "url("}) {
    std::string rest = page;
    rest.erase(rest.find(kChartLibrary), std::string(kChartLibrary).size());  // names its authors' pages
    const std::string name_space = "http://www.w3.org/2000/svg";              // an identifier, nothing is loaded
    for (size_t at = 0; (at = rest.find(name_space)) != std::string::npos;) rest.erase(at, name_space.size());
    EXPECT_FALSE(has(rest, outside)) << outside;
  }
  const size_t begin = page.find("id=\"data\">") + 10;
  EXPECT_EQ(Json::parse(page.substr(begin, page.find("</script>", begin) - begin)), data);
}

TEST(Report, TheScriptsNameEverySection) {
  const Sample sample;
  const Json data = make_data(sample.inputs());
  const std::string page = make_page(Json::object());
  for (const auto& [key, value] : data.items()) {
    if (key == "version") continue;
    EXPECT_TRUE(has(page, "data." + key)) << key << " is drawn by no script of tools/report/page";
  }
  const std::regex sections(R"(function (\w+Sections?)\()");
  for (std::sregex_iterator at(page.begin(), page.end(), sections), end; at != end; ++at) {
    EXPECT_TRUE(has(page, "\n" + (*at)[1].str() + "();")) << (*at)[1] << " is not called in main.js";
  }
}

TEST(Report, TextsThatAreNoUtf8DoNotStopIt) {
  Sample sample;
  sample.plan.calls[1].name = "bad \xff\xfe name";
  EXPECT_TRUE(has(make_page(make_data(sample.inputs())), "name"));
}

TEST(Report, SentencesNameWhatHappened) {
  Sample sample;
  std::string text = text_of(sentences_section(sample.inputs()));
  EXPECT_TRUE(has(text, "good: Device memory never exceeded the budget"));
  EXPECT_TRUE(has(text, "first in iteration 3, call 2: expected make(float*), got evaluate"));
  EXPECT_TRUE(has(text, "good: Planned iterations made no memory-mapping call"));
  sample.log.peak_device_bytes = sample.plan.budget_bytes + 1;
  sample.log.ended = false;
  sample.trace.dropped = 2;
  sample.trace.tail = Status(StatusCode::truncated, "ends in a chunk");
  text = text_of(sentences_section(sample.inputs()));
  EXPECT_TRUE(has(text, "bad: Device memory reached"));
  EXPECT_TRUE(has(text, "bad: The run log has no end"));
  EXPECT_TRUE(has(text, "bad: The trace is not whole: ends in a chunk"));
  EXPECT_TRUE(has(text, "bad: 2 records were lost"));
}

TEST(Report, TheEndOfTheLoopIsNoMishap) {
  const RunLog log = parse_run_log(
      "{\"kind\":\"iteration\",\"index\":5,\"mode\":\"planned\"}\n"
      "{\"kind\":\"divergence\",\"iteration\":6,\"call\":3,\"expected\":\"a\",\"got\":\"b\"}\n"
      "{\"kind\":\"end\",\"iterations_planned\":6,\"divergences\":1}\n");
  const std::string text = text_of(sentences_section({nullptr, nullptr, &log}));
  EXPECT_TRUE(has(text, "up to the end of the loop"));
  EXPECT_TRUE(has(text, "left the plan in iteration 6, at call 3"));
  EXPECT_FALSE(has(text, "something else than"));
}

TEST(Report, LoopEndsAreDeparturesButNoDivergences) {
  const RunLog log = parse_run_log(
      "{\"kind\":\"activate\",\"iteration\":2}\n"
      "{\"kind\":\"iteration\",\"index\":2,\"mode\":\"planned\"}\n"
      "{\"kind\":\"loop_end\",\"iteration\":3,\"got\":\"evaluate\"}\n"
      "{\"kind\":\"activate\",\"iteration\":4}\n"
      "{\"kind\":\"iteration\",\"index\":4,\"mode\":\"planned\"}\n"
      "{\"kind\":\"loop_end\",\"iteration\":5,\"got\":\"a free\"}\n");
  EXPECT_EQ(log.divergence_count, 0u);
  const std::string text = text_of(sentences_section({nullptr, nullptr, &log}));
  EXPECT_TRUE(has(text, "left its loop 2 times and came back to it once"));
  const Json rows = divergences_section({nullptr, nullptr, &log});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.at(0).at("expected"), "another iteration");
  EXPECT_EQ(rows.at(0).at("got"), "evaluate");
  EXPECT_EQ(rows.at(0).at("then"), "by the plan again from iteration 4 on");
}

// A late launch is no wait for a transfer.
TEST(Report, AGapWhoseReasonEndedBeforeItIsTheLaunch) {
  plan::Plan plan = sample_plan();
  plan.vertices[3].predicted_start_ns = 420;
  const std::vector<Wait> waits = longest_waits(plan, predicted_timeline(plan), 1, 10);
  ASSERT_EQ(waits.size(), 3u);
  EXPECT_TRUE(waits[0].transfer);
  EXPECT_EQ(waits[2].reason, "its launch");
  EXPECT_FALSE(waits[2].transfer);
}

// Behind the last sample nothing is known of what the program asks for; device memory changes with a sample only.
TEST(Report, MemoryLinesEndWhereKnowledgeEnds) {
  RunLog log = parse_run_log(sample_run_log());
  log.peak_requested_bytes = uint64_t{1} << 30;
  log.end_ns = 9000;
  const Json section = run_memory_section({nullptr, nullptr, &log});
  EXPECT_EQ(section.at("lines").at(0).at("points"), (Json{0, 4194304, 1000, 12582912}));
  EXPECT_EQ(section.at("lines").at(1).at("points"), (Json{0, 4194304, 1000, 9437184, 4000, 9437184}));
  EXPECT_EQ(section.at("span"), 4000);
  EXPECT_EQ(section.at("levels").at(0).at("value"), uint64_t{1} << 30);
  log.end_ns = 0;  // killed
  EXPECT_EQ(run_memory_section({nullptr, nullptr, &log}).at("lines").at(1).at("points").size(), 4u);
}

// The card counts it, and calls nothing halfway that was the last.
TEST(Report, TheIterationThatEndsTheLoopIsNotCalledLeftHalfway) {
  const auto cards = [](const std::string& behind) {
    RunLog log = parse_run_log(
        "{\"kind\":\"iteration\",\"index\":5,\"mode\":\"planned\"}\n"
        "{\"kind\":\"divergence\",\"iteration\":6,\"call\":3,\"expected\":\"a\",\"got\":\"b\"}\n" +
        behind + "{\"kind\":\"end\",\"iterations_planned\":6,\"divergences\":1}\n");
    keep_iterations(log, 4);
    return text_of_cards(cards_section({nullptr, nullptr, &log}));
  };
  const std::string last = cards("");
  EXPECT_TRUE(has(last, "6 of 7 planned"));
  EXPECT_TRUE(has(last, ", 1 that the end of the loop cut short"));
  EXPECT_FALSE(has(last, "halfway"));
  EXPECT_TRUE(has(cards("{\"kind\":\"activate\",\"iteration\":7}\n"), ", 1 not finished;"));
}

TEST(Report, WhatDidNotMoveIsNotSaidToHaveMoved) {
  const std::string reason = "{\"kind\":\"on_demand\",\"cause\":\"no_iteration\",\"reason\":\"too few calls\"}\n";
  const auto sentences = [&](const std::string& end) {
    const RunLog log = parse_run_log(reason + end);
    return text_of(sentences_section({nullptr, nullptr, &log}));
  };
  const std::string nothing = sentences("{\"kind\":\"end\"}\n");
  EXPECT_TRUE(has(nothing, "No plan was made: too few calls. Nothing had to be moved"));
  EXPECT_FALSE(has(nothing, "moved on demand until"));
  const std::string some = sentences("{\"kind\":\"end\",\"offload_bytes\":1}\n");
  EXPECT_TRUE(has(some, "too few calls. So tensors were moved on demand until the end"));
  const std::string unknown = sentences("");  // it was killed
  EXPECT_TRUE(has(unknown, "too few calls. So memory was managed on demand until then"));
}

TEST(Report, WhyNothingWasPlannedIsShownAsItWasWritten) {
  const RunLog log = parse_run_log(
      "{\"kind\":\"start\",\"budget_bytes\":1}\n{\"kind\":\"plan\",\"index\":0,\"path\":\"p\"}\n"
      "{\"kind\":\"on_demand\",\"cause\":\"no_iteration\",\"reason\":\"too few calls\"}\n"
      "{\"kind\":\"on_demand\",\"cause\":\"refused\",\"reason\":\"of 160 small tensors hold 84\",\"plan\":0}\n"
      "{\"kind\":\"on_demand\",\"cause\":\"refused\",\"reason\":\"of 160 small tensors hold 84\",\"plan\":0}\n"
      "{\"kind\":\"on_demand\",\"cause\":\"never_began\",\"reason\":\"its call, _Z4makePf, never came\",\"plan\":1}\n"
      "{\"kind\":\"end\"}\n");
  const std::string text = text_of(sentences_section({nullptr, nullptr, &log}));
  EXPECT_TRUE(has(text, "bad: Plan 1 was to come in force and could not (2 times): of 160 small tensors hold 84."));
  EXPECT_FALSE(has(text, "no iteration began"));
  EXPECT_TRUE(has(text, "Plan 2 never came in force: its call, make(float*), never came."));
  EXPECT_FALSE(has(text, "too few calls")) << "a plan came after all: ";
}

TEST(Report, EachCauseHasItsSentence) {
  const auto said = [](const std::string& cause) {
    const RunLog log = parse_run_log("{\"kind\":\"on_demand\",\"cause\":\"" + cause +
                                     "\",\"reason\":\"such and such\"}\n{\"kind\":\"end\"}\n");
    return text_of(sentences_section({nullptr, nullptr, &log}));
  };
  EXPECT_TRUE(has(said("fits"), "good: Nothing had to be planned: such and such."));
  EXPECT_TRUE(has(said("too_small"), "note: No plan was made: such and such."));
  EXPECT_TRUE(has(said("never_began"), "bad: Plan 1 never came in force: such and such."));
}

// The first plan ruled the first loop; who looks at the second one's iterations wants to know why they were on demand.
TEST(Report, OfEachPlanThatRuledNothingItIsToldWhy) {
  const RunLog log = parse_run_log(
      R"({"kind":"start","budget_bytes":1}
{"kind":"plan","index":0,"path":"p"}
{"kind":"activate","plan":0,"iteration":3}
{"kind":"iteration","index":3,"planned":true,"plan":0}
{"kind":"on_demand","cause":"left","reason":"the program left it at call 3 of 40","plan":1}
{"kind":"on_demand","cause":"unfinished","reason":"the program ended first","plan":2}
{"kind":"on_demand","cause":"never_began","reason":"its first call never came","plan":3}
{"kind":"end","iterations_planned":4,"plans":4}
)");
  const std::string text = text_of(sentences_section({nullptr, nullptr, &log}));
  EXPECT_TRUE(has(text, "note: Plan 2 ruled no iteration: the program left it at call 3 of 40."));
  EXPECT_TRUE(has(text, "note: Plan 3 was ready too late: the program ended first."));
  EXPECT_TRUE(has(text, "bad: Plan 4 never came in force: its first call never came."));
  EXPECT_EQ(text.find("Plan 4 never"), text.rfind("Plan 4 never")) << "twice";
}

TEST(Report, NoCardShowsAPredictionOfARun) {
  const Sample sample;
  const RunLog log = parse_run_log(
      "{\"kind\":\"start\",\"time_ns\":1000}\n{\"kind\":\"end\",\"time_ns\":3000001000,"
      "\"peak_device_bytes\":9437184,\"offload_bytes\":1048576}\n");
  const Inputs inputs{&sample.trace, &sample.plan, &log};
  const std::string text = text_of_cards(cards_section(inputs));
  EXPECT_FALSE(has(text, "predicted"));
  EXPECT_FALSE(has(text, "750 ns"));
  EXPECT_TRUE(has(text, "Time of the run: 3.00 s"));
  EXPECT_TRUE(has(text, "Moved in all, on demand: 1.0 MiB"));
  EXPECT_FALSE(has(make_summary(inputs), "predicted"));
}

// A budget of 60 % is of what the program takes of the device, not of what it asks for, and so is what the report
// compares with.
TEST(Report, APeakIsComparedWithWhatPercentagesAreOf) {
  const RunLog log = parse_run_log(
      "{\"kind\":\"end\",\"peak_device_bytes\":33554432,\"peak_requested_bytes\":50727428,"
      "\"peak_footprint_bytes\":58720256,\"budget_bytes\":35232153}\n");
  const Inputs inputs{nullptr, nullptr, &log};
  EXPECT_TRUE(has(make_summary(inputs), "peak 32.0 MiB instead of 56.0 MiB"));
  EXPECT_TRUE(has(text_of_cards(cards_section(inputs)), "was 56.0 MiB (58 %); budget 33.6 MiB"));
}

TEST(Report, AllIterationsAndAllOfTheTimeCount) {
  RunLog log = parse_run_log(
      "{\"kind\":\"start\",\"time_ns\":1000000000}\n"
      "{\"kind\":\"repeats\",\"calls\":9,\"iterations\":40}\n"
      "{\"kind\":\"repeats\",\"calls\":90,\"iterations\":3}\n"
      "{\"kind\":\"iteration\",\"index\":43,\"mode\":\"on_demand\",\"wall_ns\":500000000,\"calls\":90}\n"
      "{\"kind\":\"activate\",\"iteration\":44,\"at_ns\":4000000000}\n"
      "{\"kind\":\"iteration\",\"index\":44,\"mode\":\"planned\",\"wall_ns\":200000000}\n"
      "{\"kind\":\"end\",\"time_ns\":5000000000,\"iterations_planned\":8,\"iterations_on_demand\":44}\n");
  keep_iterations(log, 90);
  const Inputs inputs{nullptr, nullptr, &log};
  const std::string cards = text_of_cards(cards_section(inputs));
  EXPECT_TRUE(has(cards, "Iterations: 8 of 12 planned; 4 on demand; 3.00 s of 4.00 s passed before the plan"));
  const std::string text = text_of(sentences_section(inputs));
  EXPECT_TRUE(has(text, "8 of 12 iterations ran by the plan"));
  EXPECT_TRUE(has(text, "The run took 4.00 s in all, 3.00 s of it (75 %) before the plan was in force."));
  EXPECT_TRUE(has(text, "300.0 ms were lost"));
  EXPECT_TRUE(has(make_summary(inputs), "8 of 12 iterations planned"));
}

// What is left out of the count, loops of the program's set-up, has no numbers either.
TEST(Report, IterationsAreNumberedAsTheyAreCounted) {
  const RunLog log = parse_run_log(
      "{\"kind\":\"repeats\",\"calls\":9,\"iterations\":2}\n"
      "{\"kind\":\"iteration\",\"index\":2,\"mode\":\"on_demand\",\"wall_ns\":1000,\"calls\":9}\n"
      "{\"kind\":\"repeats\",\"calls\":90,\"iterations\":2}\n"
      "{\"kind\":\"plan\",\"calls\":90}\n"
      "{\"kind\":\"iteration\",\"index\":5,\"mode\":\"on_demand\",\"wall_ns\":9000,\"calls\":90}\n"
      "{\"kind\":\"activate\",\"iteration\":6}\n"
      "{\"kind\":\"iteration\",\"index\":6,\"mode\":\"planned\",\"wall_ns\":8000}\n"
      "{\"kind\":\"overlap\",\"iteration\":6,\"copy_ns\":1}\n"
      "{\"kind\":\"activity\",\"iteration\":6,\"vertex\":0,\"engine\":\"compute\"}\n"
      "{\"kind\":\"divergence\",\"iteration\":7,\"call\":3}\n"
      "{\"kind\":\"activate\",\"iteration\":8}\n"
      "{\"kind\":\"end\",\"iterations_planned\":1,\"iterations_on_demand\":3,\"iterations_unfinished\":0,"
      "\"divergences\":1}\n");
  RunLog again = log;
  keep_iterations(again, 90);
  for (const RunLog* one : {&log, static_cast<const RunLog*>(&again)}) {
    ASSERT_EQ(one->iterations.size(), 2u);
    EXPECT_EQ(one->iterations[0].index, 2u) << "behind the two that were over when they were seen to repeat";
    EXPECT_EQ(one->iterations[1].index, 3u);
    EXPECT_EQ(one->first_activation, 3u);
    EXPECT_EQ(one->overlaps.at(0).iteration, 3u);
    EXPECT_EQ(one->activities.at(0).iteration, 3u);
    EXPECT_EQ(one->divergences.at(0).iteration, 4u);
    EXPECT_EQ(one->divergences.at(0).resumed, 5u);
  }
}

// Its plan came too late, so no divergence tells how its last iteration went over into the end.
TEST(Report, AProgramThatEndedInOrderLeftNoIterationUnfinished) {
  const auto cards = [](const std::string& end) {
    const RunLog log = parse_run_log(
        "{\"kind\":\"plan\",\"calls\":90}\n{\"kind\":\"end\",\"iterations_planned\":0,\"iterations_on_demand\":2,"
        "\"iterations_unfinished\":1,\"divergences\":0}\n" +
        end);
    return text_of_cards(cards_section({nullptr, nullptr, &log}));
  };
  EXPECT_TRUE(has(cards(""), "0 of 3 planned; 2 on demand, 1 that the end of the loop cut short;"));
  EXPECT_TRUE(has(cards("{\"kind\":\"program_end\",\"exit_code\":3}\n"), "2 on demand, 1 not finished;"));
}

// What the replay has counted is the number everywhere, with the recording and without it.
TEST(Report, IterationsAreCountedOnce) {
  const std::string text =
      "{\"kind\":\"start\",\"time_ns\":1000000000}\n"
      "{\"kind\":\"repeats\",\"calls\":9,\"iterations\":40}\n"
      "{\"kind\":\"iteration\",\"index\":43,\"mode\":\"on_demand\",\"wall_ns\":500000000,\"calls\":90}\n"
      "{\"kind\":\"iteration\",\"index\":44,\"mode\":\"on_demand\",\"wall_ns\":1000,\"calls\":9}\n"
      "{\"kind\":\"plan\",\"calls\":90}\n"
      "{\"kind\":\"activate\",\"iteration\":45,\"at_ns\":4000000000}\n"
      "{\"kind\":\"iteration\",\"index\":45,\"mode\":\"planned\",\"wall_ns\":200000000}\n"
      "{\"kind\":\"divergence\",\"iteration\":46,\"call\":80,\"expected\":\"a\",\"got\":\"b\"}\n"
      "{\"kind\":\"end\",\"time_ns\":5000000000,\"iterations_planned\":8,\"iterations_on_demand\":3,"
      "\"iterations_unfinished\":2,\"divergences\":1}\n";
  const RunLog alone = parse_run_log(text);
  RunLog kept = parse_run_log(text);
  keep_iterations(kept, 90);
  const RunLog with_trace = kept;
  for (const RunLog* log : {&alone, &with_trace}) {
    const Inputs inputs{nullptr, nullptr, log};
    const std::string cards = text_of_cards(cards_section(inputs));
    EXPECT_TRUE(
        has(cards, "Iterations: 8 of 13 planned; 3 on demand, 1 not finished, 1 that the end of the loop cut short"));
    const std::string sentences = text_of(sentences_section(inputs));
    EXPECT_TRUE(has(sentences, "8 of 13 iterations ran by the plan"));
    EXPECT_TRUE(has(sentences, " 1 of 3 iterations on demand took 500.0 ms in all"));
    EXPECT_EQ(log->iterations.size(), 2u) << "of another loop";
  }
  RunLog several = parse_run_log(text);
  several.iteration_hashes = {"a", "b", "a"};
  const Inputs inputs{nullptr, nullptr, &several};
  EXPECT_TRUE(has(make_summary(inputs), "8 of 13 iterations of 2 loops planned"));
  EXPECT_TRUE(has(text_of_cards(cards_section(inputs)), "; of 2 loops: 3 on demand"));
}

// Kernels that ran faster than when they were recorded do not make a run faster than what no plan can beat.
TEST(Report, ABoundOfOtherKernelTimesIsARatioInASentence) {
  Sample sample;
  sample.log.activities.clear();
  for (const uint64_t wall : {300u, 3000u}) {
    for (RunIteration& it : sample.log.iterations) it.wall_ns = wall;
    Inputs inputs = sample.inputs();
    inputs.bound_ns = 400;
    const std::string text = text_of(sentences_section(inputs));
    EXPECT_TRUE(
        has(text, wall == 300 ? "An iteration took 0.75 times what the bound" : "An iteration took 7.50 times"));
    EXPECT_TRUE(has(text, "This run measured none of its own"));
    for (const Json& row : totals_section(inputs)) {
      if (row.at("label").get<std::string>().find("Speed") != 0) continue;
      EXPECT_EQ(row.at("measured"), "") << row;
    }
  }
}

// The sample's run measured 190 of 350 ns: too little to count as its own times.
TEST(Report, ABoundOfTheRunsOwnKernelTimesIsAPercentage) {
  Sample sample;
  for (const uint32_t vertex : {2u, 3u, 6u}) sample.log.activities.push_back({1, vertex, "compute", 9400, 9600});
  Inputs inputs = sample.inputs();
  inputs.run_bound_ns = 700;
  std::string text = text_of(sentences_section(inputs));
  EXPECT_TRUE(has(text, "own copies, took 790 ns in iteration 1 of this run, 2.26 times"));
  const auto speed = [&](const Json& rows) {
    for (const Json& row : rows) {
      if (row.at("label") == "Speed against the bound") return row.at("measured").get<std::string>();
    }
    return std::string("none");
  };
  EXPECT_EQ(speed(totals_section(inputs)), "87.5 %") << "of the iteration that was measured, which took 800 ns";
  sample.log.iterations.at(2).wall_ns = 1200;
  EXPECT_EQ(speed(totals_section(inputs)), "87.5 %") << "what others took is of other kernel times";
  inputs.run_bound_ns = 900;
  EXPECT_EQ(speed(totals_section(inputs)), "");
}

TEST(Report, WaitsAddUpThreeTimesOver) {
  const Sample sample;
  const Json waits = waits_section({nullptr, &sample.plan});
  EXPECT_EQ(waits.at("timeline"), "Predicted");
  EXPECT_EQ(waits.at("total_ns"), 400);
  for (const char* list : {"by_transfer", "by_tensor", "by_decision"}) {
    uint64_t sum = 0;
    for (const Json& row : waits.at(list)) sum += row.at("ns").get<uint64_t>();
    EXPECT_EQ(sum, 400u) << list;
  }
  EXPECT_EQ(waits.at("by_transfer").size(), 2u);
  EXPECT_EQ(waits.at("by_tensor").at(0).at("what"), "tensor 2 (4.0 MiB)");
  EXPECT_EQ(waits.at("by_decision").at(0).at("what"), "a tensor was away, and is needed");
  EXPECT_EQ(waits.at("by_decision").at(1).at("what"), "room had to be made first");
}

TEST(Report, DivergencesOfOneSortStandTogether) {
  RunLog log;
  for (uint64_t i = 0; i < 5000; ++i) log.divergences.push_back({i, 3, "a", "b", "", 0, i + 1});
  for (uint64_t i = 0; i < 500; ++i) log.divergences.push_back({5000 + i, i, "a", "c", "", 0});
  const Json rows = divergences_section({nullptr, nullptr, &log});
  EXPECT_EQ(rows.at(0).at("count"), 5000);
  EXPECT_EQ(rows.at(0).at("last"), 4999);
  uint64_t sum = 0;
  for (const Json& row : rows) sum += row.at("count").get<uint64_t>();
  EXPECT_EQ(sum, 5500u);
}

TEST(Report, ARunWithoutAnIterationSaysWhy) {
  const RunLog log = parse_run_log("{\"kind\":\"start\",\"budget_bytes\":1}\n{\"kind\":\"end\"}\n");
  EXPECT_TRUE(has(text_of(sentences_section({nullptr, nullptr, &log})), "No plan was in force"));
}

TEST(Report, AProgramThatWasKilledDidNotUseNothing) {
  const RunLog log = parse_run_log("{\"kind\":\"start\",\"budget_percent\":60}\n");
  Inputs inputs{nullptr, nullptr, &log};
  inputs.ending = "signal 9 (Killed)";
  EXPECT_TRUE(begins(make_summary(inputs), "the program ended with signal 9 (Killed) before it could say "));
}

TEST(Report, AProgramWithoutAnIterationHasNoneToShow) {
  RunLog log = parse_run_log(
      "{\"kind\":\"iteration\",\"index\":0,\"mode\":\"on_demand\",\"wall_ns\":5,\"calls\":4}\n"
      "{\"kind\":\"iteration\",\"index\":1,\"mode\":\"on_demand\",\"wall_ns\":500,\"calls\":90}\n"
      "{\"kind\":\"end\",\"iterations_on_demand\":2}\n");
  RunLog none = log;
  keep_iterations(none, 0);
  EXPECT_TRUE(none.iterations.empty());
  EXPECT_EQ(none.iterations_on_demand, 0u);
  keep_iterations(log, 90);
  ASSERT_EQ(log.iterations.size(), 1u);
  EXPECT_EQ(log.iterations[0].wall_ns, 500u);
  EXPECT_EQ(log.iterations_on_demand, 1u);
  Inputs inputs{nullptr, nullptr, &none};
  inputs.no_iteration = "no iteration found in 7 calls: why";
  EXPECT_TRUE(has(text_of(sentences_section(inputs)), "No plan was made: no iteration found in 7 calls: why. "));
  EXPECT_TRUE(has(make_summary(inputs), "no iteration found to plan"));
}

TEST(Report, WhenThePlanCameInForceAndHowOftenItCameBack) {
  const RunLog log = parse_run_log(
      "{\"kind\":\"start\",\"time_ns\":1000000000}\n"
      "{\"kind\":\"plan\",\"path\":\"p\",\"at_ns\":1500000000}\n"
      "{\"kind\":\"activate\",\"iteration\":7,\"at_ns\":3000000000}\n"
      "{\"kind\":\"divergence\",\"iteration\":8,\"call\":3,\"expected\":\"a\",\"got\":\"b\"}\n"
      "{\"kind\":\"activate\",\"iteration\":9}\n"
      "{\"kind\":\"divergence\",\"iteration\":11,\"reason\":\"no host memory\"}\n"
      "{\"kind\":\"iteration\",\"index\":10,\"mode\":\"planned\"}\n"
      "{\"kind\":\"end\",\"iterations_planned\":1,\"divergences\":2}\n");
  const std::string text = text_of(sentences_section({nullptr, nullptr, &log}));
  EXPECT_TRUE(has(
      text,
      "ready 500.0 ms after the first CUDA call and came in force 2.00 s after the first CUDA call with iteration 7"));
  EXPECT_TRUE(has(text, "2 times, the program did something else"));
  EXPECT_TRUE(has(text, "It came back to it once."));
  const Json rows = divergences_section({nullptr, nullptr, &log});
  EXPECT_EQ(rows.at(0).at("then"), "by the plan again from iteration 9 on");
  EXPECT_EQ(rows.at(1).at("got"), "no host memory");
  EXPECT_EQ(rows.at(1).at("then"), "on demand until the end");
}

TEST(Report, WhatLookingAheadCameTo) {
  const RunLog log = parse_run_log(
      "{\"kind\":\"calls\",\"first\":1,\"room_chunks\":4,\"came_chunks\":3,\"there\":\"0:2 1:1 \",\"away\":\"2:2 "
      "\",\"calls\":"
      "\"0 3:1 -3 2 \"}\n"
      "{\"kind\":\"calls\",\"first\":0,\"room_chunks\":4,\"came_chunks\":1,\"there\":\"\",\"away\":\"\",\"calls\":\"0,"
      "1 2\"}\n"
      "{\"kind\":\"look_ahead\",\"foreseen\":90,\"unforeseen\":10,\"in_time\":50,\"late\":8,\"missed\":42}\n{\"kind\":"
      "\"end\"}\n");
  const std::string all = text_of(sentences_section({nullptr, nullptr, &log}));
  EXPECT_TRUE(has(all, "50 % of 100 calls"));
  EXPECT_TRUE(has(all, "8 waited for what was on its way, 42 for what nobody had expected. 90 % of the calls"));
  // 2 comes, for which 1 goes; 1 comes, for which 2 goes, and comes.
  EXPECT_TRUE(has(all, "What came back to the device then was 0.80 times the least"));
}

TEST(Report, WhatExaminingTook) {
  const RunLog log = parse_run_log(
      "{\"kind\":\"examine\",\"kernel\":\"a\",\"outcome\":\"examined\",\"ns\":1000000}\n"
      "{\"kind\":\"examine\",\"kernel\":\"a\",\"outcome\":\"examined\",\"ns\":1000000}\n"
      "{\"kind\":\"examine\",\"kernel\":\"b\",\"outcome\":\"examined\",\"ns\":1000000}\n"
      "{\"kind\":\"examine\",\"kernel\":\"c\",\"outcome\":\"not_examined\",\"ns\":1000}\n"
      "{\"kind\":\"end\"}\n");
  const std::string all = text_of(sentences_section({nullptr, nullptr, &log}));
  EXPECT_TRUE(has(all, "2 kernels were launched again to find out what they do, 3 times in all"));
  EXPECT_TRUE(has(all, "3.0 ms"));
}

TEST(Report, AShareBelowTheSmallestWorkingSetIsNoFaultOfReprise) {
  RunLog log = parse_run_log(
      "{\"kind\":\"start\",\"budget_percent\":5}\n"
      "{\"kind\":\"end\",\"peak_device_bytes\":700,\"budget_bytes\":200}\n");
  Inputs inputs{nullptr, nullptr, &log};
  inputs.minimum_bytes = 700;
  EXPECT_TRUE(has(text_of(sentences_section(inputs)), "5 % of the program's peak are 200 B: less than"));
  log.peak_device_bytes = 701;
  EXPECT_TRUE(has(text_of(sentences_section(inputs)), "should never happen"));
}

TEST(Report, WaitsNameTheTransferThatEndedThem) {
  const plan::Plan plan = sample_plan();
  const std::vector<Wait> waits = longest_waits(plan, predicted_timeline(plan), 1, 10);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].time.end_ns - waits[0].time.start_ns, 200u);
  EXPECT_EQ(waits[0].reason, "offload tensor 2 (4.0 MiB)");
  EXPECT_EQ(waits[1].reason, "reload tensor 2 (4.0 MiB)");
  EXPECT_EQ(waits[1].op, "use(float*)");
}

TEST(Report, OverlapIsTheTimeOfBoth) {
  const Sample sample;
  const Busy predicted = busy_time(predicted_timeline(sample.plan));
  EXPECT_EQ(predicted.compute_ns, 350u);
  EXPECT_EQ(predicted.copy_ns, 400u);
  EXPECT_EQ(predicted.both_ns, 0u);
  EXPECT_EQ(busy_time(measured_timeline(sample.plan, sample.log)).both_ns, 50u);
}

// What a program asked for while a plan was followed was not recorded.
TEST(Report, TheLineOfDemandHasAGapWhereNothingWasRecorded) {
  Sample sample;
  sample.log.memory = {{900, 1, 1}, {5000, 1, 1}};
  sample.log.start_ns = 800;
  trace::GapRecord pause{};
  pause.after_sequence = 6;
  pause.header.sequence = 7;
  sample.trace.pauses.push_back(pause);
  const Json lines = run_memory_section(sample.inputs()).at("lines");
  EXPECT_EQ(lines.at(0).at("gaps"), (Json{{1400, 2100}}));
  sample.log.start_ns = 4000;
  EXPECT_TRUE(run_memory_section(sample.inputs()).at("lines").at(0).at("gaps").empty()) << "another run was recorded";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// The log and the report's data are of 0.1, whose keys had other names. Sections that are newer are not compared;
// and what a device takes for tensors, which it did not write, is no longer taken to be their bytes.
TEST(RunLog, OldWordsGiveTheReportThatTheyGave) {
  const std::string old_words = read_file(REPRISE_TEST_DATA "/run_logs/0.1.jsonl");
  const std::string path = REPRISE_TEST_DATA "/run_logs/0.1.json";
  const Json expected = Json::parse(read_file(path));
  std::string new_words = replaced(old_words, "\"granularity\"", "\"chunk_bytes\"");
  new_words = replaced(new_words, "\"passive\"", "\"on_demand\"");
  new_words = replaced(new_words, "\"iterations_passive\"", "\"iterations_on_demand\"");
  ASSERT_NE(old_words, new_words);
  for (const std::string& text : {old_words, new_words}) {
    const RunLog log = parse_run_log(text);
    EXPECT_EQ(log.chunk_bytes, 16384u);
    EXPECT_EQ(log.iterations_on_demand, 2u);
    EXPECT_EQ(log.iterations.size(), 8u);
    const Json data = make_data({nullptr, nullptr, &log});
    Json known;
    for (const auto& [section, value] : expected.items()) known[section] = data.at(section);
    expect_golden(path, known);
  }
}

}  // namespace
}  // namespace reprise::report
