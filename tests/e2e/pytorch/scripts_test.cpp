// PyTorch scripts that fail, fork, are killed, or come with settings of their own: what they print and how they end is
// theirs, and Reprise says one line where something should be changed. Skipped without a PyTorch for CUDA 13.
#include "tests/e2e/harness.h"
#include "tests/e2e/with_torch.h"

namespace reprise::e2e {
namespace {

constexpr char kStart[] = R"(
import os, signal, sys, torch
x = torch.ones(1 << 20, device="cuda")
torch.cuda.synchronize()
print("started", flush=True)
)";

class TorchScripts : public WithTorch {
 protected:
  Outcome managed(const std::string& script, const Environment& environment = {}) const {
    return managed({python_, "-c", script}, environment);
  }
  Outcome managed(Words program, const Environment& environment = {}) const {
    Words argv =
        joined({built("bin/reprise"), "run", "--device", "sim", "--budget", "60%", "-o", report(), "--"}, program);
    return run(argv, merged({{"TMPDIR", file("")}}, environment));
  }
  std::string report() const { return file("report.html"); }
};

TEST_F(TorchScripts, AnExceptionOfItsOwn) {
  const Outcome outcome = managed(std::string(kStart) + "raise RuntimeError('my own')");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "started\n");
  EXPECT_EQ(count_of(outcome.err, "RuntimeError: my own"), 1u) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(report()));
}

TEST_F(TorchScripts, ForksBeforeCudaStarts) {
  const Outcome outcome = managed("import os\nchild = os.fork()\n" + std::string(kStart) +
                                  "if child == 0: sys.exit(4)\n"
                                  "print('child', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])); sys.exit(6)");
  EXPECT_EQ(outcome.exit_code, 6) << outcome.err;
  EXPECT_EQ(outcome.out, "started\nstarted\nchild 4\n");
}

TEST_F(TorchScripts, ForksBehindIt) {
  const Outcome outcome =
      managed(std::string(kStart) +
              "child = os.fork()\n"
              "if child == 0:\n"
              "  try: torch.ones(1, device='cuda')\n"
              "  except RuntimeError as error: print(str(error)[:25], flush=True)\n"
              "  os._exit(3)\n"
              "print('child', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (x + 1).numel()); sys.exit(5)");
  EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
  EXPECT_EQ(outcome.out, "started\nCannot re-initialize CUDA\nchild 3 1048576\n");
}

TEST_F(TorchScripts, IsKilled) {
  const Outcome outcome = managed(std::string(kStart) + "os.kill(os.getpid(), signal.SIGKILL)");
  EXPECT_EQ(outcome.exit_code, 128 + 9);
  EXPECT_EQ(outcome.out, "started\n");
  EXPECT_EQ(count_of(outcome.err, "reprise: the program ended with signal 9 (Killed); until then it used "), 1u)
      << outcome.err;
}

// Settings of the user's own are kept, and the line says what to do.
TEST_F(TorchScripts, BringsSettingsOfItsOwn) {
  const Outcome hidden = managed(kStart, {{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64"}});
  EXPECT_EQ(hidden.exit_code, 0) << hidden.err;
  EXPECT_EQ(count_of(hidden.err, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64 is kept as you set it"), 1u)
      << hidden.err;
  const Outcome segments = managed("print('nothing')", {{"PYTORCH_ALLOC_CONF", "expandable_segments:True"}});
  EXPECT_EQ(count_of(segments.err, "expandable_segments needs NVML"), 1u) << segments.err;
  const Outcome preloads = managed(kStart, {{"LD_PRELOAD", "libm.so.6"}});
  EXPECT_EQ(preloads.exit_code, 0) << preloads.err;
  EXPECT_EQ(preloads.out, "started\n");
}

TEST_F(TorchScripts, IsNotThere) {
  const Outcome outcome = managed({python_, file("nothing.py")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(count_of(outcome.err, "reprise: no report: the program made no CUDA call"), 1u) << outcome.err;
}

// A python without PyTorch: nothing of ours stands between the user and its message.
TEST(TorchScript, HasNoPyTorch) {
  const Scratch scratch;
  const Outcome outcome =
      run({built("bin/reprise"), "run", "--device", "sim", "--budget", "60%", "-o", scratch.path("report.html"), "--",
           "/usr/bin/env", "python3", "-I", "-S", "-c", "import torch"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(count_of(outcome.err, "No module named 'torch'"), 1u) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "reprise: "), 1u) << outcome.err;
}

}  // namespace
}  // namespace reprise::e2e
