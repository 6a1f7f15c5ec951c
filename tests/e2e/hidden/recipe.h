// What a random program is made of, drawn from its seed. Each part is drawn for itself, so that an option that fixes
// one leaves the others as they are: a failing program shrinks by hand. Caller: program.cpp.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/e2e/hidden/table.h"

namespace hidden {

enum class Build { put, range, copied_by_kernel, sync, pageable, pinned, late, device, rows, memset, unified, values };
enum class Place { own, inside, pinned, managed };  // own: an allocation; inside: a part of a larger one
enum class Targets { own, shared, transient, interior };
enum class Digest { copies, kernel, visible };  // of what lies behind tables, at the end of an iteration
enum class Freeing { at_once, synchronized, on_stream };

struct Group {
  Table table = {};  // all but its base
  Build build = Build::put;
  Place place = Place::own;
  Targets targets = Targets::own;
  size_t target_bytes = 0;
  int build_every = 0;          // 0: once
  int rotate_from = 0;          // builds from this iteration on name the targets in another order
  bool renewed = false;         // the table itself is allocated anew for each build
  bool filled_hidden = false;   // its targets are set through the table alone
  bool launched_always = true;  // else only when the pointers are followed
  uint32_t period = 1, phase = 0, first = 0;
};

struct Recipe {
  uint64_t seed = 1;
  size_t chunk = 16384;
  int iterations = 14;
  int streams = 2;
  int ops = 30;
  int irregular = 0;  // 0: all iterations are alike; 1: every fourth has more; 2: no two are
  Digest digest = Digest::copies;
  Freeing freeing = Freeing::at_once;
  bool serial = false;  // all waits for all: what it must be equal to, as the program has no races
  bool polled = false;  // results are read by pinned copies and events
  std::vector<size_t> weights;
  std::vector<Group> groups;
};

// --NAME VALUE in any order; false for a name that is none.
bool make_recipe(uint64_t seed, const std::vector<std::string>& options, Recipe* recipe);

// For people who look for what went wrong.
void describe(const Recipe& recipe);

}  // namespace hidden
