#include "tools/export/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "tools/cli/sizes.h"
#include "tools/report/tensor_table.h"

namespace reprise::exports {
namespace {

using report::call_site_words;
using report::kernels_section;
using report::sites_section;
using report::tensor_costs;
using report::tensor_sites;
using report::TensorCost;
using report::tensors_at_peak;
using tools::format_bytes;
using tools::format_duration;

constexpr size_t kMost = 10;

// The innermost functions of a call stack, without the runtime's own.
std::string innermost(const std::string& stack) {
  std::string shown;
  std::istringstream frames(stack);
  int count = 0;
  for (std::string frame; count < 4 && std::getline(frames, frame);) {
    frame = frame.substr(0, frame.find('('));
    while (frame.ends_with(' ')) frame.pop_back();
    if (frame.starts_with("cuda") || frame.starts_with("cuMem")) continue;
    shown += (shown.empty() ? "" : " < ") + frame;
    ++count;
  }
  return shown.empty() ? (stack.empty() ? "-" : stack) : shown;
}

std::string call_sites(const report::Inputs& inputs) {
  std::string text;
  for (const report::Json& row : sites_section(inputs)) {
    if (static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) == kMost) break;
    fmt::format_to(std::back_inserter(text), "{:>10} {:>12} {:>10}  {}\n", format_bytes(row["peak"].get<uint64_t>()),
                   row["count"].get<uint64_t>(), format_bytes(row["largest"].get<uint64_t>()),
                   innermost(row["stack"].get<std::string>()));
  }
  if (text.empty()) return text;
  return fmt::format("{:>10} {:>12} {:>10}  {}\n", "at once", "allocations", "largest", "call site") + text;
}

std::string tensors_of_plan(const report::Inputs& inputs) {
  const std::vector<std::string> sites = tensor_sites(inputs);
  std::string text = fmt::format("{:>10} {:>10} {:>10}  {}\n", "waited", "moved", "size", "tensor, allocated in");
  size_t count = 0;
  for (const TensorCost& cost : tensor_costs(inputs)) {
    if (count++ == kMost) break;
    fmt::format_to(std::back_inserter(text), "{:>10} {:>10} {:>10}  {}, {}\n", format_duration(cost.wait_ns),
                   format_bytes(cost.moved_bytes), format_bytes(inputs.plan->tensors[cost.tensor].size), cost.tensor,
                   innermost(sites[cost.tensor]));
  }
  return text;
}

std::string tensors_of_trace(const trace::Trace& trace) {
  const auto tensors = tensors_at_peak(trace);
  if (tensors.empty()) return "";
  std::string text = fmt::format("{:>10}  {}\n", "size", "tensor that is alive when most is, allocated in");
  for (size_t i = 0; i < std::min(kMost, tensors.size()); ++i) {
    fmt::format_to(std::back_inserter(text), "{:>10}  {}\n", format_bytes(tensors[i]->size),
                   innermost(call_site_words(trace, *tensors[i])));
  }
  return text;
}

std::string kernels(const report::Inputs& inputs) {
  std::string text;
  for (const report::Json& row : kernels_section(inputs)) {
    if (static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) == kMost) break;
    fmt::format_to(std::back_inserter(text), "{:>10} {:>8.1f} % {:>8}  {}\n",
                   format_duration(row["total_ns"].get<uint64_t>()), 100 * row["share"].get<double>(),
                   row["calls"].get<uint64_t>(), row["name"].get<std::string>());
  }
  if (text.empty()) return text;
  return fmt::format("{:>10} {:>10} {:>8}  {}\n", "time", "of it all", "calls", "kernel") + text;
}

}  // namespace

std::string top_text(const report::Inputs& inputs) {
  std::string tensors;
  if (inputs.plan != nullptr) {
    tensors = tensors_of_plan(inputs);
  } else if (inputs.trace != nullptr) {
    tensors = tensors_of_trace(*inputs.trace);
  }
  std::string text;
  for (const std::string& table : {call_sites(inputs), tensors, kernels(inputs)}) {
    if (!table.empty()) text += (text.empty() ? "" : "\n") + table;
  }
  return text;
}

}  // namespace reprise::exports
