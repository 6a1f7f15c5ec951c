// The CUPTI source on a fake library, and the joining of records of the real layouts.
#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <map>

#include "preload/record/activity/cupti_records.h"
#include "preload/record/activity/sources.h"
#include "preload/record/recorder.h"

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
class CuptiSourceTest : public ::testing::Test {
 protected:
  template <typename Function>
  Function* fake(const char* name) {
    void* library = ::dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    EXPECT_NE(library, nullptr);
    return library != nullptr ? reinterpret_cast<Function*>(::dlsym(library, name)) : nullptr;
  }
};

TEST_F(CuptiSourceTest, RefusedStartLeavesNothingEnabledAndTheNextStartWorks) {
  ActivitySource* source = cupti_activity_source();
  ASSERT_NE(source, nullptr);
  fake<void(CUpti_ActivityKind)>("fake_cupti_refuse")(CUPTI_ACTIVITY_KIND_MEMCPY);
  EXPECT_FALSE(source->start());
  EXPECT_EQ(fake<unsigned()>("fake_cupti_enabled")(), 0u);
  EXPECT_EQ(choose_activity_source("cupti"), nullptr);
  fake<void(CUpti_ActivityKind)>("fake_cupti_refuse")(CUPTI_ACTIVITY_KIND_INVALID);
  EXPECT_EQ(choose_activity_source("cupti"), source);
  EXPECT_TRUE(source->running());
  source->stop();
  EXPECT_EQ(fake<unsigned()>("fake_cupti_enabled")(), 0u);
}

TEST_F(CuptiSourceTest, TimesOfPushedWorkOnTheMonotonicClock) {
  ActivitySource* source = choose_activity_source("auto");
  ASSERT_NE(source, nullptr);
  EXPECT_STREQ(source->name(), "cupti");
  auto* kernel = fake<void(uint64_t, uint64_t)>("fake_cupti_kernel");
  constexpr uint64_t kTheirNow = 1'000'000'000'000'000'000;
  Times times;
  // More rounds than there are buffers: they must come back.
  for (uint64_t id = 1; id <= 100; ++id) {
    source->push(id, nullptr);
    kernel(kTheirNow + 1000, kTheirNow + 3000);
    source->pop(id, nullptr);
    kernel(kTheirNow, kTheirNow + 1);  // not ours
    source->collect(take, &times);
  }
  source->stop();
  ASSERT_EQ(times.size(), 100u);
  const uint64_t now = Recorder::now_ns();
  for (const auto& [id, span] : times) {
    EXPECT_EQ(span.second - span.first, 2000u);
    EXPECT_LE(span.first, now + 1000);
    EXPECT_GE(span.first + 10'000'000'000, now);
  }
}

}  // namespace
}  // namespace reprise
