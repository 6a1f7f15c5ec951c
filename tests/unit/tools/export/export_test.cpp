#include "tools/export/export.h"

#include "tests/support/sample.h"
#include "tests/support/test.h"
#include "tests/support/trace_events.h"

namespace reprise::exports {
namespace {

struct Sample {
  trace::Trace trace = tools::test::sample_trace();
  plan::Plan plan = tools::test::sample_plan();
  report::RunLog log = report::parse_run_log(tools::test::sample_run_log());
  Inputs inputs() const { return {&trace, &plan, &log}; }
};

Json perfetto(const Inputs& inputs) { return Json::parse(to_perfetto(inputs).value()).at("traceEvents"); }

TEST(Perfetto, EventsHaveWhatTheFormatAsksFor) {
  const Sample sample;
  double last = 0;
  std::set<std::string> phases;
  for (const Json& event : perfetto(sample.inputs())) {
    const std::string phase = event.at("ph");
    phases.insert(phase);
    EXPECT_TRUE(event.at("pid").is_number_integer());
    EXPECT_TRUE(event.at("tid").is_number_integer());
    EXPECT_FALSE(event.at("name").get<std::string>().empty());
    if (phase == "M") continue;
    EXPECT_GE(event.at("ts").get<double>(), last) << event;
    last = event.at("ts");
    if (phase == "X") {
      EXPECT_GE(event.at("dur").get<double>(), 0);
    }
    if (phase == "C") {
      EXPECT_TRUE(event.at("args").at("bytes").is_number());
    }
  }
  EXPECT_EQ(phases, (std::set<std::string>{"C", "M", "X", "i"}));
}

// All tracks of a run count from its start, and a counter has no values where they are not known.
TEST(Perfetto, ARunHasOneClock) {
  Sample sample;
  sample.log = report::parse_run_log(R"({"kind":"start","time_ns":1000}
{"kind":"memory","time_ns":1500,"device_bytes":4096,"requested_bytes":4096}
{"kind":"iteration","index":0,"mode":"on_demand","wall_ns":1000,"at_ns":3000}
{"kind":"memory","time_ns":4000,"device_bytes":8192,"requested_bytes":8192}
{"kind":"activity","iteration":1,"vertex":0,"engine":"compute","start_ns":3400,"end_ns":3500}
{"kind":"iteration","index":1,"mode":"planned","wall_ns":900,"at_ns":4200}
{"kind":"end","time_ns":6000})");
  const auto times = [&](const std::string& name, int process) {
    std::vector<double> found;
    for (const Json& event : perfetto({nullptr, &sample.plan, &sample.log})) {
      if (event.at("name") == name && event.at("pid") == process && event.at("ph") != "M")
        found.push_back(event.at("ts"));
    }
    return found;
  };
  constexpr int kPlan = 3;
  constexpr int kRun = 4;
  EXPECT_EQ(times("on demand", kRun), std::vector<double>{1});
  EXPECT_EQ(times("planned", kRun), std::vector<double>{2.3});
  EXPECT_EQ(times("make(float*)", kRun), std::vector<double>{2.4}) << "within its iteration";
  EXPECT_EQ(times("make(float*)", kPlan), std::vector<double>{2.4}) << "as predicted, below that";
  EXPECT_EQ(times("Device memory", kRun), (std::vector<double>{0.5, 3, 5}));
  EXPECT_EQ(times("Asked for by the program", kRun), (std::vector<double>{0.5, 3}));
  EXPECT_EQ(times("not known", kRun), std::vector<double>{3}) << "behind the last sample";
  for (report::RunActivity& one : sample.log.activities) {  // a device's clock that is another one
    one.start_ns += 77'000'000'000;
    one.end_ns += 77'000'000'000;
  }
  EXPECT_EQ(times("make(float*)", kRun), std::vector<double>{2.3}) << "at the begin of its iteration";
}

// Slices of one track must nest; ours never overlap at all.
TEST(Perfetto, SlicesOfATrackDoNotOverlap) {
  Sample sample;
  sample.plan.vertices[3].predicted_start_ns = 350;  // now two computations at a time
  std::map<std::pair<int, int>, double> busy_until;
  size_t slices = 0;
  for (const Json& event : perfetto(sample.inputs())) {
    if (event.at("ph") != "X") continue;
    ++slices;
    double& until = busy_until[{event.at("pid"), event.at("tid")}];
    EXPECT_GE(event.at("ts").get<double>(), until - 1e-9) << event;
    until = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  EXPECT_EQ(slices, 4u + 6u + 3u + 3u);  // recorded ops, planned vertices, measured vertices, iterations
}

TEST(Perfetto, EveryTrackHasAName) {
  const Sample sample;
  std::set<std::pair<int, int>> named;
  std::set<std::pair<int, int>> used;
  for (const Json& event : perfetto(sample.inputs())) {
    const std::pair<int, int> track(event.at("pid"), event.at("tid"));
    if (event.at("name") == "thread_name") named.insert(track);
    if (event.at("ph") == "X") used.insert(track);
  }
  EXPECT_TRUE(std::includes(named.begin(), named.end(), used.begin(), used.end()));
}

TEST(Perfetto, FilesAreValid) {
  const Sample sample;
  for (const Inputs& inputs :
       {sample.inputs(), Inputs{&sample.trace}, Inputs{nullptr, &sample.plan}, Inputs{nullptr, nullptr, &sample.log}}) {
    EXPECT_EQ(test::TraceEvents::problem(to_perfetto(inputs).value()), "");
  }
}

// The validator itself: each of these is one of its rules broken.
TEST(Perfetto, InvalidFilesAreFound) {
  const std::string name = R"({"ph":"M","pid":1,"tid":1,"ts":0,"name":"process_name","args":{"name":"p"}},)"
                           R"({"ph":"M","pid":1,"tid":1,"ts":0,"name":"thread_name","args":{"name":"t"}},)";
  const auto slice = [](double start, double length) {
    return R"({"ph":"X","pid":1,"tid":1,"name":"a","ts":)" + std::to_string(start) +
           ",\"dur\":" + std::to_string(length) + "}";
  };
  const auto file = [](const std::string& events) { return "{\"traceEvents\":[" + events + "]}"; };
  const auto problem = [&](const std::string& events) { return test::TraceEvents::problem(file(events)); };
  EXPECT_EQ(problem(name + slice(0, 10) + "," + slice(2, 8) + "," + slice(10, 1)), "");
  EXPECT_NE(problem(name + slice(0, 10) + "," + slice(2, 9)), "") << "a partial overlap";
  EXPECT_NE(problem(name + slice(5, 1) + "," + slice(2, 1)), "") << "not sorted";
  EXPECT_NE(problem(name + slice(0, -1)), "") << "a negative duration";
  EXPECT_NE(problem(slice(0, 1)), "") << "no name for the track";
  EXPECT_NE(problem(name + R"({"ph":"s","id":1,"pid":1,"tid":1,"name":"a","ts":1})"), "") << "half a flow";
  EXPECT_NE(problem(name + R"({"ph":"C","pid":1,"tid":1,"name":"a","ts":1,"args":{"bytes":"1"}})"), "");
  EXPECT_NE(test::TraceEvents::problem("{\"traceEvents\":["), "");
}

// A device clock that runs behind the host's must not show work before its call.
TEST(Perfetto, AnotherDeviceClockIsShifted) {
  Sample sample;
  for (auto& [sequence, activity] : sample.trace.activities) {
    activity.start_ns -= 1500;
    activity.end_ns -= 1500;
  }
  std::map<uint64_t, double> called;
  for (const Json& event : perfetto({&sample.trace})) {
    if (event.at("ph") == "i") called[event.at("args").at("sequence")] = event.at("ts");
    if (event.at("ph") == "X") {
      EXPECT_GE(event.at("ts").get<double>(), called.at(event.at("args").at("sequence")));
    }
  }
  EXPECT_EQ(called.size(), 4u);
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

TEST(Csv, EachFileHasItsTable) {
  const Sample sample;
  const auto run = lines(to_csv({nullptr, nullptr, &sample.log}).value());
  ASSERT_EQ(run.size(), 4u);
  EXPECT_EQ(run[2], "1,planned,800,300,4194304,4194304,0");
  const auto plan = lines(to_csv({nullptr, &sample.plan}).value());
  ASSERT_EQ(plan.size(), 9u);
  EXPECT_EQ(plan[1], "0,op,make(float*),,,0,100,");
  EXPECT_EQ(plan[2], "1,offload,offload,2,4194304,100,300,0");
  const auto trace = lines(to_csv({&sample.trace}).value());
  ASSERT_EQ(trace.size(), 5u);
  EXPECT_EQ(trace[1], "4,launch,make(float*),0,0,2100,2110,2160,0,1 3");
}

// Zeros would be figures.
TEST(Csv, WhatIsNotKnownOfAnIterationOnDemandIsEmpty) {
  const report::RunLog log = report::parse_run_log(
      R"({"kind":"iteration","index":2,"mode":"on_demand","wall_ns":655,"calls":740})"
      "\n"
      R"({"kind":"iteration","index":3,"mode":"planned","wall_ns":600,"stall_ns":0,"offload_bytes":0})");
  const report::Inputs inputs{nullptr, nullptr, &log};
  const auto run = lines(to_csv(inputs).value());
  ASSERT_EQ(run.size(), 3u);
  EXPECT_EQ(run[1], "2,on_demand,655,,,,");
  EXPECT_EQ(run[2], "3,planned,600,0,0,0,0");
  const Json json = Json::parse(to_json(inputs, "").value());
  EXPECT_TRUE(json.at("run").at("iterations").at(0).at("vmm_calls").is_null()) << json.dump(1);
  EXPECT_EQ(json.at("run").at("iterations").at(1).at("vmm_calls"), 0);
  const report::Json rows = report::iterations_section(inputs);
  for (size_t column = 7; column < 11; ++column) EXPECT_TRUE(rows.at(0).at(column).is_null()) << rows.dump();
  EXPECT_EQ(rows.at(1).at(7), 0);
  EXPECT_TRUE(has(to_perfetto(inputs).value(), "\"wall_ns\":655"));
  EXPECT_EQ(to_perfetto(inputs).value().find("stall_ns"), to_perfetto(inputs).value().rfind("stall_ns"));
}

// Two were over before the calls were seen to repeat, and the last one was left halfway: 2 of 6 planned, as page and
// summary say.
TEST(Csv, IterationsThatWereNotTimedHaveRowsToo) {
  const report::RunLog log = report::parse_run_log(R"({"kind":"repeats","calls":740,"iterations":2}
{"kind":"plan","index":0,"calls":740}
{"kind":"iteration","index":2,"mode":"on_demand","wall_ns":655,"calls":740}
{"kind":"iteration","index":3,"mode":"planned","wall_ns":600}
{"kind":"iteration","index":4,"mode":"planned","wall_ns":610}
{"kind":"divergence","iteration":5,"call":628,"expected":"a","got":"b"}
{"kind":"end","iterations_planned":2,"iterations_on_demand":3,"iterations_unfinished":1,"divergences":1})");
  const report::Inputs inputs{nullptr, nullptr, &log};
  const auto run = lines(to_csv(inputs).value());
  ASSERT_EQ(run.size(), 1 + report::all_iterations(log));
  EXPECT_EQ(run[1], "0,on_demand,,,,,");
  EXPECT_EQ(run[2], "1,on_demand,,,,,");
  EXPECT_EQ(run[3], "2,on_demand,655,,,,");
  EXPECT_EQ(run[5], "4,planned,610,0,0,0,0");
  EXPECT_EQ(run[6], "5,unfinished,,,,,");
  const Json json = Json::parse(to_json(inputs, "").value()).at("run").at("iterations");
  ASSERT_EQ(json.size(), 6u);
  EXPECT_TRUE(json.at(0).at("wall_ns").is_null());
  EXPECT_EQ(json.at(5).at("mode"), "unfinished");
}

// The loop was planned as 800 calls, of which the log had seen halves repeat, and a short loop before: 1 of 4 planned.
TEST(Csv, IterationsThatTheLogHasNoLineOfHaveRowsToo) {
  report::RunLog log = report::parse_run_log(R"({"kind":"repeats","calls":12,"iterations":2}
{"kind":"iteration","index":2,"mode":"on_demand","wall_ns":5,"calls":12}
{"kind":"iteration","index":3,"mode":"on_demand","wall_ns":655,"calls":400}
{"kind":"plan","index":0,"calls":800}
{"kind":"iteration","index":4,"mode":"planned","wall_ns":600}
{"kind":"end","iterations_planned":1,"iterations_on_demand":3,"iterations_unfinished":0,"divergences":1})");
  report::keep_iterations(log, 800);
  const report::Inputs inputs{nullptr, nullptr, &log};
  const auto run = lines(to_csv(inputs).value());
  ASSERT_EQ(run.size(), 1 + report::all_iterations(log));
  EXPECT_EQ(run[1], "0,planned,600,0,0,0,0");
  for (size_t i = 2; i < run.size(); ++i) EXPECT_EQ(run[i], ",on_demand,,,,,");
  const Json json = Json::parse(to_json(inputs, "").value()).at("run").at("iterations");
  ASSERT_EQ(json.size(), 4u);
  EXPECT_TRUE(json.at(3).at("index").is_null());
}

// The log saw ten times as many calls from the program's first call on; the plan, ready at the end, has its cut
// elsewhere: nine, and one that the end of the loop left.
TEST(Csv, IterationsInAnotherCutThanThePlansAreNotCountedTwice) {
  report::RunLog log = report::parse_run_log(R"({"kind":"repeats","calls":800,"iterations":8}
{"kind":"iteration","index":8,"mode":"on_demand","wall_ns":5,"calls":800}
{"kind":"iteration","index":9,"mode":"on_demand","wall_ns":655,"calls":800}
{"kind":"plan","index":0,"calls":800}
{"kind":"end","iterations_planned":0,"iterations_on_demand":9,"iterations_unfinished":1,"divergences":0})");
  report::keep_iterations(log, 800);
  const auto run = lines(to_csv({nullptr, nullptr, &log}).value());
  ASSERT_EQ(run.size(), 1 + report::all_iterations(log));
  EXPECT_EQ(run[9], "8,on_demand,5,,,,");
  EXPECT_EQ(run[10], ",unfinished,,,,,");
}

// A line each, those first that cost most: as the table of the page.
TEST(Csv, TensorsThatCostMostComeFirst) {
  const Sample sample;
  const auto rows = lines(to_tensor_table(sample.inputs()).value());
  const Json page = report::tensor_table_section(sample.inputs());
  ASSERT_EQ(rows.size(), 1 + page.at("rows").size());
  ASSERT_GT(rows.size(), 2u);
  for (size_t i = 1; i < rows.size(); ++i) {
    const Json& row = page.at("rows").at(i - 1);
    const size_t stack = row.at(7);
    std::string expected;
    for (size_t column = 0; column < 7; ++column) expected += row.at(column).dump() + ",";
    EXPECT_EQ(rows[i].find(expected), 0u) << rows[i];
    EXPECT_EQ(rows[i].size() == expected.size(), stack == 0) << rows[i];
  }
  EXPECT_FALSE(to_tensor_table({&sample.trace}).ok());
}

TEST(Perfetto, HostThreadsHaveTheirOwnNumbers) {
  Sample sample;
  for (trace::Event& event : sample.trace.events) {
    if (auto* op = std::get_if<trace::Op>(&event)) op->record.thread = 12062;
  }
  bool named = false;
  for (const Json& event : perfetto({&sample.trace})) {
    if (event.at("name") != "thread_name" || event.at("args").at("name") != "Host thread 12062") continue;
    EXPECT_EQ(event.at("tid"), 12062);
    named = true;
  }
  EXPECT_TRUE(named);
}

// Each in the table of its file.
TEST(Csv, EveryColumnIsDescribed) {
  const Sample sample;
  const std::string text = read_file(REPRISE_FORMAT_PAGE);
  const std::map<std::string, std::string> heads = {
      {"| of a run log,", lines(to_csv({nullptr, nullptr, &sample.log}).value())[0]},
      {"| of a plan's tensors,", lines(to_tensor_table({nullptr, &sample.plan}).value())[0]},
      {"| of a plan,", lines(to_csv({nullptr, &sample.plan}).value())[0]},
      {"| of a trace,", lines(to_csv({&sample.trace}).value())[0]}};
  for (const auto& [title, head] : heads) {
    const size_t begin = text.find(title);
    ASSERT_NE(begin, std::string::npos) << title;
    const std::string table = text.substr(begin, text.find("\n\n", begin) - begin);
    std::istringstream columns(head);
    for (std::string column; std::getline(columns, column, ',');) {
      EXPECT_TRUE(has(table, "`" + column + "`")) << column << " is not described\n";
    }
  }
}

TEST(Csv, FieldsWithCommasAndQuotesAreQuoted) {
  Sample sample;
  sample.trace.functions[0].name = "a, \"b\"";
  EXPECT_TRUE(has(to_csv({&sample.trace}).value(), ",\"a, \"\"b\"\"\","));
}

TEST(Dot, ThePlanIsItsMemGraph) {
  const Sample sample;
  const std::string dot = to_dot(sample.inputs()).value();
  EXPECT_TRUE(has(dot, "v1 [label=\"offload tensor 2, 4.0 MiB\""));
  EXPECT_TRUE(has(dot, "v1 -> v2 [style=dashed"));
  EXPECT_EQ(std::count(dot.begin(), dot.end(), '{'), std::count(dot.begin(), dot.end(), '}'));
}

TEST(Dot, ATraceShowsWhichOpUsedATensorAfterWhich) {
  const Sample sample;
  const std::string dot = to_dot({&sample.trace}).value();
  EXPECT_TRUE(has(dot, "s4 -> s5;"));
  EXPECT_TRUE(has(dot, "s4 -> s8;"));
  EXPECT_FALSE(has(dot, "s5 -> s9;"));
}

TEST(Dot, WhatCannotBeDrawnIsRefused) {
  Sample sample;
  EXPECT_EQ(to_dot({nullptr, nullptr, &sample.log}).status().code(), StatusCode::invalid_argument);
  sample.plan.vertices.resize(6000);
  EXPECT_EQ(to_dot(sample.inputs()).status().code(), StatusCode::unsupported);
  EXPECT_TRUE(has(to_dot(sample.inputs()).status().message(), "--window 0:500"));
  EXPECT_TRUE(to_dot(sample.inputs(), {5900, 500}).ok());
  EXPECT_EQ(to_dot(sample.inputs(), {0, 5999}).status().code(), StatusCode::unsupported);
  EXPECT_EQ(to_dot(sample.inputs(), {6000, 1}).status().code(), StatusCode::invalid_argument);
}

TEST(Dot, AWindowHasItsVerticesAndTheEdgesBetweenThem) {
  const Sample sample;
  const std::string plan = to_dot(sample.inputs(), {1, 2}).value();
  EXPECT_TRUE(has(plan, "v1 -> v2"));
  EXPECT_FALSE(has(plan, "v0"));
  EXPECT_FALSE(has(plan, "v3"));
  const std::string trace = to_dot({&sample.trace}, {1, 3}).value();
  EXPECT_FALSE(has(trace, "s4"));
  EXPECT_TRUE(has(trace, "s5 [label"));
}

// The file that the planner wrote while the program ran goes with the run, unless it is kept.
TEST(JsonExport, APlanThatIsGoneIsNotNamedAsAFile) {
  Sample sample;
  const auto plan = [&] { return Json::parse(to_json({nullptr, nullptr, &sample.log}, "").value())["run"]["plan"]; };
  sample.log.plan_path = testing::TempDir() + "reprise-none/program.trace.plan";
  EXPECT_EQ(plan(), "made during the run");
  sample.log.kept_plan = "/home/a/kept.plan";
  EXPECT_EQ(plan(), "/home/a/kept.plan");
  sample.log.kept_plan.clear();
  sample.log.mode = "replay";
  EXPECT_EQ(plan(), sample.log.plan_path) << "the user's own";
  sample.log.mode = "run";
  sample.log.plan_path = testing::TempDir() + "reprise-kept.plan";
  std::ofstream(sample.log.plan_path) << "kept";
  EXPECT_EQ(plan(), sample.log.plan_path) << "REPRISE_KEEP";
  std::remove(sample.log.plan_path.c_str());
  sample.log.plan_count = 0;
  sample.log.plan_path.clear();
  EXPECT_EQ(plan(), "");
}

TEST(JsonExport, HoldsEveryEventAndVertex) {
  const Sample sample;
  const Json json = Json::parse(to_json(sample.inputs()).value());
  EXPECT_EQ(json.at("trace").at("events").size(), sample.trace.events.size());
  EXPECT_EQ(json.at("plan").at("vertices").size(), sample.plan.vertices.size());
  EXPECT_EQ(json.at("plan").at("tensors").at(1).at("home"), nullptr);
  EXPECT_EQ(json.at("run").at("iterations").size(), 3u);
}

TEST(JsonExport, NothingOfATraceOrAPlanIsLeftOut) {
  Sample sample;
  sample.trace.functions[0].identity = 0xabc;
  sample.trace.functions[0].parameters = {{0, 8}, {8, 4}};
  sample.trace.streams.push_back({{trace::RecordKind::stream, 0, sizeof(trace::StreamRecord), 2}, 7, 1, 1, -3});
  sample.trace.gaps.push_back({{trace::RecordKind::gap, 0, sizeof(trace::GapRecord), 9}, 5, 3});
  for (trace::Event& event : sample.trace.events) {
    if (auto* op = std::get_if<trace::Op>(&event)) op->parameters = {0x01, 0xfe};
  }
  sample.plan.tensors[1].device = 3;
  sample.plan.tensors[1].part_of = 1;
  sample.plan.device_chunks = {4, 5};
  const Json json = Json::parse(to_json(sample.inputs()).value());
  const Json& trace = json.at("trace");
  EXPECT_EQ(trace.at("functions").at(0).at("identity"), "0000000000000abc");
  EXPECT_EQ(trace.at("functions").at(0).at("parameters").at(1).at("bytes"), 4);
  EXPECT_EQ(trace.at("streams").back().at("priority"), -3);
  EXPECT_EQ(trace.at("gaps").at(0).at("records"), 3);
  for (const Json& event : trace.at("events")) {
    if (event.at("event") == "op") {
      EXPECT_EQ(event.at("parameters"), "01fe");
      EXPECT_TRUE(event.contains("function"));
    }
  }
  EXPECT_EQ(json.at("plan").at("tensors").at(1).at("device"), 3);
  EXPECT_EQ(json.at("plan").at("tensors").at(1).at("part_of"), 1);
  EXPECT_EQ(json.at("plan").at("device_chunks").at(1), 5);
  EXPECT_TRUE(json.at("plan").at("calls").at(0).contains("waited"));
  EXPECT_EQ(json.at("run").at("departures").size(), 2u);
  EXPECT_EQ(json.at("run").at("departures").at(1).at("reason"), "a launch failed");
  EXPECT_EQ(json.at("run").at("unmanaged").size(), 1u);
}

// The report reads a part of a run log; the export has all of it, the keys of newer builds and a cut-off end among it.
TEST(JsonExport, ARunLogIsThereLineByLineAndFieldByField) {
  const Sample sample;
  const std::string log =
      tools::test::sample_run_log() + "{\"kind\":\"of tomorrow\",\"key\":{\"a\":[1,2.5,\"x\"]}}\n{\"kind\":\"iter";
  const Json lines = Json::parse(to_json({nullptr, nullptr, &sample.log}, log).value()).at("run").at("lines");
  std::istringstream text(log);
  size_t number = 0;
  for (std::string line; std::getline(text, line); ++number) {
    ASSERT_LT(number, lines.size());
    const Json expected = Json::parse(line, nullptr, false);
    if (expected.is_discarded()) {
      EXPECT_EQ(lines[number], line);
      continue;
    }
    for (const auto& [key, value] : expected.items()) EXPECT_EQ(lines[number].at(key), value) << line;
    EXPECT_EQ(lines[number].size(), expected.size()) << line;
  }
  EXPECT_EQ(lines.size(), number);
  EXPECT_GT(number, 5u);
}

// What JavaScript makes of an integer above 2^53 is another one.
void expect_safe(const Json& value, const std::string& where) {
  if (value.is_number_unsigned()) {
    EXPECT_LE(value.get<uint64_t>(), uint64_t{1} << 53) << where;
  }
  for (const auto& [key, inner] : value.items()) {
    if (value.is_structured()) expect_safe(inner, std::string(where).append("/").append(key));
  }
}

TEST(JsonExport, NumbersSurviveJavaScript) {
  Sample sample;
  const uint64_t large = 0xfedcba9876543210;
  for (trace::Event& event : sample.trace.events) {
    if (auto* op = std::get_if<trace::Op>(&event)) op->record.signature = large;
    if (auto* allocate = std::get_if<trace::Allocate>(&event)) allocate->record.address = large;
  }
  sample.trace.events.push_back(trace::Order{
      {{trace::RecordKind::order, 0, sizeof(trace::OrderRecord), 99}, 0, large, trace::OrderKind::event_record, 0, 0}});
  sample.plan.program_hash = sample.plan.iteration_hash = large;
  for (plan::Call& call : sample.plan.calls) call.signature = large;
  const Json json = Json::parse(to_json(sample.inputs()).value());
  expect_safe(json, "");
  EXPECT_EQ(json.at("plan").at("program_hash"), "fedcba9876543210");
  EXPECT_EQ(json.at("plan").at("calls").at(0).at("signature"), "fedcba9876543210");
}

}  // namespace
}  // namespace reprise::exports
