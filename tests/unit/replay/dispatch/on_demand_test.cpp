// Entries performed on demand, on a fake driver: each is done afterwards, the program is told what the driver said, and
// addresses come back when the last work that used them is complete.
#include "replay/dispatch/on_demand.h"

#include "preload/base/readable.h"
#include "tests/support/said.h"
#include "tests/support/test.h"
#include "tests/unit/replay/memory/small_device.h"

namespace reprise::replay {
namespace {

using Calls = std::vector<std::string>;

testing::FakeDriver* device_of_kernels = nullptr;
CUresult answer_of_kernels = CUDA_SUCCESS;
int kernels_run = 0;

CUcontext context_of_kernels = nullptr;

CUresult launch(const void*, CUstream stream) noexcept {
  context_of_kernels = device_of_kernels->current;
  device_of_kernels->launch(stream, [] { ++kernels_run; });
  return answer_of_kernels;
}

class OnDemandTest : public ::testing::Test {
 protected:
  explicit OnDemandTest(testing::Safety safety = testing::Safety::trusted) : device_(4, 4096, 8 << 20, safety) {
    device_of_kernels = &device_.driver;
    answer_of_kernels = CUDA_SUCCESS;
    kernels_run = 0;
    shared_.command_log.open(1 << 20);
    shared_.context = device_.context;
    shared_.chunk_bytes = device_.chunk_bytes;
    shared_.arena = device_.memory.arena;
    shared_.addresses.open(shared_.arena, device_.chunk_bytes);
  }
  ~OnDemandTest() override {
    device_.driver.run_all();
    EXPECT_EQ(device_.driver.violations, Calls{});
    EXPECT_EQ(shared_.command_log.head(), shared_.command_log.tail()) << "all entries are done";
  }

  void perform(LogEntry* entry) {
    entry->command.context = context_;
    shared_.command_log.publish(entry);
    on_demand_.perform(*entry);
  }
  CUdeviceptr allocate(uint64_t bytes) {
    LogEntry* const entry = shared_.command_log.append(EntryKind::allocate);
    entry->address = shared_.addresses.allocate(bytes);
    entry->size = bytes;
    entry->chunk_count = shared_.addresses.chunk_count(bytes);
    const CUdeviceptr address = entry->address;
    perform(entry);
    return address;
  }
  void free(CUdeviceptr address, uint64_t bytes) {
    LogEntry* const entry = shared_.command_log.append(EntryKind::free);
    entry->address = address;
    entry->size = bytes;
    perform(entry);
  }
  void kernel(CUstream stream, std::vector<CUdeviceptr> pointers, Waiter* waiter = nullptr) {
    std::vector<Access> accesses(pointers.size());
    for (size_t i = 0; i < pointers.size(); ++i) {
      accesses[i].address = pointers[i];
      accesses[i].mode = trace::kAccessRead | trace::kAccessWrite;
    }
    Command command{};
    command.op = trace::OpKind::launch;
    command.stream = stream;
    command.context = context_;
    command.accesses = accesses.data();
    command.access_count = static_cast<uint32_t>(accesses.size());
    command.name = "a_kernel";
    command.issue = &launch;
    LogEntry* const entry = shared_.command_log.append_op(command);
    entry->waiter = waiter;
    perform(entry);
  }

  // A call that its thread makes itself; the thread is the test.
  LogEntry* blocking(CUstream stream, CUdeviceptr pointer, Waiter* waiter) {
    Access access{};
    access.address = pointer;
    access.mode = trace::kAccessRead;
    Command command{};
    command.op = trace::OpKind::copy_device_to_host;
    command.stream = stream;
    command.context = context_;
    command.accesses = &access;
    command.access_count = 1;
    command.name = "a_copy";
    LogEntry* const entry = shared_.command_log.append_op(command);
    entry->program_issues = true;
    entry->waiter = waiter;
    waiter->arm();
    perform(entry);
    return entry;
  }
  static void made(LogEntry* entry, CUresult result) {
    entry->program_result = result;
    entry->program_issued.store(1);
  }

  testing::SmallDevice device_;
  CUcontext context_ = device_.context;  // of the program's calls
  Common common_;
  Account account_{common_};
  Shared shared_{&common_, &account_};
  Pager pager_{&device_.memory};
  Issuer issuer_{&shared_, &device_.memory};
  OnDemandExecutor on_demand_{&shared_, &device_.memory, &pager_, &issuer_};
};

TEST_F(OnDemandTest, AKernelRunsWithItsTensorsResident) {
  const CUdeviceptr a = allocate(2 * device_.chunk_bytes);
  const CUstream stream = device_.driver.stream();
  kernel(stream, {a});
  EXPECT_TRUE(device_.memory.tensors.find(a)->is_resident());
  EXPECT_TRUE(device_.memory.tensors.find(a)->is_written());
  device_.driver.run_all();
  EXPECT_EQ(kernels_run, 1);
  EXPECT_EQ(shared_.faults.take(), CUDA_SUCCESS);
}

class StrictOnDemandTest : public OnDemandTest {
 protected:
  StrictOnDemandTest() : OnDemandTest(testing::Safety::strict) {}
};

// Work that touches it unseen comes behind the work that had its memory before, and the device is not waited for here.
TEST_F(StrictOnDemandTest, WorkBehindAnAllocationWaitsForTheUsersOfItsMemory) {
  const CUstream one = device_.driver.stream(), other = device_.driver.stream();
  for (const bool same_size : {true, false}) {
    const CUdeviceptr a = allocate(2 * device_.chunk_bytes);
    kernel(one, {a});
    free(a, 2 * device_.chunk_bytes);
    kernels_run = 0;
    const uint64_t chunks = same_size ? 2 : 4;
    const CUdeviceptr b = allocate(chunks * device_.chunk_bytes);
    EXPECT_EQ(b == a, same_size);
    EXPECT_TRUE(device_.memory.tensors.find(b)->is_resident());
    EXPECT_EQ(kernels_run, 0);
    kernel(other, {});
    while (device_.driver.step(other)) {
    }
    EXPECT_EQ(kernels_run, 0);
    device_.driver.run_all();
    EXPECT_EQ(kernels_run, 2);
    free(b, chunks * device_.chunk_bytes);
  }
}

// A copy between devices, say: the tensor is of our context, the stream of another one.
TEST_F(OnDemandTest, WorkOfAnotherContextIsIssuedThereAndItsTensorsComeFromOurs) {
  const CUdeviceptr a = allocate(4 * device_.chunk_bytes), b = allocate(4 * device_.chunk_bytes);
  const CUstream own = device_.driver.stream();
  const CUcontext elsewhere = reinterpret_cast<CUcontext>(uint64_t{0xd0});
  device_.driver.current = elsewhere;
  const CUstream other = device_.driver.stream();
  device_.driver.current = device_.context;
  for (int round = 0; round < 3; ++round) {
    context_ = device_.context;
    kernel(own, {a});
    EXPECT_EQ(context_of_kernels, device_.context);
    context_ = elsewhere;
    kernel(other, {b});
    EXPECT_EQ(context_of_kernels, elsewhere);
    EXPECT_EQ(shared_.faults.take(), CUDA_SUCCESS) << round;
  }
  device_.driver.run_all();
  EXPECT_EQ(kernels_run, 6);
}

// The line for people has numbers that add up, whichever side has no memory.
TEST_F(OnDemandTest, WhatIsSaidOfMissingMemoryAddsUp) {
  const uint64_t chunk = device_.chunk_bytes;
  const CUstream stream = device_.driver.stream();
  const auto said = [&](const std::vector<CUdeviceptr>& tensors) {
    ::testing::internal::CaptureStderr();
    Waiter waiter;
    waiter.arm();
    kernel(stream, tensors, &waiter);
    EXPECT_EQ(waiter.result(), CUDA_ERROR_OUT_OF_MEMORY);
    return ::testing::internal::GetCapturedStderr();
  };
  const CUdeviceptr a = allocate(2 * chunk), b = allocate(2 * chunk), c = allocate(chunk);
  EXPECT_TRUE(
      has_cause(said({a, b, c}), Cause::call_above_budget,
                {{"call", "a_kernel"}, {"needed", readable_bytes(5 * chunk)}, {"allowed", readable_bytes(4 * chunk)}}));
  // The device is fuller than the budget says: it gives three chunks, and the call needs four.
  shared_.counters.limit_chunks.store(4);
  device_.driver.capacity = device_.driver.bytes + 3 * chunk;
  EXPECT_TRUE(
      has_cause(said({a, b}), Cause::call_above_room,
                {{"call", "a_kernel"}, {"needed", readable_bytes(4 * chunk)}, {"allowed", readable_bytes(3 * chunk)}}));
  for (const int nth : {1, 2}) device_.driver.fail("cuMemMap", nth);
  EXPECT_TRUE(has_cause(said({c}), Cause::driver_out_of_memory, {{"call", "a_kernel"}}));
}

TEST_F(OnDemandTest, TheWaitingThreadIsToldOrElseALaterCall) {
  const CUdeviceptr a = allocate(5 * device_.chunk_bytes);
  const CUstream stream = device_.driver.stream();
  Waiter waiter;
  waiter.arm();
  kernel(stream, {a}, &waiter);
  EXPECT_FALSE(waiter.wait());
  EXPECT_EQ(waiter.result(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(shared_.faults.take(), CUDA_SUCCESS) << "its own call was told, so nothing was lost";
  kernel(stream, {a});
  EXPECT_EQ(shared_.faults.take(), CUDA_ERROR_LAUNCH_FAILED);
  answer_of_kernels = CUDA_ERROR_ILLEGAL_ADDRESS;
  kernel(stream, {});
  EXPECT_EQ(shared_.faults.take(), CUDA_ERROR_LAUNCH_FAILED) << "the first error stays, and is told by every call";
  EXPECT_EQ(kernels_run, 0);
}

// The thread may wake late: what is lost by then is no answer of its call, and what was lost before is.
TEST_F(OnDemandTest, AWaitingThreadIsToldWhatWasLostBeforeItsCallAlone) {
  const CUdeviceptr a = allocate(device_.chunk_bytes);
  const CUstream stream = device_.driver.stream();
  Waiter first;
  first.arm();
  kernel(stream, {a}, &first);
  shared_.faults.report(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(first.result(), CUDA_SUCCESS);
  EXPECT_FALSE(shared_.faults.answered());
  Waiter second;
  second.arm();
  kernel(stream, {a}, &second);
  EXPECT_EQ(second.result(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(shared_.faults.answered());
}

TEST_F(OnDemandTest, ALargeRangeIsFreeWhenItsFreeIsReached) {
  const CUstream stream = device_.driver.stream();
  const CUdeviceptr large = allocate(2 * device_.chunk_bytes);
  kernel(stream, {large});
  free(large, 2 * device_.chunk_bytes);
  EXPECT_EQ(shared_.addresses.allocate(2 * device_.chunk_bytes), large) << "the next tensor waits for its chunks";
}

// What polling learned of a broken context is told, also where no plan is in force.
TEST_F(OnDemandTest, ABrokenContextIsTold) {
  allocate(100);
  const CUdeviceptr a = allocate(100);
  kernel(device_.driver.stream(), {a});
  free(a, 100);  // its block stays, and asks whether the kernel is complete, so there is a marker behind it
  device_.driver.fail("cuEventQuery", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  device_.memory.lanes.poll();
  kernel(device_.driver.stream(), {});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(shared_.faults.take(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// The calls have answered SUCCESS: what is not made of them is lost, unless the program named what is none.
TEST_F(OnDemandTest, AnOrderThatIsRefusedIsMadeAgainOrToldForGood) {
  const CUstream stream = device_.driver.stream();
  CUevent event = nullptr;
  ASSERT_EQ(driver().cuEventCreate(&event, 0), CUDA_SUCCESS);
  const auto order = [&](EntryKind kind) {
    LogEntry* const entry = shared_.command_log.append(kind);
    entry->event = event;
    entry->command.stream = stream;
    shared_.events.deferred(event, kind == EntryKind::event_record ? Events::Role::record : Events::Role::wait);
    perform(entry);
  };
  const struct {
    EntryKind kind;
    const char* function;
  } orders[] = {{EntryKind::event_record, "cuEventRecord"}, {EntryKind::event_wait, "cuStreamWaitEvent"}};
  for (const auto& [kind, function] : orders) {
    device_.driver.fail(function, 1, CUDA_ERROR_UNKNOWN);
    order(kind);
    EXPECT_EQ(shared_.faults.take(), CUDA_SUCCESS) << function;
    device_.driver.fail(function, 1, CUDA_ERROR_INVALID_HANDLE);
    device_.driver.fail(function, 2, CUDA_ERROR_INVALID_HANDLE);
    order(kind);
    EXPECT_EQ(shared_.faults.take(), CUDA_ERROR_INVALID_HANDLE) << function;
    EXPECT_EQ(shared_.faults.take(), CUDA_SUCCESS) << function;
  }
  device_.driver.fail("cuEventRecord", 1, CUDA_ERROR_UNKNOWN);
  device_.driver.fail("cuEventRecord", 2, CUDA_ERROR_UNKNOWN);
  order(EntryKind::event_record);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(shared_.faults.take(), CUDA_ERROR_LAUNCH_FAILED);
}

// It sleeps until its stream has come to it; what other threads call needs its memory meanwhile, and is waited for.
TEST_F(OnDemandTest, ACallThatWaitsForTheDeviceHoldsNoOtherUp) {
  const CUdeviceptr a = allocate(3 * device_.chunk_bytes), b = allocate(3 * device_.chunk_bytes);
  const CUstream slow = device_.driver.stream(), other = device_.driver.stream();
  kernel(slow, {a});
  device_.driver.launch(slow, [] {});  // around us
  Waiter waiter;
  LogEntry* const copy = blocking(slow, a, &waiter);
  EXPECT_EQ(shared_.command_log.settled(), shared_.command_log.tail());
  ASSERT_TRUE(device_.driver.step(slow));  // a's first kernel; the work around us is still to come
  kernel(other, {b});
  EXPECT_FALSE(device_.memory.tensors.find(a)->is_resident()) << "a call that is held back needs no memory";
  on_demand_.program_calls.serve();
  EXPECT_FALSE(device_.memory.tensors.find(a)->is_resident());
  device_.driver.run_all();
  on_demand_.program_calls.serve();
  EXPECT_TRUE(waiter.wait()) << "granted";
  EXPECT_TRUE(device_.memory.tensors.find(a)->is_resident());
  EXPECT_FALSE(on_demand_.program_calls.empty());
  made(copy, CUDA_SUCCESS);
  on_demand_.program_calls.serve();
  EXPECT_TRUE(on_demand_.program_calls.empty());
}

// While the thread is in the driver, its memory stays: whoever needs the room waits until the call is made.
TEST_F(OnDemandTest, RoomIsNotMadeOfWhatAGrantedCallUses) {
  const CUdeviceptr a = allocate(3 * device_.chunk_bytes), b = allocate(3 * device_.chunk_bytes);
  const CUstream stream = device_.driver.stream();
  Waiter waiter;
  LogEntry* const copy = blocking(stream, a, &waiter);
  device_.driver.run_all();
  on_demand_.program_calls.serve();
  ASSERT_TRUE(waiter.wait());
  std::atomic<bool> evicted{false};
  std::thread program([&] {
    for (int i = 0; i < 20 && !evicted; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_FALSE(evicted) << "b came before the call was made";
    made(copy, CUDA_SUCCESS);
    copy->program_issued.notify_all();
  });
  kernel(device_.driver.stream(), {b});
  evicted = true;
  program.join();
  EXPECT_TRUE(device_.memory.tensors.find(b)->is_resident());
  EXPECT_TRUE(on_demand_.program_calls.empty());
}

// Nor where what asks for it is no call of the program: bytes that are read back, moves ahead, a smaller budget.
TEST_F(OnDemandTest, NothingIsChosenToLeaveBesideAGrantedCall) {
  const CUdeviceptr a = allocate(3 * device_.chunk_bytes), b = allocate(3 * device_.chunk_bytes);
  Waiter waiter;
  LogEntry* const copy = blocking(device_.driver.stream(), a, &waiter);
  device_.driver.run_all();
  on_demand_.program_calls.serve();
  ASSERT_TRUE(waiter.wait());
  made(copy, CUDA_SUCCESS);
  ASSERT_FALSE(on_demand_.program_calls.empty()) << "the dispatcher does not know yet that it was made";
  EXPECT_EQ(pager_.make_resident({device_.memory.tensors.find(b)}), CUDA_SUCCESS);
  EXPECT_TRUE(on_demand_.program_calls.empty()) << "the next one of its chunks waits for its work";
}

TEST_F(OnDemandTest, ACallThatDoesNotFitIsAnsweredAndNotMade) {
  const CUdeviceptr a = allocate(5 * device_.chunk_bytes);
  Waiter waiter;
  LogEntry* const copy = blocking(device_.driver.stream(), a, &waiter);
  device_.driver.run_all();
  on_demand_.program_calls.serve();
  EXPECT_FALSE(waiter.wait());
  EXPECT_EQ(waiter.result(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(copy->program_issues);
}

// A small tensor of more streams than its uses can tell apart: the next one in its place waits for all of them.
TEST_F(OnDemandTest, APlaceOfManyStreamsIsWaitedForToo) {
  const CUdeviceptr stays = allocate(100), small = allocate(100);
  for (size_t i = 0; i <= LaneUses::kMost + 1; ++i) kernel(device_.driver.stream(), {small});
  ASSERT_TRUE(device_.memory.tensors.find(small)->uses.everything());
  device_.driver.clear();
  free(small, 100);
  shared_.addresses.release(small, 100);  // as the enforcer does
  EXPECT_EQ(device_.driver.count("cuCtxSynchronize"), 0u) << "a free never waits";
  kernel(device_.driver.stream(), {stays});
  EXPECT_EQ(device_.driver.count("cuCtxSynchronize"), 0u);
  ASSERT_EQ(allocate(100), small);
  const int before = kernels_run;
  kernel(device_.driver.stream(), {small});
  EXPECT_EQ(kernels_run, before + 11) << "all that was before has run";
}

}  // namespace
}  // namespace reprise::replay
