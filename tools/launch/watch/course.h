// How a run goes while it runs, from its run log: for the line on the terminal, `reprise status` and --metrics.
// Callers: run and replay, several times a second; status, once.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace reprise::tools {

class Course {
 public:
  // What the log has more since the last call, or a part of that. A file that is not there yet has nothing. True: there
  // is more.
  bool read(const std::string& path);
  // "iteration 41 (planned), 412 ms, peak 38.0 MiB, 1.2 GiB moved"; "": nothing has come yet. With several
  // programs in a run, that of the one whose iteration ended last.
  std::string line() const;
  // The same of all programs, in the text format of Prometheus.
  std::string metrics() const;

 private:
  struct Program {
    uint64_t planned = 0;
    uint64_t on_demand = 0;
    uint64_t last_ns = 0;  // of the last iteration
    bool last_planned = false;
    uint64_t device_bytes = 0;
    uint64_t peak_bytes = 0;
    uint64_t moved_bytes = 0;
    bool ended = false;
  };
  void take(std::string_view line);

  uint64_t offset_ = 0;
  std::string rest_;  // of a line that is not whole yet
  std::map<uint64_t, Program> programs_;
  uint64_t shown_ = 0;  // the program whose iteration ended last
};

// What a run does while its program runs: a line on the terminal that the next output overwrites, and a file of
// metrics, each once a second; neither where it is not wanted. To be called often; false: the run goes on.
class Watch {
 public:
  Watch(std::string run_log, bool on_terminal, std::string metrics);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  bool wanted() const { return on_terminal_ || !metrics_.empty(); }
  bool look();

 private:
  void show();

  const std::string run_log_;
  const bool on_terminal_;
  const std::string metrics_;
  Course course_;
  uint64_t looked_ns_ = 0;
  bool shown_ = false;
};

}  // namespace reprise::tools
