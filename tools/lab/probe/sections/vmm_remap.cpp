#include "tools/lab/probe/sections/vmm_remap.h"

#include "tools/lab/probe/measure/mapping.h"

namespace reprise::probe {
namespace {

constexpr size_t kPlaces = 64;
constexpr unsigned kRemapRounds = 20;

}  // namespace

Status measure_remaps(SectionContext& context, const Limit& limit, bool busy) {
  const Device& device = context.device;
  const auto unit = granularity(device, device_memory(device), CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (!unit.ok()) return unit.status();
  const size_t bytes = (kWantedChunk + unit.value() - 1) / unit.value() * unit.value();
  auto chunks = make_chunks(device, device_memory(device), bytes, kPlaces + 1);
  if (!chunks.ok()) return chunks.status();
  auto view = map_view(device, std::span(chunks.value()).first(kPlaces), bytes);
  if (!view.ok()) return view.status();
  // Each place gets the chunk that the place before it gave up; the first gets the one that is mapped nowhere.
  size_t spare = kPlaces;
  std::vector<size_t> held(kPlaces);
  for (size_t place = 0; place < kPlaces; ++place) held[place] = place;
  std::vector<double> samples;
  std::vector<double> ignored;
  PROBE_TRY(repeat(limit, kRemapRounds, ignored, [&]() -> Result<double> {
    if (ignored.empty()) samples.clear();  // what the warm-up left
    for (size_t place = 0; place < kPlaces; ++place) {
      const Stopwatch watch;
      PROBE_TRY(view.value().replace(place, chunks.value()[spare]));
      samples.push_back(watch.nanoseconds());
      std::swap(held[place], spare);
    }
    return 0.0;
  }));
  const auto summary = summarize(samples);
  if (summary && (busy || !context.machine.remap_ns_per_chunk)) context.machine.remap_ns_per_chunk = summary->median;
  context.report.measure("remap one chunk", "ns", std::move(samples),
                         {{"chunk_bytes", bytes}, {"mapped", kPlaces}, {"gpu", busy ? "busy" : "idle"}});
  return Status::success();
}

}  // namespace reprise::probe
