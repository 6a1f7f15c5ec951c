// What can work at a time: on each device one kernel, one hash and one copy to other devices, on each link to the host
// one copy each way, and one transfer each way with the SSD; for each device one thread of the host, which maps.
// Transfers that share a link slow each other down. Used by simulate.cpp only.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "analyzer/machine/machine.h"

namespace reprise::analyzer {

class Engines {
 public:
  using Id = uint16_t;
  static constexpr Id kNone = std::numeric_limits<Id>::max();

  Engines(const Machine& machine, uint32_t devices);

  // Numbered by device: compute, to the device, to the host, to other devices, hashes, mapping. Neighbours on one link
  // have the same engines for it.
  Id compute(uint32_t device) const { return at(device, 0); }
  Id to_device(uint32_t device) const { return at(link_of(device), 1); }
  Id to_host(uint32_t device) const { return at(link_of(device), 2); }
  Id to_peer(uint32_t device) const { return own_peer_links_ ? at(device, 3) : to_host(device); }
  // Hashes of what clean offloads would copy, beside the kernels: they are short.
  Id hash(uint32_t device) const { return at(device, 4); }
  // The dispatcher, while it waits for the driver to map and unmap what is transferred.
  Id mapping(uint32_t device) const { return at(device, 5); }
  bool maps(Id engine) const { return engine < from_ssd() && engine % kPerDevice == 5; }
  Id from_ssd() const { return static_cast<Id>(works_.size() - 2); }
  Id to_ssd() const { return static_cast<Id>(works_.size() - 1); }
  Id count() const { return static_cast<Id>(works_.size()); }
  uint32_t link_of(uint32_t device) const { return device - device % devices_per_link_; }

  bool busy(Id engine) const { return ends_[engine] != kIdle; }
  // `length_ns`: how long it takes when nothing else uses the link. The engine must be free. `link`: of an SSD's
  // transfer, the one that it goes over.
  void begin(Id engine, uint32_t node, uint64_t length_ns, uint64_t now, uint32_t link);

  struct Done {
    uint64_t time = 0;
    uint32_t node = 0;
    Id engine = kNone;  // all are idle
  };
  // What ends first; of those that end at once, the lowest node.
  Done next() const;
  void end(Id engine, uint64_t now);

 private:
  static constexpr uint64_t kIdle = std::numeric_limits<uint64_t>::max();
  static constexpr uint32_t kPerDevice = 6;
  struct Work {
    uint32_t node = 0;
    uint32_t link = 0;
    uint64_t since = 0;    // when its speed changed last
    double remaining = 0;  // nanoseconds at full speed, then
    double speed = 1;
  };
  static Id at(uint32_t device, uint32_t kind) { return static_cast<Id>(device * kPerDevice + kind); }
  bool shares(Id engine) const { return engine >= from_ssd() || engine % kPerDevice == 1 || engine % kPerDevice == 2; }
  bool ssd_busy(Id engine, uint32_t link) const { return busy(engine) && works_[engine].link == link; }
  double speed(Id engine) const;
  void share(Id changed, uint64_t now);

  uint32_t devices_per_link_;
  bool own_peer_links_;
  std::vector<Work> works_;
  std::vector<uint64_t> ends_;  // engine -> when its work ends
  // Speeds by direction (0: to the device): the host's copies beside the SSD's, these beside those, and the host's
  // beside the other direction.
  std::array<double, 2> beside_ssd_ = {1, 1};
  std::array<double, 2> beside_host_ = {1, 1};
  std::array<double, 2> beside_other_ = {1, 1};
};

}  // namespace reprise::analyzer
