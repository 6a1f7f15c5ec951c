// Launches of a kernel at random, interpreted, and held against what the analysis claims of them: which objects were
// touched, and that it repeats. Callers: code_interpret; the sampled test.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyzer/code/facts.h"
#include "analyzer/code/launch.h"
#include "tests/code/interpreter/image.h"
#include "tests/code/interpreter/machine.h"
#include "tests/code/truth.h"

namespace reprise::sass {

struct Wishes {
  uint32_t launches = 4;          // that come to their end, of each kernel
  uint32_t attempts = 40;         // at most, for that
  uint64_t instructions = 60000;  // of a warp, in a launch
  uint64_t seed = 1;
  int fault = 0;  // what is planted in the comparison
};

struct Verdict {
  std::string kernel;
  uint32_t ended = 0;                      // launches that came to their end, and touched some object
  uint32_t idle = 0;                       // ... that came to their end, and touched none
  uint32_t compared = 0;                   // ... and were held against a claim
  uint32_t unclaimed = 0;                  // ... of which nothing is claimed
  uint32_t followed = 0;                   // ... that touched objects which no parameter leads to
  uint32_t repeated = 0;                   // ... that were interpreted again, because it is claimed to repeat
  uint32_t raced = 0;                      // ... whose threads wrote to one place, and not the same
  uint32_t unset = 0;                      // ... that show what was in registers before
  uint32_t strayed = 0;                    // that went from one object into another: not at other addresses
  uint32_t outside = 0;                    // that touched what is no object, or no memory of the block
  uint32_t cut = 0;                        // that took too long, trapped, or waited for ever
  std::string refused;                     // what was not interpreted
  std::string last;                        // why the last launch did not end
  std::vector<std::string> wrong;          // claims that a launch contradicts
  std::vector<std::string> against_truth;  // what a launch did although the truth says otherwise
};

// A cubin and its text, read.
struct Subject {
  const std::string& cubin;
  const images::CodeImage& image;
  const code::Listing& listing;
  std::vector<Operation> code;
};
std::vector<Operation> decode_all(const code::Listing& listing);

// `truth`: what stands in its source, where it has such.
Verdict try_kernel(const Subject& subject, const images::KernelCode& kernel, const Wishes& wishes,
                   const code::Truth* truth = nullptr);

}  // namespace reprise::sass
