// How much device memory does a program's sequence of allocations need: live, under a caching allocator as PyTorch has
// one, and under GMLake's with several fragmentation limits? No device: both allocators work on counted chunks. Prints
// a Markdown table: defragment_bench [--rounds N] FILE...
//
// Each FILE is a task graph in JSON or a recorded trace; "seconds" tells how long the allocators themselves take for
// all of it. Several graphs are iterations of one model with batches of different length: persistent tensors are the
// first one's, and the graphs take turns. A trace is run once, as it was.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "preload/defragment/stitch/stitcher.h"
#include "preload/trace/reader.h"
#include "tests/e2e/victims/caching_allocator.h"
#include "tools/lab/graphs/json_graph.h"

namespace reprise::bench {
namespace {

constexpr uint64_t kChunk = uint64_t{2} << 20;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;

// Positive: allocate tensor `id`; bytes 0: free it.
struct Step {
  uint64_t id;
  uint64_t bytes;
};

struct Sequence {
  std::vector<Step> steps;
  size_t last_round = 0;  // where it begins
  uint64_t tensors = 0;
  uint64_t peak_live = 0;
};

void add_round(Sequence& sequence, const analyzer::TaskGraph& graph, bool first) {
  sequence.last_round = sequence.steps.size();
  const uint64_t base = sequence.tensors;
  std::vector<std::vector<Step>> at(graph.calls.size() + 1);
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const plan::Tensor& tensor = graph.tensors[i];
    if (analyzer::is_persistent(tensor)) {
      if (first) sequence.steps.push_back({base + i, tensor.size});
      continue;
    }
    at[tensor.allocate_call].push_back({base + i, tensor.size});
    at[std::min<size_t>(tensor.free_call, graph.calls.size())].push_back({base + i, 0});
  }
  for (const auto& steps : at) sequence.steps.insert(sequence.steps.end(), steps.begin(), steps.end());
  sequence.tensors += graph.tensors.size();
}

bool on_device(trace::Origin origin) {
  return origin == trace::Origin::alloc || origin == trace::Origin::pitched || origin == trace::Origin::async ||
         origin == trace::Origin::pool;
}

void add_trace(Sequence& sequence, const trace::Trace& trace) {
  for (const trace::Event& event : trace.events) {
    if (const auto* allocated = std::get_if<trace::Allocate>(&event)) {
      if (!on_device(allocated->record.origin) || allocated->record.size == 0) continue;
      sequence.steps.push_back({allocated->record.allocation, allocated->record.size});
      sequence.tensors = std::max(sequence.tensors, allocated->record.allocation + 1);
    } else if (const auto* freed = std::get_if<trace::Free>(&event)) {
      if (on_device(freed->record.origin)) sequence.steps.push_back({freed->record.allocation, 0});
    }
  }
}

void find_peak(Sequence& sequence) {
  std::vector<uint64_t> bytes(sequence.tensors);
  uint64_t live = 0;
  for (const Step& step : sequence.steps) {
    live += step.bytes;
    live -= step.bytes == 0 ? bytes[step.id] : 0;
    bytes[step.id] = step.bytes;
    sequence.peak_live = std::max(sequence.peak_live, live);
  }
}

struct Figures {
  bool fits = true;
  uint64_t reserved = 0;  // at most
  uint64_t calls = 0;     // of the driver
  uint64_t last_calls = 0;
  uint64_t exact = 0;
  uint64_t served = 0;
  uint64_t stitched_chunks = 0;
  double seconds = 0;
};

// What both allocators stand on: bytes of a device, addresses without end.
struct Device {
  uint64_t capacity = kMostBytes;
  uint64_t used = 0;
  uint64_t peak = 0;
  uint64_t calls = 0;
  uint64_t next = kChunk;

  bool take(uint64_t bytes) {
    if (used + bytes > capacity) return false;
    used += bytes;
    peak = std::max(peak, used);
    return true;
  }
};

template <typename Allocate, typename Free>
Figures play(const Sequence& sequence, Device& device, Allocate allocate, Free free) {
  Figures result;
  std::vector<uint64_t> addresses(sequence.tensors);
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < sequence.steps.size() && result.fits; ++i) {
    const Step& step = sequence.steps[i];
    if (i == sequence.last_round) result.last_calls = device.calls;
    if (step.bytes != 0) {
      addresses[step.id] = allocate(step.bytes);
      result.fits = addresses[step.id] != 0;
    } else if (addresses[step.id] != 0) {
      free(addresses[step.id]);
      addresses[step.id] = 0;
    }
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.reserved = device.peak;
  result.calls = device.calls;
  result.last_calls = device.calls - result.last_calls;
  return result;
}

Figures play_caching(const Sequence& sequence, uint64_t capacity) {
  Device device;
  device.capacity = capacity;
  std::map<uint64_t, uint64_t> segments;
  CachingAllocator allocator({[&](uint64_t bytes) -> uint64_t {
                                ++device.calls;
                                if (!device.take(bytes)) return 0;
                                const uint64_t address = device.next;
                                device.next += bytes + kChunk;
                                segments[address] = bytes;
                                return address;
                              },
                              [&](uint64_t address) {
                                ++device.calls;
                                device.used -= segments[address];
                                segments.erase(address);
                              }},
                             kChunk);
  return play(
      sequence, device, [&](uint64_t bytes) { return allocator.allocate(bytes); },
      [&](uint64_t address) { allocator.free(address); });
}

class CountedMemory final : public stitch::Memory {
 public:
  explicit CountedMemory(Device* device) : device_(*device) {}
  stitch::Result create(uint64_t* handle) noexcept override {
    ++device_.calls;
    *handle = 1;
    return device_.take(kChunk) ? stitch::Result::ok : stitch::Result::out_of_memory;
  }
  void destroy(uint64_t) noexcept override {
    ++device_.calls;
    device_.used -= kChunk;
  }
  stitch::Result map(const uint64_t*, uint32_t count, uint64_t* address) noexcept override {
    device_.calls += count + 2;  // reserve, map each chunk, set access
    *address = device_.next;
    device_.next += (count + 1) * kChunk;
    return stitch::Result::ok;
  }
  void unmap(uint64_t, uint32_t) noexcept override { ++device_.calls; }
  void unreserve(uint64_t, uint32_t) noexcept override { ++device_.calls; }
  void settle() noexcept override {}

 private:
  Device& device_;
};

// Less than a chunk goes to the driver's pool, which is taken to need what it hands out, in units of 512 bytes.
Figures play_stitched(const Sequence& sequence, uint64_t capacity, uint32_t stitched_from) {
  Device device;
  device.capacity = capacity;
  CountedMemory memory(&device);
  stitch::Stitcher stitcher;
  stitch::Limits limits;
  limits.chunk_bytes = kChunk;
  limits.chunks = static_cast<uint32_t>(capacity / kChunk);
  limits.stitched_from = stitched_from;
  limits.mapped_chunks = static_cast<uint32_t>(std::min<uint64_t>(uint64_t{limits.chunks} * 6, UINT32_MAX));
  limits.stitched_blocks = 8192;
  if (!stitcher.open(&memory, limits)) return Figures{.fits = false};
  std::map<uint64_t, uint64_t> small;
  const auto allocate = [&](uint64_t bytes) -> uint64_t {
    if (bytes < kChunk) {
      const uint64_t rounded = (bytes + 511) / 512 * 512;
      if (!device.take(rounded) && (stitcher.trim() == 0 || !device.take(rounded))) return 0;
      const uint64_t address = device.next++ | uint64_t{1} << 62;
      small[address] = rounded;
      return address;
    }
    stitch::Grant grant;
    return stitcher.allocate(bytes, stitch::kIdle, &grant) == stitch::Result::ok ? grant.address : 0;
  };
  const auto free = [&](uint64_t address) {
    if (stitcher.release(address, stitch::kIdle)) return;
    device.used -= small[address];
    small.erase(address);
  };
  Figures result = play(sequence, device, allocate, free);
  const stitch::Stats& stats = stitcher.stats();
  result.exact = stats.states[0];
  result.served = stats.states[0] + stats.states[1] + stats.states[2] + stats.states[3];
  result.stitched_chunks = stats.stitched_chunks;
  return result;
}

// The least memory, in whole chunks, with which `fits` is true.
template <typename Fits>
uint64_t least(uint64_t from, Fits fits) {
  uint64_t low = from / kChunk;  // one that may be too little
  uint64_t high = low;
  while (!fits(high * kChunk)) high = high + high / 4 + 1;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (fits(middle * kChunk)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high * kChunk;
}

template <typename Play>
void print_row(const Sequence& sequence, const char* name, Play play) {
  const Figures roomy = play(kMostBytes);
  const uint64_t tight = least(sequence.peak_live, [&](uint64_t capacity) { return play(capacity).fits; });
  const double live = static_cast<double>(sequence.peak_live);
  const auto gib = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); };
  fmt::print("| {} | {:.2f} | {:.1f} % | {:.2f} | {:.1f} % | {} | {} | {} | {} | {:.3f} |\n", name, gib(roomy.reserved),
             100 * live / static_cast<double>(roomy.reserved), gib(tight), 100 * live / static_cast<double>(tight),
             roomy.calls, roomy.last_calls,
             roomy.served != 0
                 ? fmt::format("{:.1f} %", 100.0 * static_cast<double>(roomy.exact) / static_cast<double>(roomy.served))
                 : "",
             roomy.served != 0 ? fmt::format("{}", roomy.stitched_chunks) : "", roomy.seconds);
}

void print_table(const Sequence& sequence) {
  fmt::print("{} allocations and frees, {:.2f} GiB live at most.\n\n", sequence.steps.size(),
             static_cast<double>(sequence.peak_live) / (1 << 30));
  fmt::print(
      "| allocator | reserved GiB | used | least GiB | used | driver calls | in the last round | exact | chunks "
      "stitched | seconds |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|---|\n");
  print_row(sequence, "caching, as PyTorch's", [&](uint64_t capacity) { return play_caching(sequence, capacity); });
  for (const uint32_t limit : {1u, 8u, 64u, 256u}) {
    const std::string name = limit == 1 ? "stitching" : fmt::format("stitching from {} MiB", limit * 2);
    print_row(sequence, name.c_str(), [&](uint64_t capacity) { return play_stitched(sequence, capacity, limit); });
  }
}

int complain(const std::string& message) {
  fmt::print(stderr, "defragment_bench: {}\n", message);
  return 1;
}

int run(const std::vector<std::string>& paths, int rounds) {
  Sequence sequence;
  std::vector<analyzer::TaskGraph> graphs;
  for (const std::string& path : paths) {
    if (tools::is_graph_path(path)) {
      reprise::Result<analyzer::TaskGraph> graph = tools::read_graph(path, kChunk);
      if (!graph.ok()) return complain(graph.status().message());
      graphs.push_back(std::move(graph.value()));
    } else {
      const reprise::Result<trace::Trace> trace = trace::read_trace(path);
      if (!trace.ok()) return complain(trace.status().message());
      add_trace(sequence, trace.value());
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (const analyzer::TaskGraph& graph : graphs) {
      add_round(sequence, graph, round == 0 && &graph == &graphs.front());
    }
  }
  find_peak(sequence);
  if (sequence.peak_live == 0) return complain("nothing is allocated there");
  print_table(sequence);
  return 0;
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  std::vector<std::string> paths(argv + 1, argv + argc);
  int rounds = 4;
  if (paths.size() >= 2 && paths[0] == "--rounds") {
    rounds = std::max(1, std::atoi(paths[1].c_str()));
    paths.erase(paths.begin(), paths.begin() + 2);
  }
  if (paths.empty()) {
    fmt::print(stderr, "defragment_bench [--rounds N] GRAPH.json[.zst]... | TRACE\n");
    return 2;
  }
  return reprise::bench::run(paths, rounds);
}
