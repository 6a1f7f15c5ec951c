// Why nothing was planned: `run`, its page, and what `report` says of the run log alone have one reason.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

class Reasons : public InScratch {
 protected:
  // What stands in a page between these words; "": they do not.
  static std::string between(const std::string& page, const std::string& begin, const std::string& end) {
    const std::string text = read_file(page);
    const size_t at = text.find(begin);
    if (at == std::string::npos) return "";
    return text.substr(at + begin.size(), text.find(end, at) - at - begin.size());
  }
  // Behind it stands what was moved.
  std::string reason_in(const std::string& page) const {
    const std::string text = between(file(page), "No plan was made: ", "\"}");
    return text.substr(0, std::min(text.find(". So "), text.find(". Nothing ")));
  }

  // A run that had no plan, and the report of its log alone. Returns the reason.
  std::string reason_of(const std::string& budget, const Words& program, const Words& options = {},
                        const Environment& more = {}) {
    Words words = joined(
        {"run", "--device", "sim", "--budget", budget, "--run-log", file("a.run"), "-o", file("a.html")}, options);
    ran_ = reprise(words, program, more).err;
    told_ = reprise({"report", file("a.run"), "-o", file("b.html")}).err;
    const std::string reason = reason_in("a.html");
    EXPECT_EQ(reason_in("b.html"), reason);
    EXPECT_EQ(between(file("b.html"), "\"verdict\":{", "}"), between(file("a.html"), "\"verdict\":{", "}"));
    EXPECT_NE(reason, "") << ran_;
    EXPECT_TRUE(has(told_, "(" + reason + ")")) << reason;
    return reason;
  }

  std::string ran_;   // what stderr had
  std::string told_;  // what report said
};

TEST_F(Reasons, OfFreesInAnotherOrderEachTime) {
  const std::string reason = reason_of("60%", small_trainer(12, {"--free-order", "shuffled"}));
  EXPECT_TRUE(has(reason, "allocated or freed in another order each time"));
  EXPECT_TRUE(has(ran_, "(" + reason + ")"));
  const std::string words = ", no iteration found to plan (" + reason + ")";
  EXPECT_TRUE(has(ran_, words) && has(told_, words)) << ran_ << told_;
}

TEST_F(Reasons, OfAProgramThatRepeatsNothing) {
  EXPECT_TRUE(has(ran_, "(" + reason_of("60%", small_trainer(1)) + ")"));
}

TEST_F(Reasons, OfOneThatWasKilled) {
  const std::string reason = reason_of(
      "60%", {"/bin/bash", "-c", "\"$@\" & sleep 1.5; kill -9 $!; wait $!", "bash", built("bin/random_program"),
              built("bin/hash_kernels.cubin"), "7", "400000", "--diverge-every", "1"});
  EXPECT_TRUE(has(ran_, "(" + reason + ")"));
}

// One byte less than what a plan takes.
TEST_F(Reasons, OfABudgetThatIsTooSmall) {
  const Words program = small_trainer(10);
  well(reprise({"record", "--device", "sim", "-o", file("a.trace")}, program));
  const std::string refused = reprise({"plan", file("a.trace"), "--budget", "32KiB", "-o", file("a.plan")}).err;
  const std::string least = "so at least ";
  ASSERT_TRUE(has(refused, least));
  const uint64_t bytes = std::strtoull(refused.c_str() + refused.find(least) + least.size(), nullptr, 10);
  const std::string reason = reason_of(std::to_string(bytes - 1), program);
  EXPECT_TRUE(has(reason, "is too small: "));
  EXPECT_TRUE(has_cause(ran_, Cause::was_on_demand, {{"why", reason}}));
  EXPECT_EQ(ran_.find(reason), ran_.rfind(reason)) << "said once: " << ran_;
  const std::string advice = between(file("a.html"), "\"advice\":[{", "}");
  EXPECT_TRUE(has(advice, "Give it at least "));
  EXPECT_EQ(between(file("b.html"), "\"advice\":[{", "}"), advice) << "the log alone has the number, too";
  EXPECT_TRUE(has(read_file(file("a.run")), "\"least_bytes\":" + std::to_string(bytes))) << bytes;
}

// A percentage is never less than what one call works on.
TEST_F(Reasons, OfAProgramThatWorksOnAllAtOnce) {
  for (const char* budget : {"30%", "50%"}) {
    reason_of(budget, {built("bin/vector_add")});
    for (const char* page : {"a.html", "b.html"}) {
      const std::string text = read_file(file(page));
      EXPECT_TRUE(has(text, "more than the budget of ")) << budget << between(file(page), "\"verdict\":{", "}");
      EXPECT_FALSE(has(text, "which keeps the budget")) << budget << between(file(page), "No plan was made", "}");
      EXPECT_TRUE(has(text, "and the budget was not kept")) << budget;
    }
    const std::string advice = between(file("a.html"), "\"advice\":[{", "}");
    EXPECT_TRUE(has(advice, "(100 % of the peak)"));
    EXPECT_EQ(between(file("b.html"), "\"advice\":[{", "}"), advice);
  }
}

TEST_F(Reasons, OfAPlannerThatHasNoTime) {
  const std::string reason =
      reason_of("60%", small_trainer(10), {}, {{"REPRISE_PLAN_LIMIT", "0"}, {"REPRISE_WAIT_FOR_PLAN", "1"}});
  EXPECT_TRUE(has_cause(ran_, Cause::on_demand, {{"why", reason}}));
}

// Stderr has the amounts, as the page has them.
TEST_F(Reasons, OfAProgramThatGotNoMemory) {
  for (const auto& [budget, options, words] :
       {std::tuple<std::string, Words, std::string>{"32KiB", {}, "a call got no memory"},
        {"50%", {"--host-memory", "64KiB"}, "the program got no memory"}}) {
    const std::string reason = reason_of(budget, small_trainer(10), options);
    EXPECT_TRUE(has(reason, words)) << told_;
    EXPECT_TRUE(has(ran_, "(" + reason + ")"));
  }
}

TEST_F(Reasons, OfMemoryThatCannotBeManaged) {
  reprise({"run", "--device", "sim", "--budget", "60%", "--run-log", file("a.run"), "-o", file("a.html")},
          small_trainer(5), {{"REPRISE_SIM_FAIL", "shim.cuMemAddressReserve=2"}});
  const std::string told = reprise({"report", file("a.run"), "-o", file("b.html")}).err;
  EXPECT_TRUE(has(told, "device memory could not be managed (error 2 of the driver); report: "));
}

// Ctrl-C, which the terminal sends to all that it has started: what was used, and until when, is told in one way.
// Whoever started this test in the background has the signal ignored.
TEST_F(Reasons, AnInterruptedRunIsToldInOneWay) {
  for (const auto& [until, options] :
       {std::pair<std::string, Words>{"start", {"--free-order", "shuffled"}}, {"iteration", {}}}) {
    SCOPED_TRACE(until);
    std::filesystem::remove(file("a.run"));  // of the round before
    const std::string script =
        "set -m; /usr/bin/env --default-signal=INT \"$@\" & for i in $(seq 1000); do grep -qs '\"kind\":\"" + until +
        "\"' " + file("a.run") + " && break; sleep 0.01; done; sleep 0.3; kill -INT -- -$!; wait $!";
    Words words = joined({"/bin/bash", "-c", script, "bash", built("bin/reprise"), "run", "--device", "sim", "--budget",
                          "60%", "--run-log", file("a.run"), "-o", file("a.html"), "--"},
                         small_trainer(100000, options));
    Environment environment = launching();
    environment["REPRISE_WAIT_FOR_PLAN"] = "1";
    const Outcome ran = run(words, environment);
    EXPECT_EQ(ran.exit_code, 128 + 2) << ran.err;
    const std::string told = reprise({"report", file("a.run"), "-o", file("b.html")}).err;
    const std::string verdict = between(file("a.html"), "\"verdict\":{\"tone\":\"bad\",\"text\":\"The ", ".\"");
    EXPECT_TRUE(has(verdict, "program ended with signal 2 (Interrupt); until then it used "));
    EXPECT_EQ(between(file("b.html"), "\"verdict\":{\"tone\":\"bad\",\"text\":\"The ", ".\""), verdict);
    EXPECT_TRUE(has(ran.err, "the " + verdict + ", "));
    EXPECT_TRUE(has(told, "the " + verdict + ", "));
    for (const char* const page : {"a.html", "b.html"}) {
      EXPECT_FALSE(has(read_file(file(page)), "this is only the beginning of")) << page;
    }
  }
}

}  // namespace
}  // namespace reprise::e2e
