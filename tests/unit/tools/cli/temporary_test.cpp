#include "tools/cli/temporary.h"

#include "preload/base/written_files.h"
#include "tests/support/test.h"
#include "tools/cli/files.h"
#include "tools/cli/outputs.h"

namespace reprise::tools {
namespace {

class Temporary : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "reprise-unit-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    setenv("TMPDIR", root_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("TMPDIR");
    std::filesystem::remove_all(root_);
  }
  // How a child ends that does `work` and then sends itself `number`.
  template <typename Work>
  int end_of(int number, Work work) const {
    const pid_t child = fork();
    if (child == 0) work(number);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
  }
  bool empty() const { return std::filesystem::is_empty(root_); }
  std::string root_;
};

TEST_F(Temporary, AFolderGoesWithItsObject) {
  std::string path;
  {
    auto folder = good(TemporaryFolder::create());
    TemporaryFolder moved = std::move(folder);
    path = moved.path();
    std::ofstream(moved.file("a")) << "x";
    EXPECT_TRUE(std::filesystem::exists(path + "/a"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(Temporary, ASignalRemovesWhatIsUnfinished) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    EXPECT_EQ(end_of(number,
                     [&](int signal) {
                       Result<TemporaryFolder> folder = TemporaryFolder::create();
                       for (int i = 0; i < 500; ++i) std::ofstream(folder.value().file(std::to_string(i))) << "x";
                       const RemovedWhenInterrupted file(root_ + "/a.tmp");
                       std::ofstream(root_ + "/a.tmp") << "x";
                       raise(signal);
                       _exit(1);
                     }),
              number);
    EXPECT_TRUE(empty()) << number;
  }
}

TEST_F(Temporary, TheFolderOfAKilledProcessGoesAMomentLater) {
  EXPECT_EQ(end_of(SIGKILL,
                   [&](int signal) {
                     Result<TemporaryFolder> folder = TemporaryFolder::create();
                     for (int i = 0; i < 50; ++i) std::ofstream(folder.value().file(std::to_string(i))) << "x";
                     raise(signal);
                     _exit(1);
                   }),
            SIGKILL);
  for (int i = 0; i < 500 && !empty(); ++i) usleep(10'000);
  EXPECT_TRUE(empty());
}

TEST_F(Temporary, WhatIsFinishedOrKeptStays) {
  EXPECT_EQ(end_of(SIGTERM,
                   [&](int signal) {
                     Result<TemporaryFolder> folder = TemporaryFolder::create(true);
                     { const RemovedWhenInterrupted file(root_ + "/done"); }
                     std::ofstream(root_ + "/done") << "x";
                     raise(signal);
                     _exit(1);
                   }),
            SIGTERM);
  EXPECT_TRUE(std::filesystem::exists(root_ + "/done"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_), std::filesystem::directory_iterator()), 2);
}

// A child between fork and exec has our handlers, and must not remove what is its parent's.
TEST_F(Temporary, AChildRemovesNothing) {
  Result<TemporaryFolder> folder = TemporaryFolder::create();
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(end_of(SIGTERM, [](int signal) { raise(signal), _exit(1); }), SIGTERM);
  EXPECT_FALSE(empty());
}

TEST_F(Temporary, AnIgnoredSignalStaysIgnored) {
  EXPECT_EQ(end_of(SIGHUP,
                   [&](int ignored) {
                     signal(ignored, SIG_IGN);
                     const RemovedWhenInterrupted file(root_ + "/a.tmp");
                     raise(ignored);
                     _exit(7);
                   }),
            -7);
}

TEST_F(Temporary, FilesAreTheSameByEveryName) {
  std::ofstream(root_ + "/a") << "x";
  std::filesystem::create_hard_link(root_ + "/a", root_ + "/b");
  std::filesystem::create_symlink("a", root_ + "/c");
  for (const char* name : {"/a", "/b", "/c", "/./a"}) EXPECT_TRUE(is_same_file(root_ + "/a", root_ + name)) << name;
  EXPECT_FALSE(is_same_file(root_ + "/a", root_ + "/new"));
  EXPECT_TRUE(is_same_file(root_ + "/new", root_ + "/./new"));
  EXPECT_FALSE(is_same_file(root_ + "/new", root_ + "/other"));
}

}  // namespace
}  // namespace reprise::tools
