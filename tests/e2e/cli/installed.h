// An installation in a folder of the test's own: the real command line, and empty libraries where the shim and the
// simulated device would be. So the launcher is tested without either. Callers: the tests of this folder.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/process.h"

namespace reprise::tools::test {

class Installed : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "reprise-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    for (const char* folder : {"bin", "lib/reprise", "lib/sim", "tmp"})
      std::filesystem::create_directories(root_ / folder);
    std::filesystem::copy_file(REPRISE_EXECUTABLE, path("bin/reprise"));
    std::filesystem::copy_file(REPRISE_EMPTY_LIBRARY, path("lib/reprise/libreprise.so"));
    std::filesystem::copy_file(REPRISE_EMPTY_LIBRARY, path("lib/sim/libcuda.so.1"));
    using std::filesystem::perms;
    std::filesystem::permissions(root_, perms::all & ~perms::group_write & ~perms::others_write);
    std::filesystem::permissions(root_ / "tmp", perms::all);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  static std::string read(const std::string& file) {
    std::stringstream content;
    content << std::ifstream(file, std::ios::binary).rdbuf();
    return content.str();
  }
  Start start(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), path("bin/reprise"));
    return {arguments, {{"TMPDIR", path("tmp")}}};
  }
  Finished reprise(const std::vector<std::string>& arguments) const { return run(start(arguments)); }

  // One line on stderr that begins with "reprise: " and has `word`, nothing on stdout.
  static void expect_refused(const Finished& finished, int exit_code, const std::string& word) {
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
    EXPECT_EQ(finished.err.rfind("reprise: ", 0), 0u) << finished.err;
    EXPECT_NE(finished.err.find(word), std::string::npos) << finished.err;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace reprise::tools::test
