#include "tools/lab/probe/counting_shim/counts.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tools/lab/probe/counting_shim/real.h"

namespace reprise::count {
namespace {

struct Function {
  std::string name;
  bool parameters_known = false;
  std::vector<size_t> parameter_bytes;
  uint64_t launches = 0;
};

struct State {
  std::mutex mutex;
  std::unordered_map<CUfunction, Function> functions;
  std::unordered_set<void*> kernels;
  std::unordered_map<CUgraphExec, std::vector<std::string>> graphs;
  std::map<std::string, uint64_t> entries;   // calls by entry point
  std::map<std::string, uint64_t> launched;  // kernels by name
  std::map<std::string, uint64_t> recorded;  // by CUPTI
  std::map<std::string, uint64_t> memory_calls;
  std::map<CUdeviceptr, size_t> allocations;
  uint64_t captured = 0;
  uint64_t graph_launches = 0;
  uint64_t with_pointer = 0;
  uint64_t without_pointer = 0;
  std::string cupti = "off";
  uint64_t dropped = 0;
};

// Never destroyed: libraries launch and free in their own exit handlers.
State& state() {
  static State& the_state = *new State;
  return the_state;
}

template <typename Signature, typename Handle>
void read_layout(const char* symbol, Handle handle, Function& function) {
  const auto get = real<Signature>(symbol);
  size_t offset = 0;
  size_t bytes = 0;
  if (!get) return;
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; (result = get(handle, i, &offset, &bytes)) == CUDA_SUCCESS; ++i)
    function.parameter_bytes.push_back(bytes);
  function.parameters_known = result == CUDA_ERROR_INVALID_VALUE;
}

Function describe(State& s, CUfunction handle) {
  Function function;
  const char* name = nullptr;
  if (s.kernels.count(handle)) {
    const auto kernel = reinterpret_cast<CUkernel>(handle);
    const auto get = real<decltype(&cuKernelGetName)>("cuKernelGetName");
    if (!get || get(&name, kernel) != CUDA_SUCCESS) name = nullptr;
    read_layout<decltype(&cuKernelGetParamInfo)>("cuKernelGetParamInfo", kernel, function);
  } else {
    const auto get = real<decltype(&cuFuncGetName)>("cuFuncGetName");
    if (!get || get(&name, handle) != CUDA_SUCCESS) name = nullptr;
    read_layout<decltype(&cuFuncGetParamInfo)>("cuFuncGetParamInfo", handle, function);
  }
  function.name = name ? name : "(no name)";
  return function;
}

Function& function_of(State& s, CUfunction handle) {
  const auto found = s.functions.find(handle);
  if (found != s.functions.end()) return found->second;
  return s.functions.emplace(handle, describe(s, handle)).first->second;
}

bool has_pointer(const State& s, const void* data, size_t bytes) {
  for (size_t at = 0; at + sizeof(CUdeviceptr) <= bytes; at += sizeof(CUdeviceptr)) {
    CUdeviceptr value = 0;
    std::memcpy(&value, static_cast<const char*>(data) + at, sizeof(value));
    const auto after = s.allocations.upper_bound(value);
    if (after == s.allocations.begin()) continue;
    const auto found = std::prev(after);
    if (value - found->first < found->second) return true;
  }
  return false;
}

bool carries_pointer(const State& s, const Function& function, void** parameters, void** extra) {
  if (parameters) {
    for (size_t i = 0; i < function.parameter_bytes.size(); ++i) {
      if (has_pointer(s, parameters[i], function.parameter_bytes[i])) return true;
    }
    return false;
  }
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (void** item = extra; item && *item != CU_LAUNCH_PARAM_END; item += 2) {
    if (*item == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = item[1];
    if (*item == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<size_t*>(item[1]);
  }
  return buffer && has_pointer(s, buffer, bytes);
}

// The names of a graph's kernel nodes, those of its child graphs included.
void collect_kernels(State& s, CUgraph graph, std::vector<std::string>& names) {
  const auto get_nodes = real<decltype(&cuGraphGetNodes)>("cuGraphGetNodes");
  const auto get_type = real<decltype(&cuGraphNodeGetType)>("cuGraphNodeGetType");
  const auto get_kernel = real<CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*)>("cuGraphKernelNodeGetParams_v2");
  const auto get_child = real<decltype(&cuGraphChildGraphNodeGetGraph)>("cuGraphChildGraphNodeGetGraph");
  size_t count = 0;
  if (!get_nodes || !get_type || !get_kernel || !get_child || get_nodes(graph, nullptr, &count) != CUDA_SUCCESS) return;
  std::vector<CUgraphNode> nodes(count);
  if (count == 0 || get_nodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return;
  for (const CUgraphNode node : nodes) {
    CUgraphNodeType type{};
    if (get_type(node, &type) != CUDA_SUCCESS) continue;
    CUDA_KERNEL_NODE_PARAMS kernel = {};
    CUgraph child = nullptr;
    if (type == CU_GRAPH_NODE_TYPE_KERNEL && get_kernel(node, &kernel) == CUDA_SUCCESS) {
      const CUfunction function = kernel.func ? kernel.func : reinterpret_cast<CUfunction>(kernel.kern);
      if (!kernel.func) s.kernels.insert(kernel.kern);
      names.push_back(function_of(s, function).name);
    } else if (type == CU_GRAPH_NODE_TYPE_GRAPH && get_child(node, &child) == CUDA_SUCCESS) {
      collect_kernels(s, child, names);
    }
  }
}

void write_text(FILE* file, const std::string& text) {
  std::fputc('"', file);
  for (const char c : text) {
    if (c == '"' || c == '\\') std::fputc('\\', file);
    std::fputc(static_cast<unsigned char>(c) < 0x20 ? ' ' : c, file);
  }
  std::fputc('"', file);
}

void write_map(FILE* file, const char* key, const std::map<std::string, uint64_t>& map) {
  std::fprintf(file, "\"%s\": {", key);
  const char* separator = "";
  for (const auto& [name, count] : map) {
    std::fputs(separator, file);
    write_text(file, name);
    std::fprintf(file, ": %llu", static_cast<unsigned long long>(count));
    separator = ", ";
  }
  std::fputs("},\n", file);
}

void write_state(FILE* file, const State& s) {
  std::fputs("{\n", file);
  write_map(file, "entries", s.entries);
  write_map(file, "launched", s.launched);
  write_map(file, "recorded", s.recorded);
  write_map(file, "memory_calls", s.memory_calls);
  std::fputs("\"functions_without_parameter_info\": [", file);
  size_t known = 0;
  const char* separator = "";
  for (const auto& [handle, function] : s.functions) {
    known += function.parameters_known ? 1 : 0;
    if (function.parameters_known) continue;
    std::fputs(separator, file);
    write_text(file, function.name);
    separator = ", ";
  }
  std::fputs("],\n\"cupti\": ", file);
  write_text(file, s.cupti);
  const std::array<std::pair<const char*, uint64_t>, 7> numbers = {
      {{"functions", s.functions.size()},
       {"functions_with_parameter_info", known},
       {"launches_with_device_pointer", s.with_pointer},
       {"launches_without_device_pointer", s.without_pointer},
       {"captured", s.captured},
       {"graph_launches", s.graph_launches},
       {"dropped_records", s.dropped}}};
  for (const auto& [key, value] : numbers)
    std::fprintf(file, ",\n\"%s\": %llu", key, static_cast<unsigned long long>(value));
  std::fputs("\n}\n", file);
}

}  // namespace

void count_kernel(CUkernel kernel) noexcept {
  const std::lock_guard lock(state().mutex);
  state().kernels.insert(kernel);
}

void count_launch(const char* entry, CUfunction handle, void** parameters, void** extra, bool captured) noexcept {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  ++s.entries[entry];
  Function& function = function_of(s, handle);
  if (captured) {
    ++s.captured;
    return;
  }
  ++function.launches;
  ++s.launched[function.name];
  ++(carries_pointer(s, function, parameters, extra) ? s.with_pointer : s.without_pointer);
}

void count_graph(CUgraphExec executable, CUgraph graph) noexcept {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::vector<std::string> names;
  collect_kernels(s, graph, names);
  s.graphs[executable] = std::move(names);
}

void count_graph_launch(CUgraphExec executable) noexcept {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  ++s.graph_launches;
  for (const std::string& name : s.graphs[executable]) ++s.launched[name];
}

void count_allocation(CUdeviceptr address, size_t bytes) noexcept {
  const std::lock_guard lock(state().mutex);
  state().allocations[address] = bytes;
}

void count_free(CUdeviceptr address, size_t bytes) noexcept {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.allocations.erase(s.allocations.lower_bound(address), s.allocations.lower_bound(address + bytes));
}

void count_memory_call(const char* name) noexcept {
  const std::lock_guard lock(state().mutex);
  ++state().memory_calls[name];
}

void count_record(const char* kernel_name) noexcept {
  const std::lock_guard lock(state().mutex);
  ++state().recorded[kernel_name ? kernel_name : "(no name)"];
}

void count_cupti(const char* text, uint64_t dropped_records) noexcept {
  const std::lock_guard lock(state().mutex);
  state().cupti = text;
  state().dropped += dropped_records;
}

void write_counts() noexcept {
  const char* path = std::getenv("REPRISE_COUNT_OUTPUT");
  if (!path || !*path) return;
  std::array<char, 4096> name{};
  std::snprintf(name.data(), name.size(), "%s.%d", path, getpid());
  FILE* file = std::fopen(name.data(), "we");
  if (!file) return;
  const std::lock_guard lock(state().mutex);
  write_state(file, state());
  std::fclose(file);
}

}  // namespace reprise::count
