// When to stop: a section's time is up, or the user pressed ctrl-C. Every loop of the probe asks between two repeats,
// so that everything it holds is released in the ordinary way.
#pragma once
#include <chrono>

namespace reprise::probe {

// From now on SIGINT, SIGTERM and SIGHUP only raise the flag that interrupted() reads.
void catch_signals();
bool interrupted();

class Limit {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Limit(double seconds)
      : start_(Clock::now()),
        end_(start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  bool over() const { return interrupted() || Clock::now() >= end_; }
  double seconds_left() const { return interrupted() ? 0 : std::chrono::duration<double>(end_ - Clock::now()).count(); }
  double seconds_used() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  // The next `share` (0..1) of what is left: no measurement may use up the time of those after it.
  Limit part(double share) const { return Limit(seconds_left() > 0 ? seconds_left() * share : 0); }

 private:
  Clock::time_point start_;
  Clock::time_point end_;
};

// Wall time of a piece of code, nanoseconds.
class Stopwatch {
 public:
  double nanoseconds() const {
    return static_cast<double>(std::chrono::nanoseconds(Limit::Clock::now() - start_).count());
  }

 private:
  Limit::Clock::time_point start_ = Limit::Clock::now();
};

}  // namespace reprise::probe
