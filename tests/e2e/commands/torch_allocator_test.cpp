// What is told of PyTorch's allocator: that a program has taken the backend away which shows its tensors, and that what
// it failed for may be what that backend lacks. By a library of PyTorch's name; torch_test has PyTorch itself.
#include "tests/e2e/commands/launcher_test.h"

namespace reprise::e2e {
namespace {

class TorchAllocator : public LauncherTest {
 protected:
  Outcome ran(const std::string& what, const std::string& code, const Words& options = {}, const Words& before = {},
              const std::string& library = "libc10_cuda.so") const {
    Words words =
        joined({"run", "--device", "sim", "--budget", "64MiB", "--run-log", log_, "-o", file("a.html")}, options);
    Words program = joined(before, {built("bin/fake_torch_program"), built("bin/fake_torch/" + library), what, code});
    Outcome outcome = reprise(words, program);
    EXPECT_EQ(outcome.out, "0\n") << outcome.err;
    EXPECT_EQ(outcome.exit_code, std::stoi(code)) << outcome.err;
    return outcome;
  }
  // Lines of the program's process on stderr that have this word, which the run log has, too.
  size_t told(const Outcome& outcome, const std::string& word) const {
    const size_t count = count_of(outcome.err, word);
    const auto warnings = lines_of(read_run_log(log_), "warning");
    const auto has_it = [&](const json& line) { return has(line.at("message"), word); };
    EXPECT_EQ(static_cast<size_t>(std::count_if(warnings.begin(), warnings.end(), has_it)), count) << outcome.err;
    return count;
  }
  static Words with(const std::string& setting) { return {"/usr/bin/env", setting}; }

  const std::string log_ = file("a.run");
};

constexpr char kHidden[] = "hides tensors from Reprise; add backend:cudaMallocAsync";
constexpr char kLacks[] = "PYTORCH_ALLOC_CONF=backend:native";

TEST_F(TorchAllocator, ASettingOfTheProgramIsToldOnceWithItsValue) {
  for (const char* what : {"blocks", "segments"}) {
    const Outcome outcome = ran(what, "0", {}, with("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128"));
    EXPECT_EQ(told(outcome, kHidden), 1u) << what << ": " << outcome.err;
    EXPECT_TRUE(has_cause(outcome.err, Cause::torch_allocator_set,
                          {{"variable", "PYTORCH_CUDA_ALLOC_CONF"}, {"value", "max_split_size_mb:128"}}));
  }
  // By a call of PyTorch's, which leaves the environment alone.
  EXPECT_TRUE(has_cause(ran("blocks", "0").err, Cause::torch_allocator_chosen));
}

TEST_F(TorchAllocator, OthersThatAllocateAndTheBackendAreNot) {
  for (const char* what : {"tensors", "own"}) EXPECT_FALSE(has(ran(what, "0").err, "PyTorch")) << what;
  EXPECT_FALSE(has(ran("blocks", "0", {"--framework", "none"}).err, "PyTorch")) << "it was not asked for";
}

TEST_F(TorchAllocator, AnErrorIsToldWithWhatTheBackendLacks) {
  const Outcome outcome = ran("tensors", "1");
  EXPECT_EQ(told(outcome, kLacks), 1u) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "exit code 1"));
  EXPECT_EQ(told(ran("none", "1"), kLacks), 1u) << "before it had any memory";
}

TEST_F(TorchAllocator, AnErrorThatCannotComeOfItIsNot) {
  EXPECT_FALSE(has(ran("tensors", "0").err, kLacks)) << "it ended well";
  EXPECT_FALSE(has(ran("blocks", "1").err, kLacks)) << "the backend was not in use";
  EXPECT_FALSE(has(ran("own", "1", {}, {}, "none.so").err, kLacks)) << "there is no PyTorch";
  EXPECT_FALSE(has(ran("tensors", "1", {"--framework", "none"}).err, kLacks)) << "Reprise has set nothing";
}

// Who has chosen the backend himself knows of it; that the program takes it away again is told all the same.
TEST_F(TorchAllocator, WhatTheUserHasSetIsHis) {
  const auto by_user = [&](const std::string& what, const std::string& setting) {
    Environment environment = launching({{"PYTORCH_ALLOC_CONF", setting}});
    return run({built("bin/reprise"), "run", "--device", "sim", "--budget", "64MiB", "-o", file("a.html"), "--",
                built("bin/fake_torch_program"), built("bin/fake_torch/libc10_cuda.so"), what, "1"},
               environment)
        .err;
  };
  EXPECT_FALSE(has(by_user("tensors", "backend:cudaMallocAsync"), kLacks));
  EXPECT_TRUE(has_cause(by_user("blocks", "backend:cudaMallocAsync"), Cause::torch_allocator_chosen));
  const std::string native = by_user("blocks", "backend:native");
  EXPECT_TRUE(has(native, "PYTORCH_ALLOC_CONF=backend:native is kept as you set it"));
  EXPECT_FALSE(has_cause(native, Cause::torch_allocator_chosen)) << "it was told before: ";
}

// A recording has no budget, and the same backend.
TEST_F(TorchAllocator, ARecordingIsToldOfBoth) {
  const auto recorded = [&](const std::string& what, const std::string& code) {
    return reprise({"record", "--device", "sim", "-o", file("a.trace")},
                   {built("bin/fake_torch_program"), built("bin/fake_torch/libc10_cuda.so"), what, code})
        .err;
  };
  EXPECT_TRUE(has_cause(recorded("blocks", "0"), Cause::torch_allocator_chosen));
  EXPECT_TRUE(has(recorded("tensors", "1"), kLacks));
}

}  // namespace
}  // namespace reprise::e2e
