// What the replay keeps in memory.h, on a fake driver: a device of a few chunks with one context. Callers: the tests of
// this folder and of on_demand.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <vector>

#include "replay/memory/memory.h"
#include "replay/memory/safety/choose.h"
#include "tests/unit/replay/fake_driver.h"

namespace reprise::replay::testing {

enum class Safety : uint8_t { strict, trusted };

struct SmallDevice {
  explicit SmallDevice(uint64_t limit, uint64_t bytes_of_a_chunk = 4096, uint64_t host_bytes = 8 << 20,
                       Safety safety = Safety::trusted)
      : chunk_bytes(bytes_of_a_chunk) {
    memory.arena = cut_arena(uint64_t{1} << 40, 4096 * chunk_bytes, chunk_bytes);
    memory.lanes.open(context);
    memory.host.open(host_bytes);
    memory.chunks.open(0, chunk_bytes);
    memory.blocks.open(chunk_bytes);
    memory.chunks.set_limit(limit);
    memory.mappings.open(&memory.chunks, &memory.lanes, 0);
    make_safety(&memory, safety == Safety::strict, 1024);
    driver.clear();
  }

  // A stream of the program and its lane.
  LaneIndex new_lane() { return memory.lanes.lane_of(driver.stream(), context); }
  // Queues work on a lane: its use.
  LaneUse work(LaneIndex lane, std::function<void()> body) {
    driver.launch(memory.lanes.stream(lane), std::move(body));
    return {lane, memory.lanes.advance(lane)};
  }
  static LaneUses uses_of(LaneUse use) {
    LaneUses uses;
    uses.add(use.lane, use.position);
    return uses;
  }
  // Chunks that the test takes from the pool.
  std::vector<ChunkIndex> take(uint64_t count) {
    std::vector<ChunkIndex> taken;
    CUresult refused = CUDA_SUCCESS;
    for (uint64_t i = 0; i < count; ++i) taken.push_back(memory.chunks.take_free(&refused));
    return taken;
  }
  CUmemGenericAllocationHandle handle(ChunkIndex chunk) { return memory.chunks[chunk].handle; }

  const uint64_t chunk_bytes;
  const CUcontext context = reinterpret_cast<CUcontext>(uint64_t{0xc0});
  FakeDriver driver;
  ManagedMemory memory;
};

}  // namespace reprise::replay::testing
