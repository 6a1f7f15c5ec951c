// The text as numbers, and batches of it. A character's number is its rank among the bytes that occur.
#pragma once
#include <array>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "options.h"

class Text {
 public:
  Text(const std::string& path, int context) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.size() < static_cast<size_t>(context) * 20) fail("the text " + path + " is missing or too short");
    std::array<bool, 256> occurs{};
    for (const char c : bytes) occurs[static_cast<unsigned char>(c)] = true;
    std::array<int, 256> rank{};
    int next = 0;
    for (size_t c = 0; c < 256; ++c) {
      if (occurs[c]) rank[c] = next++;
    }
    classes_ = (next + 15) / 16 * 16;
    for (const char c : bytes) tokens_.push_back(rank[static_cast<unsigned char>(c)]);
    training_ = tokens_.size() * 9 / 10;
  }

  // Characters that occur, rounded up to a multiple of 16: the others are never a target.
  int classes() const { return classes_; }

  // `batch` pieces of `context` characters and, after those, what follows each of them. The last tenth of the text is
  // for evaluation.
  void sample(std::mt19937& random, int batch, int context, bool evaluation, int* out) const {
    const size_t first = evaluation ? training_ : 0;
    const size_t last = (evaluation ? tokens_.size() : training_) - static_cast<size_t>(context) - 1;
    int* targets = out + batch * context;
    for (int row = 0; row < batch; ++row) {
      const size_t start = first + random() % (last - first);
      for (int i = 0; i < context; ++i) {
        *out++ = tokens_[start + static_cast<size_t>(i)];
        *targets++ = tokens_[start + static_cast<size_t>(i) + 1];
      }
    }
  }

 private:
  std::vector<int> tokens_;
  size_t training_ = 0;
  int classes_ = 0;
};
