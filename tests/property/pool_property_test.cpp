// The pool of chunks against a model that looks at every chunk: as wide a slack, and where its search is cut short,
// free ones, and always some when there are.
#include <rapidcheck.h>

#include "analyzer/placement/layout.h"
#include "analyzer/placement/pool.h"
#include "tests/support/test.h"

namespace reprise::analyzer {
namespace {

// Every chunk's busy positions, one by one.
class Model {
 public:
  Model(uint32_t chunks, const std::vector<uint64_t>& times)
      : times_(times), busy_(chunks, std::vector<bool>(times.size() - 1)) {}

  bool is_free(uint32_t chunk, const std::vector<Span>& spans) const {
    return std::all_of(spans.begin(), spans.end(), [&](const Span& span) {
      for (uint32_t at = span.begin; at < span.end; ++at) {
        if (busy_[chunk][at]) return false;
      }
      return true;
    });
  }
  void occupy(uint32_t chunk, const std::vector<Span>& spans) {
    for (const Span& span : spans) {
      for (uint32_t at = span.begin; at < span.end; ++at) busy_[chunk][at] = true;
    }
  }
  // What is left to both sides, of those that are free, widest first.
  std::vector<uint64_t> slacks(const std::vector<Span>& spans) const {
    std::vector<uint64_t> result;
    for (uint32_t chunk = 0; chunk < busy_.size(); ++chunk) {
      if (is_free(chunk, spans)) result.push_back(slack(chunk, spans));
    }
    std::sort(result.begin(), result.end(), std::greater<>());
    return result;
  }
  // Steps to both sides until something busy comes.
  uint64_t slack(uint32_t chunk, const std::vector<Span>& spans) const {
    const std::vector<bool>& busy = busy_[chunk];
    uint64_t least = std::numeric_limits<uint64_t>::max();
    if (std::find(busy.begin(), busy.end(), true) == busy.end()) return least;
    const auto calls = static_cast<uint32_t>(busy.size());
    for (const Span& span : spans) {
      uint64_t before = 0;
      for (uint32_t at = (span.begin + calls - 1) % calls; !busy[at]; at = (at + calls - 1) % calls)
        before += length(at);
      uint64_t after = 0;
      for (uint32_t at = span.end % calls; !busy[at]; at = (at + 1) % calls) after += length(at);
      least = std::min({least, before, after});
    }
    return least;
  }

 private:
  uint64_t length(uint32_t at) const { return times_[at + 1] - times_[at]; }

  const std::vector<uint64_t>& times_;
  std::vector<std::vector<bool>> busy_;
};

std::vector<uint64_t> any_times() {
  const auto calls = *rc::gen::inRange(1, 25);
  std::vector<uint64_t> times = {0};
  for (int i = 0; i < calls; ++i) times.push_back(times.back() + static_cast<uint64_t>(*rc::gen::inRange(1, 4)));
  return times;
}

// Sorted and disjoint; they may touch each other and the iteration's ends.
std::vector<Span> any_spans(uint32_t calls) {
  std::vector<Span> spans;
  uint32_t from = 0;
  const auto most = *rc::gen::element(1, 1, 2, 3, 12);
  for (int i = 0; i < most && from < calls; ++i) {
    const uint32_t begin = *rc::gen::inRange(from, calls);
    const uint32_t end = *rc::gen::inRange(begin, std::min(calls, begin + 6)) + 1;
    spans.push_back({begin, end});
    from = end;
  }
  if (spans.size() > 1 && *rc::gen::element(true, false)) {  // wraps
    spans.front().begin = 0;
    spans.back().end = calls;
  }
  return spans;
}

void check_against_model(uint64_t steps) {
  const std::vector<uint64_t> times = any_times();
  const auto calls = static_cast<uint32_t>(times.size() - 1);
  const auto chunks = *rc::gen::inRange<uint32_t>(1, 30);
  Model model(chunks, times);
  HomePool pool(chunks, times, steps);
  for (int i = *rc::gen::inRange(1, 80); i > 0; --i) {
    const std::vector<Span> spans = any_spans(calls);
    const uint32_t count = *rc::gen::element<uint32_t>(1, 1, 2, 5);
    if (*rc::gen::inRange(0, 4) == 0) {
      auto these = *rc::gen::container<std::vector<uint32_t>>(count, rc::gen::inRange<uint32_t>(0, chunks));
      std::sort(these.begin(), these.end());
      these.erase(std::unique(these.begin(), these.end()), these.end());
      const bool free = std::all_of(these.begin(), these.end(), [&](uint32_t c) { return model.is_free(c, spans); });
      RC_ASSERT(pool.take_these(these, spans) == free);
      for (const uint32_t chunk : these) free ? model.occupy(chunk, spans) : void();
      continue;
    }
    const auto taken = pool.take(count, spans);
    std::vector<uint64_t> widest = model.slacks(spans);
    RC_ASSERT(taken.has_value() == (widest.size() >= count));
    if (!taken) continue;
    RC_ASSERT(taken->size() == count);
    RC_ASSERT(std::adjacent_find(taken->begin(), taken->end(), std::greater_equal<>()) == taken->end());
    std::vector<uint64_t> slacks;
    for (const uint32_t chunk : *taken) {
      RC_ASSERT(model.is_free(chunk, spans));
      slacks.push_back(model.slack(chunk, spans));
      model.occupy(chunk, spans);
    }
    std::sort(slacks.begin(), slacks.end(), std::greater<>());
    widest.resize(count);
    if (steps > 0) RC_ASSERT(slacks == widest);
  }
}

TEST(PoolProperty, TakesWhatAModelTakes) {
  EXPECT_TRUE(rc::check("the widest slack", [] { check_against_model(HomePool::kSteps); }));
}

TEST(PoolProperty, FindsFreeChunksWithFewSteps) {
  EXPECT_TRUE(rc::check("free ones, and always some when there are", [] { check_against_model(0); }));
}

// Where a plan is left, each chunk of the region moves by itself.
TEST(SmallTensors, NeverLieOverTheEndOfAChunk) {
  EXPECT_TRUE(rc::check("small tensors stay in their chunk", [] {
    TaskGraph graph;
    graph.chunk_bytes = 8192;
    std::vector<uint32_t> live;
    const int steps = *rc::gen::inRange(1, 200);
    for (int step = 0; step < steps; ++step) {
      const auto index = static_cast<uint32_t>(graph.calls.size());
      const bool frees = !live.empty() && *rc::gen::inRange(0, 3) == 0;
      graph.calls.emplace_back().call.kind = frees ? plan::CallKind::free : plan::CallKind::allocate;
      if (frees) {
        const auto at = *rc::gen::inRange<size_t>(0, live.size());
        graph.calls.back().call.tensor = live[at];
        graph.tensors[live[at]].free_call = index;
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        live.push_back(static_cast<uint32_t>(graph.tensors.size()));
        graph.calls.back().call.tensor = live.back();
        graph.tensors.emplace_back();
        graph.tensors.back().size = *rc::gen::inRange<uint64_t>(1, 4096);
        graph.tensors.back().allocate_call = index;
      }
      const uint64_t bytes = place_small_tensors(graph);
      std::vector<std::pair<uint64_t, uint64_t>> places;
      for (const uint32_t tensor : live) {
        const plan::Tensor& one = graph.tensors[tensor];
        RC_ASSERT(one.slab_offset / 8192 == (one.slab_offset + one.size - 1) / 8192);
        RC_ASSERT(one.slab_offset + one.size <= bytes);
        places.emplace_back(one.slab_offset, one.slab_offset + one.size);
      }
      std::sort(places.begin(), places.end());
      for (size_t i = 1; i < places.size(); ++i) RC_ASSERT(places[i - 1].second <= places[i].first);
    }
  }));
}

}  // namespace
}  // namespace reprise::analyzer
