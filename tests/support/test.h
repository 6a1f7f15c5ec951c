// What a test opens with: GoogleTest, the standard library's headers that most tests need, compiled once for all of
// them (reprise_test_headers), and how a text is looked through.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace reprise {

// For EXPECT_TRUE and EXPECT_FALSE, which show the text when it is otherwise.
inline testing::AssertionResult begins(const std::string& text, const std::string& words) {
  return (text.starts_with(words) ? testing::AssertionSuccess() : testing::AssertionFailure())
         << "\"" << words << "\" and: " << text.substr(0, 20000);
}

inline testing::AssertionResult has(const std::string& text, const std::string& words) {
  const bool found = text.find(words) != std::string::npos;
  return (found ? testing::AssertionSuccess() : testing::AssertionFailure())
         << (found ? "there is \"" : "no \"") << words << "\" in: " << text.substr(0, 20000);
}

inline size_t count_of(const std::string& text, const std::string& words) {
  size_t count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

// What a program that has to end well has come to. Outcome has exit_code and err.
template <typename Outcome>
Outcome well(Outcome outcome, std::source_location at = std::source_location::current()) {
  EXPECT_EQ(outcome.exit_code, 0) << at.file_name() << ":" << at.line() << ": " << outcome.err;
  return outcome;
}

// The value of what has to have one: a test ends without it.
template <typename Result>
auto good(Result result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return std::move(result.value());
}

// "" where it cannot be read.
inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A fresh folder, removed when the object goes.
class Scratch {
 public:
  Scratch() {
    folder_ = (std::filesystem::temp_directory_path() / "reprise-test-XXXXXX").string();
    if (mkdtemp(folder_.data()) == nullptr) ADD_FAILURE() << "no folder " << folder_;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

}  // namespace reprise
