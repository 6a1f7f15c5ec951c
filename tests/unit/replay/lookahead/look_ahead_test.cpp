// Moves ahead of calls that wait in the log, on a fake driver.
#include "replay/lookahead/look_ahead.h"

#include "tests/support/test.h"
#include "tests/unit/replay/memory/small_device.h"

namespace reprise::replay {
namespace {

using Calls = std::vector<std::string>;

class LookAheadTest : public ::testing::Test {
 protected:
  LookAheadTest() {
    shared_.command_log.open(1 << 20);
    shared_.arena = device_.memory.arena;
    shared_.chunk_bytes = device_.chunk_bytes;
    device_.memory.traffic.spared_bytes = 1;  // something had to leave before
  }
  ~LookAheadTest() override {
    while (performed_ < shared_.command_log.tail()) perform_next();
    look_.stop();
    device_.driver.run_all();
    EXPECT_EQ(device_.driver.violations, Calls{});
  }

  // A tensor of one chunk, which a plan has left on the device or on the host.
  ResidentTensor& tensor(bool on_device) {
    const uint64_t number = ++made_;
    const CUdeviceptr base = device_.memory.arena.ranges.base + 2 * number * device_.chunk_bytes;
    ResidentTensor& made = *device_.memory.tensors.insert(base, device_.chunk_bytes, 1);
    made.allocation = number;
    EXPECT_EQ(pager_.make_resident({&made}), CUDA_SUCCESS);
    made.wrote();
    if (!on_device) {
      EXPECT_EQ(pager_.evict(made), CUDA_SUCCESS);
    }
    return made;
  }
  void call(const ResidentTensor& touched) {
    Access access{};
    access.address = touched.base;
    Command command{};
    command.op = trace::OpKind::launch;
    command.accesses = &access;
    command.access_count = 1;
    shared_.command_log.publish(shared_.command_log.append_op(command));
  }
  void perform_next() {
    LogEntry* const entry = shared_.command_log.at(performed_++);
    look_.performed(*entry);
    shared_.command_log.done(entry);
  }
  void look() {
    look_.begin(performed_);
    look_.step(true);
    device_.driver.run_all();
  }

  testing::SmallDevice device_{2, 4096, 8 << 20, testing::Safety::strict};
  Common common_;
  Account account_{common_};
  Shared shared_{&common_, &account_};
  Pager pager_{&device_.memory};
  LookAhead look_{&shared_, &device_.memory, &pager_};
  uint64_t performed_ = 0;

 private:
  uint64_t made_ = 0;
};

TEST_F(LookAheadTest, WhatNoCallHasNamedLeavesAheadOfCallsToo) {
  const ResidentTensor& needed = tensor(false);
  const ResidentTensor& kept = tensor(true);
  const ResidentTensor& not_named = tensor(true);
  call(kept);
  look();
  perform_next();
  look_.stop();
  call(kept);
  call(needed);
  look();
  look();
  EXPECT_FALSE(not_named.is_resident());
  EXPECT_TRUE(needed.is_resident());
}

// Else the allocation's range is mapped anew.
TEST_F(LookAheadTest, WhatComesLeavesAllocationsAheadTheirChunks) {
  ResidentTensor& needed = tensor(false);
  ResidentTensor& freed = tensor(true);
  ResidentTensor& freed_later = tensor(true);
  const CUdeviceptr base = freed.base;
  const std::vector<ChunkIndex> chunks = device_.memory.mappings.find(base)->chunks;
  pager_.forget(freed);
  pager_.forget(freed_later);
  call(needed);
  LogEntry* const allocation = shared_.command_log.append(EntryKind::allocate);
  allocation->address = base;
  allocation->size = device_.chunk_bytes;
  allocation->chunk_count = 1;
  allocation->allocation = 100;
  shared_.command_log.publish(allocation);
  look();
  EXPECT_NE(device_.memory.chunks[chunks[0]].occupant, &needed);
  EXPECT_TRUE(device_.memory.chunks.is_free(chunks[0]));
}

}  // namespace
}  // namespace reprise::replay
