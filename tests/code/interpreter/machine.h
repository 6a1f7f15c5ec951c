// What the interpreter runs a launch on: registers of a warp, memory of a block, constants, and how operands are read
// and written. Callers: the operations; the flow of control in block.cpp.
#pragma once
#include <bit>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/code/interpreter/instruction.h"
#include "tests/code/interpreter/world.h"

namespace reprise::sass {

inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kStackBytes = 32768;                // a thread's
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 38;  // generic addresses
inline constexpr uint64_t kLocalWindow = uint64_t{1} << 39;
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 32;
inline constexpr uint64_t kCode = uint64_t{1} << 32;  // of return addresses

// Why a launch did not come to its end.
enum class Stop : uint8_t { none, not_interpreted, outside, trap, too_long, stuck };

enum class State : uint8_t { running, meeting, gathering, blocked, gone };

// The threads that meet behind a BSSY, and where.
struct Meeting {
  uint32_t members = 0;
  uint32_t target = 0;
};

struct Warp {
  uint32_t number = 0;  // in its block
  uint32_t live = 0;
  uint32_t r[256][kLanes];
  uint32_t p[8];  // a bit a lane
  uint32_t u[64] = {};
  uint32_t up = 1U << kTruth;  // a bit a predicate
  uint32_t pc[kLanes] = {};
  State state[kLanes] = {};
  uint32_t waits[kLanes] = {};  // for which meeting, which threads, which barrier of the block
  uint32_t count[kLanes] = {};  // threads that the block's barrier waits for; 0: all
  uint32_t b[16][kLanes] = {};
  std::vector<Meeting> meetings = std::vector<Meeting>(1);
  std::vector<uint8_t> stack[kLanes];
  uint32_t current = 0;   // where the group that runs is
  uint32_t patience = 0;  // how often it branched while others could have run
};

struct Program {
  const code::Listing* listing = nullptr;
  const std::vector<Operation>* code = nullptr;
  std::vector<uint8_t> banks[5];  // constant banks; 0 is the launch's
  uint32_t entry = 0;
  uint32_t shared_bytes = 0;
};

struct Block {
  uint32_t id[3] = {};
  uint32_t number = 0;
  std::vector<uint8_t> shared;
  std::vector<std::unique_ptr<Warp>> warps;
};

struct Dimensions {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};

  uint32_t threads() const { return block[0] * block[1] * block[2]; }
  uint32_t blocks() const { return grid[0] * grid[1] * grid[2]; }
};

struct Machine {
  const Program& program;
  World& world;
  Dimensions dimensions;
  std::mt19937_64 order;  // of blocks, warps, threads that diverge; what no launch may depend on
  uint64_t left = 0;      // instructions that may still run
  uint64_t clock = 0;
  Stop stopped = Stop::none;
  std::string why;
  bool clean = false;  // registers are 0 before they are set, else anything

  void stop(Stop what, std::string text) {
    if (stopped != Stop::none) return;
    stopped = what;
    why = std::move(text);
  }
};

// Runs the launch to its end, or until it stops.
void run(Machine& machine);

struct Context {
  Machine& machine;
  Block& block;
  Warp& warp;
  const Operation& operation;
  uint32_t active;

  const Operand& operand(size_t number) const { return operation.operands[number]; }
  size_t count() const { return operation.operands.size(); }
  bool has(Part part) const { return operation.parts.has(part); }
  void refuse() const { machine.stop(Stop::not_interpreted, std::string(operation.source->text.substr(0, 70))); }
  bool needs(size_t operands) const {
    if (count() >= operands) return true;
    refuse();
    return false;
  }

  // For each thread, or once where the warp is meant.
  template <typename Do>
  void each(const Do& act) const {
    for (uint32_t rest = operation.once ? active & (0 - active) : active; rest != 0; rest &= rest - 1) {
      act(static_cast<uint32_t>(std::countr_zero(rest)));
    }
  }

  uint32_t bits(const Operand& operand, uint32_t lane, uint32_t half = 0) const;
  uint32_t whole(const Operand& operand, uint32_t lane) const;  // with its sign
  uint64_t pair(const Operand& operand, uint32_t lane) const {
    return bits(operand, lane) | uint64_t{bits(operand, lane, 1)} << 32;
  }
  float real(const Operand& operand, uint32_t lane) const;
  double twice(const Operand& operand, uint32_t lane) const;
  bool truth(const Operand& operand, uint32_t lane) const;
  void set(const Operand& operand, uint32_t lane, uint32_t value, uint32_t half = 0) const;
  void set_pair(const Operand& operand, uint32_t lane, uint64_t value) const {
    set(operand, lane, static_cast<uint32_t>(value));
    set(operand, lane, static_cast<uint32_t>(value >> 32), 1);
  }
  void set_truth(const Operand& operand, uint32_t lane, bool value) const;
  uint32_t constant(const Operand& operand, uint32_t lane, uint32_t bytes) const;
};

}  // namespace reprise::sass
