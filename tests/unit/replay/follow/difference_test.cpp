// What a live call has that the plan's call of the same name does not.
#include "replay/follow/difference.h"

#include "preload/trace/signature.h"
#include "tests/support/test.h"

namespace reprise::replay {
namespace {

using plan::CallKind;
using trace::OpKind;
constexpr uint64_t kChunk = 4096;
constexpr uint64_t kSize = 2 * kChunk;
constexpr Zone kArena = {uint64_t{1} << 40, 4096 * kChunk};
constexpr CUdeviceptr kWeight = kArena.base + 2048 * kChunk;

// A weight that lives, and an iteration of: allocate x, an op on x, free x.
class Difference : public ::testing::Test {
 protected:
  Difference() {
    plan_.chunk_bytes = kChunk;
    plan_.tensors.resize(2);
    for (plan::Tensor& tensor : plan_.tensors) {
      tensor.size = kSize;
      tensor.chunk_count = 2;
    }
    plan_.tensors[1].allocate_call = 0;
    plan_.tensors[1].free_call = 2;
    plan_.calls.resize(3);
    plan_.calls[0].kind = CallKind::allocate;
    plan_.calls[0].tensor = plan_.calls[2].tensor = 1;
    plan_.calls[1].name = "memset";
    plan_.calls[1].op = OpKind::memset;
    plan_.calls[1].signature = 5;
    plan_.calls[1].stream = 3;
    plan_.calls[1].accesses = {{1, trace::kAccessWrite, 0, kSize}};
    plan_.calls[2].kind = CallKind::free;
    plan_.vertices.resize(2);
    plan_.calls[1].vertex = 0;
    plan_.calls[2].vertex = 1;
    plan_.vertices[0].call = 1;
    plan_.vertices[1].kind = plan::VertexKind::release;
    plan_.vertices[1].call = 2;
    plan_.vertices[1].tensor = 1;
    plan_.order = {0, 1};
  }
  void begin() {
    std::string why;
    ASSERT_TRUE(make_plan_index(plan_, {kArena.base, 1024 * kChunk}, kChunk, &index_, &why)) << why;
    matcher_.begin(&index_, {kWeight}, kArena, 0);
  }
  AllocateCall allocation(uint64_t size, trace::Origin origin = trace::Origin::alloc) {
    AllocateCall call{};
    call.size = size;
    call.origin = origin;
    return call;
  }
  // The plan's allocation of x has come.
  void allocate() {
    begin();
    Match match;
    ASSERT_TRUE(matcher_.allocate(allocation(kSize), &match, &x_));
  }
  void add_access(CUdeviceptr base, uint64_t offset, uint64_t size) {
    accesses_.emplace_back();
    accesses_.back().address = base + offset;
    accesses_.back().offset = offset;
    accesses_.back().size = size;
    accesses_.back().parameter_offset = 0;
  }
  // As the plan has it; the test changes it.
  Command as_planned() {
    Command command;
    command.op = plan_.calls[1].op;
    command.signature = 5;
    command.stream_id = 3;
    command.name = "memset";
    add_access(x_, 0, kSize);
    return command;
  }
  std::string difference_of(Command command) {
    command.accesses = accesses_.data();
    command.access_count = static_cast<uint32_t>(accesses_.size());
    return difference(matcher_, command);
  }

  plan::Plan plan_;
  PlanIndex index_;
  Matcher matcher_;
  CUdeviceptr x_ = 0;
  std::vector<Access> accesses_;
};

TEST_F(Difference, AnotherNameSaysItself) {
  allocate();
  Command command = as_planned();
  command.name = "a_kernel";
  EXPECT_EQ(difference_of(command), "");
  EXPECT_EQ(difference(matcher_, allocation(kSize)), "") << "an op is expected";
  EXPECT_EQ(difference(matcher_, FreeCall{}), "");
}

TEST_F(Difference, OfAMemset) {
  allocate();
  Command command = as_planned();
  command.signature = 6;
  accesses_[0].size = kChunk;
  EXPECT_EQ(difference_of(command), "4.0 KiB instead of 8.0 KiB");
  accesses_[0].size = kSize;
  command = as_planned();
  EXPECT_EQ(difference_of(command), "2 operands instead of 1");
  accesses_.erase(accesses_.begin());
  accesses_[0].address = kWeight;
  EXPECT_EQ(difference_of(command), "another tensor");
  accesses_[0].address = x_ + 16;
  accesses_[0].offset = 16;
  EXPECT_EQ(difference_of(command), "at byte 16 of its tensor instead of 0");
}

// Bytes that a figure of people's does not tell apart.
TEST_F(Difference, SizesThatRoundAlikeAreToldInBytes) {
  allocate();
  Command command = as_planned();
  accesses_[0].size = kSize - 1;
  EXPECT_EQ(difference_of(command), "8191 B instead of 8192 B");
}

TEST_F(Difference, OfALaunch) {
  plan_.calls[1].op = OpKind::launch;
  plan_.calls[1].accesses = {{0, trace::kAccessRead, 0, 0, 0}, {1, trace::kAccessWrite, 0, 0, 8}};
  allocate();
  add_access(kWeight, 0, 0);
  Command command = as_planned();
  command.signature = 6;
  EXPECT_EQ(difference_of(command), "another grid, block or shared memory");
  std::swap(accesses_[0], accesses_[1]);
  command.signature = 5;
  EXPECT_EQ(difference_of(command), "operand 1: another tensor");
}

TEST_F(Difference, OfAllocationsAndFrees) {
  begin();
  EXPECT_EQ(difference(matcher_, allocation(kChunk)), "4.0 KiB instead of 8.0 KiB");
  EXPECT_EQ(difference(matcher_, allocation(kSize, trace::Origin::async)), "by another call of the driver");
  allocate();
  Match match;
  Command command = as_planned();
  command.accesses = accesses_.data();
  command.access_count = 1;
  ASSERT_TRUE(matcher_.op(command, &match));
  FreeCall call{};
  call.size = kSize;
  EXPECT_EQ(difference(matcher_, call), "of another tensor");
  call.size = kChunk;
  EXPECT_EQ(difference(matcher_, call), "4.0 KiB instead of 8.0 KiB");
}

}  // namespace
}  // namespace reprise::replay
