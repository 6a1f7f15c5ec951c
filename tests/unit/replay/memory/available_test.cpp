// How much host memory there is, by files of control groups as systems have them: version 1 and 2, nested, in a
// container, with files cached. The formats are those of the kernel's documentation (cgroup-v1/memory.rst,
// cgroup-v2.rst).
#include "replay/memory/tiers/available.h"

#include "tests/support/test.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

class AvailableTest : public testing::Test {
 protected:
  void SetUp() override {
    write("/proc/meminfo", "MemTotal:       134217728 kB\nMemFree: 1024 kB\nMemAvailable:   67108864 kB\n");
  }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void second_version(const std::string& folder, const std::string& limit, uint64_t used, uint64_t cached) {
    write("/sys/fs/cgroup" + folder + "/memory.max", limit + "\n");
    write("/sys/fs/cgroup" + folder + "/memory.current", std::to_string(used) + "\n");
    write("/sys/fs/cgroup" + folder + "/memory.stat",
          "anon 5\nfile " + std::to_string(cached) + "\ninactive_anon 9\nactive_anon 9\ninactive_file " +
              std::to_string(cached / 2) + "\nactive_file " + std::to_string(cached - cached / 2) + "\n");
  }
  void first_version(const std::string& folder, uint64_t limit, uint64_t used, uint64_t cached) {
    const std::string base = "/sys/fs/cgroup/memory" + folder;
    write(base + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    write(base + "/memory.usage_in_bytes", std::to_string(used) + "\n");
    write(base + "/memory.stat", "cache 3\ninactive_file 1\nactive_file 1\ntotal_inactive_file " +
                                     std::to_string(cached / 2) + "\ntotal_active_file " +
                                     std::to_string(cached - cached / 2) + "\n");
  }
  uint64_t available() const { return available_host_memory(root_.c_str()); }

  static constexpr const char* kSecond = "31 23 0:28 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  static constexpr const char* kFirst =
      "30 23 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
      "32 30 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
      "35 30 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
  static constexpr uint64_t kNoLimit = 9223372036854771712u;  // as version 1 says it
  const Scratch scratch_;
  const std::string root_ = scratch_.folder();
};

TEST_F(AvailableTest, WithoutAGroupItIsWhatTheMachineHas) { EXPECT_EQ(available(), 64 * kGiB); }

TEST_F(AvailableTest, AGroupOfVersion2HasALimit) {
  write("/proc/self/mountinfo", kSecond);
  write("/proc/self/cgroup", "0::/\n");
  second_version("", std::to_string(8 * kGiB), 3 * kGiB, 0);
  EXPECT_EQ(available(), 5 * kGiB);
}

TEST_F(AvailableTest, CachedFilesGiveWay) {
  write("/proc/self/mountinfo", kSecond);
  write("/proc/self/cgroup", "0::/\n");
  second_version("", std::to_string(8 * kGiB), 7 * kGiB, 4 * kGiB);
  EXPECT_EQ(available(), 5 * kGiB);
}

TEST_F(AvailableTest, NestedGroupsLimitAllBelowThem) {
  write("/proc/self/mountinfo", kSecond);
  write("/proc/self/cgroup", "0::/user.slice/user-1000.slice/job.scope\n");
  second_version("/user.slice", "max", kGiB, 0);
  second_version("/user.slice/user-1000.slice", std::to_string(10 * kGiB), 6 * kGiB, kGiB);
  second_version("/user.slice/user-1000.slice/job.scope", std::to_string(9 * kGiB), kGiB, 0);
  EXPECT_EQ(available(), 5 * kGiB) << "the slice above is nearly full";
  second_version("/user.slice/user-1000.slice/job.scope", std::to_string(4 * kGiB), kGiB, 0);
  EXPECT_EQ(available(), 3 * kGiB);
  write("/sys/fs/cgroup/user.slice/user-1000.slice/job.scope/memory.high", std::to_string(2 * kGiB) + "\n");
  EXPECT_EQ(available(), kGiB) << "above it processes are slowed down";
}

TEST_F(AvailableTest, AGroupOfVersion1HasALimit) {
  write("/proc/self/mountinfo", kFirst);
  write("/proc/self/cgroup", "9:name=systemd:/\n5:cpu,cpuacct:/jobs\n4:hugetlb,memory:/jobs/one\n0::/\n");
  first_version("", kNoLimit, 20 * kGiB, 0);
  first_version("/jobs", 30 * kGiB, 21 * kGiB, 2 * kGiB);
  first_version("/jobs/one", 6 * kGiB, 3 * kGiB, kGiB);
  EXPECT_EQ(available(), 4 * kGiB);
  first_version("/jobs", 30 * kGiB, 29 * kGiB, 2 * kGiB);
  EXPECT_EQ(available(), 3 * kGiB);
}

// The mount begins at the container's group; /proc tells the host's path, or that of a namespace.
TEST_F(AvailableTest, InAContainerTheMountBeginsAtTheGroup) {
  write("/proc/self/mountinfo", "35 30 0:32 /docker/4f2a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  write("/proc/self/cgroup", "4:memory:/docker/4f2a\n");
  first_version("", 2 * kGiB, kGiB, 0);
  EXPECT_EQ(available(), kGiB);
  write("/proc/self/cgroup", "4:memory:/docker/4f2a/inner\n");
  first_version("/inner", kGiB, kGiB / 2, 0);
  EXPECT_EQ(available(), kGiB / 2);
  write("/proc/self/cgroup", "4:memory:/docker/4f2abc\n");
  EXPECT_EQ(available(), kGiB) << "another group, seen from outside";
}

TEST_F(AvailableTest, AGroupThatCannotBeReadLimitsNothing) {
  for (const char* mounts : {kSecond, kFirst}) {
    write("/proc/self/mountinfo", mounts);
    write("/proc/self/cgroup", "4:memory:/jobs\n0::/jobs\n");
    EXPECT_EQ(available(), 64 * kGiB);
  }
}

TEST_F(AvailableTest, ALimitThatIsPassedLeavesNothing) {
  write("/proc/self/mountinfo", kSecond);
  write("/proc/self/cgroup", "0::/a\n");
  second_version("/a", std::to_string(kGiB), 2 * kGiB, 0);
  EXPECT_EQ(available(), 0u);
}

TEST_F(AvailableTest, WhatIsWantedIsTaken) { EXPECT_EQ(host_memory_cap(5), 5u); }

}  // namespace
}  // namespace reprise::replay
