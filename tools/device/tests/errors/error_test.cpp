
#include "tools/device/tests/errors/error_table.h"

namespace reprise::sim_test {
namespace {

class ErrorTable : public DriverTest, public ::testing::WithParamInterface<ErrorCase> {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    good_.device = device_;
    good_.context = context_;
    good_.module = module_;
    good_.function = function("empty");
    good_.one_parameter = function("hold");
    ASSERT_CU(CU(cuStreamCreate)(&good_.stream, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(CU(cuEventCreate)(&good_.event, 0));
    ASSERT_CU(CU(cuMemAlloc)(&good_.memory, kBytes));
    ASSERT_CU(CU(cuMemHostAlloc)(&good_.pinned, kBytes, 0));
    ASSERT_CU(CU(cuGraphCreate)(&good_.graph, 0));
    ASSERT_CU(CU(cuDeviceGetDefaultMemPool)(&good_.pool, device_));
    good_.properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    good_.properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    ASSERT_CU(CU(cuMemGetAllocationGranularity)(&good_.unit, &good_.properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ASSERT_CU(CU(cuMemAddressReserve)(&good_.reserved, 4 * good_.unit, 0, 0, 0));
    ASSERT_CU(CU(cuMemCreate)(&good_.chunk, good_.unit, &good_.properties, 0));
    ASSERT_CU(CU(cuMemMap)(good_.reserved, good_.unit, 0, good_.chunk, 0));
    CUmemAccessDesc access = {good_.properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    ASSERT_CU(CU(cuMemSetAccess)(good_.reserved, good_.unit, &access, 1));
  }
  void TearDown() override {
    CU(cuCtxSetCurrent)(context_);
    CU(cuMemUnmap)(good_.reserved, good_.unit);
    CU(cuMemRelease)(good_.chunk);
    CU(cuMemAddressFree)(good_.reserved, 4 * good_.unit);
    CU(cuGraphDestroy)(good_.graph);
    CU(cuMemFreeHost)(good_.pinned);
    CU(cuMemFree)(good_.memory);
    CU(cuEventDestroy)(good_.event);
    CU(cuStreamDestroy)(good_.stream);
    DriverTest::TearDown();
  }
  Good good_;
};

void note(const ErrorCase& row, CUresult answer) {
  const char* path = std::getenv("REPRISE_ERROR_TABLE");
  if (path == nullptr || *path == 0) return;
  std::ofstream file(path, std::ios::app);
  file << row.call << '\t' << row.wrong << '\t' << name_of(row.expected) << '\t' << name_of(answer) << '\n';
}

TEST_P(ErrorTable, Row) {
  const ErrorCase& row = GetParam();
  if (row.simulated_only && !simulated()) GTEST_SKIP() << "a real driver may follow this handle, or takes this";
  const CUresult answer = row.ask(good_);
  note(row, answer);
  EXPECT_EQ(row.expected, answer) << row.call << ": " << row.wrong;
  // A refused call breaks nothing.
  ASSERT_CU(CU(cuCtxSetCurrent)(context_));
  EXPECT_CU(CU(cuCtxSynchronize)()) << row.call << ": " << row.wrong;
}

std::string row_name(const ::testing::TestParamInfo<ErrorCase>& info) {
  std::string name = std::string(info.param.call) + "_" + info.param.wrong;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Context, ErrorTable, ::testing::ValuesIn(context_cases()), row_name);
INSTANTIATE_TEST_SUITE_P(Memory, ErrorTable, ::testing::ValuesIn(memory_cases()), row_name);
INSTANTIATE_TEST_SUITE_P(Stream, ErrorTable, ::testing::ValuesIn(stream_cases()), row_name);
INSTANTIATE_TEST_SUITE_P(Module, ErrorTable, ::testing::ValuesIn(module_cases()), row_name);
INSTANTIATE_TEST_SUITE_P(Graph, ErrorTable, ::testing::ValuesIn(graph_cases()), row_name);

}  // namespace

void PrintTo(const ErrorCase& row, std::ostream* out) { *out << row.call << ": " << row.wrong; }

}  // namespace reprise::sim_test
