// The pager on a fake driver with real bytes: no program ever sees a wrong byte or more memory than the limit, whatever
// the driver refuses; with strict safety, not even by accesses that the pager does not know of.
#include <rapidcheck.h>

#include "replay/memory/pager.h"
#include "tests/support/test.h"
#include "tests/unit/replay/memory/paged_program.h"
#include "tests/unit/replay/uniform.h"

namespace reprise::replay {
namespace {

void check_invariants(Program& program) {
  ManagedMemory& memory = program.device.memory;
  std::map<ChunkIndex, const ResidentTensor*> occupants;
  memory.for_each_mover([&](ResidentTensor& tensor) {
    if (!tensor.is_resident()) return;
    const Mapping* const mapping = memory.mappings.find(tensor.base);
    RC_ASSERT(mapping != nullptr && mapping->chunks.size() == tensor.chunk_count);
    for (const ChunkIndex chunk : mapping->chunks) {
      RC_ASSERT(occupants.emplace(chunk, &tensor).second);
      RC_ASSERT(memory.chunks[chunk].occupant == &tensor);
      RC_ASSERT(!memory.chunks.is_free(chunk));
    }
  });
  for (ChunkIndex chunk = 0; chunk < memory.chunks.size(); ++chunk) {
    if (memory.chunks[chunk].handle == 0) continue;
    const bool occupied = occupants.count(chunk) != 0 || memory.chunks[chunk].reserved;
    RC_ASSERT(memory.chunks.is_free(chunk) == !occupied);
  }
}

// The unseen accesses of a random program: how often they found their bytes, and how often they faulted.
struct Unseen {
  uint64_t kernels = 0;
  uint64_t faults = 0;
};

void random_program(bool faulty, testing::Safety safety = testing::Safety::trusted, Unseen* count = nullptr) {
  static const char* const functions[] = {"cuMemMap",          "cuMemSetAccess",    "cuMemUnmap",
                                          "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuEventRecord",
                                          "cuMemCreate",       "cuStreamWaitEvent", "cuEventSynchronize"};
  uint64_t limit = testing::uniform<uint64_t>(6, 10);
  // Strict safety copies what was never written as well, so it needs room for all tensors.
  const uint64_t host = safety == testing::Safety::strict ? 64 : testing::uniform<uint64_t>(24, 40);
  Program program(limit, host * HostTier::kSlotUnit, safety);
  if (testing::one_in(2)) program.pager.mappings.limit = limit + 4;
  std::vector<LaneIndex> lanes;
  for (int i = testing::uniform(1, 7); i > 0; --i) lanes.push_back(program.device.new_lane());
  std::vector<ResidentTensor*> tensors;
  std::map<CUdeviceptr, LaneIndex> last;  // the program orders its own streams by events
  std::vector<std::pair<CUdeviceptr, uint64_t>> freed;
  const int steps = testing::uniform(10, 80);
  for (int step = 0; step < steps; ++step) {
    program.device.driver.heal();
    program.device.memory.chunks.set_limit(limit);
    const bool fault = faulty && testing::one_in(4);
    if (fault)
      program.device.driver.fail(functions[testing::uniform(0, 9)], testing::uniform(1, 4), CUDA_ERROR_UNKNOWN);
    const int what = tensors.size() < 3 ? 0 : testing::uniform(0, 12);
    if (what <= 1 && tensors.size() < 12) {
      CUresult result = CUDA_SUCCESS;
      if (testing::one_in(2)) {
        const uint64_t half = program.device.chunk_bytes / 2;
        const LaneIndex lane = testing::one_in(2) ? testing::one_of(lanes) : kNoLane;
        tensors.push_back(&program.small(testing::uniform<uint64_t>(8, testing::one_in(2) ? half : 2048), lane));
        result = program.small_result;
        if (lane != kNoLane) {
          last[tensors.back()->base] = lane;
          program.device.work(lane, [] {});  // the event that other streams wait for
        }
      } else if (!freed.empty() && testing::one_in(2)) {
        tensors.push_back(&program.at(freed.back().first, freed.back().second));
        freed.pop_back();
      } else {
        tensors.push_back(&program.tensor(testing::uniform<uint64_t>(1, 4)));
      }
      if (tensors.back()->chunk_count > 0) result = program.pager.allocated(*tensors.back(), kNoLane);
      RC_ASSERT(result == CUDA_SUCCESS || fault);
      program.faulted = program.faulted || result != CUDA_SUCCESS;  // what the program is told
    } else if (what == 2) {
      const auto index = testing::uniform<size_t>(0, tensors.size());
      ResidentTensor& gone = *tensors[index];
      if (gone.chunk_count > 0) freed.emplace_back(gone.base, gone.chunk_count);
      last.erase(gone.base);
      program.free(gone);
      tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(index));
    } else if (what <= 8) {
      const LaneIndex lane = testing::one_of(lanes);
      std::vector<ResidentTensor*> set;
      std::vector<ResidentTensor*> written;
      for (int i = testing::uniform(1, 4); i > 0; --i) {
        ResidentTensor* const chosen = testing::one_of(tensors);
        if (std::find(set.begin(), set.end(), chosen) != set.end()) continue;
        set.push_back(chosen);
        if (testing::one_in(2)) written.push_back(chosen);
      }
      std::vector<ResidentTensor*> unseen;
      if (count != nullptr && testing::one_in(3)) unseen.push_back(testing::one_of(tensors));
      if (!unseen.empty() && std::find(set.begin(), set.end(), unseen[0]) != set.end()) unseen.clear();
      std::vector<ResidentTensor*> touched = set;
      touched.insert(touched.end(), unseen.begin(), unseen.end());
      bool ordered = true;
      for (const ResidentTensor* tensor : touched) {
        const auto before = last.find(tensor->base);
        if (before == last.end()) continue;
        const LaneUse use{before->second, program.device.memory.lanes[before->second].issued};
        ordered = ordered && program.device.memory.lanes.wait_on(lane, use) == CUDA_SUCCESS;
      }
      const uint64_t chunks = [&] {
        std::set<ResidentTensor*> movers;
        for (ResidentTensor* tensor : set) movers.insert(&program.device.memory.mover_of(*tensor));
        uint64_t sum = 0;
        for (const ResidentTensor* mover : movers) sum += mover->chunk_count;
        return sum;
      }();
      const CUresult result = ordered ? program.kernel(lane, set, written, unseen) : CUDA_ERROR_UNKNOWN;
      if (!fault && chunks < program.device.memory.chunks.limit()) RC_ASSERT(result == CUDA_SUCCESS);
      if (result == CUDA_SUCCESS) {
        RC_ASSERT(program.device.driver.bytes <= limit * program.device.chunk_bytes);
        for (ResidentTensor* tensor : set) RC_ASSERT(program.resident(*tensor));
        for (const ResidentTensor* tensor : touched) last[tensor->base] = lane;
        if (count != nullptr) count->kernels += unseen.size();
      }
    } else if (what == 9) {
      const std::vector<CUstream> streams = program.device.driver.streams();
      for (int i = testing::uniform(0, 10); i > 0; --i) program.device.driver.step(testing::one_of(streams));
      program.device.memory.lanes.poll();
    } else if (what == 10) {
      ResidentTensor& chosen = program.device.memory.mover_of(*testing::one_of(tensors));
      if (chosen.is_resident()) program.pager.evict(chosen);
    } else if (testing::one_in(3)) {
      limit = testing::uniform<uint64_t>(6, 10);
    }
    check_invariants(program);
  }
  program.device.driver.heal();
  program.device.driver.run_all();
  program.device.memory.chunks.set_limit(limit);
  // Every byte that the program wrote is still there.
  for (ResidentTensor* tensor : tensors) RC_ASSERT(program.kernel(lanes[0], {tensor}, {}) == CUDA_SUCCESS);
  program.device.driver.run_all();
  if (count != nullptr) count->faults += program.faulted ? 1 : 0;
  if (!program.device.driver.violations.empty()) RC_LOG() << program.device.driver.violations[0] << "\n";
  RC_ASSERT(program.wrong == 0u);
  RC_ASSERT(program.device.driver.violations.empty());
}

TEST(PagerPropertyTest, NoProgramSeesAWrongByteOrMoreThanTheLimit) {
  EXPECT_TRUE(rc::check("bytes, limit and bookkeeping hold", [] { random_program(false); }));
}

// What kernels touch unseen has the right bytes, or faults.
TEST(PagerPropertyTest, NorDoUnseenAccessesWithStrictSafety) {
  for (const bool faulty : {false, true}) {
    Unseen unseen;
    EXPECT_TRUE(rc::check("strict", [&] { random_program(faulty, testing::Safety::strict, &unseen); }));
    EXPECT_GT(unseen.kernels, 100u);
    EXPECT_GT(unseen.faults, 10u);
    EXPECT_LT(unseen.faults, unseen.kernels / 2) << "most find their bytes";
  }
}

TEST(PagerPropertyTest, NorWhenTheDriverRefuses) {
  EXPECT_TRUE(rc::check("a refused call loses no byte", [] { random_program(true); }));
}

}  // namespace
}  // namespace reprise::replay
