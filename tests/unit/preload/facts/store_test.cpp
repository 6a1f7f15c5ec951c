// The cache of facts among processes: some add at once, some are killed while they do.
#include "preload/facts/store.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <thread>

#include "preload/facts/replace.h"
#include "tests/support/test.h"

namespace reprise::facts {
namespace {

namespace fs = std::filesystem;

KernelFacts launched_once(uint64_t kernel) {
  KernelFacts facts;
  facts.kernel = kernel;
  facts.name = "_Z5scalePKfPf";
  facts.device = "a device";
  facts.launches = facts.equal = 1;
  facts.first_day = facts.last_day = "2026-11-23";
  return facts;
}

// From now on the system ends this process, as SIGKILL does, where it calls this.
void end_at(long call) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {4, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) _exit(2);
}

class StoreOfManyTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  ~StoreOfManyTest() override { fs::remove_all(folder_); }

  // A process that adds, and is killed at this call. false: it did without.
  bool killed_at(long call) {
    const pid_t child = fork();
    if (child == 0) {
      end_at(call);
      _exit(Store(folder_).add(launched_once(1)).ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "exit code " << WEXITSTATUS(status);
    return WIFSIGNALED(status);
  }
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() != ".facts") names.push_back(entry.path().filename());
    }
    return names;
  }
  bool knows_files_without_names() const {
    const int file = open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (file >= 0) close(file);
    return file >= 0;
  }

  std::string folder_ = testing::TempDir() + "store" + std::to_string(getpid());
};

TEST_F(StoreOfManyTest, AWriterThatIsKilledLeavesNothing) {
  if (!knows_files_without_names()) GTEST_SKIP() << "the file system of " << folder_ << " has no O_TMPFILE";
  for (const bool replaces : {false, true}) {
    EXPECT_TRUE(!replaces || Store(folder_).add(launched_once(1)).ok());
    EXPECT_TRUE(killed_at(SYS_write) || killed_at(SYS_writev)) << "it was not killed: this proves nothing";
    EXPECT_EQ(left(), std::vector<std::string>());
    EXPECT_TRUE(killed_at(SYS_linkat));
    EXPECT_EQ(left(), std::vector<std::string>());
    const Result<KernelFacts> known = Store(folder_).load(1, "a device");
    EXPECT_EQ(known.ok(), replaces) << "what was there is there";
  }
}

TEST_F(StoreOfManyTest, WhatAKilledWriterLeftGoesWithTheNextThatAdds) {
  ASSERT_TRUE(Store(folder_).add(launched_once(1)).ok());
  ASSERT_TRUE(killed_at(SYS_rename));
  EXPECT_EQ(left().size(), 1u) << "the one place where it leaves something; if there is none any more, the better";
  EXPECT_EQ(Store(folder_).load(1, "a device").value().launches, 1u);
  EXPECT_TRUE(Store(folder_).add(launched_once(2)).ok());
  EXPECT_EQ(left(), std::vector<std::string>());
  std::vector<std::string> problems;
  EXPECT_EQ(Store(folder_).all(&problems).size(), 2u);
  EXPECT_TRUE(problems.empty());
}

TEST_F(StoreOfManyTest, OnlyWhatAWriterNamesIsRemoved) {
  const std::vector<std::string> mine = {"notes", "a.facts.old", "a.facts.12.bak", "b.facts."};
  for (const std::string& name : mine) std::ofstream(folder_ + "/" + name) << "mine";
  EXPECT_TRUE(Store(folder_).add(launched_once(1)).ok());
  std::vector<std::string> found = left();
  EXPECT_TRUE(std::is_permutation(found.begin(), found.end(), mine.begin(), mine.end()));
}

TEST_F(StoreOfManyTest, WhatProcessesFindOutAtOnceAddsUp) {
  constexpr int kWriters = 4;
  constexpr int kTimes = 25;
  for (int writer = 0; writer < kWriters; ++writer) {
    if (fork() != 0) continue;
    bool added = true;
    for (int time = 0; time < kTimes; ++time) added = Store(folder_).add(launched_once(1)).ok() && added;
    _exit(added ? 0 : 1);
  }
  for (int writer = 0; writer < kWriters; ++writer) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Store(folder_).load(1, "a device").value().launches, static_cast<uint64_t>(kWriters * kTimes));
  EXPECT_EQ(left(), std::vector<std::string>());
}

// A process that was stopped while it held the folder stops nobody; what it is writing stays.
TEST_F(StoreOfManyTest, AFolderThatIsHeldForLongIsWrittenAllTheSame) {
  const int held = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX | LOCK_NB), 0);
  std::ofstream(folder_ + "/0.facts.77") << "half";
  EXPECT_TRUE(Store(folder_).add(launched_once(1)).ok());
  EXPECT_TRUE(Store(folder_).load(1, "a device").ok());
  EXPECT_EQ(left(), std::vector<std::string>{"0.facts.77"});
  close(held);
  EXPECT_TRUE(Store(folder_).add(launched_once(1)).ok());
  EXPECT_EQ(left(), std::vector<std::string>());
}

// More than a second of others' turns, each of which leaves a trace in the folder.
TEST_F(StoreOfManyTest, AWriterWaitsAsLongAsOthersWrite) {
  const int held = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX | LOCK_NB), 0);
  std::thread others([&] {
    for (int turn = 0; turn < 20; ++turn) {
      std::ofstream(folder_ + "/turn") << turn;
      std::filesystem::remove(folder_ + "/turn");
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    close(held);
  });
  const FolderLock lock(folder_);
  EXPECT_TRUE(lock.held());
  others.join();
}

}  // namespace
}  // namespace reprise::facts
