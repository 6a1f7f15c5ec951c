// Two that would write one file: the second is told, whatever it calls it; and nothing is left when the first is gone.
#include "tools/launch/claim.h"

#include <sys/file.h>

#include "preload/files/claims.h"
#include "tests/support/test.h"

namespace reprise::tools {
namespace {

class ClaimTest : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return scratch_.path(name); }
  static std::string refusal(const std::string& path) { return Claim::of("--trace", path).status().message(); }

  const Scratch scratch_;
  const std::string folder_ = scratch_.folder();
};

TEST_F(ClaimTest, AFileIsOnesAtATime) {
  {
    const auto claim = good(Claim::of("-o", file("a")));
    const std::string who = " (process " + std::to_string(getpid()) + ")";
    EXPECT_EQ(refusal(file("a")), "--trace " + file("a") + ": another run is writing it" + who);
    std::filesystem::create_directory_symlink(folder_, file("here"));
    EXPECT_NE(refusal(file("here/./a")), "") << "by another name";
    EXPECT_EQ(refusal(file("b")), "");
    const auto here = std::filesystem::current_path();
    std::filesystem::current_path(folder_);
    EXPECT_NE(refusal("a"), "");
    EXPECT_NE(refusal("none/../a"), "");
    std::filesystem::current_path(here);
    EXPECT_FALSE(std::filesystem::exists(file("a"))) << "nothing is made";
  }
  EXPECT_EQ(refusal(file("a")), "") << "the first one is gone";
}

TEST_F(ClaimTest, AnotherProcessThatIsKilledHoldsNothing) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto claim = Claim::of("-o", file("a"));
    const char byte = claim.ok() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  EXPECT_TRUE(has(refusal(file("a")), "(process " + std::to_string(child) + ")"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(refusal(file("a")), "");
}

// As the preloaded library looks, which is given names as the user writes them, and more often than anybody is
// answered.
TEST_F(ClaimTest, WhoHasIsToldByAnyName) {
  EXPECT_FALSE(claimant_of(file("a")));
  {
    const auto claim = good(Claim::of("--run-log", file("a")));
    for (int i = 0; i < 20; ++i) EXPECT_EQ(claimant_of(file("a")), getpid());
    std::filesystem::create_directory_symlink(folder_, file("here"));
    EXPECT_EQ(claimant_of(file("here/../") + std::filesystem::path(folder_).filename().string() + "/a"), getpid());
    const auto here = std::filesystem::current_path();
    std::filesystem::current_path(folder_);
    EXPECT_EQ(claimant_of("a"), getpid());
    close(open("a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(claimant_of("./a"), getpid()) << "it is there by now";
    std::filesystem::current_path(here);
    std::filesystem::create_symlink(file("a"), file("link"));
    EXPECT_EQ(claimant_of(file("link")), getpid());
    EXPECT_FALSE(claimant_of(file("b")));
    EXPECT_FALSE(claimant_of("/none/a"));
    EXPECT_FALSE(claimant_of(""));
  }
  EXPECT_FALSE(claimant_of(file("a")));
}

// As a program does that is recorded by LD_PRELOAD alone.
TEST_F(ClaimTest, AFileThatAProgramRecordsIntoIsTaken) {
  const int locked = open(file("a").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(locked, LOCK_EX), 0);
  EXPECT_EQ(refusal(file("a")), "--trace " + file("a") + ": another run is writing it");
  close(locked);
  EXPECT_EQ(refusal(file("a")), "");
}

// Several programs may write one run log.
TEST_F(ClaimTest, ARunLogThatAProgramWritesIsTaken) {
  const int locked = open(file("a").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(locked, LOCK_SH), 0);
  EXPECT_NE(refusal(file("a")), "");
  close(locked);
  EXPECT_EQ(refusal(file("a")), "");
}

}  // namespace
}  // namespace reprise::tools
