// What pages say of programs as large as those of a GPU: PyTorch's call stacks, and what mapping chunks takes there.
#include "tests/support/test.h"
#include "tools/report/report.h"
#include "tools/report/view/frames.h"

namespace reprise::report {
namespace {

// As recorded of PyTorch 2.11's package, whose libraries name only what they export.
TEST(LargePrograms, WhoAskedIsNoNamelessFrameOfPyTorch) {
  const std::string allocator =
      "0x1589d (libcudart.so.13)\ncudaMallocAsync+0x20e (libcudart.so.13)\n0x4bfb4 (libc10_cuda.so)\n"
      "0x5105c (libc10_cuda.so)\n";
  EXPECT_EQ(own_frame(allocator + "at::detail::empty_strided_cuda(c10::ArrayRef<long>) (libtorch_cuda.so)\n"
                                  "0x36aaccd (libtorch_cuda.so)\n"
                                  "at::_ops::empty_strided::redispatch(c10::DispatchKeySet) (libtorch_cpu.so)\n"
                                  "0x2f19a7e (libtorch_cpu.so)\n"
                                  "at::native::_to_copy(at::Tensor const&) (libtorch_cpu.so)\n_start (python3)"),
            "at::native::_to_copy(at::Tensor const&) (libtorch_cpu.so)");
  EXPECT_EQ(own_frame(allocator + "0x4c6691 (program)\nmain (program)"), "0x4c6691 (program)") << "a stripped program";
  EXPECT_EQ(own_frame("0x4bfb4 (libc10_cuda.so)"), "0x4bfb4 (libc10_cuda.so)") << "there is nothing else";
}

// GPT-2 within 60 % on an H200: 21 479 calls of some 20 us in an iteration of 1.39 s.
TEST(LargePrograms, BytesAreAdvisedWherePercentagesMakeChunksSmall) {
  RunLog log;
  log.mode = "run";
  log.budget_percent = 60;
  log.budget_bytes = uint64_t{10972299264};
  log.chunk_bytes = 2 << 20;
  RunIteration iteration;
  iteration.planned = true;
  iteration.wall_ns = 1'390'000'000;
  iteration.vmm_calls = 21'479;
  log.iterations.assign(3, iteration);
  log.iterations_planned = 3;
  const auto advised = [&] { return advice_section({nullptr, nullptr, &log}).dump().find("--budget 10464MiB"); };
  EXPECT_NE(advised(), std::string::npos) << advice_section({nullptr, nullptr, &log}).dump(1);
  log.chunk_bytes = 8 << 20;
  EXPECT_EQ(advised(), std::string::npos) << "they are as large as those of a budget in bytes";
  log.chunk_bytes = 2 << 20;
  log.budget_percent = 0;
  EXPECT_EQ(advised(), std::string::npos) << "it was given in bytes";
  log.budget_percent = 60;
  for (RunIteration& one : log.iterations) one.vmm_calls = 200;
  EXPECT_EQ(advised(), std::string::npos) << "mapping takes next to nothing";
}

}  // namespace
}  // namespace reprise::report
