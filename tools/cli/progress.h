// What a command is doing, for a person who waits: one line on stderr that is overwritten and vanishes at the end. With
// how long it takes already, and where the amount of work is known, its rate and what is left. Silent when stderr is no
// terminal. Callers: commands that may take more than a second.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace reprise::tools {

class Progress {
 public:
  explicit Progress(bool wanted = true);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // A part of the work begins.
  void step(std::string_view what);
  // ... and `done` of its `total` pieces are done; the first of them began at the first call with this total.
  void step(std::string_view what, uint64_t done, uint64_t total);
  // Takes the line away; the next step brings it back.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void begin(std::string_view what, uint64_t done, uint64_t total);
  void show();
  void tick();

  bool wanted_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  bool shown_ = false;
  std::string what_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;  // 0: not known
  Clock::time_point began_;
  std::thread ticker_;
};

// "3 of 12, 0.5 a second, 18 s left"; what is not known yet is left out.
std::string progress_text(uint64_t done, uint64_t total, double seconds);

}  // namespace reprise::tools
