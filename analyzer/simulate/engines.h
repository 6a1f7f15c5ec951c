// What can work at a time: one kernel, one copy each way to the host, one transfer each way with the SSD. Transfers
// that share the link slow each other down. Used by simulate.cpp only.
#pragma once
#include <array>
#include <cstdint>

#include "analyzer/machine/machine.h"

namespace reprise::analyzer {

enum Engine : uint8_t { kCompute, kToDevice, kToHost, kFromSsd, kToSsd, kEngineCount, kNoEngine = kEngineCount };

class Engines {
 public:
  explicit Engines(const Machine& machine);

  bool busy(Engine engine) const { return work_[engine].busy; }
  bool idle() const;
  // `length_ns`: how long it takes when nothing else uses the link. The engine must be free.
  void begin(Engine engine, uint32_t node, uint64_t length_ns, uint64_t now);

  struct Done {
    uint64_t time = 0;
    uint32_t node = 0;
    Engine engine = kNoEngine;
  };
  // What ends first; of those that end at once, the lowest node. Not idle.
  Done next() const;
  void end(Engine engine, uint64_t now);

 private:
  struct Work {
    bool busy = false;
    uint32_t node = 0;
    uint64_t since = 0;    // when its speed changed last
    double remaining = 0;  // nanoseconds at full speed, then
    double speed = 1;
    uint64_t end = 0;
  };
  double speed(Engine engine) const;
  void share(uint64_t now);

  std::array<Work, kEngineCount> work_;
  // Speeds by direction (0: to the device): the host's copies beside the SSD's, these beside those, and the host's
  // beside the other direction.
  std::array<double, 2> beside_ssd_ = {1, 1};
  std::array<double, 2> beside_host_ = {1, 1};
  std::array<double, 2> beside_other_ = {1, 1};
};

}  // namespace reprise::analyzer
