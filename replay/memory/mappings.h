// Which virtual ranges are mapped onto which chunks. A mapping stays when its tensor is evicted, so that a reload to
// the same chunks costs no driver call. One chunk may therefore be mapped by many ranges at once (aliases); only the
// chunk's occupant may be touched through them. Dispatcher thread only.
//
//     addresses    | tensor A, its home |     | tensor B, its home |
//                  |   2  |  5  |  7    |     |    5   |   7       |
//                      |     |     |               |       |
//                      |     +-----|---------------+       |
//                      |     |     +-----------------------+
//     chunks          [2]   [5]   [7]    handles of device memory; 5 and 7 are aliased: A and B both map them
//     occupant         -     B     B     B is resident, chunk 2 is free, A's bytes are in its host slot
//
// To bring A back, B is offloaded and A reloaded: no mapping changes. Only where A gets other chunks than its home (a
// remap) is its range unmapped and mapped again.
//
// So it is with trusted safety. With strict safety a live tensor whose bytes are away has no mapping: A's is taken away
// when A leaves, and made again when its bytes are back (window.h).
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <vector>

#include "replay/memory/chunks.h"
#include "replay/memory/lanes/lanes.h"
#include "replay/memory/lanes/uses.h"

namespace reprise::replay {

// What the device may do through a mapping's addresses.
enum class Rights : uint8_t { none, read, write };

struct Mapping {
  std::vector<ChunkIndex> chunks;  // in address order
  uint64_t mapped = 0;             // of the chunks, the first so many
  uint64_t granted = 0;            // of these, the first so many may be read and written by the device
  bool accessible = false;         // all are mapped, and all are granted
  LaneUses uses;                   // work that went through these addresses; must be complete before they are unmapped
};

class Mappings {
 public:
  void open(ChunkPool* chunks, Lanes* lanes, CUdevice device) noexcept;

  // The mapping that starts at `base`, or nullptr.
  Mapping* find(CUdeviceptr base) noexcept;
  // Maps [base, base + chunks) for reading and writing. Nothing may be mapped there before; on an error nothing is
  // mapped there afterwards, but for what the driver refuses to unmap again.
  CUresult map(CUdeviceptr base, std::vector<ChunkIndex> chunks) noexcept;
  // The same in pieces, so that this thread can issue work in between: begin() maps nothing, each extend() at most
  // `most` chunks, and the range leads nowhere before grant(), which gives access to the next `most` chunks. On an
  // error nothing is mapped there any more.
  CUresult begin(CUdeviceptr base, std::vector<ChunkIndex> chunks) noexcept;
  CUresult extend(CUdeviceptr base, uint64_t most) noexcept;
  CUresult grant(CUdeviceptr base, uint64_t most = UINT64_MAX) noexcept;
  // Another right to a range that is mapped as a whole, or was before it had none: `none` unmaps its chunks, which it
  // keeps. Waits for the uses first. On an error of the driver it has none.
  CUresult set_rights(CUdeviceptr base, Rights rights) noexcept;
  static Rights rights_of(const Mapping& mapping) noexcept {
    return mapping.accessible ? Rights::write : mapping.mapped > 0 ? Rights::read : Rights::none;
  }
  // These devices may reach all that is mapped now and later, besides the one of open(): a bit each. The driver does
  // not carry over to mappings what a program allows by cuCtxEnablePeerAccess and cuMemPoolSetAccess.
  CUresult allow_peers(uint64_t devices) noexcept;
  // Waits for the uses, then unmaps. On an error of the driver what is still mapped is a mapping of its own.
  CUresult unmap(CUdeviceptr base) noexcept;
  // Unmaps every mapping that overlaps [base, base + bytes), except one of exactly that range.
  CUresult make_room(CUdeviceptr base, uint64_t bytes) noexcept;
  // Unmaps every mapping that names this chunk.
  CUresult unmap_chunk(ChunkIndex chunk) noexcept;

  uint64_t mapped_chunks() const noexcept { return mapped_chunks_; }
  uint64_t driver_calls() const noexcept { return driver_calls_; }  // map, unmap and set-access so far
  const std::map<CUdeviceptr, Mapping>& all() const noexcept { return mappings_; }

 private:
  CUresult set_access(CUdeviceptr base, uint64_t bytes, CUmemAccess_flags flags) noexcept;
  CUresult unmap_range(CUdeviceptr base, Mapping mapping) noexcept;
  CUresult drop(CUdeviceptr base) noexcept;

  ChunkPool* chunks_ = nullptr;
  Lanes* lanes_ = nullptr;
  std::vector<CUmemAccessDesc> access_;  // a device each
  std::map<CUdeviceptr, Mapping> mappings_;
  uint64_t mapped_chunks_ = 0;
  uint64_t driver_calls_ = 0;
};

}  // namespace reprise::replay
