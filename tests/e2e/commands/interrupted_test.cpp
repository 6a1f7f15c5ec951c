// Runs that are interrupted before a plan is in force: the last line of `run`, and what `report` and `export` say of
// the run's files, with the recording and without, agree.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

class Interrupted : public InScratch {
 protected:
  // The line that ends in "; report: ...", without the name of the report.
  static std::string summary_of(const std::string& err) {
    const size_t end = err.find("; report: ");
    if (end == std::string::npos) return "none: " + err;
    const size_t begin = err.rfind('\n', end);
    return err.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1));
  }
  json page(const std::string& name) const { return data_of_page(file(name)); }
  json moved_in(const std::string& name) const {
    for (const json& card : page(name)["cards"]) {
      if (has(card["label"], "Moved")) return card;
    }
    return nullptr;
  }
  json exported(Words files) {
    files.insert(files.begin(), "export");
    for (const char* word : {"--format", "json", "-o", "-"}) files.emplace_back(word);
    const json all = json::parse(reprise(files).out);
    return all.contains("run") ? all["run"] : all;
  }
  Words run_words(const std::string& budget) const {
    return {"run",         "--device", "sim",           "--budget", budget,        "--run-log",
            file("a.run"), "--trace",  file("a.trace"), "-o",       file("a.html")};
  }
  // The program is ended as soon as this shell command answers 0, tried ten times a second.
  std::string end_when(const std::string& budget, const std::string& condition, const Environment& more = {}) {
    Words program = {"/bin/bash", "-c",
                     "condition=$1; shift; \"$@\" & for i in {1..400}; do eval \"$condition\" && break; sleep 0.1; "
                     "done; kill -TERM $!; wait $!",
                     "bash", condition};
    const Words trainer = small_trainer(4000000);
    program.insert(program.end(), trainer.begin(), trainer.end());
    return summary_of(reprise(run_words(budget), program, more).err);
  }
  std::string says_in_run_log(const std::string& words) const {
    return "grep -q '" + words + "' " + file("a.run") + " 2>/dev/null";
  }
  void expect_all_agree(const std::string& summary) {
    const std::vector<Words> sets = {{file("a.run")}, {file("a.trace"), file("a.run")}};
    for (Words files : sets) {
      Words words = joined({"report", "-o", file("b.html")}, files);
      EXPECT_EQ(summary_of(reprise(words).err), summary) << files.size() << " files";
      EXPECT_EQ(moved_in("b.html"), moved_in("a.html"));
      const json run = exported(files);
      EXPECT_EQ(run["iterations"].size(),
                run["iterations_planned"].get<size_t>() + run["iterations_on_demand"].get<size_t>());
      const std::string counted = " of " + std::to_string(run["iterations"].size()) + " iterations planned";
      EXPECT_TRUE(has(summary, run["iterations"].empty() ? "no iteration" : counted)) << counted;
    }
  }
};

TEST_F(Interrupted, BeforeAnyIteration) {
  const std::string summary = end_when("60%", says_in_run_log("start"));
  EXPECT_TRUE(has(summary, ", no iteration found to plan (") || has(summary, " iterations planned (")) << summary;
  expect_all_agree(summary);
}

TEST_F(Interrupted, WhereAllFits) {
  const std::string summary = end_when(
      "8MiB", says_in_run_log("\"cause\":\"fits\"") + " && " + says_in_run_log("\"index\":9,\"mode\":\"on_demand\""));
  EXPECT_TRUE(has(summary, "0 of "));
  EXPECT_TRUE(has(summary, " iterations planned, as nothing has to move"));
  expect_all_agree(summary);
  const std::string text = page("a.html").dump();
  EXPECT_FALSE(has(text, "moved on demand")) << text.substr(0, 4000);
  EXPECT_TRUE(has(page("a.html")["cards"].dump(), "as far as the run log goes"));
}

TEST_F(Interrupted, WhileTheFirstBytesHaveBeenMoved) {
  const std::string summary = end_when("40%", says_in_run_log("\"moved_bytes\":[1-9]"));
  expect_all_agree(summary);
  EXPECT_TRUE(has(page("a.html")["cards"].dump(), "at least "));
}

// Ctrl-C, at whatever the program does by then.
TEST_F(Interrupted, AtSomeMoment) {
  for (const char* seconds : {"0.4", "1", "2"}) {
    for (const char* budget : {"8MiB", "96KiB"}) {
      // --foreground: once. Without it timeout says it to the whole group as well, which may be while the page is
      // written.
      Words words =
          joined({"/usr/bin/timeout", "--foreground", "-s", "INT", seconds, built("bin/reprise")}, run_words(budget));
      words.emplace_back("--");
      words = joined(words, small_trainer(4000000));
      Environment environment = launching({{"REPRISE_SIM_GRANULARITY", "16KiB"}});
      for (const char* name : {"a.run", "a.trace"}) std::filesystem::remove(file(name));
      const std::string summary = summary_of(run(words, environment).err);
      SCOPED_TRACE(std::string(seconds) + " s, " + budget + ": " + summary);
      EXPECT_TRUE(has(summary, "the program ended with signal 2 (Interrupt)"));
      EXPECT_FALSE(has(summary, "which would say why"));
      if (read_file(file("a.run")).empty()) continue;   // there is no run log, or nothing is in it
      if (has(summary, " ms per iteration")) continue;  // by a plan, which is not kept
      expect_all_agree(summary);
    }
  }
}

}  // namespace
}  // namespace reprise::e2e
