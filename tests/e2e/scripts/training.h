// Scripts that train, for planned_test and online_test. See script_program.cpp for the words.
#pragma once
#include <string>
#include <vector>

namespace reprise::replay {

// A small training loop: weights of four chunks with optimizer state, activations of three chunks that live from
// forward to backward, small scratch buffers, a loss that is read at the end of every iteration.
struct Training {
  int layers = 6;
  bool stream_ordered = false;
  int sleep_ms = 0;
  // Where the input of an iteration comes from: the host (pageable or pinned), or the device, and then every copy to
  // the device is the replay's own.
  enum class Input { pageable, pinned, device } input = Input::pageable;

  std::string begin() const;
  // Four small tensors that live on, side by side or each alone in its chunk (of 64 KiB), and their end.
  static std::string small_ones(bool together);
  static std::string free_small_ones();
  std::vector<std::string> iteration() const;
  std::string loop(int times) const;
  std::string script(int iterations) const;
};

}  // namespace reprise::replay
