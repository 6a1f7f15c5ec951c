// The CUPTI source on a fake library, and the joining of records of the real layouts.
#include <cupti.h>
#include <dlfcn.h>

#include "preload/record/activity/cupti_records.h"
#include "preload/record/activity/sources.h"
#include "preload/record/recorder.h"
#include "tests/support/cupti/controls.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

using Times = std::multimap<uint64_t, std::pair<uint64_t, uint64_t>>;

void take(void* user, uint64_t id, uint64_t start_ns, uint64_t end_ns) noexcept {
  static_cast<Times*>(user)->emplace(id, std::pair(start_ns, end_ns));
}

template <typename T>
const CUpti_Activity* as_activity(const T& record) {
  return reinterpret_cast<const CUpti_Activity*>(&record);
}

CUpti_ActivityExternalCorrelation link_of(uint32_t correlation, uint64_t id) {
  CUpti_ActivityExternalCorrelation link{};
  link.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  link.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;
  link.externalId = id;
  link.correlationId = correlation;
  return link;
}

template <typename T>
T work_of(CUpti_ActivityKind kind, uint32_t correlation) {
  T record{};
  record.kind = kind;
  record.correlationId = correlation;
  record.start = 100 * correlation;
  record.end = 100 * correlation + 5;
  return record;
}

class CuptiRecordsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(records_.create()); }
  Times deliver() {
    Times times;
    records_.deliver(take, &times);
    return times;
  }
  CuptiRecords records_;
};

TEST_F(CuptiRecordsTest, EveryKindOfWorkFindsItsId) {
  for (uint32_t correlation = 1; correlation <= 4; ++correlation) {
    records_.add(as_activity(link_of(correlation, 1000 + correlation)), 0);
  }
  records_.add(as_activity(work_of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1)), 7);
  records_.add(as_activity(work_of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, 2)), 7);
  records_.add(as_activity(work_of<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, 3)), 7);
  records_.add(as_activity(work_of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 4)), 7);
  const Times times = deliver();
  ASSERT_EQ(times.size(), 4u);
  for (uint64_t correlation = 1; correlation <= 4; ++correlation) {
    const auto [start, end] = times.find(1000 + correlation)->second;
    EXPECT_EQ(start, 100 * correlation + 7);
    EXPECT_EQ(end, 100 * correlation + 12);
  }
  EXPECT_TRUE(deliver().empty());
}

TEST_F(CuptiRecordsTest, WorkWaitsForALinkThatComesLater) {
  records_.add(as_activity(work_of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 9)), 0);
  EXPECT_TRUE(deliver().empty());
  records_.add(as_activity(link_of(9, 90)), 0);
  EXPECT_EQ(deliver().count(90), 1u);
}

TEST_F(CuptiRecordsTest, OtherToolsLinksAreNotOurs) {
  CUpti_ActivityExternalCorrelation link = link_of(3, 30);
  link.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  records_.add(as_activity(link), 0);
  records_.add(as_activity(work_of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 3)), 0);
  EXPECT_TRUE(deliver().empty());
}

TEST_F(CuptiRecordsTest, UntimedWorkIsLeftOutAndOldWorkMakesRoom) {
  CUpti_ActivityMemset4 untimed = work_of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 1);
  untimed.start = 0;
  records_.add(as_activity(link_of(1, 10)), 0);
  records_.add(as_activity(untimed), 0);
  EXPECT_TRUE(deliver().empty());
  for (uint32_t i = 0; i < 200'000; ++i) {
    records_.add(as_activity(work_of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 2)), 0);
  }
  records_.add(as_activity(link_of(3, 33)), 0);
  records_.add(as_activity(work_of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 3)), 0);
  EXPECT_EQ(deliver().size(), 1u);
  records_.add(as_activity(link_of(2, 22)), 0);
  EXPECT_EQ(deliver().size(), 65'535u);
}

// The fake library is found because the test's environment names its folder.
template <typename Function>
Function* fake(const char* name) {
  void* library = ::dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  EXPECT_NE(library, nullptr);
  return library != nullptr ? reinterpret_cast<Function*>(::dlsym(library, name)) : nullptr;
}
#define FAKE(name) fake<decltype(name)>(#name)

class CuptiSourceTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(source_, nullptr); }
  void TearDown() override {
    source_->stop();
    collect();
    FAKE(fake_cupti_other_leaves)();
    const FakeCuptiCounts left = FAKE(fake_cupti_counts)();
    EXPECT_EQ(left.enabled, 0u);
    EXPECT_EQ(left.subscribed, 0u);
  }
  // One launch, bracketed, of two microseconds.
  void launch(uint64_t id) {
    uint64_t now = 0;
    fake<decltype(cuptiGetTimestamp)>("cuptiGetTimestamp")(&now);
    source_->push(id, nullptr);
    FAKE(fake_cupti_kernel)(now + 1000, now + 3000);
    source_->pop(id, nullptr);
  }
  Times collect() {
    Times times;
    source_->collect(take, &times);
    return times;
  }
  static FakeCuptiCounts counts() { return FAKE(fake_cupti_counts)(); }

  ActivitySource* const source_ = cupti_activity_source();
};

TEST_F(CuptiSourceTest, RefusedStartLeavesNothingEnabledAndTheNextStartWorks) {
  FAKE(fake_cupti_refuse)(CUPTI_ACTIVITY_KIND_MEMCPY);
  EXPECT_FALSE(source_->start());
  EXPECT_EQ(counts().enabled, 0u);
  EXPECT_EQ(counts().subscribed, 0u);
  EXPECT_EQ(choose_activity_source("cupti"), nullptr);
  FAKE(fake_cupti_refuse)(CUPTI_ACTIVITY_KIND_INVALID);
  EXPECT_EQ(choose_activity_source("cupti"), source_);
  EXPECT_TRUE(source_->running());
}

TEST_F(CuptiSourceTest, TimesOfPushedWorkOnTheMonotonicClock) {
  ASSERT_EQ(choose_activity_source("auto"), source_);
  EXPECT_STREQ(source_->name(), "cupti");
  Times times;
  // More rounds than there are buffers: they must come back.
  for (uint64_t id = 1; id <= 1000; ++id) {
    launch(id);
    FAKE(fake_cupti_kernel)(1, 2);  // not ours
    times.merge(collect());
  }
  ASSERT_EQ(times.size(), 1000u);
  const uint64_t now = Recorder::now_ns();
  for (const auto& [id, span] : times) {
    EXPECT_EQ(span.second - span.first, 2000u);
    EXPECT_LE(span.first, now + 1'000'000);
    EXPECT_GE(span.first + 10'000'000'000, now);
  }
}

// The reference of cuptiSubscribe: each client calls it first, and there is one; Nsight Systems has it from the start.
TEST_F(CuptiSourceTest, LeavesCuptiToWhoHasItAndGivesItBack) {
  ASSERT_TRUE(FAKE(fake_cupti_other_subscribes)());
  FAKE(fake_cupti_other_registers)();
  EXPECT_FALSE(source_->start());
  EXPECT_EQ(counts().enabled, 0u);
  EXPECT_EQ(choose_activity_source("cupti"), nullptr);
  FAKE(fake_cupti_other_leaves)();
  ASSERT_TRUE(source_->start());
  EXPECT_FALSE(FAKE(fake_cupti_other_subscribes)());
  source_->stop();
  EXPECT_TRUE(FAKE(fake_cupti_other_subscribes)());
}

// CUPTI 13 takes a buffer for each thread. The process lives, and what had a buffer has its times.
TEST_F(CuptiSourceTest, HasBuffersForHundredsOfThreads) {
  ASSERT_TRUE(source_->start());
  const uint64_t dropped = counts().dropped;
  for (uint64_t id = 1; id <= 200; ++id) std::thread([&] { launch(id); }).join();
  EXPECT_EQ(counts().dropped, dropped);
  EXPECT_EQ(collect().size(), 200u);
  for (uint64_t id = 1; id <= 400; ++id) std::thread([&] { launch(id); }).join();
  EXPECT_GT(counts().dropped, dropped);
  const size_t kept = collect().size();
  EXPECT_GE(kept, 200u);
  EXPECT_LT(kept, 400u);
}

// The dispatcher asks after events all the time.
TEST_F(CuptiSourceTest, PollingMakesNoRecords) {
  ASSERT_TRUE(source_->start());
  const uint64_t before = counts().records;
  for (int i = 0; i < 100'000; ++i) FAKE(fake_cupti_call)(CUPTI_DRIVER_TRACE_CBID_cuEventQuery);
  EXPECT_EQ(counts().records, before);
  launch(1);
  EXPECT_GT(counts().records, before);
}

// Samples are stopped before they are read, and may have less work than that: a replay's were empty on an H200. In a
// process of its own, as the source remembers.
TEST_F(CuptiSourceTest, ASampleWithoutIdsGetsAllCallsTheNextTime) {
  const auto sample = [this] {
    EXPECT_TRUE(source_->start());
    for (uint64_t id = 1; id <= 30; ++id) launch(id);
    source_->stop();
    return collect().size();
  };
  const auto samples = [&] {
    FAKE(fake_cupti_links_need_all_calls)(true);
    const size_t first = sample();
    std::exit(first == 0 && sample() == 30 ? 0 : 1);
  };
  EXPECT_EXIT(samples(), testing::ExitedWithCode(0), "");
}

TEST_F(CuptiSourceTest, ALibraryThatAttachesIdsToAllCallsOrNoneGetsAll) {
  FAKE(fake_cupti_links_need_all_calls)(true);
  ASSERT_TRUE(source_->start());
  Times times;
  for (uint64_t id = 1; id <= 3000; ++id) {
    launch(id);
    times.merge(collect());
  }
  FAKE(fake_cupti_links_need_all_calls)(false);
  EXPECT_GE(times.size(), 1990u);  // ids are missed for a while first
}

TEST_F(CuptiSourceTest, NothingIsLeftBehindAfterTheStop) {
  ASSERT_TRUE(source_->start());
  launch(1);
  launch(2);
  source_->stop();
  EXPECT_EQ(counts().enabled, 0u);
  EXPECT_EQ(counts().outstanding, 0);
  const uint64_t records = counts().records;
  FAKE(fake_cupti_kernel)(5, 6);
  EXPECT_EQ(counts().records, records);
  EXPECT_EQ(collect().size(), 2u);  // what was complete is still told
}

// A tool that registers without asking gets our buffers, and we get its own once we register again.
TEST_F(CuptiSourceTest, BuffersOfAnotherToolAreLeftAlone) {
  FAKE(fake_cupti_other_registers)();
  fake<decltype(cuptiActivityEnable)>("cuptiActivityEnable")(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  FAKE(fake_cupti_kernel)(5, 6);  // into the other tool's buffer
  ASSERT_EQ(counts().outstanding, 1);
  ASSERT_TRUE(source_->start());
  EXPECT_TRUE(collect().empty());
  launch(7);
  EXPECT_EQ(collect().size(), 1u);
}

}  // namespace
}  // namespace reprise
