// Random programs against the model device: whatever is asked for, in whatever order, on however many streams.
#include <rapidcheck/gtest.h>

#include "tests/support/test.h"
#include "tests/unit/preload/defragment/stitch/model_memory.h"

namespace reprise::stitch {
namespace {

struct Step {
  int kind;  // see Run::step()
  uint32_t pick;
  uint32_t size;
  Tag tag;
};

rc::Gen<Step> any_step() {
  const auto tag = rc::gen::elementOf(std::vector<Tag>{kIdle, kIdle, 1, 2, 3, kUnknownWork});
  return rc::gen::construct<Step>(rc::gen::weightedElement<int>({{12, 0}, {12, 1}, {1, 2}, {1, 3}, {1, 4}}),
                                  rc::gen::inRange<uint32_t>(0, 1000), rc::gen::inRange<uint32_t>(1, 24), tag);
}

class Run {
 public:
  Run(uint32_t chunks, uint32_t stitched_from, uint32_t stitched_blocks, bool tight) : chunks_(chunks) {
    memory.capacity = chunks;
    // Every primitive block and every live stitched block mapped at once: with less, an allocation may fail for want of
    // addresses.
    if (tight) memory.mappable = uint64_t{chunks} * 2;
    RC_ASSERT(stitcher.open(&memory, {ModelMemory::kChunk, chunks, stitched_from, chunks * 3, stitched_blocks}));
  }

  void step(const Step& step) {
    switch (step.kind) {
      case 0:
        return allocate(step);
      case 1:
        return release(step);
      case 2:
        memory.all_over();
        return stitcher.settled(stitcher.mark());
      case 3:
        stitcher.trim();
        RC_ASSERT(memory.existing() == memory.owned());
        return;
      default:  // others take or leave memory of the device
        memory.capacity = std::max<uint64_t>(memory.existing(), chunks_ - step.size % (chunks_ / 2));
    }
  }

  void check() {
    RC_ASSERT(memory.broken == "");
    const char* rule = stitcher.check();
    RC_ASSERT(std::string(rule != nullptr ? rule : "") == "");
    RC_ASSERT(stitcher.stats().reserved_chunks == memory.existing());
    RC_ASSERT(stitcher.stats().live_chunks == memory.owned());
    RC_ASSERT(stitcher.stats().mapped_chunks == memory.mapped());
  }

  ModelMemory memory;
  Stitcher stitcher;

 private:
  struct Live {
    uint64_t address;
    uint64_t chunks;
  };

  void allocate(const Step& step) {
    Grant grant;
    const uint64_t bytes = step.size * ModelMemory::kChunk - step.pick;
    const bool fits = memory.owned() + step.size <= memory.capacity;
    const Result result = stitcher.allocate(bytes, step.tag, &grant);
    RC_ASSERT((result == Result::ok) == fits);
    if (!fits) return;
    memory.taken(grant, step.size, step.tag);
    live_.push_back({grant.address, step.size});
    if (grant.wait_for_all) {
      memory.all_over();
      stitcher.settled(stitcher.mark());
    }
  }

  void release(const Step& step) {
    if (live_.empty()) return;
    const size_t at = step.pick % live_.size();
    memory.given_back(live_[at].address, live_[at].chunks, step.tag);
    RC_ASSERT(stitcher.release(live_[at].address, step.tag));
    RC_ASSERT(!stitcher.release(live_[at].address, step.tag));
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  const uint32_t chunks_;
  std::vector<Live> live_;
};

RC_GTEST_PROP(StitcherProperty, NothingIsSharedLostOrRefusedWithoutNeed, ()) {
  const auto chunks = *rc::gen::inRange<uint32_t>(8, 96);
  const auto stitched_from = *rc::gen::element<uint32_t>(1, 1, 3, 8);
  const auto stitched_blocks = *rc::gen::element<uint32_t>(1, 4, 64);
  const auto tight = *rc::gen::arbitrary<bool>();
  const auto steps = *rc::gen::scale(4.0, rc::gen::container<std::vector<Step>>(any_step()));
  Run run(chunks, stitched_from, stitched_blocks, tight);
  for (const Step& step : steps) {
    run.step(step);
    run.check();
  }
}

}  // namespace
}  // namespace reprise::stitch
