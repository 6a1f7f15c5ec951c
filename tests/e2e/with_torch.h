// A suite of tests that need a PyTorch for CUDA 13 (torch_python()): skipped without one, with the reason. It is looked
// for once a process. Callers: torch_test, pytorch/scripts_test.
#pragma once

#include "tests/e2e/harness.h"

namespace reprise::e2e {

// The program's last word on stderr is the reason why it cannot be used.
inline constexpr char kTorchProbe[] = R"(
import sys
try:
  import torch
except Exception as problem:
  sys.exit(f'{sys.executable}: {type(problem).__name__}: {problem}')
if not (torch.version.cuda or '').startswith('13.'):
  sys.exit(f'{sys.executable}: torch {torch.__version__} is not for CUDA 13')
print(sys.executable, end='')
)";

class WithTorch : public InScratch {
 protected:
  static void SetUpTestSuite() {
    if (!python_.empty() || !problem_.empty()) return;  // once for all suites
    const std::string python = torch_python();
    const Outcome probe = run({"/usr/bin/env", python, "-c", kTorchProbe});
    if (probe.exit_code == 0) {
      python_ = probe.out;
    } else {
      problem_ = probe.exit_code == 124 ? python + ": importing torch takes too long" : probe.err;
    }
  }
  // ctest knows this line.
  void SetUp() override {
    if (python_.empty()) GTEST_SKIP() << "no PyTorch (REPRISE_TORCH_PYTHON names a python that has one): " << problem_;
  }

  inline static std::string python_;
  inline static std::string problem_;
};

}  // namespace reprise::e2e
