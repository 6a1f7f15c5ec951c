// Device memory that the program holds beside what Reprise makes in the driver's place, by kind: what there is now, and
// the most that there was. A program's own allocator takes it (cuMemCreate), or it cannot be moved (arrays, managed
// memory). Callers: hooks say which kind a call is of; the enforcer and the forwarder keep a ledger by device.
#pragma once
#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace reprise {

enum class BesideKind : uint8_t {
  physical,   // cuMemCreate
  managed,    // cuMemAllocManaged: what of it is on the device
  pool,       // of a pool that is not of ordinary memory of one device
  array,      // with a layout of its own
  elsewhere,  // what Reprise does not manage, as of another device
  graph,      // of a graph that allocates: in no ledger, as the driver alone knows how much there is (graph_memory.h)
};
inline constexpr size_t kBesideKinds = 5;  // that are in ledgers

// For people; and of what no call of the program has made.
const char* words_of(BesideKind kind) noexcept;
inline constexpr char kDriversOwn[] = "context, code and what else the driver holds";

class BesideLedger {
 public:
  struct Figures {
    uint64_t count = 0;  // of calls that made some
    uint64_t now = 0;
    uint64_t most = 0;
  };
  void made(BesideKind kind, uint64_t bytes) noexcept;
  void given_back(BesideKind kind, uint64_t bytes) noexcept;
  Figures figures(BesideKind kind) const noexcept;
  uint64_t now(BesideKind kind) const noexcept { return figures(kind).now; }
  // Of all kinds: now, and at most at once.
  uint64_t now() const noexcept;
  uint64_t most() const noexcept { return most_.load(std::memory_order_relaxed); }
  // The device has so much free behind a call; UINT64_MAX: none has told.
  void saw_free(uint64_t bytes) noexcept;
  uint64_t least_free() const noexcept { return least_free_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<uint64_t> count{0};
    std::atomic<uint64_t> now{0};
    std::atomic<uint64_t> most{0};
  };
  std::array<Entry, kBesideKinds> entries_;
  std::atomic<uint64_t> most_{0};
  std::atomic<uint64_t> least_free_{UINT64_MAX};
};

// By device; what has no such number is not counted.
class BesideLedgers {
 public:
  static constexpr CUdevice kDevices = 64;
  static constexpr size_t index(CUdevice device) noexcept {
    return static_cast<size_t>(device >= 0 && device < kDevices ? device : kDevices);
  }
  BesideLedger& of(CUdevice device) noexcept { return ledgers_[index(device)]; }
  const BesideLedger& of(CUdevice device) const noexcept { return const_cast<BesideLedgers*>(this)->of(device); }
  // Has any call made some, on any device?
  bool any() const noexcept;

 private:
  std::array<BesideLedger, kDevices + 1> ledgers_;
};

// A call that makes such memory, or gives some back, while it is under way.
struct BesideCall {
  BesideKind kind = BesideKind::physical;
  const char* name = "";    // of the call
  CUdevice device = 0;      // whose memory it is
  uint64_t bytes = 0;       // that it asks for; 0: it gives back
  uint64_t given_back = 0;  // so many bytes, where that is known; 0: the driver tells
  // For the handler, from before the call to after it.
  std::optional<uint64_t> free = {};  // of the device; none: not known
  uint64_t ours = 0;                  // chunks
  uint64_t promised = 0;              // kept free for it
};

// What the call has changed: looks at what the device has free, which it had `call.free` of before. `ours` is what
// there is of ours now. Never more than it asked for, and what nobody can tell is what it asked for, or nothing.
uint64_t made_by_call(const BesideCall& call, std::optional<uint64_t> free_after, uint64_t ours) noexcept;
uint64_t given_back_by_call(const BesideCall& call, std::optional<uint64_t> free_after, uint64_t ours) noexcept;

// What the device has free, where a context of it is current.
std::optional<uint64_t> free_bytes_of(CUdevice device) noexcept;

}  // namespace reprise
