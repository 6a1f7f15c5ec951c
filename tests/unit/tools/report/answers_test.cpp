// What the report answers first: verdict, advice, costs of tensors, who is alive at the peak, where the time went.
#include "tests/support/test.h"
#include "tests/unit/tools/report/sample_inputs.h"
#include "tools/report/report.h"
#include "tools/report/tensor_table.h"
#include "tools/report/view/frames.h"

namespace reprise::report {
namespace {

TEST(Answers, TheVerdictIsOneSentenceForEachKindOfInput) {
  Sample sample;
  const auto verdict = [](const Inputs& inputs) {
    const Json one = verdict_section(inputs);
    return one.at("tone").get<std::string>() + ": " + one.at("text").get<std::string>();
  };
  EXPECT_EQ(verdict(sample.inputs()),
            "good: It ran in 9.0 MiB instead of 12.0 MiB (75 %): 2 of 3 iterations by a plan, which took 810 ns each, "
            "of which the device waited 38.3 %.");
  EXPECT_EQ(verdict({nullptr, &sample.plan}),
            "good: By this plan an iteration would need 9.0 MiB instead of 12.0 MiB (75 %) and take 750 ns: 114 % more "
            "than computing alone. It has not been run yet.");
  EXPECT_EQ(verdict({&sample.trace}), "note: The program used 9.0 MiB of device memory at most.");
  Inputs inputs = sample.inputs();
  inputs.ending = "exit code 3";
  EXPECT_EQ(verdict(inputs).find("bad: The program ended with exit code 3"), 0u) << verdict(inputs);
  EXPECT_EQ(make_summary(inputs).find("the program ended with exit code 3; until then it used 9.0 MiB of device "
                                      "memory, for 12.0 MiB that it had asked for, "),
            0u)
      << make_summary(inputs) << "\nit may have needed more, had it gone on";
  inputs.ending = "";
  EXPECT_EQ(make_summary(inputs).find("peak 9.0 MiB instead of 12.0 MiB"), 0u);
  sample.log.iterations_planned = 0;
  EXPECT_TRUE(has(verdict(inputs), "but no iteration ran by its plan from start to end."));
  sample.log.activation_count = sample.log.plan_count = 0;
  sample.log.reasons = {{"no_iteration", "it never repeats itself"}};
  EXPECT_TRUE(has(verdict(inputs), "but without a plan: nothing in it repeats as a plan needs it."));
  sample.log.peak_device_bytes = uint64_t{1} << 30;
  EXPECT_EQ(verdict(inputs).find("bad: It used 1.0 GiB of device memory, more than the budget"), 0u);
}

// A share is the same on the whole page, and only what is nothing is called that.
TEST(Answers, AShortWaitIsNoneNowhere) {
  Sample sample;
  const auto page = [&] { return make_data(sample.inputs()).dump(); };
  for (RunIteration& one : sample.log.iterations) one.wall_ns = 100'000;
  for (RunIteration& one : sample.log.iterations) one.stall_ns = one.planned ? 400 : 0;
  EXPECT_TRUE(has(page(), "each, of which the device waited 0.4 %"));
  EXPECT_TRUE(has(page(), "during 0.4 % of the planned"));
  for (RunIteration& one : sample.log.iterations) one.stall_ns = one.planned ? 4 : 0;
  EXPECT_TRUE(has(page(), "each, of which the device waited less than 0.1 %"));
  EXPECT_TRUE(has(page(), "during less than 0.1 % of the planned"));
  for (RunIteration& one : sample.log.iterations) one.stall_ns = 0;
  EXPECT_TRUE(has(page(), "and no work that was submitted had to wait"));
}

// The card of what moves says what the table of waits says: that computing waited for it, and how long, or that it did
// not, also where copies ran while nothing computed.
TEST(Answers, WhatMovesWasWaitedForAsTheTableSays) {
  Sample sample;
  const auto cards = [&] { return cards_section(sample.inputs()).dump(); };
  EXPECT_TRUE(has(cards(), "4.0 MiB back; computing waited 200 ns for it in iteration 1\""));
  sample.log.activities.back().start_ns = 9100;  // the kernel behind the offload, which ends at 9300
  EXPECT_TRUE(has(cards(), "4.0 MiB back; computing did not wait for it in iteration 1\""));
  for (RunIteration& one : sample.log.iterations) one.stall_ns = 0;
  sample.log.activities.clear();
  EXPECT_TRUE(has(cards(), "4.0 MiB back; computing did not wait for it\""));
  const std::string planned = cards_section({nullptr, &sample.plan}).dump();
  EXPECT_TRUE(has(planned, "4.0 MiB back; computing would wait 400 ns for it\""));
}

// The run measured an iteration, in which each kernel took so many times what it took when it was recorded.
void measure(Sample& sample, double times) {
  sample.log.activities.clear();
  for (uint32_t i = 0; i < sample.plan.vertices.size(); ++i) {
    const plan::Vertex& vertex = sample.plan.vertices[i];
    if (vertex.kind != plan::VertexKind::op) continue;
    const double took = times * static_cast<double>(sample.plan.calls[vertex.call].duration_ns);
    sample.log.activities.push_back({1, i, "compute", 9000, 9000 + static_cast<uint64_t>(took)});
  }
}

TEST(Answers, WhatWasComputedAgainIsNotTheProgramsComputing) {
  Sample sample;
  measure(sample, 1);
  EXPECT_TRUE(has(make_summary(sample.inputs()), " of it computing)"));
  for (RunIteration& it : sample.log.iterations) it.repeated_launches = 2;
  EXPECT_TRUE(has(make_summary(sample.inputs()), " of it computing, without what was computed again)"));
}

TEST(Answers, KernelsThatTookAnotherTimeThanWhenRecordedAreExplained) {
  Sample sample;
  const auto said = [&](const std::string& words) {
    return sentences_section(sample.inputs()).dump().find(words) != std::string::npos;
  };
  measure(sample, 0.5);
  ASSERT_TRUE(said("times what it took when recorded")) << sentences_section(sample.inputs()).dump(1);
  EXPECT_TRUE(said("No plan makes kernels faster: the device, or the computer that simulates it, had less other work"));
  EXPECT_TRUE(said("What this page predicts of the plan is with kernel times")) << "it has no other budgets";
  measure(sample, 1);
  EXPECT_FALSE(said("No plan makes kernels"));
  measure(sample, 2);
  EXPECT_TRUE(said("No plan makes kernels slower")) << sentences_section(sample.inputs()).dump(1);
  // Where the program's own copies run beside its kernels, alone it takes less than one after the other: of both runs.
  const uint64_t alone = collect_facts(sample.inputs()).run_compute_ns;
  sample.plan.compute_ns /= 2;
  EXPECT_EQ(collect_facts(sample.inputs()).run_compute_ns, alone / 2);
}

TEST(Answers, AdviceIsRankedAndHasNumbers) {
  const Sample sample;
  Inputs inputs = sample.inputs();
  inputs.minimum_bytes = uint64_t{9} << 20;
  inputs.curve.policy = "disco";
  inputs.curve.compute_ns = 350;
  inputs.curve.full_speed_bytes = uint64_t{12} << 20;
  inputs.curve.points = {{uint64_t{9} << 20, 900, 8}, {uint64_t{12} << 20, 355, 4}};
  inputs.known_share = 0.25;
  const Json advice = advice_section(inputs);
  std::vector<std::string> titles;
  for (const Json& one : advice) titles.push_back(one.at("title"));
  ASSERT_EQ(titles.size(), 5u) << advice.dump(1);
  EXPECT_EQ(titles[0], "12.0 MiB (100 % of the peak) for full speed");
  EXPECT_EQ(advice[0].at("detail"),
            "An iteration would take 355 ns instead of 750 ns, with kernel times as recorded: the smallest planned "
            "budget within 2 % of computing alone.");
  EXPECT_EQ(advice[0].at("command"), "--budget 12MiB");
  EXPECT_EQ(titles[1].find("Tensor 2 (4.0 MiB) costs most"), 0u) << titles[1];
  EXPECT_EQ(titles[2], "1.1 MiB stay outside");
  EXPECT_EQ(titles[3], "Let Reprise find out what kernels do");
  EXPECT_EQ(titles[4].find("9.0 MiB (75 % of the peak) at the least"), 0u) << titles[3];
}

// With strict safety nothing is computed again, and the first offload of what was made in the iteration has to be.
TEST(Answers, ToFindOutWhatKernelsDoIsAdvisedWhereThatSavesTransfers) {
  Sample sample;
  const auto advised = [&](const std::string& safety) {
    sample.log.safety = safety;
    Inputs inputs = sample.inputs();
    inputs.known_share = 0.25;
    for (const Json& one : advice_section(inputs)) {
      if (one.at("title") == "Let Reprise find out what kernels do") return one.at("detail").get<std::string>();
    }
    return std::string();
  };
  EXPECT_EQ(advised("strict"), "") << "its one tensor is made, leaves once and comes back";
  EXPECT_TRUE(has(advised("trusted"), "may then stay away or be computed again."));
  EXPECT_FALSE(has(advised("trusted"), "strict"));
  EXPECT_NE(advised("audited"), "");
  EXPECT_TRUE(has(advised(""), "with strict they go all the same")) << "not known";
  sample.plan.tensors[2].allocate_call = plan::kNone;  // it lives on: the host has what came back
  EXPECT_TRUE(has(advised("strict"),
                  "At most 4.0 MiB of the 4.0 MiB that go to the host in each iteration may then stay away, those that "
                  "kernels only read."));
  for (RunIteration& one : sample.log.iterations) one.spared_bytes = uint64_t{4} << 20;
  EXPECT_EQ(advised("strict"), "") << "comparing has found that already";
}

// A reason may be long: it stands among the sentences, and nowhere else.
TEST(Answers, AReasonIsSaidOnceOnAPage) {
  for (const std::string cause : {"too_small", "no_plan", "no_iteration", "no_repetition", "unfinished", "not_recorded",
                                  "refused", "unusable", "never_began"}) {
    const bool of_plan = cause == "refused" || cause == "unusable" || cause == "never_began";
    const RunLog log =
        parse_run_log(std::string("{\"kind\":\"start\",\"mode\":\"run\",\"budget_bytes\":1048576}\n") +
                      (of_plan ? "{\"kind\":\"plan\"}\n" : "") + "{\"kind\":\"on_demand\",\"cause\":\"" + cause +
                      "\",\"reason\":\"such and such\"" + (of_plan ? ",\"plan\":0" : "") + "}\n{\"kind\":\"end\"}\n");
    Inputs inputs{nullptr, nullptr, &log};
    inputs.minimum_bytes = 2 << 20;
    const std::string page = make_data(inputs).dump();
    EXPECT_EQ(count_of(page, "such and such"), 1u) << cause << ": " << page;
  }
}

// A plan that could not come in force is told to get more room only where that is what it lacked.
TEST(Answers, RoomIsAdvisedWhereRoomWasLacking) {
  for (const std::string cause : {"refused", "unusable"}) {
    const RunLog log = parse_run_log(
        "{\"kind\":\"start\",\"mode\":\"replay\",\"budget_bytes\":1048576}\n{\"kind\":\"plan\"}\n"
        "{\"kind\":\"on_demand\",\"cause\":\"" +
        cause + "\",\"reason\":\"such and such\",\"plan\":0}\n{\"kind\":\"end\"}\n");
    const std::string page = make_data({nullptr, nullptr, &log}).dump();
    EXPECT_TRUE(has(page, "was to come in force and could not"));
    EXPECT_EQ(page.find("Make room for the plan") != std::string::npos, cause == "refused") << page;
  }
}

TEST(Answers, APlanThatCannotBeReadIsNoIterationThatWasNotFound) {
  for (const std::string mode : {"replay", "run"}) {
    const RunLog log = parse_run_log("{\"kind\":\"start\",\"mode\":\"" + mode +
                                     "\",\"budget_bytes\":1048576}\n{\"kind\":\"on_demand\",\"cause\":\"no_plan\","
                                     "\"reason\":\"cannot open it\"}\n{\"kind\":\"end\",\"offload_bytes\":9}\n");
    const Inputs inputs{nullptr, nullptr, &log};
    EXPECT_TRUE(has(make_summary(inputs), ", no iteration planned"));
    const std::string page = make_data(inputs).dump();
    EXPECT_TRUE(has(page, "cannot open it"));
    EXPECT_EQ(page.find("Give it a plan that can be used") != std::string::npos, mode == "replay") << page;
    EXPECT_EQ(page.find("Plan first") != std::string::npos, mode == "run") << page;
  }
}

// While the program ran its calls were not seen to repeat, and the recording as a whole says more of why.
TEST(Answers, WhyNothingRepeatsHasOneReason) {
  for (const std::string cause : {"no_repetition", "no_iteration", "unfinished"}) {
    const RunLog log = parse_run_log("{\"kind\":\"on_demand\",\"cause\":\"" + cause +
                                     "\",\"reason\":\"it made 10 calls\"}\n{\"kind\":\"end\"}\n");
    Inputs inputs{nullptr, nullptr, &log};
    EXPECT_EQ(why_unplanned(inputs), "it made 10 calls");
    inputs.no_iteration = "its memory grows";
    EXPECT_EQ(why_unplanned(inputs), "its memory grows");
    const std::string page = make_data(inputs).dump();
    EXPECT_FALSE(has(page, "it made 10 calls"));
    EXPECT_EQ(count_of(page, "its memory grows"), 1u) << page;
  }
}

// What a tensor costs is measured, or said to be predicted, or the plan was never in force and it costs nothing.
TEST(Answers, ATensorOfAPlanThatNeverRanCostsNothing) {
  Sample sample;
  const auto advice = [](const Inputs& inputs) { return advice_section(inputs).dump(); };
  EXPECT_TRUE(has(advice(sample.inputs()), "In the measured iteration 1, computing stood still "));
  Inputs planned = sample.inputs();
  planned.log = nullptr;
  EXPECT_TRUE(has(advice(planned), "Computing would wait "));
  EXPECT_TRUE(has(advice(planned), " of each iteration, as predicted, for it"));
  sample.log.activities.clear();
  EXPECT_TRUE(has(advice(sample.inputs()), "as predicted, for it"));
  sample.log.iterations_planned = 0;
  EXPECT_FALSE(has(advice(sample.inputs()), "costs most"));
}

// A plan of an evaluation is not one of the program.
TEST(Answers, WhatThePlannedIterationCoversIsSaidWhereItIsNotNearlyAll) {
  const Sample sample;
  Inputs inputs = sample.inputs();
  inputs.iteration_covers = "14 % of the recorded device time";
  const auto verdict = [&] { return verdict_section(inputs).at("text").get<std::string>(); };
  EXPECT_FALSE(has(verdict(), "14 %"));
  inputs.one_loop = false;
  EXPECT_TRUE(has(verdict(), " That iteration covers 14 % of the recorded device time."));
  inputs.curve.policy = "disco";
  inputs.curve.compute_ns = 350;
  inputs.curve.full_speed_bytes = uint64_t{12} << 20;
  inputs.curve.points = {{uint64_t{9} << 20, 900, 8}, {uint64_t{12} << 20, 355, 4}};
  const std::string advice = advice_section(inputs).dump();
  EXPECT_TRUE(has(advice, "The planned iteration, which covers 14 % of the recorded device time, would take 355 ns"));
  EXPECT_EQ(budget_curve_section(inputs).at("covers"), inputs.iteration_covers);
  inputs.one_loop = true;
  EXPECT_EQ(budget_curve_section(inputs).at("covers"), "");
}

// What holds one of several loops may be too little for the others, and for what runs on demand.
TEST(Answers, NoSmallerBudgetIsAdvisedWhereOtherLoopsMayNeedMore) {
  const RunLog log = parse_run_log(R"({"kind":"start","budget_bytes":4194304})");
  Inputs inputs{nullptr, nullptr, &log};
  inputs.minimum_bytes = uint64_t{1} << 20;
  inputs.curve.policy = "disco";
  inputs.curve.compute_ns = 350;
  inputs.curve.full_speed_bytes = uint64_t{2} << 20;
  inputs.curve.points = {{uint64_t{1} << 20, 900, 8}, {uint64_t{2} << 20, 355, 4}};
  EXPECT_EQ(advice_section(inputs).size(), 2u);
  inputs.one_loop = false;
  EXPECT_EQ(advice_section(inputs).size(), 0u) << advice_section(inputs).dump(1);
  inputs.curve.full_speed_bytes = uint64_t{8} << 20;
  inputs.curve.points.push_back({uint64_t{8} << 20, 355, 0});
  inputs.curve.points[1].time_ns = 800;
  EXPECT_EQ(advice_section(inputs).size(), 1u) << "more memory is safe to advise: " << advice_section(inputs).dump(1);
}

TEST(Answers, AdviceOfARunWithoutAPlanFollowsItsReason) {
  const auto first = [](const std::string& cause) {
    const RunLog log =
        parse_run_log("{\"kind\":\"on_demand\",\"cause\":\"" + cause + "\",\"reason\":\"why\"}\n{\"kind\":\"end\"}\n");
    Inputs inputs{nullptr, nullptr, &log};
    inputs.minimum_bytes = 1 << 20;
    return advice_section(inputs).at(0).at("title").get<std::string>();
  };
  EXPECT_EQ(first("too_small"), "Give it at least 1.0 MiB");
  EXPECT_EQ(first("refused"), "Make room for the plan");
  EXPECT_EQ(first("never_began"), "Plan for the program as it runs now");
  EXPECT_EQ(first("unfinished"), "Run longer, or plan first");
  EXPECT_EQ(first("no_repetition"), "Let it repeat itself");
}

TEST(Answers, WhereNothingHadToMoveNoPlanIsMissed) {
  for (const char* cause : {"no_repetition", "no_iteration", "unfinished"}) {
    const std::string why = std::string("{\"kind\":\"on_demand\",\"cause\":\"") + cause + "\",\"reason\":\"why\"}\n";
    const RunLog fits = parse_run_log(why + "{\"kind\":\"end\",\"peak_device_bytes\":4096}\n");
    EXPECT_TRUE(advice_section({nullptr, nullptr, &fits}).empty()) << cause;
    const RunLog moves = parse_run_log(why + "{\"kind\":\"end\",\"peak_device_bytes\":4096,\"offload_bytes\":1}\n");
    EXPECT_FALSE(advice_section({nullptr, nullptr, &moves}).empty()) << cause;
  }
}

std::vector<std::string> titles_of(const Inputs& inputs) {
  std::vector<std::string> titles;
  for (const Json& one : advice_section(inputs)) titles.push_back(one.at("title"));
  return titles;
}

// Running longer, or repeating itself, is of no use to a program that no plan fits; what fits is not asked for more.
TEST(Answers, ABudgetBelowTheSmallestIsAdvisedBeforeAllElse) {
  for (const std::string cause : {"unfinished", "no_repetition", "no_iteration", "no_plan", "too_small"}) {
    const RunLog log =
        parse_run_log("{\"kind\":\"start\",\"budget_bytes\":1048576}\n{\"kind\":\"on_demand\",\"cause\":\"" + cause +
                      "\",\"reason\":\"why\"}\n{\"kind\":\"end\"}\n");
    Inputs inputs{nullptr, nullptr, &log};
    inputs.minimum_bytes = 2 << 20;
    const std::vector<std::string> below = titles_of(inputs);
    EXPECT_EQ(below.at(0), "Give it at least 2.0 MiB") << cause;
    EXPECT_EQ(std::count(below.begin(), below.end(), "2.0 MiB at the least"), 0) << "said twice for " << cause;
    inputs.minimum_bytes = 1 << 20;
    const std::vector<std::string> fits = titles_of(inputs);
    EXPECT_EQ(fits.back(), "1.0 MiB at the least") << cause;
    const char* const first = cause == "too_small" ? "Give it more memory" : "Run longer, or plan first";
    if (cause == "unfinished" || cause == "too_small") {
      EXPECT_EQ(fits.at(0), first) << cause;
    }
  }
}

// A plan that came with the last iteration, or behind it, with no line of the log that says why there was none before.
TEST(Answers, ARunThatWasTooShortForItsPlanIsToldSoBeforeBudgets) {
  const std::string plan = R"({"kind":"start","budget_bytes":1048576}
{"kind":"plan"}
)";
  const std::string activate = R"({"kind":"activate","plan":0,"iteration":7}
)";
  const std::string left = R"({"kind":"divergence","iteration":7,"call":3,"expected":"a","got":"b"}
)";
  const std::string end = R"({"kind":"end","divergences":)";
  const auto titles = [](const std::string& text) {
    const RunLog log = parse_run_log(text);
    Inputs inputs{nullptr, nullptr, &log};
    inputs.minimum_bytes = 1 << 20;
    return titles_of(inputs);
  };
  const std::vector<std::string> longer = {"Run longer, or plan first", "1.0 MiB at the least"};
  EXPECT_EQ(titles(plan + activate + end + "0}"), longer);
  EXPECT_EQ(titles(plan + activate + left + end + "1}"), longer);
  EXPECT_EQ(titles(plan + R"({"kind":"on_demand","cause":"no_iteration","reason":"too early"})" + "\n" + end + "0}"),
            longer);
  EXPECT_EQ(titles(plan + activate + left + activate + left + end + "2}").at(0), "Let it repeat itself");
  EXPECT_EQ(titles(plan + activate).at(0), "1.0 MiB at the least") << "it crashed";
}

// What the replay says of a plan that came too late is the reason everywhere, whatever the recording says as a whole.
TEST(Answers, APlanThatCameTooLateIsToldAsSuch) {
  const std::string start = R"({"kind":"start","mode":"run","budget_bytes":1048576}
{"kind":"plan"}
)";
  const std::string reason =
      R"({"kind":"on_demand","cause":"unfinished","reason":"the loop was over","plan":0}
{"kind":"end","divergences":)";
  const std::string left = R"({"kind":"activate","plan":0,"iteration":3}
{"kind":"divergence","iteration":3,"call":628,"expected":"a copy","got":"an allocation"}
)";
  for (const std::string& text : {start + reason + "0}", start + left + reason + "1}"}) {
    const RunLog log = parse_run_log(text);
    Inputs inputs{nullptr, nullptr, &log};
    inputs.no_iteration = "none in the whole recording";
    EXPECT_EQ(why_unplanned(inputs), "the loop was over");
    const Json advice = advice_section(inputs).at(0);
    EXPECT_EQ(advice.at("title"), "Run longer, or plan first");
    EXPECT_EQ(advice.at("detail").get<std::string>().find("The plan came with the last iterations. "), 0u);
    const std::string told = sentences_section(inputs).dump();
    EXPECT_EQ(count_of(told, "the loop was over"), 1u) << told;
    EXPECT_TRUE(has(make_summary(inputs), "(the loop was over)"));
  }
}

// `reprise run` plans for just these arguments: its plan is of no other program's.
TEST(Answers, ARunWhosePlanNeverBeganIsNotToldToUseRun) {
  const RunLog log = parse_run_log(R"({"kind":"start","mode":"run"}
{"kind":"plan"}
{"kind":"on_demand","cause":"never_began","reason":"it never came","plan":0}
{"kind":"end"})");
  EXPECT_EQ(advice_section({nullptr, nullptr, &log}).at(0).at("title"), "Let it repeat itself");
}

// The planner was asked at the end only; what it would have said is known from the recording.
TEST(Answers, AProgramThatNeverRepeatsIsNotToldToRunLonger) {
  const RunLog log = parse_run_log(R"({"kind":"on_demand","cause":"unfinished","reason":"the program ended first"})"
                                   "\n"
                                   R"({"kind":"end"})");
  Inputs inputs{nullptr, nullptr, &log};
  EXPECT_EQ(why_unplanned(inputs), "the program ended first");
  inputs.no_iteration = "no two of its steps are alike";
  EXPECT_EQ(why_unplanned(inputs), inputs.no_iteration);
  EXPECT_EQ(advice_section(inputs).at(0).at("title"), "Let it repeat itself");
  const std::string told = sentences_section(inputs).dump();
  EXPECT_FALSE(has(told, "ended first"));
  EXPECT_EQ(count_of(told, inputs.no_iteration), 1u) << told;
}

TEST(Answers, TensorsAreRankedByWhatTheyCost) {
  const Sample sample;
  const Json table = tensor_table_section(sample.inputs());
  const Json& first = table.at("rows").at(0);
  EXPECT_EQ(first.at(0), 2);
  EXPECT_EQ(first.at(5), 2 * 4194304);
  EXPECT_GT(first.at(6), 0);
  EXPECT_EQ(table.at("stacks").at(first.at(7).get<size_t>() - 1), "make_buffer\nmain");
  EXPECT_EQ(own_frame("cuMemAlloc_v2 (libcuda.so.1)\nc10::cuda::f() (libc10_cuda.so)\nmine() at a.cpp:3 (x)\nmain (x)"),
            "mine() at a.cpp:3 (x)");
}

// A function through which all allocations go, for many callers, does not say who asked; a loop that makes them all
// does.
TEST(Answers, AFunctionThatPassesAllocationsOnIsNotWhoAsked) {
  trace::Trace trace;
  const auto allocate = [&](const std::string& stack) {
    trace.call_sites.push_back(stack);
    trace::Allocate event{};
    event.record.call_site = static_cast<uint32_t>(trace.call_sites.size());
    trace.events.emplace_back(event);
  };
  const std::string helper = "cudaMalloc (libcudart.so.13)\nDevice::allocate(unsigned long) at d.h:7 (x)\n";
  for (const char* caller : {"Model::forward() at m.cpp:1 (x)", "Model::backward() at m.cpp:9 (x)", "update() (x)"}) {
    allocate(helper + caller + "\nmain (x)");
  }
  const std::set<std::string> passing = passing_on(trace);
  EXPECT_EQ(passing, std::set<std::string>{"Device::allocate(unsigned long)"});
  EXPECT_EQ(own_frame(trace.call_sites[1], passing), "Model::backward() at m.cpp:9 (x)");
  EXPECT_EQ(own_frame("cudaMalloc (libcudart.so.13)\nDevice::allocate(unsigned long) at d.h:7 (x)", passing),
            "Device::allocate(unsigned long) at d.h:7 (x)");
  trace = {};
  for (const char* line : {"1", "2", "3", "4"}) {
    allocate("cudaMalloc (libcudart.so.13)\ntrain() at t.cpp:" + std::string(line) + " (x)\nmain at t.cpp:30 (x)");
  }
  EXPECT_TRUE(passing_on(trace).empty());
}

// Two ways to memory, none of which has nearly all: who launches nothing is a wrapper, who works with what it allocates
// is not, for as many callers.
TEST(Answers, AFunctionThatOnlyAllocatesForOthersIsNotWhoAsked) {
  trace::Trace trace;
  const auto site = [&](const std::string& stack) {
    trace.call_sites.push_back(stack + "\nmain (x)");
    return static_cast<uint32_t>(trace.call_sites.size());
  };
  for (const char* caller : {"forward() (x)", "backward() (x)", "update() (x)"}) {
    trace::Allocate buffer{};
    buffer.record.call_site = site(std::string("cudaMalloc (libcudart.so.13)\nbuffer(unsigned long) (x)\n") + caller);
    trace.events.emplace_back(buffer);
    trace::Allocate output{};
    output.record.call_site = site(std::string("cudaMalloc (libcudart.so.13)\nmatmul(int) (x)\n") + caller);
    trace.events.emplace_back(output);
    trace::Op launch{};
    launch.record.op = trace::OpKind::launch;
    launch.record.call_site = site(std::string("cudaLaunchKernel (libcudart.so.13)\nmatmul(int) (x)\n") + caller);
    trace.events.emplace_back(launch);
  }
  const std::set<std::string> passing = passing_on(trace);
  EXPECT_EQ(passing, std::set<std::string>{"buffer(unsigned long)"});
  EXPECT_EQ(own_frame(trace.call_sites[0], passing), "forward() (x)");
  EXPECT_EQ(own_frame(trace.call_sites[1], passing), "matmul(int) (x)");
}

// Nothing tells such a file from another of its name, so its frames get neither functions nor lines.
TEST(Answers, ALibraryWithoutABuildIdIsNamed) {
  Sample sample;
  const auto said = [&] {
    for (const Json& one : sentences_section(sample.inputs())) {
      const auto text = one.at("text").get<std::string>();
      if (text.find("build id") != std::string::npos) return text;
    }
    return std::string();
  };
  sample.trace.info["program.path"] = "/opt/trainer";
  sample.trace.info["module.libknown.so"] = "abcd /opt/libknown.so";
  sample.trace.call_sites = {"0x12 (libplain.so)\n0x34 (libplain.so)\nf()+0x1 (libother.so)", "0x5 (libknown.so)",
                             "0x6 (trainer)\n0x7"};
  EXPECT_EQ(said(),
            "Calls of libplain.so are shown as addresses: the recording has no build id of it, so that its file cannot "
            "be told from another one of its name. Where it has none, link it with -Wl,--build-id.");
  sample.trace.call_sites = {"0x1 (a.so)", "0x1 (b.so)", "0x1 (c.so)", "0x1 (d.so)"};
  EXPECT_EQ(
      said().find("Calls of a.so, b.so, c.so and 1 more are shown as addresses: the recording has no build id of them"),
      0u)
      << said();
  Inputs inputs = sample.inputs();
  inputs.no_lines = true;
  EXPECT_FALSE(has(sentences_section(inputs).dump(), "build id")) << "libdw is missing: that is said";
}

// One word for one moment, and what was lost beside iterations that were timed is not known.
TEST(Answers, TimeBeforeThePlanIsCountedUntilItIsInForce) {
  const RunLog log = parse_run_log(R"({"kind":"start","mode":"run","time_ns":1000}
{"kind":"plan","at_ns":1500}
{"kind":"iteration","index":0,"mode":"on_demand","wall_ns":500}
{"kind":"activate","iteration":1,"at_ns":2000}
{"kind":"iteration","index":1,"mode":"planned","wall_ns":300}
{"kind":"end","time_ns":3000,"iterations_planned":1,"iterations_on_demand":1})");
  const Inputs inputs{nullptr, nullptr, &log};
  EXPECT_TRUE(has(advice_section(inputs).dump(), "1.0 us of 2.0 us passed before the plan was in force."));
  EXPECT_TRUE(has(sentences_section(inputs).dump(), "at least 200 ns were lost to having no plan"));
}

// A plan that was given to the run lies where it lay: nothing has to be kept.
TEST(Answers, HowToGetThePlanOfARunDependsOnWhoHadIt) {
  const auto lacking = [](const char* mode) {
    const RunLog log =
        parse_run_log(std::string("{\"kind\":\"start\",\"mode\":\"") + mode + "\"}\n{\"kind\":\"plan\"}");
    return plan_is_lacking({nullptr, nullptr, &log});
  };
  EXPECT_TRUE(has(lacking("run"), "REPRISE_KEEP=1"));
  EXPECT_FALSE(has(lacking("replay"), "keeps it"));
  EXPECT_TRUE(has(lacking("replay"), "give `report` that file, too"));
}

TEST(Answers, ARedactedReasonHasItsOwnParentheses) {
  for (const char* reason : {"(redacted)", "why"}) {
    const RunLog log = parse_run_log(R"({"kind":"on_demand","cause":"no_repetition","reason":")" + std::string(reason) +
                                     "\"}\n{\"kind\":\"end\"}");
    const std::string summary = make_summary({nullptr, nullptr, &log});
    EXPECT_FALSE(has(summary, "(("));
    EXPECT_TRUE(has(summary, reason[0] == '(' ? " (redacted)" : " (why)"));
  }
}

TEST(Answers, FramesForTitlesAreShort) {
  EXPECT_EQ(short_frame("main (program)"), "main");
  EXPECT_EQ(
      short_frame("Model::make(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&) "
                  "[clone .constprop.0] at model.cpp:12 (chargpt)"),
      "Model::make(...) at model.cpp:12");
}

TEST(Answers, WhoIsAliveAtThePeakByCallStack) {
  const Sample sample;
  const Json peak = peak_section({&sample.trace});
  EXPECT_EQ(peak.at("bytes"), 9 << 20);
  EXPECT_EQ(peak.at("count"), 3);
  const Json& main = peak.at("tree").at(3).at(0);
  EXPECT_EQ(main.at(0), "main");
  EXPECT_EQ(main.at(1), 9 << 20);
  ASSERT_EQ(main.at(3).size(), 2u);
  EXPECT_EQ(main.at(3).at(0), (Json{"make_buffer", 8 << 20, 2, Json::array()}));
  EXPECT_EQ(main.at(3).at(1), (Json{"read_weights", 1 << 20, 1, Json::array()}));
}

TEST(Answers, WhereTheTimeWentAddsUp) {
  Sample sample;
  sample.log.start_ns = 1000;
  sample.log.activation_at_ns = 4000;
  sample.log.end_ns = 8000;
  for (const Json& bar : time_went_section(sample.inputs())) {
    uint64_t sum = 0;
    for (const Json& part : bar.at("parts")) sum += part.at("ns").get<uint64_t>();
    EXPECT_EQ(sum, bar.at("ns").get<uint64_t>()) << bar.dump(1);
  }
  const Json run = time_went_section(sample.inputs()).at(0);
  EXPECT_EQ(run.at("parts").at(0).at("ns"), 3000);
  EXPECT_EQ(run.at("parts").at(2).at("ns"), 620);
}

}  // namespace
}  // namespace reprise::report
