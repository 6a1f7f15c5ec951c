#include "tools/lab/workloads/builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace reprise::tools::workloads {
namespace {

std::string list(const Tensors& tensors) {
  std::string text;
  for (const Tensor tensor : tensors) text += fmt::format("{}{}", text.empty() ? "" : ",", tensor);
  return text;
}

}  // namespace

Builder::Builder(const std::string& model, const analyzer::Machine& machine, Precision precision, uint32_t devices)
    : machine_(machine), precision_(precision) {
  draft_.model = model;
  draft_.devices = devices;
}

std::string Builder::labelled(const std::string& name) const {
  return draft_.devices == 1 ? name : fmt::format("{}@{}", name, device_);
}

Tensor Builder::weight(const std::string& name, uint64_t count, bool copy, uint64_t element_bytes) {
  if (!copy) draft_.parameters += count;
  return state(name, count * (element_bytes != 0 ? element_bytes : element()));
}

Tensor Builder::state(const std::string& name, uint64_t bytes) {
  draft_.tensors.push_back({labelled(name), bytes, true, device_});
  return static_cast<Tensor>(draft_.tensors.size() - 1);
}

Tensor Builder::tensor(const std::string& name, uint64_t bytes) {
  draft_.tensors.push_back({labelled(name), bytes, false, device_});
  return static_cast<Tensor>(draft_.tensors.size() - 1);
}

void Builder::kernel(const std::string& name, const Tensors& inputs, const Tensors& outputs, const Work& work) {
  double moved = work.bytes;
  if (moved == 0) {
    for (const Tensors* side : {&inputs, &outputs}) {
      for (const Tensor tensor : *side) moved += static_cast<double>(bytes(tensor));
    }
  }
  const double peak = precision_ == Precision::fp16 ? machine_.fp16_flops_per_s : machine_.fp32_flops_per_s;
  const double seconds = std::max(work.flops / (peak * work.efficiency), moved / machine_.memory_bytes_per_s);
  DraftKernel kernel{labelled(name), inputs, outputs, 0, device_, false};
  // A hundred years are refused later, with a name; here they only must not overflow.
  kernel.duration_ns = static_cast<uint64_t>(std::llround(std::min(seconds, 3e9) * 1e9)) + machine_.launch_ns;
  draft_.flops += work.flops;
  draft_.kernels.push_back(std::move(kernel));
}

Tensor Builder::make(const std::string& name, const Tensors& inputs, uint64_t bytes, const Work& work) {
  const Tensor output = tensor(name, bytes);
  kernel(name, inputs, {output}, work);
  return output;
}

Tensor Builder::move(Tensor from, uint32_t to) {
  const DraftTensor source = draft_.tensors[from];
  if (source.device == to) return from;
  const std::string name = fmt::format("{}>{}", source.name, to);
  draft_.tensors.push_back({name, source.bytes, false, to});
  const auto copy = static_cast<Tensor>(draft_.tensors.size() - 1);
  draft_.kernels.push_back({name, {from}, {copy}, 0, to, true});
  return copy;
}

Status check_draft(const Draft& draft) {
  for (const DraftTensor& tensor : draft.tensors) {
    if (tensor.bytes <= kMostTensorBytes) continue;
    return {
        StatusCode::invalid_argument,
        fmt::format("tensor {} would have {} bytes, more than a task graph may; make the batch or its samples smaller",
                    tensor.name, tensor.bytes)};
  }
  for (const DraftKernel& kernel : draft.kernels) {
    if (kernel.duration_ns <= kMostDuration) continue;
    return {
        StatusCode::invalid_argument,
        fmt::format("kernel {} would run for {} s, longer than a task graph may; make the batch or its samples smaller",
                    kernel.name, kernel.duration_ns / 1'000'000'000)};
  }
  return {};
}

std::string to_json(const Draft& draft, const std::string& source) {
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  const bool several = draft.devices > 1;
  const auto device = [&](uint32_t number) { return several ? fmt::format(",\"device\":{}", number) : std::string(); };
  std::string text = fmt::format(
      "{{\"model\":{},\"batch\":{},\"source\":{},\"gpu\":{},\"time_unit\":\"ns\",\"devices\":{},\"parameters\":{},"
      "\"flops\":{:.6g},\n\"tensors\":[",
      quoted(draft.model), draft.batch, quoted(source), quoted(draft.machine), draft.devices, draft.parameters,
      draft.flops);
  for (size_t i = 0; i < draft.tensors.size(); ++i) {
    const DraftTensor& tensor = draft.tensors[i];
    text += fmt::format("{}\n{{\"id\":{},\"name\":{},\"bytes\":{},\"persistent\":{}{}}}", i == 0 ? "" : ",", i,
                        quoted(tensor.name), tensor.bytes, tensor.persistent ? 1 : 0, device(tensor.device));
  }
  text += "],\n\"kernels\":[";
  for (size_t i = 0; i < draft.kernels.size(); ++i) {
    const DraftKernel& kernel = draft.kernels[i];
    text += fmt::format("{}\n{{\"id\":{},\"name\":{},{}\"duration_ns\":{},\"inputs\":[{}],\"outputs\":[{}]{}}}",
                        i == 0 ? "" : ",", i, quoted(kernel.name), kernel.peer ? "\"kind\":\"peer\"," : "",
                        kernel.duration_ns, list(kernel.inputs), list(kernel.outputs), device(kernel.device));
  }
  return text + "]}\n";
}

}  // namespace reprise::tools::workloads
