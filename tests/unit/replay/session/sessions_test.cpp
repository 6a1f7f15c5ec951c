// Two sessions at once, each of a device of its own, on a fake driver: neither knows of the other.
#include <cstdlib>

#include "preload/driver/own_memory.h"
#include "replay/session/session.h"
#include "tests/support/test.h"
#include "tests/unit/replay/fake_driver.h"

namespace reprise::replay {
namespace {

using testing::FakeDriver;
constexpr uint64_t kTensorBytes = 1 << 18;
constexpr uint64_t kTensors = 16;

// A kernel: writes, or reads what is there.
struct Kernel {
  FakeDriver* driver;
  CUdeviceptr address;
  uint64_t value;
  uint64_t* seen;  // nullptr: writes
};

CUresult launch(const void* payload, CUstream stream) noexcept {
  const Kernel kernel = *static_cast<const Kernel*>(payload);
  kernel.driver->launch(stream, [kernel] {
    if (kernel.seen == nullptr) return kernel.driver->write(kernel.address, kernel.value);
    *kernel.seen = kernel.driver->read(kernel.address);
  });
  return CUDA_SUCCESS;
}

// One device and what a program does there. Its numbers are the account's and the session's alone.
class ManagedProgram {
 public:
  ManagedProgram(FakeDriver* driver, Common* common, uint64_t context, CUdevice device, uint64_t budget,
                 const char* safety)
      : driver_(driver), common_(common), context_(reinterpret_cast<CUcontext>(context)), device_(device) {
    config_.budget.bytes = budget;
    config_.safety = safety;
    config_.host_memory.bytes = 256 << 20;
    config_.host_memory.fraction = 0;
    open();
  }

  void open() {
    before_ = std::move(session_);
    session_ = std::make_unique<Session>(config_, nullptr, common_, &account_, before_.get());
    FakeDriver::current = context_;
    ASSERT_EQ(session_->open(context_, device_), CUDA_SUCCESS) << session_->dispatcher().start_problem();
    session_->begin_to_plan();
    stream_ = driver_->stream();
  }
  void allocate() {
    FakeDriver::current = context_;
    for (uint64_t i = 0; i < kTensors; ++i) {
      AllocateCall call{++ids_, ++calls_, kTensorBytes, trace::Origin::alloc, device_, context_, stream_, 0, nullptr};
      CUdeviceptr address = 0;
      ASSERT_EQ(session_->allocate(call, stream_, &address), CUDA_SUCCESS);
      tensors_.push_back({call.allocation, address, 0, 0});
    }
  }
  // Writes to all tensors and reads them, several times over: each time most of them have to come back.
  void work(uint64_t seed) {
    FakeDriver::current = context_;
    for (uint64_t round = 1; round <= 3; ++round) {
      for (Tensor& tensor : tensors_) submit(&tensor, seed + round * 1000 + tensor.allocation, false);
      for (Tensor& tensor : tensors_) submit(&tensor, 0, true);
      ASSERT_EQ(session_->orders().context_synchronize(), CUDA_SUCCESS);
      for (const Tensor& tensor : tensors_) EXPECT_EQ(tensor.seen, seed + round * 1000 + tensor.allocation);
    }
  }
  void free_half() {
    FakeDriver::current = context_;
    for (uint64_t i = 0; i < kTensors / 2; ++i) {
      const Tensor tensor = tensors_.back();
      tensors_.pop_back();
      const FreeCall call{
          tensor.allocation, ++calls_, tensor.address, kTensorBytes, trace::Origin::alloc, false, context_, stream_, 0};
      EXPECT_EQ(session_->release(call, stream_), CUDA_SUCCESS);
    }
  }
  void end() {
    FakeDriver::current = context_;
    EXPECT_EQ(session_->end(), CUDA_SUCCESS);
    EXPECT_EQ(session_->leave().size(), tensors_.size());
    tensors_.clear();
  }
  uint64_t evicted() { return session_->memory().traffic.offloaded_bytes; }
  Session& session() { return *session_; }
  const Account& account() const { return account_; }
  uint64_t budget() const { return config_.budget.bytes; }

 private:
  struct Tensor {
    uint64_t allocation;
    CUdeviceptr address;
    uint64_t written;
    uint64_t seen;
  };
  void submit(Tensor* tensor, uint64_t value, bool reads) {
    const Kernel kernel{driver_, tensor->address, value, reads ? &tensor->seen : nullptr};
    Access access{};
    access.allocation = tensor->allocation;
    access.address = tensor->address;
    access.size = 8;
    access.mode = reads ? trace::kAccessRead : trace::kAccessRead | trace::kAccessWrite;
    Command command{};
    command.op = trace::OpKind::launch;
    command.stream = stream_;
    command.context = context_;
    command.device = device_;
    command.sequence = ++calls_;
    command.accesses = &access;
    command.access_count = 1;
    command.operand_bytes = kTensorBytes;
    command.name = "a_kernel";
    command.payload = &kernel;
    command.payload_bytes = sizeof kernel;
    command.issue = &launch;
    EXPECT_EQ(session_->submit(command, stream_), CUDA_SUCCESS);
  }

  FakeDriver* driver_;
  Common* common_;
  const CUcontext context_;
  const CUdevice device_;
  Config config_;
  Account account_{*common_};
  std::unique_ptr<Session> before_;
  std::unique_ptr<Session> session_;
  CUstream stream_ = nullptr;
  std::vector<Tensor> tensors_;
  uint64_t ids_ = 0;
  uint64_t calls_ = 0;
};

class SessionsTest : public ::testing::Test {
 protected:
  SessionsTest() {
    driver_.capacity = uint64_t{8} << 30;
    driver_.runs_when_asked = true;
    driver_.devices[reinterpret_cast<CUcontext>(uint64_t{0xd0})] = 1;
  }
  ~SessionsTest() override { EXPECT_EQ(driver_.violations, std::vector<std::string>{}); }

  FakeDriver driver_;
  Common common_;
};

TEST_F(SessionsTest, TwoDevicesAreManagedSideBySide) {
  ManagedProgram first(&driver_, &common_, 0xc0, 0, 6 * kTensorBytes, "strict");
  ManagedProgram second(&driver_, &common_, 0xd0, 1, 9 * kTensorBytes, "trusted");
  std::thread other([&] {
    second.allocate();
    second.work(2'000'000);
  });
  first.allocate();
  first.work(1'000'000);
  other.join();
  for (ManagedProgram* each : {&first, &second}) {
    each->work(3'000'000);  // one thread for both
    const Counters& counters = each->account().counters;
    EXPECT_GT(each->evicted(), 0u);
    EXPECT_EQ(counters.requested_bytes.load(), kTensors * kTensorBytes);
    EXPECT_LE(counters.peak_device_bytes.load(), each->budget());
    EXPECT_GT(counters.peak_device_bytes.load(), each->budget() / 2);
    EXPECT_EQ(counters.shortages.load(), 0u);
  }
  EXPECT_NE(first.session().memory().arena.slabs.base, second.session().memory().arena.slabs.base);
  EXPECT_EQ(driver_.bytes, first.session().memory().chunks.bytes());
  EXPECT_EQ(driver_.bytes_of_others[1], second.session().memory().chunks.bytes());

  first.end();
  EXPECT_EQ(driver_.bytes, 0u) << "all of it was given back";
  EXPECT_GT(driver_.bytes_of_others[1], 0u);
  second.free_half();
  second.work(4'000'000);
  EXPECT_EQ(first.account().counters.requested_bytes.load(), 0u);
  EXPECT_EQ(second.account().counters.requested_bytes.load(), kTensors / 2 * kTensorBytes);

  const uint64_t evicted = first.account().moved.traffic.offloaded_bytes;
  first.open();  // a context of the device again, while the other one goes on
  first.allocate();
  first.work(5'000'000);
  second.work(6'000'000);
  first.end();
  EXPECT_GT(first.account().moved.traffic.offloaded_bytes, evicted) << "the account is of the whole run";
  second.end();
  EXPECT_EQ(driver_.bytes_of_others[1], 0u);
  EXPECT_EQ(driver_.host_bytes, 0u);
}

}  // namespace
}  // namespace reprise::replay
