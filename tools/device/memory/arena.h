// Pages for device memory: one large reservation of addresses in which blocks of 1 MiB and more are mapped and unmapped
// one by one, and 2 MiB slabs that smaller blocks share. Callers: memory.cpp; vmm.cpp, pool.cpp and the memory API for
// intervals, units and sizes.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>

namespace reprise::sim {

// Addresses of the arena, the most of a range that a program reserves, and whether a hint where is taken.
// ThreadSanitizer leaves a program 1.5 TiB of addresses, and ends it where it maps elsewhere.
#ifdef __SANITIZE_THREAD__
inline constexpr uint64_t kMostReserved = uint64_t{128} << 30;
inline constexpr uint64_t kMostRange = uint64_t{256} << 30;
inline constexpr bool kPlacesRanges = false;
#else
inline constexpr uint64_t kMostReserved = uint64_t{4} << 40;
inline constexpr uint64_t kMostRange = uint64_t{1} << 63;
inline constexpr bool kPlacesRanges = true;
#endif

inline constexpr uint64_t kDeviceUnit = 512;  // sizes and alignments of device memory
inline constexpr uint64_t kSlabBytes = 2ull << 20;
inline constexpr uint64_t kSmallLimit = 1ull << 20;
inline constexpr uint64_t kPoisonedBytes = 64ull << 20;  // of each fresh block, from its start
inline constexpr uint64_t kKeptBytes = 1ull << 30;  // pages of freed blocks that wait for the next one of their size
inline constexpr int kPoison = 0xCB;

constexpr uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// Free intervals of an address range: first fit, joined when given back.
class FreeIntervals {
 public:
  void give(uint64_t base, uint64_t bytes);
  // 0 when there is no room.
  uint64_t take(uint64_t bytes, uint64_t alignment);
  // Takes exactly this interval; false unless all of it is free.
  bool take_at(uint64_t base, uint64_t bytes);
  // Is [base, base + bytes) free as a whole?
  bool contains(uint64_t base, uint64_t bytes) const;

 private:
  std::map<uint64_t, uint64_t> free_;  // base to end
};

class Arena {
 public:
  Arena();
  // `bytes` is a multiple of kDeviceUnit. Returns 0 when the operating system has no more.
  uint64_t allocate(uint64_t bytes, int device);
  void free(uint64_t address, uint64_t bytes, int device);
  bool contains(uint64_t address) const { return address - base_ < bytes_; }

 private:
  uint64_t map_block(uint64_t bytes);
  void unmap_block(uint64_t address, uint64_t bytes);
  uint64_t take_kept(uint64_t bytes);
  bool keep(uint64_t address, uint64_t bytes);
  uint64_t base_ = 0;
  uint64_t bytes_ = 0;
  std::mutex mutex_;
  FreeIntervals addresses_;
  std::multimap<uint64_t, uint64_t> kept_;  // freed blocks, size to address: inaccessible, but with their pages
  uint64_t kept_bytes_ = 0;
  std::mutex small_mutex_;
  std::map<int, FreeIntervals> small_;  // by device
};

Arena& arena();

}  // namespace reprise::sim
