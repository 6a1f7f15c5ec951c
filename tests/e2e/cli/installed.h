// An installation in a folder of the test's own: the real command line, and empty libraries where the shim and the
// simulated device would be. So the launcher is tested without either. Callers: the tests of this folder.
#pragma once

#include "tests/support/process.h"
#include "tests/support/test.h"

namespace reprise::tools::test {

class Installed : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"bin", "lib/reprise", "lib/sim", "tmp"})
      std::filesystem::create_directories(root_ / folder);
    std::filesystem::copy_file(REPRISE_EXECUTABLE, path("bin/reprise"));
    std::filesystem::copy_file(REPRISE_EMPTY_LIBRARY, path("lib/reprise/libreprise.so"));
    std::filesystem::copy_file(REPRISE_EMPTY_LIBRARY, path("lib/sim/libcuda.so.1"));
    using std::filesystem::perms;
    std::filesystem::permissions(root_, perms::all & ~perms::group_write & ~perms::others_write);
    std::filesystem::permissions(root_ / "tmp", perms::all);
  }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const {
    write_file(path(name), content);
    return path(name);
  }
  static std::string read(const std::string& file) { return read_file(file); }
  Start start(const Words& arguments) const {
    return {joined({path("bin/reprise")}, arguments), {{"TMPDIR", path("tmp")}}};
  }
  Finished reprise(const Words& arguments) const { return run(start(arguments)); }

  // One line on stderr that begins with "reprise: " and has `word`, nothing on stdout.
  static void expect_refused(const Finished& finished, int exit_code, const std::string& word) {
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
    EXPECT_TRUE(begins(finished.err, "reprise: "));
    EXPECT_TRUE(has(finished.err, word));
  }

 private:
  const Scratch scratch_;
  const std::filesystem::path root_ = scratch_.folder();
};

}  // namespace reprise::tools::test
