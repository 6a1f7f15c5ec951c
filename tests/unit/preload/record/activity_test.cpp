// The simulated and the event-pair source on a fake driver whose device clock the test sets.
#include "preload/driver/resolve.h"
#include "preload/record/activity/sources.h"
#include "preload/record/recorder.h"
#include "preload/trace/reader.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

using Times = std::map<uint64_t, std::pair<uint64_t, uint64_t>>;

void take(void* user, uint64_t id, uint64_t start_ns, uint64_t end_ns) noexcept {
  EXPECT_TRUE(static_cast<Times*>(user)->emplace(id, std::pair(start_ns, end_ns)).second) << "twice: " << id;
}

template <typename Function>
Function* fake(const char* name) {
  void* entry = driver_symbol(name);
  EXPECT_NE(entry, nullptr) << name;
  return reinterpret_cast<Function*>(entry);
}

void set_now(double ns) { fake<void(double)>("fake_driver_now")(ns); }

const CUstream kStream = reinterpret_cast<CUstream>(0x700);

Times collect(ActivitySource* source) {
  Times times;
  source->collect(take, &times);
  return times;
}

// One process, one event source: it is prepared in the first context it meets.
class EventSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake<void(CUcontext)>("fake_driver_context")(reinterpret_cast<CUcontext>(0x100));
    fake<void(CUstream)>("fake_driver_capture")(nullptr);
    fake<void(bool)>("fake_driver_busy")(false);
    source_ = event_activity_source();
    ASSERT_NE(source_, nullptr);
    ASSERT_TRUE(source_->start());
  }
  void run(uint64_t id, double start_ns, double end_ns) {
    set_now(start_ns);
    source_->push(id, kStream);
    set_now(end_ns);
    source_->pop(id, kStream);
  }
  ActivitySource* source_ = nullptr;
};

TEST_F(EventSourceTest, TimesOpsOnTheMonotonicClock) {
  const uint64_t before = Recorder::now_ns();
  set_now(5e6);
  run(1, 5e6, 5.25e6);
  run(2, 6e6, 8e6);
  const uint64_t after = Recorder::now_ns();
  const Times times = collect(source_);
  ASSERT_EQ(times.size(), 2u);
  const auto [first_start, first_end] = times.at(1);
  EXPECT_EQ(first_end - first_start, 250'000u);
  EXPECT_EQ(times.at(2).second - times.at(2).first, 2'000'000u);
  EXPECT_NEAR(static_cast<double>(times.at(2).first - first_start), 1e6, 100);
  // The first op began when the anchor was made.
  EXPECT_GE(first_start + 1000, before);
  EXPECT_LE(first_start, after + 1000);
  EXPECT_TRUE(collect(source_).empty());
}

TEST_F(EventSourceTest, WaitsForWhatIsStillRunning) {
  fake<void(bool)>("fake_driver_busy")(true);
  run(3, 9e6, 9.5e6);
  EXPECT_TRUE(collect(source_).empty());
  fake<void(bool)>("fake_driver_busy")(false);
  EXPECT_EQ(collect(source_).count(3), 1u);
}

TEST_F(EventSourceTest, NeverTouchesACapturingStreamNorAnotherContext) {
  run(4, 10e6, 10.5e6);
  collect(source_);
  auto* records = fake<unsigned()>("fake_driver_records");
  const unsigned before = records();
  fake<void(CUstream)>("fake_driver_capture")(kStream);
  run(5, 11e6, 12e6);
  fake<void(CUstream)>("fake_driver_capture")(nullptr);
  fake<void(CUcontext)>("fake_driver_context")(reinterpret_cast<CUcontext>(0x200));
  run(6, 11e6, 12e6);
  fake<void(CUcontext)>("fake_driver_context")(nullptr);
  run(7, 11e6, 12e6);
  EXPECT_EQ(records(), before);
  EXPECT_TRUE(collect(source_).empty());
}

TEST_F(EventSourceTest, AFullPoolLosesTimesNotOrder) {
  fake<void(bool)>("fake_driver_busy")(true);
  for (uint64_t id = 1000; id < 1000 + 40'000; ++id) run(id, 20e6, 21e6);
  fake<void(bool)>("fake_driver_busy")(false);
  const Times times = collect(source_);
  EXPECT_EQ(times.size(), 32'768u);
  EXPECT_EQ(times.begin()->first, 1000u);
  run(99'999, 22e6, 23e6);
  EXPECT_EQ(collect(source_).count(99'999), 1u);
}

TEST_F(EventSourceTest, ThreadsDoNotMixTheirPairs) {
  source_->push(1, kStream);
  std::thread([this] {
    source_->push(2, kStream);
    source_->pop(2, kStream);
  }).join();
  source_->pop(1, kStream);
  EXPECT_EQ(collect(source_).size(), 2u);
}

TEST_F(EventSourceTest, AStoppedSourceRecordsNothing) {
  source_->stop();
  run(1, 1e6, 2e6);
  EXPECT_TRUE(collect(source_).empty());
  EXPECT_FALSE(source_->running());
}

TEST(SimulatedSource, HandsOverTheDevicesOwnTimes) {
  ActivitySource* source = choose_activity_source("sim");
  ASSERT_NE(source, nullptr);
  auto* ran = fake<void(uint64_t, uint64_t)>("fake_driver_ran");
  for (uint64_t id = 1; id <= 1000; ++id) {
    source->push(id, kStream);
    ran(10 * id, 10 * id + 3);
    source->pop(id, kStream);
    ran(1, 2);  // without a push
  }
  const Times times = collect(source);
  ASSERT_EQ(times.size(), 1000u);
  EXPECT_EQ(times.at(1000), std::pair(uint64_t{10'000}, uint64_t{10'003}));
  source->stop();
  ran(5, 6);
  EXPECT_TRUE(collect(source).empty());
}

TEST(ChooseActivitySource, PrefersTheDevicesOwnAndObeys) {
  EXPECT_STREQ(choose_activity_source("auto")->name(), "sim");
  EXPECT_STREQ(choose_activity_source(nullptr)->name(), "sim");
  EXPECT_STREQ(choose_activity_source("events")->name(), "events");
  EXPECT_EQ(choose_activity_source("none"), nullptr);
  EXPECT_EQ(choose_activity_source("nonsense"), nullptr);
}

// What a run leaves behind: the trace has the time of each op.
TEST(RecorderActivity, CollectsIntoTheTrace) {
  ActivitySource* source = choose_activity_source("sim");
  const char* why = nullptr;
  Recorder* recorder = Recorder::open((::testing::TempDir() + "reprise_activity_test.trace").c_str(), &why);
  ASSERT_NE(recorder, nullptr) << why;
  source->push(77, kStream);
  fake<void(uint64_t, uint64_t)>("fake_driver_ran")(100, 350);
  source->pop(77, kStream);
  recorder->collect(*source);
  recorder->finish();
  auto trace = good(trace::read_trace(::testing::TempDir() + "reprise_activity_test.trace"));
  EXPECT_EQ(trace.activities.at(77).end_ns, 350u);
  std::remove((::testing::TempDir() + "reprise_activity_test.trace").c_str());
}

}  // namespace
}  // namespace reprise
