// Strict safety's own way to the bytes: a private range in which every chunk that moves has one fixed place, mapped
// when it is first asked for. Copies go through it, so that no address of the program leads to a chunk while bytes come
// or go. Caller: StrictSafety.
//
//     program's addresses   | tensor A: its bytes are here |  guard  | tensor B: away, nothing is mapped |
//                               |    |    |
//     chunks                   [0]  [1]  [2]  [3]  [4] ...
//                               |    |    |    |    |
//     window                |   0    1    2    3    4  ...           | never unmapped while the chunk exists
#pragma once
#include <cuda.h>

#include <cstdint>
#include <vector>

#include "replay/memory/chunks.h"
#include "replay/memory/mappings.h"

namespace reprise::replay {

class Window {
 public:
  // Reserves room for `most_chunks` chunks. Errors: the driver's.
  CUresult open(ChunkPool* chunks, Mappings* mappings, uint64_t most_chunks) noexcept;

  // The chunk's own address, mapped. Errors: OUT_OF_MEMORY (more chunks than the window has room for), the driver's.
  CUresult show(ChunkIndex chunk, CUdeviceptr* address) noexcept;
  // Gives the range back; nothing is mapped any more.
  void close() noexcept;

 private:
  ChunkPool* chunks_ = nullptr;
  Mappings* mappings_ = nullptr;
  CUdeviceptr base_ = 0;
  uint64_t most_chunks_ = 0;
};

}  // namespace reprise::replay
