#include "tools/report/log/arrivals.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>
#include <utility>

namespace reprise::report {
namespace {

constexpr uint64_t kNever = UINT64_MAX;

struct Tensor {
  uint64_t chunks = 0;
  std::vector<uint64_t> uses;  // calls, in order
  size_t used = 0;             // of these
  bool there = false;
  bool has_bytes = false;
  uint64_t next() const { return used < uses.size() ? uses[used] : kNever; }
};

struct Step {
  uint64_t room = 0;
  bool counts = false;
  bool frees = false;
  std::vector<size_t> tensors;
};

// Calls that follow each other.
class Stretch {
 public:
  void read(const RunCalls& line, bool counts) {
    for (const size_t each : named(line.there, ' ')) tensors_[each].there = tensors_[each].has_bytes = true;
    for (const size_t each : named(line.away, ' ')) tensors_[each].has_bytes = true;
    std::istringstream words(line.calls);
    for (std::string word; words >> word;) {
      const bool frees = word.front() == '-';
      steps_.push_back({line.room_chunks, counts, frees, named(frees ? word.substr(1) : word, ',')});
      if (frees) continue;
      for (const size_t each : steps_.back().tensors) tensors_[each].uses.push_back(steps_.size() - 1);
    }
  }

  uint64_t least() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].there) enter(i);
    }
    uint64_t arrivals = 0;
    for (const Step& step : steps_) {
      for (const size_t each : step.tensors) take_out(each);  // these stay
      if (step.frees) continue;
      uint64_t needed = 0;
      for (const size_t each : step.tensors) needed += tensors_[each].chunks;
      while (!there_.empty() && taken_ + needed > step.room) {
        const size_t furthest = std::prev(there_.end())->second;
        take_out(furthest);
        tensors_[furthest].there = false;
      }
      for (const size_t each : step.tensors) {
        Tensor& tensor = tensors_[each];
        if (step.counts && tensor.has_bytes && !tensor.there) arrivals += tensor.chunks;
        tensor.there = tensor.has_bytes = true;
        ++tensor.used;
        enter(each);
      }
    }
    return arrivals;
  }

 private:
  // The tensors of a text; new ones have their chunks behind a colon.
  std::vector<size_t> named(const std::string& text, char between) {
    std::vector<size_t> found;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, between);) {
      if (part.empty()) continue;
      size_t number = 0;
      const char* const end = part.data() + part.size();
      const char* const rest = std::from_chars(part.data(), end, number).ptr;
      if (number > tensors_.size()) continue;  // a line before is missing
      if (number == tensors_.size()) tensors_.emplace_back();
      if (rest != end) std::from_chars(rest + 1, end, tensors_[number].chunks);
      found.push_back(number);
    }
    return found;
  }
  void enter(size_t index) {
    there_.emplace(tensors_[index].next(), index);
    taken_ += tensors_[index].chunks;
  }
  void take_out(size_t index) {
    if (there_.erase({tensors_[index].next(), index}) != 0) taken_ -= tensors_[index].chunks;
  }

  std::vector<Tensor> tensors_;
  std::vector<Step> steps_;
  std::set<std::pair<uint64_t, size_t>> there_;  // by next use
  uint64_t taken_ = 0;
};

}  // namespace

Arrivals arrivals_of(const std::vector<RunCalls>& lines) {
  Arrivals arrivals;
  std::vector<Stretch> stretches;
  uint64_t most = 0;
  for (const RunCalls& line : lines) most = std::max(most, line.room_chunks);
  bool counts = false;
  for (const RunCalls& line : lines) {
    if (line.first != 0 || stretches.empty()) stretches.emplace_back();
    counts = counts || line.room_chunks >= most - most / 20;
    stretches.back().read(line, counts);
    if (counts) arrivals.came += line.came_chunks;
  }
  for (Stretch& stretch : stretches) arrivals.least += stretch.least();
  return arrivals;
}

}  // namespace reprise::report
