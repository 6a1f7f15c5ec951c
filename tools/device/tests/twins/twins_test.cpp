// Kernels that nvcc compiled, found by name and layout in their cubin and run as host twins.
#include <csetjmp>

#include "preload/images/image.h"
#include "tests/support/test.h"
#include "tools/device/twins/executor.h"

namespace reprise::sim {
namespace {

using images::Image;
using images::parse_image;

// What the driver does at a launch: parameters laid out as the image says.
class Twins : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("REPRISE_SIM_TWINS", TWINS_LIBRARY, 1);
    const char* problem = nullptr;
    load_twins(&problem);
    ASSERT_EQ(problem, nullptr) << problem;
    std::ifstream file(TWINS_CUBIN, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    auto parsed = good(parse_image(bytes.data(), 90));
    image_ = new Image(std::move(parsed));
  }

  struct Shape {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes = 0;
  };

  template <typename... Arguments>
  static void launch(const char* name, const Shape& shape, const Arguments&... arguments) {
    const KernelImage* kernel = nullptr;
    for (const auto& candidate : image_->kernels) {
      if (candidate.name == name) kernel = &candidate;
    }
    ASSERT_NE(kernel, nullptr) << name;
    ASSERT_EQ(kernel->parameters.size(), sizeof...(Arguments));
    // Kept, because a test leaves a kernel by siglongjmp, past destructors.
    thread_local std::vector<uint8_t> blob;
    blob.clear();
    size_t i = 0;
    [[maybe_unused]] const auto place = [&](const auto& argument) {
      const auto& parameter = kernel->parameters[i++];
      ASSERT_EQ(parameter.bytes, sizeof argument);
      const size_t offset = parameter.offset - kernel->parameters[0].offset;
      blob.resize(offset + sizeof argument);
      std::memcpy(blob.data() + offset, &argument, sizeof argument);
    };
    (place(arguments), ...);
    KernelRun run{kernel, blob.data(), static_cast<uint32_t>(blob.size()), {}, {}, shape.shared_bytes, {}, 0};
    std::memcpy(run.grid, shape.grid, sizeof run.grid);
    std::memcpy(run.block, shape.block, sizeof run.block);
    execute_kernel(run);
  }

  static Image* image_;
};
Image* Twins::image_ = nullptr;

struct Pair {
  char tag;
  double value;
};

TEST_F(Twins, ArgumentsOfEverySize) {
  std::vector<float> data(1000);
  std::iota(data.begin(), data.end(), 0.0f);
  auto* pointer = data.data();
  launch("_ZN6nested5scaleIfEEvPT_iS1_4Pair", {{4, 1, 1}, {256, 1, 1}}, pointer, 990, 0.5f, Pair{1, 10.0});
  for (size_t i = 0; i < data.size(); ++i) {
    const float before = static_cast<float>(i);
    EXPECT_EQ(data[i], i < 990 ? before * static_cast<float>(i % 4 + 1) + 11.0f : before);
  }
}

TEST_F(Twins, IndicesInThreeDimensions) {
  std::vector<unsigned> out(2 * 3 * 4 * 5 * 3 * 2);
  auto* pointer = out.data();
  launch("_Z5ranksPj", {{2, 3, 4}, {5, 3, 2}}, pointer);
  for (unsigned i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i / 30 * 10000 + i % 30);
}

TEST_F(Twins, BarriersAndDynamicSharedMemory) {
  std::vector<float> in(4 * 1024);
  std::iota(in.begin(), in.end(), 0.0f);
  std::vector<float> out(4);
  const float* source = in.data();
  float* target = out.data();
  launch("_Z9sum_blockPKfPf", {{4, 1, 1}, {1024, 1, 1}, 4096}, source, target);
  for (size_t block = 0; block < 4; ++block) {
    EXPECT_EQ(out[block], std::accumulate(&in[block * 1024], &in[block * 1024] + 1024, 0.0f));
  }
  launch("_Z9sum_blockPKfPf", {{1, 1, 1}, {1, 1, 1}, 4096}, source + 7, target);
  EXPECT_EQ(out[0], 7.0f);
}

TEST_F(Twins, ThreadsThatEndBeforeTheBarrier) {
  std::vector<int> data(256);
  std::iota(data.begin(), data.end(), 0);
  int* pointer = data.data();
  launch("_Z12reverse_somePii", {{1, 1, 1}, {256, 1, 1}}, pointer, 100);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(data[static_cast<size_t>(i)], i < 100 ? 99 - i : i);
}

TEST_F(Twins, Shuffles) {
  std::vector<float> in(128);
  std::iota(in.begin(), in.end(), 0.0f);
  std::vector<float> out(4 * 128);
  std::vector<unsigned> ballots(128);
  const float* source = in.data();
  float* target = out.data();
  unsigned* votes = ballots.data();
  launch("_Z8shufflesPKfPfPj", {{2, 1, 1}, {64, 1, 1}}, source, target, votes);
  for (size_t t = 0; t < 128; ++t) {
    const size_t first = t / 32 * 32;
    const size_t lane = t % 32;
    EXPECT_EQ(out[4 * t], std::accumulate(&in[first], &in[first] + 32, 0.0f));
    EXPECT_EQ(out[4 * t + 1], in[lane % 8 == 7 ? t : t + 1]);
    EXPECT_EQ(out[4 * t + 2], in[lane == 0 ? t : t - 1]);
    EXPECT_EQ(out[4 * t + 3], in[first + 3]);
    EXPECT_EQ(ballots[t], first == 0 ? 0xfffffe00u : 0xffffffffu);
  }
}

TEST_F(Twins, PartsOfAWarp) {
  std::vector<int> out(32);
  int* pointer = out.data();
  launch("_Z7dividedPi", {{1, 1, 1}, {32, 1, 1}}, pointer);
  for (int lane = 0; lane < 32; ++lane) {
    const int first = lane / 8 * 8;  // three rounds add up eight neighbours
    EXPECT_EQ(out[static_cast<size_t>(lane)], lane < 16 ? 8 * first + 28 : 31);
  }
}

TEST_F(Twins, LanesThatHaveEnded) {
  std::vector<unsigned> ballots(64);
  unsigned* pointer = ballots.data();
  launch("_Z11ended_lanesPj", {{1, 1, 1}, {64, 1, 1}}, pointer);
  for (size_t t = 0; t < 64; ++t) EXPECT_EQ(ballots[t], t % 32 < 4 || t % 32 >= 28 ? 0u : 0x05555550u);
}

// A twin of other parameters than the kernel's is not run.
TEST_F(Twins, OtherParametersThanTheKernel) {
  KernelImage kernel;
  kernel.name = "_Z5ranksPj";
  kernel.parameters = {{0, 8}, {8, 4}};
  kernel.parameters_known = true;
  std::vector<unsigned> out(64);
  struct {
    unsigned* pointer;
    int count = 0;
  } parameters{out.data()};
  execute_kernel({&kernel, reinterpret_cast<const uint8_t*>(&parameters), 12, {1, 1, 1}, {64, 1, 1}, 0, {}, 0});
  for (const unsigned value : out) EXPECT_EQ(value, 0u);
}

TEST_F(Twins, AtomicsAndGlobals) {
  auto* counter = static_cast<int*>(find_twin_global("counter", sizeof(int)));
  ASSERT_NE(counter, nullptr);
  EXPECT_EQ(*counter, 3);
  EXPECT_EQ(find_twin_global("counter", 8), nullptr);
  EXPECT_EQ(find_twin_global("no_such_variable", 4), nullptr);
  EXPECT_EQ(find_twin_global("stdout", 8), nullptr);  // a variable, but not the twins'
  EXPECT_NE(find_twin_global("factors", 16), nullptr);
  int totals[2] = {};
  int* pointer = totals;
  launch("_Z8count_upPi", {{2, 1, 1}, {64, 1, 1}}, pointer);
  EXPECT_EQ(*counter, 3 + 128);
  EXPECT_EQ(totals[0], 2 * 64 * 63 / 2);
  EXPECT_EQ(totals[1], 63);
}

TEST_F(Twins, ManyThreadsRunKernelsAtOnce) {
  std::vector<std::thread> engines;
  for (int engine = 0; engine < 4; ++engine) {
    engines.emplace_back([] {
      std::vector<float> in(512, 1.0f);
      std::vector<float> out(2);
      const float* source = in.data();
      float* target = out.data();
      for (int i = 0; i < 50; ++i) {
        launch("_Z9sum_blockPKfPf", {{2, 1, 1}, {256, 1, 1}, 1024}, source, target);
        ASSERT_EQ(out[0], 256.0f);
        ASSERT_EQ(out[1], 256.0f);
      }
    });
  }
  for (auto& engine : engines) engine.join();
}

sigjmp_buf after_fault;
void leave_kernel(int) { siglongjmp(after_fault, 1); }

// The driver's engine leaves a kernel that faults from the signal handler; the next kernel must find order.
TEST_F(Twins, RunsOnAfterAFaultAmongFibers) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = &leave_kernel;
  sigaction(SIGSEGV, &action, &before);
  std::vector<int> data(64);
  int* pointer = data.data();
  int* null_pointer = nullptr;
  if (sigsetjmp(after_fault, 1) == 0) {
    launch("_Z19fault_after_barrierPiS_", {{1, 1, 1}, {64, 1, 1}}, pointer, null_pointer);
    ADD_FAILURE() << "no fault";
  }
  sigaction(SIGSEGV, &before, nullptr);
  EXPECT_EQ(data[5], 1);
  std::vector<float> in(64, 2.0f);
  std::vector<float> out(1);
  const float* source = in.data();
  float* target = out.data();
  launch("_Z9sum_blockPKfPf", {{1, 1, 1}, {64, 1, 1}, 256}, source, target);
  EXPECT_EQ(out[0], 128.0f);
  launch("_Z7nothingv", {{1, 1, 1}, {64, 1, 1}});
}

}  // namespace
}  // namespace reprise::sim
