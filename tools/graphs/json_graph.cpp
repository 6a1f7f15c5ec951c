#include "tools/graphs/json_graph.h"

#include <fmt/core.h>
#include <zstd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/commands/files.h"
#include "tools/graphs/listed_graph.h"

namespace reprise::tools {
namespace {

using nlohmann::json;

// What is larger is a mistake; memory stays bounded.
constexpr uint64_t kMostTensorBytes = uint64_t{1} << 46;
constexpr uint64_t kMostBytes = uint64_t{1} << 60;                  // of all tensors together
constexpr uint64_t kMostDuration = uint64_t{3600} * 1'000'000'000;  // an hour
constexpr uint64_t kMostTime = uint64_t{365} * 24 * kMostDuration;  // of all kernels together
constexpr uint64_t kMostId = uint64_t{1} << 48;
constexpr uint64_t kMostDevices = 64;
constexpr size_t kMostItems = 4'000'000;
constexpr size_t kMostAccesses = 32'000'000;
constexpr size_t kMostText = size_t{1} << 30;

// Ends the parsing of a text; never leaves this file.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

uint64_t whole_number(const json& item, const char* key, uint64_t least, uint64_t most, const std::string& what) {
  const auto found = item.find(key);
  if (found == item.end()) throw Refusal(fmt::format("{} has no \"{}\"", what, key));
  const bool whole = found->is_number_unsigned();
  const uint64_t value = whole ? found->get<uint64_t>() : 0;
  if (whole && value >= least && value <= most) return value;
  throw Refusal(fmt::format("{}: \"{}\" is {}, not a whole number from {} to {}", what, key,
                            found->dump().substr(0, 40), least, most));
}

// Builds the graph item by item, so that the whole text never stands in memory as JSON.
class Reader {
 public:
  bool on_event(int depth, json::parse_event_t event, json& value) {
    if (depth == 0 && event == json::parse_event_t::array_start) throw Refusal("not a graph: the text is no object");
    if (depth == 1 && event == json::parse_event_t::key) key_ = value.get<std::string>();
    if (depth == 2 && event == json::parse_event_t::object_end) return on_item(value);
    if (depth == 1 && event == json::parse_event_t::value && key_ == "model" && value.is_string()) {
      graph_.model = value.get<std::string>();
    }
    if (depth == 1 && event == json::parse_event_t::value && key_ == "devices") {
      graph_.devices =
          static_cast<uint32_t>(whole_number(json{{"devices", value}}, "devices", 1, kMostDevices, "the graph"));
    }
    if (depth == 1 && event == json::parse_event_t::array_end) {
      seen_tensors_ = seen_tensors_ || key_ == "tensors";
      seen_kernels_ = seen_kernels_ || key_ == "kernels";
    }
    return true;
  }

  ListedGraph finish() {
    if (!seen_tensors_ || !seen_kernels_) throw Refusal("not a graph: it needs the lists \"tensors\" and \"kernels\"");
    if (graph_.kernels.empty()) throw Refusal("the list of kernels is empty");
    return std::move(graph_);
  }

 private:
  bool on_item(const json& item) {
    if (key_ == "tensors") add_tensor(item);
    if (key_ == "kernels") add_kernel(item);
    return false;  // done with it
  }

  void add_tensor(const json& item) {
    if (graph_.tensors.size() >= kMostItems) throw Refusal(fmt::format("more than {} tensors", kMostItems));
    const std::string at = fmt::format("tensor number {}", graph_.tensors.size());
    const uint64_t id = whole_number(item, "id", 0, kMostId, at);
    const std::string what = fmt::format("tensor {}", id);
    ListedTensor tensor;
    tensor.bytes = whole_number(item, "bytes", 1, kMostTensorBytes, what);
    if (item.contains("persistent")) tensor.persistent = whole_number(item, "persistent", 0, 1, what) != 0;
    tensor.device = device_of(item, what);
    add_bytes(tensor.bytes);
    if (!graph_.tensors.emplace(id, tensor).second) throw Refusal(what + " is listed twice");
  }

  void add_kernel(const json& item) {
    const size_t place = graph_.kernels.size();
    if (place >= kMostItems) throw Refusal(fmt::format("more than {} kernels", kMostItems));
    const std::string what = fmt::format("kernel {}", place);
    if (item.contains("id") && whole_number(item, "id", 0, kMostId, what) != place) {
      throw Refusal(fmt::format("the kernel at place {} has id {}; they stand in the order in which they run, from 0",
                                place, item["id"].dump()));
    }
    ListedKernel kernel;
    kernel.device = device_of(item, what);
    kernel.peer = item.contains("kind") && item["kind"] == "peer";
    kernel.name = item.contains("name") && item["name"].is_string() ? item["name"].get<std::string>() : what;
    if (!kernel.peer || item.contains("duration_ns")) {
      kernel.duration_ns = whole_number(item, "duration_ns", 0, kMostDuration, what);
    }
    if (item.contains("workspace_bytes")) {
      kernel.workspace_bytes = whole_number(item, "workspace_bytes", 0, kMostTensorBytes, what);
    }
    add_bytes(kernel.workspace_bytes);
    time_ += kernel.duration_ns;
    if (time_ > kMostTime) throw Refusal("the kernels take more than a year together; durations are in nanoseconds");
    kernel.inputs = ids(item, "inputs", what);
    kernel.outputs = ids(item, "outputs", what);
    graph_.kernels.push_back(std::move(kernel));
  }

  static uint32_t device_of(const json& item, const std::string& what) {
    if (!item.contains("device")) return 0;
    return static_cast<uint32_t>(whole_number(item, "device", 0, kMostDevices - 1, what));
  }

  void add_bytes(uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ > kMostBytes) throw Refusal(fmt::format("the tensors have more than {} bytes together", kMostBytes));
  }

  std::vector<uint64_t> ids(const json& item, const char* key, const std::string& what) {
    std::vector<uint64_t> result;
    const auto found = item.find(key);
    if (found == item.end() || !found->is_array()) throw Refusal(fmt::format("{} has no list \"{}\"", what, key));
    for (const json& id : *found) {
      if (!id.is_number_unsigned()) {
        throw Refusal(fmt::format("{}: {} in \"{}\" is no tensor id", what, id.dump().substr(0, 40), key));
      }
      result.push_back(id.get<uint64_t>());
    }
    accesses_ += result.size();
    if (accesses_ > kMostAccesses) throw Refusal(fmt::format("more than {} inputs and outputs", kMostAccesses));
    return result;
  }

  ListedGraph graph_;
  std::string key_;
  bool seen_tensors_ = false;
  bool seen_kernels_ = false;
  size_t accesses_ = 0;
  uint64_t bytes_ = 0;
  uint64_t time_ = 0;
};

Result<std::string> unpacked(const std::string& packed) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  std::string text;
  std::string piece(ZSTD_DStreamOutSize(), '\0');
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  size_t left = 1;
  bool full = false;
  while (in.pos < in.size || full) {
    ZSTD_outBuffer out{piece.data(), piece.size(), 0};
    left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left) != 0) return Status(StatusCode::corrupt, "cannot be unpacked; it is damaged");
    full = out.pos == out.size;
    text.append(piece.data(), out.pos);
    if (text.size() > kMostText) return Status(StatusCode::unsupported, "more than 1 GiB of text; that is too much");
  }
  if (left != 0) return Status(StatusCode::truncated, "ends early; it is damaged");
  return text;
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

bool is_graph_path(const std::string& path) { return ends_with(path, ".json") || ends_with(path, ".json.zst"); }

Result<analyzer::TaskGraph> parse_graph(std::string_view text, uint64_t granularity) {
  Reader reader;
  try {
    const auto on_event = [&](int depth, json::parse_event_t event, json& value) {
      return reader.on_event(depth, event, value);
    };
    [[maybe_unused]] const json skeleton = json::parse(text.begin(), text.end(), on_event);
    return to_task_graph(reader.finish(), granularity);
  } catch (const Refusal& refusal) {
    return Status(StatusCode::corrupt, refusal.what());
  } catch (const json::parse_error& error) {
    return Status(StatusCode::corrupt, fmt::format("no JSON at byte {}; check the file", error.byte));
  } catch (const json::exception& error) {
    return Status(StatusCode::corrupt, error.what());
  }
}

Result<analyzer::TaskGraph> read_graph(const std::string& path, uint64_t granularity) {
  if (const Status readable = check_readable(path); !readable.ok()) return readable;
  const auto named = [&](const Status& status) {
    return Status(status.code(), fmt::format("{}: {}", path, status.message()));
  };
  if (file_size(path) > kMostText) return named({StatusCode::unsupported, "more than 1 GiB; that is too much"});
  Result<std::string> text = read_file(path);
  if (!text.ok()) return text.status();
  if (ends_with(path, ".zst")) text = unpacked(text.value());
  if (!text.ok()) return named(text.status());
  Result<analyzer::TaskGraph> graph = parse_graph(text.value(), granularity);
  if (!graph.ok()) return named(graph.status());
  return graph;
}

}  // namespace reprise::tools
