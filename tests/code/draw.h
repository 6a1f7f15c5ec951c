// A launch that was drawn: its dimensions, its parameters, and what its pointers lead to. The same draw gives the same
// world, at any addresses. Callers: trials.
#pragma once
#include <map>
#include <set>

#include "tests/code/interpreter/image.h"
#include "tests/code/interpreter/machine.h"
#include "tests/code/truth.h"

namespace reprise::sass {

struct Draw {
  Dimensions dimensions;
  std::vector<uint8_t> numbers;          // parameters, without the pointers
  std::map<uint32_t, size_t> pointers;   // words that lead to an object, by offset
  std::map<uint32_t, uint32_t> steps;    // how far behind its base such a word points
  std::map<uint32_t, uint32_t> handles;  // words with the address of a hidden object, shifted down by so much
  std::vector<Filling> fillings;         // of the objects
  uint64_t seed = 0;
};

// Parameters of `kernel` at random; `pointers`: words that are addresses.
Draw draw_launch(const images::KernelCode& kernel, const std::set<uint32_t>& pointers, uint32_t most_threads,
                 uint64_t seed, const code::Truth* truth);
uint32_t parameter_bytes(const images::KernelCode& kernel);

// What a draw looks like at some addresses.
struct Scene {
  World world;
  std::vector<uint8_t> parameters;
  size_t of_module = 0;  // the first object of variables; before them are those that parameters lead to
  size_t hidden = 0;     // the first one that only memory leads to
  size_t constants = 0;  // contents for __constant__ variables
};
Scene make_scene(const Draw& draw, const Surroundings& surroundings, uint64_t places);

// The constant banks of a launch.
void fill_banks(Program& program, const Draw& draw, Scene& scene, const Surroundings& surroundings, uint32_t at);

// The words of a launch, as what plans with facts would see them.
code::LaunchWords words_of(const Draw& draw, const Scene& scene);

}  // namespace reprise::sass
