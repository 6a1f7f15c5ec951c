// Executes a plan on a machine of exactly its chunks, with hashes for contents: every op overwrites what it writes with
// a hash of its name and of all it reads. A lost byte, a stale copy or a wrong order anywhere changes the hashes after
// it. Callers: the tests of plans and of the verifier.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"

namespace reprise::analyzer::testing {

// Contents of a tensor by chunk (small ones: one word); 0 is undefined.
using Contents = std::vector<uint64_t>;

// What the program would compute without Reprise: the hash of every op of `rounds` iterations, in the program's order,
// and the contents of every live tensor before each call.
struct SerialRun {
  std::vector<std::vector<uint64_t>> op_hash;                // [round][call]
  std::vector<std::vector<std::vector<Contents>>> contents;  // [round][call][tensor]; empty: not alive or not touched
  std::vector<Contents> final_contents;                      // persistent tensors
};
SerialRun run_serially(const plan::Plan& plan, uint32_t rounds, bool keep_contents);

// How to choose among the vertices that are ready: an index into `ready` (nodes: round * vertices + vertex).
using Choice = std::function<size_t(const std::vector<uint32_t>& ready)>;
struct Strategy {
  std::string name;
  Choice choose;
};
// Random, transfers last, transfers first, newest first (LIFO), reloads first, offloads last.
std::vector<Strategy> strategies(const plan::Plan& plan, std::mt19937& random);

// Runs one plan again and again, in any legal order.
class Interpreter {
 public:
  // `plan` must outlive this.
  Interpreter(const plan::Plan& plan, uint32_t rounds);
  ~Interpreter();
  // Empty: every access found its tensor where the plan means it to be, and all contents are those of the serial run.
  // Else what differs first.
  std::string compare(const Choice& choose);
  // The most chunks that were in use at once in any of these runs.
  uint32_t peak_chunks() const { return peak_chunks_; }

  struct Fixed;

 private:
  std::unique_ptr<Fixed> fixed_;
  SerialRun serial_;
  uint32_t peak_chunks_ = 0;
};

// The program diverges after `submitted` calls of round 1: what it has submitted runs, in some order, and transfers run
// as they like, `extra` of them beyond. Empty: the bytes of every live tensor are on the device or in a valid host
// copy, and right.
std::string check_divergence(const plan::Plan& plan, uint32_t submitted, uint32_t extra, const Choice& choose);

}  // namespace reprise::analyzer::testing
