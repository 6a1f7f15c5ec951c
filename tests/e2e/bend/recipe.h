// What an iteration of random_program does, as a list that is drawn before it is done: so it can be bent, and its frees
// can float. All of it follows from the generators it is given. Caller: random_program.
#pragma once
#include <cstddef>
#include <random>
#include <vector>

namespace program {

enum class What { fill, release, copy, mix, read };
enum class By { caller, other_thread, other_thread_later };  // that frees; later: the caller goes on meanwhile

struct Op {
  What what = What::mix;
  int stream = 0;
  std::vector<size_t> tensors;  // persistent ones count from 0, an iteration's own from behind them
  size_t bytes = 0;             // of what is allocated and filled
  unsigned value = 0;           // it is filled with; or what a kernel adds
  By by = By::caller;
};
using Ops = std::vector<Op>;

struct Sizes {
  int max_kib = 512;
  int spread = 0;  // not 0: as often of one order of magnitude as of another, from 4 KiB on
};
size_t draw_bytes(std::mt19937_64& random, const Sizes& sizes);

struct Shape {
  size_t persistent = 12;
  size_t streams = 2;
  Sizes sizes;
};
Ops draw_ops(std::mt19937_64& random, const Shape& shape, int count, unsigned first_value);

// Makes one random op of the iteration another one, or breaks the iteration off there.
void diverge(std::mt19937_64& random, const Shape& shape, Ops* ops);

// Moves each free to a random place up to `most` ops behind its tensor's last use, in any order. Returns those that
// come in the next iteration: each before the op of that number.
struct LateFree {
  Op op;
  size_t before;
};
std::vector<LateFree> loosen(std::mt19937_64& random, const Shape& shape, size_t most, bool waits, Ops* ops);

}  // namespace program
