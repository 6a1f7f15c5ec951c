#include "tests/e2e/scripts/training.h"

#include <initializer_list>

namespace reprise::replay {
namespace {

std::string line(std::initializer_list<std::string> words) {
  std::string text;
  for (const std::string& word : words) text.append(word).append(" ");
  text.back() = '\n';
  return text;
}

}  // namespace

std::string Training::begin() const {
  std::string text = "alloc x 196608\nalloc loss 1024\nkernel 0 one loss\n";
  for (int l = 0; l < layers; ++l) {
    const std::string n = std::to_string(l);
    text += "alloc w" + n + " 262144\nalloc m" + n + " 262144\nmemset 0 w" + n + " " + n + "\nmemset 0 m" + n + " 9\n";
  }
  return text;
}

std::string Training::small_ones(bool together) {
  std::string calls;
  for (const std::string n : {"0", "1", "2", "3"}) {
    calls += "alloc p" + n + " 2000\n";
    if (!together) calls += "alloc f" + n + " 31000\nalloc g" + n + " 31000\n";  // the rest of the chunk
  }
  for (const std::string n : {"0", "1", "2", "3"}) {
    if (!together) calls += "free f" + n + "\nfree g" + n + "\n";
  }
  return calls;
}

std::string Training::free_small_ones() { return "free p0\nfree p1\nfree p2\nfree p3\n"; }

std::string Training::loop(int times) const {
  std::string text = "loop " + std::to_string(times) + "\n";
  for (const std::string& call : iteration()) text += call;
  return text + "end\n";
}

std::vector<std::string> Training::iteration() const {
  const std::string on = stream_ordered ? " 0\n" : "\n";
  std::vector<std::string> calls;
  switch (input) {
    case Input::pageable:
      calls.push_back("h2d 0 x 5 pageable async\n");
      break;
    case Input::pinned:
      calls.push_back("h2d 0 x 5 pinned sync\n");
      break;
    case Input::device:
      calls.push_back("memset 0 x 5\n");
      break;
  }
  std::string before = "x";
  for (int l = 0; l < layers; ++l) {
    const std::string n = std::to_string(l);
    calls.push_back("alloc a" + n + " 196608" + on);
    calls.push_back("alloc s" + n + " 2000" + on);
    calls.push_back(line({"kernel 0 four", before, "w" + n, "s" + n, "a" + n}));
    calls.push_back("free s" + n + on);
    before = "a" + n;
  }
  calls.push_back(line({"kernel 0 two", before, "loss"}));
  for (int l = layers - 1; l >= 0; --l) {
    const std::string n = std::to_string(l);
    calls.push_back("alloc g" + n + " 262144" + on);
    calls.push_back(line({"kernel 0 three", "a" + n, "w" + n, "g" + n}));
    calls.push_back(line({"kernel 0 three", "g" + n, "m" + n, "w" + n}));
    calls.push_back("free a" + n + on);
    calls.push_back("free g" + n + on);
  }
  calls.push_back("d2h 0 loss pageable sync\n");
  if (sleep_ms > 0) calls.push_back(line({"sleep", std::to_string(sleep_ms)}));
  return calls;
}

std::string Training::script(int iterations) const { return begin() + loop(iterations); }

}  // namespace reprise::replay
