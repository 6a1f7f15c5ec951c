// PyTorch itself on the simulated device: a random program of its memory operations prints the same checksums under a
// budget. It needs a PyTorch for CUDA 13 (torch_python()), and is skipped without one.
#include "tests/e2e/harness.h"
#include "tests/e2e/with_torch.h"

namespace reprise::e2e {
namespace {

struct Case {
  int seed;
  int iterations;
  Words elements;  // sizes of its tensors in floats; none: the program's own
};

void PrintTo(const Case& value, std::ostream* out) {
  *out << "seed " << value.seed;
  for (const auto& elements : value.elements) *out << " " << elements;
}

class Torch : public WithTorch, public testing::WithParamInterface<Case> {};
class TorchCommand : public WithTorch {};

// PyTorch brings NVIDIA's runtime along and finds that one first, whatever LD_LIBRARY_PATH says: ours has to be there
// before.
std::string runtime() { return built("lib/sim/libcudart.so.13"); }

// As the launcher sets it: PyTorch asks the driver for each tensor.
Environment allocator() {
  return {{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}, {"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync"}};
}

Environment plain_environment(const Scratch& scratch) {
  return merged(merged(simulated_device(), allocator()),
                {{"LD_PRELOAD", runtime()}, {"REPRISE_SIM_STATS", scratch.path("plain")}});
}

Environment managed_environment(const Scratch& scratch, const std::string& budget) {
  const Environment base = merged(preloaded(budget), allocator());
  return merged(base, {{"LD_PRELOAD", base.at("LD_PRELOAD") + ":" + runtime()},
                       {"REPRISE_SIM_STATS", scratch.path(budget)},
                       {"REPRISE_RUN_LOG", scratch.path(budget + ".log")},
                       {"REPRISE_WAIT_FOR_PLAN", "1"}});
}

void expect_within_budget(const Scratch& scratch, const std::string& budget) {
  const auto plain_stats = read_stats(scratch.path("plain"));
  const auto stats = read_stats(scratch.path(budget));
  ASSERT_FALSE(stats.is_discarded());
  const double fraction = std::stod(budget) / 100.0;
  EXPECT_LE(stats["peak_bytes"].get<double>(), fraction * plain_stats["peak_bytes"].get<double>() + 1);
  EXPECT_EQ(stats["unsupported_calls"], 0);
  const auto ends = lines_of(read_run_log(scratch.path(budget + ".log")), "end");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_LE(stats["peak_bytes"], ends.back()["budget_bytes"]);
  EXPECT_GT(ends.back()["iterations_planned"], 0) << "the plan was never enforced";
}

TEST_P(Torch, PrintsTheSameChecksumsUnderABudget) {
  const Scratch scratch;
  Words argv =
      joined({python_, REPRISE_TORCH_PROGRAM, std::to_string(GetParam().seed), std::to_string(GetParam().iterations)},
             GetParam().elements);
  const Outcome plain = well(run(argv, plain_environment(scratch)));
  ASSERT_TRUE(has(plain.out, "final checksum "));
  for (const std::string budget : {"80%", "50%"}) {
    SCOPED_TRACE(budget);
    const Outcome managed = run(argv, managed_environment(scratch, budget));
    EXPECT_EQ(managed.out, plain.out) << managed.err;
    EXPECT_FALSE(has(managed.err, "defect"));
    ASSERT_EQ(managed.exit_code, 0) << managed.err;
    expect_within_budget(scratch, budget);
  }
}

// Dataflow hashing of PyTorch's own kernels: equal in each process, and not equal where the program is another one.
class TorchOracle : public WithTorch {
 protected:
  void train(const std::string& log, const Words& options = {}) {
    Words argv = joined({python_, REPRISE_TORCH_TRAINING}, options);
    const Outcome ran =
        run(argv, merged(plain_environment(scratch_), {{"REPRISE_SIM_HASH_LOG", file(log + ".hashes")}}), 300);
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
  Outcome compare(const std::string& other) {
    return run({REPRISE_FIRST_DIFFERENCE, file("plain.hashes"), file(other + ".hashes")});
  }
};

TEST_F(TorchOracle, TrainingIsTheSameInThreeProcesses) {
  train("plain");
  for (const char* other : {"second", "third"}) {
    train(other);
    well(compare(other));
  }
}

TEST_F(TorchOracle, AnotherSeedRateOrStepIsSeen) {
  train("plain");
  const std::vector<Words> others = {{"--seed", "2"}, {"--rate", "0.0011"}, {"--steps", "4"}};
  for (const auto& options : others) {
    train("other", options);
    const Outcome outcome = compare("other");
    EXPECT_EQ(outcome.exit_code, 1) << options[0] << ": " << outcome.out << outcome.err;
  }
}

// Products of all shapes on bytes that came from the host, memory as PyTorch sees it, and an exit code of its own.
constexpr char kProducts[] = R"(
import hashlib, sys, torch
from torch.nn import functional
torch.manual_seed(1)
def make(*shape, dtype=torch.float32): return torch.randn(*shape).to(dtype).to('cuda')
def layer(dtype): return functional.linear(*(make(*shape, dtype=dtype) for shape in ((48, 40), (24, 40), (24,))))
results = [layer(dtype) for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64)]
results += [make(48, 40) @ make(24, 40).T, torch.bmm(make(3, 5, 7), make(3, 7, 6)), torch.dot(make(24), make(24)),
            torch.mm(make(5, 7, dtype=torch.complex64), make(7, 6, dtype=torch.complex64))]
for result in results: print(hashlib.sha256(result.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()).hexdigest()[:16])
print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
sys.exit(7)
)";

// One command is all that it takes: our runtime and cuBLAS before NVIDIA's, and the allocator's settings.
TEST_F(TorchCommand, StartsAScriptWithProductsOnTheSimulatedDevice) {
  if (!std::filesystem::exists(built("lib/sim/libcublas.so.13"))) GTEST_SKIP() << "built without cuBLAS's headers";
  const Scratch scratch;
  const Outcome plain =
      run({python_, "-c", kProducts}, merged(merged(simulated_device(), allocator()),
                                             {{"LD_PRELOAD", runtime() + ":" + built("lib/sim/libcublas.so.13") + ":" +
                                                                 built("lib/sim/libcublasLt.so.13")}}));
  ASSERT_EQ(plain.exit_code, 7) << plain.err;
  EXPECT_EQ(std::count(plain.out.begin(), plain.out.end(), '\n'), 9) << plain.out;
  const Outcome managed = run({built("bin/reprise"), "run", "--device", "sim", "--framework", "torch", "--budget",
                               "4GiB", "-o", scratch.path("report.html"), "--", python_, "-c", kProducts},
                              {{"REPRISE_SIM_GRANULARITY", "64KiB"}});
  EXPECT_EQ(managed.exit_code, 7) << managed.err;
  EXPECT_EQ(managed.out, plain.out) << managed.err;
}

// A model whose second half is on another device, which Reprise does not manage (as of huggingface's device_map).
constexpr char kTwoDevices[] = R"(
import torch
from torch import nn
from torch.nn.functional import mse_loss
torch.manual_seed(0)
first = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 256)).to('cuda:0')
second = nn.Sequential(nn.GELU(), nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 128)).to('cuda:1')
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 1e-2)
for step in range(8):
  x = torch.randn(128, 128)
  loss = mse_loss(second(first(x.to('cuda:0')).to('cuda:1')), x.to('cuda:1'))
  optimizer.zero_grad(); loss.backward(); optimizer.step()
  print(f'{loss.detach().cpu().view(torch.int32).item() & 0xffffffff:08x}', flush=True)
)";

TEST_F(TorchCommand, AModelOnTwoDevicesHasTheSameLosses) {
  if (!std::filesystem::exists(built("lib/sim/libcublas.so.13"))) GTEST_SKIP() << "built without cuBLAS's headers";
  const Scratch scratch;
  const Environment devices = {{"REPRISE_SIM_GRANULARITY", "64KiB"}, {"REPRISE_SIM_DEVICES", "2"}};
  const auto train = [&](const std::string& budget) {
    return run({built("bin/reprise"), "run", "--device", "sim", "--framework", "torch", "--budget", budget, "-o",
                scratch.path(budget + ".html"), "--", python_, "-c", kTwoDevices},
               devices, 300);
  };
  const std::string libraries =
      runtime() + ":" + built("lib/sim/libcublas.so.13") + ":" + built("lib/sim/libcublasLt.so.13");
  const Outcome plain =
      run({python_, "-c", kTwoDevices},
          merged(merged(merged(simulated_device(), allocator()), devices), {{"LD_PRELOAD", libraries}}));
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(std::count(plain.out.begin(), plain.out.end(), '\n'), 8) << plain.out;
  for (const char* const budget : {"4GiB", "60%"}) {
    const Outcome managed = well(train(budget));
    EXPECT_EQ(managed.out, plain.out) << budget << ": " << managed.err;
  }
}

constexpr char kProfiled[] = R"(
import torch
from torch.profiler import profile, ProfilerActivity
x = torch.ones(8, 8, device='cuda')
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
    x @ x
    torch.cuda.synchronize()
print(any(event.key == 'aten::mm' for event in seen.key_averages()))
)";

// NVIDIA's CUPTI, which PyTorch links, would call itself without end here.
TEST_F(TorchCommand, IsProfiledWithoutTheDevice) {
  const Scratch scratch;
  const Outcome outcome = run({built("bin/reprise"), "run", "--device", "sim", "--budget", "4GiB", "-o",
                               scratch.path("report.html"), "--", python_, "-c", kProfiled});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "True\n");
  EXPECT_TRUE(has(outcome.err, "CUPTI is not supported"));
}

// By PyTorch's own calls of the driver, through CUDA's runtime.
TEST_F(TorchCommand, WhatTheLauncherSetsIsToldWhereItHurtsOrIsTakenAway) {
  const auto ran = [&](const std::string& script, const Environment& environment = {}) {
    const Scratch scratch;
    return run({built("bin/reprise"), "run", "--device", "sim", "--budget", "60%", "-o", scratch.path("report.html"),
                "--", python_, "-c", script},
               environment);
  };
  const std::string lacks = "PYTORCH_ALLOC_CONF=backend:native";
  const std::string history = "import torch; torch.cuda.memory._record_memory_history(max_entries=1000)";
  const Outcome failed = ran(history);
  EXPECT_EQ(failed.exit_code, 1) << failed.err;
  EXPECT_TRUE(has(failed.err, lacks));
  const Outcome native = ran(history, {{"PYTORCH_ALLOC_CONF", "backend:native"}});
  EXPECT_EQ(native.exit_code, 0) << "the way out that the line names: " << native.err;
  const std::string setting = "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128";
  const Outcome set =
      ran("import os; os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'max_split_size_mb:128'\n"
          "import torch; x = torch.zeros(1 << 20, device='cuda'); y = torch.zeros(1 << 10, device='cuda')");
  EXPECT_EQ(set.exit_code, 0) << set.err;
  EXPECT_TRUE(has_cause(set.err, Cause::torch_allocator_set));
  EXPECT_EQ(count_of(set.err, setting), 1u) << set.err;
}

// Seeds whose copies fit half of the memory (1 and 2 have larger ones), and whose checksums notice a bit that is lost
// in a reload or in the staging area.
INSTANTIATE_TEST_SUITE_P(Seeds, Torch,
                         testing::Values(Case{4, 24, {}}, Case{5, 24, {}}, Case{6, 24, {}}, Case{7, 24, {}},
                                         Case{9, 24, {}}, Case{11, 24, {}}));
// Tensors of 512 KiB and 1 MiB only: copies from pageable memory end exactly with the staging area, again and again.
INSTANTIATE_TEST_SUITE_P(SizesThatFillTheStagingArea, Torch, testing::Values(Case{21, 16, {"131072", "262144"}}));

}  // namespace
}  // namespace reprise::e2e
