// Section 2: what the driver's virtual memory management costs, and what it allows: the chunk size, and whether remaps
// may happen while the GPU works, hang on these numbers.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tools/lab/probe/measure/mapping.h"
#include "tools/lab/probe/output/section.h"
#include "tools/lab/probe/sections/vmm_busy.h"
#include "tools/lab/probe/sections/vmm_host.h"
#include "tools/lab/probe/sections/vmm_remap.h"
#include "tools/lab/probe/subjects/subprocess.h"

namespace reprise::probe {
namespace {

// Time per call, nanoseconds, of each step over `count` chunks.
struct Costs {
  std::vector<double> create, map, access_chunk, access_range, unmap_chunk, unmap_range, release;
  std::string no_access_range, no_unmap_range;  // what the driver says where it does not take several chunks at once
};

Status allow_each(const AddressRange& view, size_t chunk_bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) PROBE_TRY(view.allow(i * chunk_bytes, chunk_bytes));
  return Status::success();
}

Status once(const Device& device, size_t chunk_bytes, size_t count, Costs& costs) {
  const auto per_call = [count](const Stopwatch& watch) { return watch.nanoseconds() / static_cast<double>(count); };
  auto range = AddressRange::reserve(device, chunk_bytes * count);
  if (!range.ok()) return range.status();
  AddressRange& view = range.value();
  const Stopwatch create;
  auto made = make_chunks(device, device_memory(device), chunk_bytes, count);
  if (!made.ok()) return made.status();
  costs.create.push_back(per_call(create));
  for (const bool each_chunk : {true, false}) {
    const Stopwatch map;
    for (const Chunk& chunk : made.value()) PROBE_TRY(view.map(chunk, chunk_bytes));
    costs.map.push_back(per_call(map));
    const Stopwatch access;
    Status allowed = each_chunk ? allow_each(view, chunk_bytes, count) : view.allow(0, chunk_bytes * count);
    if (allowed.ok()) (each_chunk ? costs.access_chunk : costs.access_range).push_back(per_call(access));
    if (!allowed.ok() && each_chunk) return allowed;
    costs.no_access_range = allowed.message();
    const Stopwatch unmap;
    Status unmapped = view.unmap(each_chunk);
    if (unmapped.ok()) (each_chunk ? costs.unmap_chunk : costs.unmap_range).push_back(per_call(unmap));
    if (!unmapped.ok() && !each_chunk) {
      costs.no_unmap_range = unmapped.message();
      unmapped = view.unmap(true);
    }
    PROBE_TRY(unmapped);
  }
  const Stopwatch release;
  made.value().clear();
  costs.release.push_back(per_call(release));
  return Status::success();
}

Status costs_of(SectionContext& context, const Limit& limit, size_t chunk_bytes, size_t count, bool busy) {
  Costs costs;
  std::vector<double> ignored;
  PROBE_TRY(repeat(limit, 5, ignored, [&]() -> Result<double> {
    PROBE_TRY(once(context.device, chunk_bytes, count, costs));
    return 0.0;
  }));
  drop_warm_up(costs.map);  // mapped twice in each repeat
  drop_warm_up(costs.map, costs.create, costs.access_chunk, costs.access_range, costs.unmap_chunk, costs.unmap_range,
               costs.release);
  const Json parameters = {{"chunk_bytes", chunk_bytes}, {"count", count}, {"gpu", busy ? "busy" : "idle"}};
  SectionReport& report = context.report;
  report.measure("cuMemCreate", "ns", costs.create, parameters);
  report.measure("cuMemMap", "ns", costs.map, parameters);
  report.measure("cuMemSetAccess each chunk", "ns", costs.access_chunk, parameters);
  if (costs.no_access_range.empty()) {
    report.measure("cuMemSetAccess whole range", "ns", costs.access_range, parameters);
  } else {
    report.fact("cuMemSetAccess whole range", costs.no_access_range);
  }
  report.measure("cuMemUnmap each chunk", "ns", costs.unmap_chunk, parameters);
  if (costs.no_unmap_range.empty()) {
    report.measure("cuMemUnmap whole range", "ns", costs.unmap_range, parameters);
  } else {
    report.fact("cuMemUnmap whole range", costs.no_unmap_range);
  }
  report.measure("cuMemRelease", "ns", costs.release, parameters);
  return Status::success();
}

Status call_costs(SectionContext& context, const Limit& limit, bool busy) {
  const uint64_t usable = context.device.usable_bytes();
  const auto minimum = granularity(context.device, device_memory(context.device), CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (!minimum.ok()) return minimum.status();
  for (const size_t count : {1u, 16u, 256u, 1024u, 4096u, 16384u}) {
    for (const size_t wanted : {2 * kMiB, 8 * kMiB, 32 * kMiB, 64 * kMiB}) {
      const size_t chunk = (wanted + minimum.value() - 1) / minimum.value() * minimum.value();
      if (chunk * count > usable) continue;  // never more than half of what is free
      if (limit.over()) {
        context.report.note(
            fmt::format("costs, {}: stopped before {} chunks of {} MiB", busy ? "busy" : "idle", count, chunk / kMiB));
        context.report.set_partial();
        return Status::success();
      }
      const Status status = costs_of(context, limit, chunk, count, busy);
      if (status.ok()) continue;
      context.report.note(fmt::format("costs, {}, {} chunks of {} MiB: {}", busy ? "busy" : "idle", count, chunk / kMiB,
                                      status.message()));
      context.report.set_partial();
      break;  // larger chunks would fail, too; fewer chunks may not have
    }
    context.save();
  }
  return Status::success();
}

Status granularities(SectionContext& context) {
  const Device& device = context.device;
  for (const auto& [place, properties] :
       {std::pair{"device", device_memory(device)}, {"host NUMA", host_memory(device)}}) {
    for (const auto& [kind, flag] : {std::pair{"minimum", CU_MEM_ALLOC_GRANULARITY_MINIMUM},
                                     {"recommended", CU_MEM_ALLOC_GRANULARITY_RECOMMENDED}}) {
      const auto bytes = granularity(device, properties, flag);
      context.report.fact(fmt::format("granularity {} {}", place, kind),
                          bytes.ok() ? Json(bytes.value()) : Json(bytes.status().message()));
    }
  }
  return Status::success();
}

// How many views of one chunk can be mapped: each costs page tables, which the budget must account for.
Status most_mappings(SectionContext& context, const Limit& limit) {
  const Device& device = context.device;
  const auto minimum = granularity(device, device_memory(device), CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (!minimum.ok()) return minimum.status();
  const size_t chunk_bytes = std::max(minimum.value(), 2 * kMiB);
  auto chunk = make_chunk(device, device_memory(device), chunk_bytes);
  if (!chunk.ok()) return chunk.status();
  constexpr size_t kBatch = 4096;
  constexpr size_t kMost = 1 << 20;  // 2 TiB of addresses: far more than any plan maps
  const uint64_t before = 2 * device.usable_bytes();
  std::vector<AddressRange> views;
  size_t mapped = 0;
  std::string end = "the largest number tried";
  while (mapped < kMost) {
    if (limit.over()) {
      end = "the time was up";
      break;
    }
    auto range = AddressRange::reserve(device, kBatch * chunk_bytes);
    if (!range.ok()) {
      end = range.status().message();
      break;
    }
    views.push_back(std::move(range.value()));
    Status status;
    for (size_t i = 0; i < kBatch && status.ok(); ++i) status = views.back().map(chunk.value(), chunk_bytes);
    if (status.ok()) status = views.back().allow(0, kBatch * chunk_bytes);
    if (!status.ok()) {
      end = status.message();
      break;
    }
    mapped += kBatch;
  }
  const uint64_t after = 2 * device.usable_bytes();
  context.report.fact("mappings of one chunk",
                      Json{{"mapped", mapped},
                           {"stopped_by", end},
                           {"device_bytes_for_page_tables", before > after ? before - after : 0}});
  return Status::success();
}

// Does a write through a read-only mapping fault? In a process of its own: a fault ends the context.
Status read_only(SectionContext& context) {
  const auto outcome =
      run_command({{own_path(), "--check", "read-only", "--device", std::to_string(context.options.device)}, {}, 20});
  if (!outcome.ok()) return outcome.status();
  const Json answer = Json::parse(last_line(outcome.value().output), nullptr, false);
  context.report.fact(
      "PROT_READ honoured",
      answer.is_object() ? answer : Json(fmt::format("the check ended with {}", outcome.value().exit_code)));
  return Status::success();
}

}  // namespace

void measure_vmm(SectionContext& context) {
  if (!context.device.attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) {
    context.report.note("the device has no virtual memory management");
    context.report.set_state(SectionState::unsupported);
    return;
  }
  attempt(context, "granularities", granularities);
  attempt(context, "read-only mappings", read_only);
  attempt(context, "remaps, idle", [](SectionContext& c) { return measure_remaps(c, c.limit.part(0.1), false); });
  attempt(context, "busy costs", [](SectionContext& c) {
    return with_busy_gpu(c, [](SectionContext& inner) {
      attempt(inner, "remaps, busy", [](SectionContext& i) { return measure_remaps(i, i.limit.part(0.1), true); });
      return call_costs(inner, inner.limit.part(0.25), true);
    });
  });
  attempt(context, "idle costs", [](SectionContext& c) { return call_costs(c, c.limit.part(0.6), false); });
  attempt(context, "host memory", measure_host_mappings);
  attempt(context, "most mappings", [](SectionContext& c) { return most_mappings(c, c.limit.part(0.4)); });
}

}  // namespace reprise::probe
