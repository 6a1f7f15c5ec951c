// A trace as a sequence of 64-bit words in which iterations repeat literally, and the search for periods in it.
// Callers: the iteration finder.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/iteration/call_stream.h"

namespace reprise::analyzer {

// What words may leave out.
enum class Beside : uint8_t {
  nothing,
  parts,  // which part of a tensor a call works on
  frees,  // which tensor of its size a free is of
};

// Makes the words: one per call. Looks up once which tensors a call names, since it is asked for many scales.
class CallWords {
 public:
  explicit CallWords(const CallStream& stream);

  // What lives for less than `scale` calls is named by its distance to the call that allocated it (equal in every
  // iteration that keeps tensors for less than that), the long-lived by their allocation's id. 24 equal layers use 24
  // different weights and thus give different words, 24 iterations use the same ones and give equal words.
  std::vector<uint64_t> at_scale(uint32_t scale, Beside beside = Beside::nothing) const;

  // Words that say nothing about tensors but their sizes: what repeats here and not above uses other memory each time.
  const std::vector<uint64_t>& without_tensors() const { return plain_; }

 private:
  struct Named {
    uint32_t span = 0;
    uint64_t part = 0;  // hash of which part of the tensor, and how it is used
  };
  void add_call(CallIndex call);

  const CallStream& stream_;
  std::vector<uint64_t> plain_;
  std::vector<uint64_t> heads_;  // by call: hash of all but the tensors
  std::vector<uint64_t> first_;  // by call: its first entry in named_; one more at the end
  std::vector<Named> named_;
};

// Periods p in [low, 2 * low) at which windows of `low` words repeat, most frequent first, at most `limit`.
std::vector<uint32_t> periods_between(const std::vector<uint64_t>& words, uint32_t low, size_t limit);

// A maximal range of calls [begin, end) in which words[i] == words[i + period] for all i < end - period, and which
// holds at least two periods.
struct Run {
  uint32_t begin = 0;
  uint32_t end = 0;
};
std::vector<Run> runs_of(const std::vector<uint64_t>& words, uint32_t period);

}  // namespace reprise::analyzer
