#include "tools/export/redact.h"

#include <nlohmann/json.hpp>

#include "preload/trace/names.h"
#include "tests/support/sample.h"
#include "tests/support/test.h"
#include "tools/report/log/demangle.h"
#include "tools/report/view/frames.h"
#include "tools/report/view/timeline.h"

namespace reprise::exports {
namespace {

constexpr const char* kSecret[] = {"/home/ada", "secret", "make", "both", "solve"};

void expect_no_secret(const std::string& text) {
  for (const char* word : kSecret) EXPECT_FALSE(has(text, word)) << word << " in\n";
}

trace::Trace secret_trace() {
  trace::Trace trace = tools::test::sample_trace();
  trace.info["program"] = "/home/ada/secret --rate 3";
  trace.info["program.path"] = "/home/ada/secret";
  trace.info["module.secret"] = "0123 /home/ada/secret";
  trace.info["something.new"] = "/home/ada";
  trace.info["device.granularity"] = "2097152";
  trace.call_sites = {"secret_step+0x1b (secret)\nmain+0x2 (secret)", "other_secret+0x9 (secret)\nmain+0x2 (secret)"};
  trace.events.push_back(trace::Mark{{}, "secret step"});
  return trace;
}

TEST(Redact, NoNameOfATraceIsLeftAndEqualOnesStayEqual) {
  trace::Trace trace = secret_trace();
  for (trace::Event& event : trace.events) {
    if (auto* op = std::get_if<trace::Op>(&event)) op->parameters = {1, 2, 3};
  }
  const size_t events = trace.events.size();
  Redactor().redact(trace);
  expect_no_secret(to_text(trace));
  EXPECT_EQ(trace.events.size(), events);
  EXPECT_EQ(trace.info.at("device.granularity"), "2097152");
  EXPECT_EQ(trace.info.at("program"), "(redacted)") << "as in a run log";
  EXPECT_EQ(trace.info.count("something.new"), 0u) << "what is not known to be harmless goes";
  EXPECT_EQ(trace.call_sites[0], "frame_1+0x1b (file_1)\nframe_2+0x2 (file_1)");
  EXPECT_EQ(trace.call_sites[1], "frame_3+0x9 (file_1)\nframe_2+0x2 (file_1)");
  for (const trace::Event& event : trace.events) {
    const auto* const op = std::get_if<trace::Op>(&event);
    EXPECT_TRUE(op == nullptr || op->parameters.empty());
  }
}

// Reports group by functions, and by lines where they are known; who passes on what others ask for is none of the
// program's.
TEST(Redact, CallStacksAreGroupedAsBefore) {
  trace::Trace trace = secret_trace();
  trace.call_sites = {"secret(int)::{lambda(int)#1} at secret.cu:7 (secret)\nsecret(int) at secret.cu:9 (secret)",
                      "secret(int) at secret.cu:11 (secret)\nsolve+0x40 (secret)\nsolve+0x4 (secret)",
                      "cudaMalloc (libcudart.so.13)\n0x1b (libsolve.so)\n0x1b (secret)\n0x2b (secret)"};
  Redactor().redact(trace);
  EXPECT_EQ(trace.call_sites[0], "frame_1 at line_1 (file_1)\nframe_2 at line_2 (file_1)");
  EXPECT_EQ(trace.call_sites[1], "frame_2 at line_3 (file_1)\nframe_3+0x40 (file_1)\nframe_3+0x4 (file_1)");
  EXPECT_EQ(trace.call_sites[2], "outside-1 (file_2)\nframe_4 (file_3)\nframe_4 (file_1)\nframe_5 (file_1)");
  EXPECT_EQ(report::own_frame(trace.call_sites[2], {}), "frame_4 (file_3)");
}

// The first thread of a process has its number.
TEST(Redact, ThreadsAreCounted) {
  trace::Trace trace = secret_trace();
  uint32_t next = 0;
  for (trace::Event& event : trace.events) {
    if (auto* op = std::get_if<trace::Op>(&event)) op->record.thread = 12062 + next++ % 2;
  }
  Redactor().redact(trace);
  std::vector<uint32_t> threads;
  for (const trace::Event& event : trace.events) {
    if (const auto* const op = std::get_if<trace::Op>(&event)) threads.push_back(op->record.thread);
  }
  EXPECT_EQ(threads, (std::vector<uint32_t>{1, 2, 1, 2}));
}

TEST(Redact, APlanHasTheNumbersOfItsTrace) {
  trace::Trace trace = secret_trace();
  plan::Plan plan = tools::test::sample_plan();
  plan.program = "/home/ada/secret";
  plan::Call* launch = nullptr;
  for (plan::Call& call : plan.calls) {
    if (call.kind == plan::CallKind::op && call.op == trace::OpKind::launch && launch == nullptr) launch = &call;
  }
  ASSERT_NE(launch, nullptr);
  launch->name = report::demangle(trace.functions[0].name);
  Redactor redactor;
  redactor.redact(trace);
  redactor.redact(plan);
  EXPECT_EQ(launch->name, trace.functions[0].name);
  EXPECT_EQ(launch->name, "kernel_1");
  EXPECT_EQ(plan.program, "(redacted)");
  expect_no_secret(to_text(plan));
  EXPECT_TRUE(plan::check_structure(plan).ok());
}

constexpr const char* kLog =
    "{\"kind\":\"start\",\"program\":\"/home/ada/secret\",\"arguments\":\"--key secret\",\"driver\":\"/home/ada/"
    "libcuda.so.1\",\"safety\":\"strict\",\"device\":\"GPU\","
    "\"program_hash\":\"00ab\",\"chunk_bytes\":65536}\n"
    "{\"kind\":\"plan\",\"index\":0,\"path\":\"/home/ada/a.plan\",\"policy\":\"lru\",\"iteration_hash\":\"00cd\"}\n"
    "{\"kind\":\"on_demand\",\"cause\":\"too_small\",\"reason\":\"/home/ada/a.trace: solve works on 7 bytes at "
    "once\"}\n"
    "{\"kind\":\"divergence\",\"iteration\":3,\"call\":1,\"expected\":\"free 4096\",\"got\":\"secret_kernel\"}\n"
    "{\"kind\":\"warning\",\"cause\":\"budget_above_room\",\"message\":\"secret\",\"room_bytes\":5}\n"
    "{\"kind\":\"warning\",\"cause\":\"secret\"}\n"
    "{\"kind\":\"new\",\"unknown\":\"secret\",\"list\":[\"secret\"],\"count\":4}\n"
    "{\"kind\":\"iterat";

TEST(Redact, ARunLogKeepsItsNumbersAndOurWords) {
  trace::Trace trace = secret_trace();
  trace.functions[0].name = "_Z5solvePf";
  Redactor redactor;
  redactor.redact(trace);
  const std::string text = redactor.redact_run_log(kLog);
  expect_no_secret(text);
  for (const char* kept :
       {"\"safety\":\"strict\"", "\"program_hash\":\"00ab\"", "\"chunk_bytes\":65536", "\"policy\":\"lru\"",
        "\"cause\":\"too_small\"", "(redacted) kernel_1 works on 7 bytes at once", "\"expected\":\"free 4096\"",
        "\"got\":\"call_1\"", "\"cause\":\"budget_above_room\"", "\"room_bytes\":5", "\"device\":\"GPU\"",
        "\"count\":4"}) {
    EXPECT_TRUE(has(text, kept)) << kept << " in\n";
  }
}

TEST(Redact, ProcessesOfARunLogAreCounted) {
  const std::string text = Redactor().redact_run_log(
      "{\"kind\":\"start\",\"run\":12060,\"process\":12062}\n{\"kind\":\"start\",\"process\":12070}\n{\"kind\":\"end\","
      "\"process\":12062}\n{\"kind\":\"program_end\",\"run\":12060,\"command\":12070}\n");
  EXPECT_EQ(text,
            "{\"kind\":\"start\",\"run\":1,\"process\":2}\n{\"kind\":\"start\",\"process\":3}\n{\"kind\":\"end\","
            "\"process\":2}\n"
            "{\"kind\":\"program_end\",\"run\":1,\"command\":3}\n");
}

// But only whole words: a kernel's name may begin as they do.
TEST(Redact, CallsInOurWordsStay) {
  const auto redacted = [](const std::string& got) {
    return Redactor().redact_run_log("{\"kind\":\"divergence\",\"got\":\"" + got + "\"}\n");
  };
  for (const char* ours : {"an allocation", "a free", "free 4096", "allocate 512", "copy_host_to_device",
                           "cuMemcpyHtoD_v2", "the program's end"}) {
    EXPECT_TRUE(has(redacted(ours), std::string("\"got\":\"") + ours + "\""));
  }
  for (const char* theirs : {"custom_secret", "copy_secret", "free_secret", "allocate_secret", "an_allocation", "cu"}) {
    EXPECT_TRUE(has(redacted(theirs), "\"got\":\"call_1\""));
  }
}

std::string redacted_reason(const std::string& reason, const std::string& more = "") {
  const nlohmann::json line = {{"kind", "on_demand"}, {"reason", reason}};
  const std::string text = Redactor().redact_run_log(line.dump() + "\n" + more);
  return nlohmann::json::parse(text.substr(0, text.find('\n')))["reason"];
}

// Without a trace it is unknown which words are names; a word that none of our messages has may be one.
TEST(Redact, ARunLogAloneKeepsOurWords) {
  const std::string text = Redactor().redact_run_log(kLog);
  expect_no_secret(text);
  EXPECT_TRUE(has(text, "\"reason\":\"(redacted) works on 7 bytes at once\""));
  for (const char* reason :
       {"no iteration found in 10 calls: most of what it does happens only once; at least three equal iterations must "
        "be recorded",
        "a budget of 10066329 bytes (9.6 MiB) is too small: 16777216 bytes (16.0 MiB) are kept by tensors smaller than "
        "half a chunk of 2097152 bytes (2.0 MiB), so at least 16777216 bytes (16.0 MiB) are needed; give that much",
        "the program ended before a plan was made of what it repeats, 0.5 s after the planner was asked",
        "no planner runs, as REPRISE_PLAN_LIMIT allows it no time", "the program's calls: cuMemAlloc_v2, 80 % of it",
        "its budget, --budget 50%, is on-demand memory's"}) {
    EXPECT_EQ(redacted_reason(reason), reason);
  }
}

TEST(Redact, OfARunLogAloneNoNameIsShown) {
  EXPECT_EQ(redacted_reason("void gemm_wide<float, 4>(float*) works on /home/ada/my_data/plan at once, gemm_wide: too"),
            "(redacted) works on (redacted) at once, (redacted) too");
  EXPECT_EQ(redacted_reason("the program /home/ada/plan/a.trace was called as a.trace=b_c"),
            "the program (redacted) was called as (redacted)");
  EXPECT_EQ(redacted_reason("--key=hunter2 is no option; caf\u00e9 neither"),
            "(redacted) is no option; (redacted) neither");
}

// What other lines tell has its number, although it may be a word of ours.
TEST(Redact, NamesThatLinesTellAreNumberedInSentences) {
  const std::string more =
      "{\"kind\":\"examine\",\"kernel\":\"both\"}\n{\"kind\":\"divergence\",\"got\":\"secret_step\",\"expected\":\"a "
      "free\"}\n{\"kind\":\"shortage\",\"call\":\"make\"}\n{\"kind\":\"examine\",\"kernel\":\"\"}\n";
  EXPECT_EQ(redacted_reason("both came where secret_step was expected, before make and a free", more),
            "kernel_1 came where call_1 was expected, before call_2 and a free");
  expect_no_secret(Redactor().redact_run_log(more));
}

}  // namespace
}  // namespace reprise::exports
