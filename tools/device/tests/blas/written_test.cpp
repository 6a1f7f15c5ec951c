// Of the memory that a product is handed, its twin marks the elements of D as written, and nothing else.
#include "tests/support/test.h"
#include "tools/device/blas/types.h"
#include "tools/device/twins/executor.h"

namespace reprise::sim::blas {
namespace {

constexpr uint64_t kBytes = 4096;
using Intervals = std::vector<WrittenBytes::Interval>;

// One allocation for all operands, as a caching allocator hands out.
struct Block {
  alignas(256) std::array<uint8_t, kBytes> content{};
  WrittenBytes written{kBytes};
  uint64_t at(uint64_t offset) const { return reinterpret_cast<uint64_t>(content.data()) + offset; }
};

KernelImage product_kernel() {
  KernelImage kernel;
  kernel.name = "reprise_blas_product";
#define PARAMETER64(name) kernel.parameters.push_back({offsetof(Parameters, name), 8});
#define PARAMETER32(name) kernel.parameters.push_back({offsetof(Parameters, name), 4});
#include "tools/device/blas/parameters.def"
#undef PARAMETER64
#undef PARAMETER32
  kernel.parameters_known = true;
  return kernel;
}

// A product of 3 rows and 2 columns of floats from 2 KiB on, with these steps between rows, columns and matrices of D.
Intervals written_by(uint64_t row, uint64_t column, uint64_t batch = 1, uint64_t matrix = 0) {
  Block block;
  Parameters p;
  p.a = block.at(0);
  p.b = block.at(512);
  p.d = block.at(2048);
  p.workspace = block.at(1024);
  p.workspace_bytes = 1024;
  p.a_row = p.b_row = 1;
  p.a_column = 3;
  p.b_column = 4;
  p.d_row = row;
  p.d_column = column;
  p.d_matrix = matrix;
  p.m = 3;
  p.n = 2;
  p.k = 4;
  p.batch = static_cast<uint32_t>(batch);
  p.a_type = p.b_type = p.c_type = p.d_type = p.scale_type = CUDA_R_32F;
  const auto* bytes = reinterpret_cast<const uint8_t*>(&p);
  const KernelImage kernel = product_kernel();
  const uint32_t size = kernel.parameters.back().offset + kernel.parameters.back().bytes;
  const auto addresses = find_addresses(bytes, size, [&](uint64_t address, Pointee* pointee) {
    if (address - block.at(0) >= kBytes) return false;
    *pointee = {block.at(0), kBytes, &block.written};
    return true;
  });
  const auto before = block.content;
  execute_kernel({&kernel, bytes, size, {1, 1, 1}, {256, 1, 1}, 0, addresses, 1});
  Intervals written = block.written.intervals();
  for (uint64_t i = 0; i < kBytes; ++i) {
    bool marked = false;
    for (const auto& [begin, end] : written) marked = marked || (begin <= i && i < end);
    EXPECT_TRUE(marked || block.content[i] == before[i]) << "written and not marked: " << i;
  }
  for (auto& [begin, end] : written) begin -= 2048, end -= 2048;
  return written;
}

class Written : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* problem = nullptr;
    load_twins(&problem);
    ASSERT_EQ(problem, nullptr) << problem;
  }
};

TEST_F(Written, ColumnsWithoutWhatLiesBetweenThem) {
  EXPECT_EQ(written_by(1, 3), (Intervals{{0, 24}}));
  EXPECT_EQ(written_by(1, 8), (Intervals{{0, 12}, {32, 44}}));
}

TEST_F(Written, RowsWithoutWhatLiesBetweenThem) {
  EXPECT_EQ(written_by(2, 1), (Intervals{{0, 24}}));
  EXPECT_EQ(written_by(5, 1), (Intervals{{0, 8}, {20, 28}, {40, 48}}));
}

TEST_F(Written, ElementsThatHaveNoNeighbours) {
  EXPECT_EQ(written_by(2, 8), (Intervals{{0, 4}, {8, 12}, {16, 20}, {32, 36}, {40, 44}, {48, 52}}));
}

TEST_F(Written, MatricesOfABatch) {
  EXPECT_EQ(written_by(1, 3, 2, 6), (Intervals{{0, 48}}));
  EXPECT_EQ(written_by(1, 4, 2, 16), (Intervals{{0, 12}, {16, 28}, {64, 76}, {80, 92}}));
}

}  // namespace
}  // namespace reprise::sim::blas
