#include "tools/lab/graphs/json_graph.h"

#include <fmt/core.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "tools/cli/files.h"
#include "tools/cli/json_depth.h"
#include "tools/lab/graphs/listed_graph.h"

namespace reprise::tools {
namespace {

using nlohmann::json;

// Larger numbers are mistakes; refusing them bounds the memory that a file can ask for.
constexpr uint64_t kMostTensorBytes = uint64_t{1} << 46;
constexpr uint64_t kMostBytes = uint64_t{1} << 60;                  // of all tensors together
constexpr uint64_t kMostDuration = uint64_t{3600} * 1'000'000'000;  // an hour
constexpr uint64_t kMostTime = uint64_t{365} * 24 * kMostDuration;  // of all kernels together
constexpr uint64_t kMostId = uint64_t{1} << 48;
constexpr uint64_t kMostDevices = 64;
constexpr size_t kMostItems = 4'000'000;
constexpr size_t kMostAccesses = 32'000'000;
constexpr size_t kMostText = size_t{1} << 30;
constexpr size_t kMostParts = 1'000'000;  // of one tensor or kernel

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
    if (depth >= 2 && !is_list()) return false;  // a key that is ignored: its value is not kept
    if (depth == 2 && event == json::parse_event_t::value) {
      throw Refusal(fmt::format("the list \"{}\" holds {}, which is no object", key_, value.dump().substr(0, 40)));
    }
    if (depth == 2 && event == json::parse_event_t::array_start) {
      throw Refusal(fmt::format("the list \"{}\" holds a list", key_));
    }
    if (depth == 2) parts_ = 0;
    if (depth > static_cast<int>(kMostJsonDepth)) {
      throw Refusal(fmt::format("an item of \"{}\" is more than {} lists deep", key_, kMostJsonDepth));
    }
    if (++parts_ > kMostParts) {
      throw Refusal(fmt::format("an item of \"{}\" has more than {} parts", key_, kMostParts));
    }
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
  bool is_list() const { return key_ == "tensors" || key_ == "kernels"; }

  bool on_item(const json& item) {
    if (key_ == "tensors") add_tensor(item);
    if (key_ == "kernels") add_kernel(item);
    return false;  // the item is in graph_: its JSON is not kept
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
    kernel.pure = is_pure(item, kernel, what);
    graph_.kernels.push_back(std::move(kernel));
  }

  static uint32_t device_of(const json& item, const std::string& what) {
    if (!item.contains("device")) return 0;
    return static_cast<uint32_t>(whole_number(item, "device", 0, kMostDevices - 1, what));
  }

  // What the kernel says of itself; else true where no tensor is both read and written.
  static bool is_pure(const json& item, const ListedKernel& kernel, const std::string& what) {
    if (const auto said = item.find("pure"); said != item.end()) {
      if (!said->is_boolean()) throw Refusal(what + ": \"pure\" is neither true nor false");
      return said->get<bool>();
    }
    const std::unordered_set<uint64_t> inputs(kernel.inputs.begin(), kernel.inputs.end());
    return std::none_of(kernel.outputs.begin(), kernel.outputs.end(), [&](uint64_t id) { return inputs.contains(id); });
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
  size_t parts_ = 0;  // of the present item
  uint64_t bytes_ = 0;
  uint64_t time_ = 0;
};

// The text of a file, piece by piece.
class Text {
 public:
  Text(std::FILE* file, bool packed) : file_(file), context_(packed ? ZSTD_createDCtx() : nullptr, ZSTD_freeDCtx) {
    read();
  }

  bool at_end() const { return at_ == piece_.size(); }
  char current() const { return piece_[at_]; }
  void step() {
    if (++at_ == piece_.size()) read();
  }
  // Not ok: the text ended there for a reason of its own.
  const Status& status() const { return status_; }

  // For the parser.
  struct Iterator {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;
    Text* text = nullptr;
    char operator*() const { return text->current(); }
    Iterator& operator++() {
      text->step();
      return *this;
    }
    bool ended() const { return text == nullptr || text->at_end(); }
    bool operator==(const Iterator& other) const { return ended() == other.ended(); }
    bool operator!=(const Iterator& other) const { return !(*this == other); }
  };

 private:
  void read() {
    at_ = 0;
    piece_.clear();
    if (!status_.ok()) return;
    if (context_ == nullptr) {
      fill(piece_);
    } else {
      while (piece_.empty() && unpack()) {
      }
    }
    total_ += piece_.size();
    if (total_ > kMostText) end({StatusCode::unsupported, "more than 1 GiB of text; that is too much"});
  }

  void fill(std::string& to) {
    to.resize(kPiece);
    to.resize(std::fread(to.data(), 1, to.size(), file_));
  }

  void end(Status status) {
    status_ = std::move(status);
    piece_.clear();
  }

  // False: the text has ended.
  bool unpack() {
    if (in_.pos == in_.size) {
      fill(packed_);
      in_ = {packed_.data(), packed_.size(), 0};
    }
    if (in_.size == 0 && !pending_) {
      if (left_ != 0) end({StatusCode::truncated, "ends early; it is damaged"});
      return false;
    }
    piece_.resize(ZSTD_DStreamOutSize());
    ZSTD_outBuffer out{piece_.data(), piece_.size(), 0};
    left_ = ZSTD_decompressStream(context_.get(), &out, &in_);
    if (ZSTD_isError(left_) != 0) {
      end({StatusCode::corrupt, "cannot be unpacked; it is damaged"});
      return false;
    }
    pending_ = out.pos == out.size;
    piece_.resize(out.pos);
    return true;
  }

  static constexpr size_t kPiece = 256 << 10;
  std::FILE* file_;
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context_;
  std::string packed_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  size_t left_ = 1;
  bool pending_ = false;  // zstd holds more than it could write
  std::string piece_;
  size_t at_ = 0;
  size_t total_ = 0;
  Status status_;
};

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

bool is_graph_path(const std::string& path) { return ends_with(path, ".json") || ends_with(path, ".json.zst"); }

namespace {

template <typename Iterator>
Result<analyzer::TaskGraph> parse(Iterator begin, Iterator end, uint64_t chunk_bytes) {
  Reader reader;
  try {
    const auto on_event = [&](int depth, json::parse_event_t event, json& value) {
      return reader.on_event(depth, event, value);
    };
    [[maybe_unused]] const json skeleton = json::parse(begin, end, on_event);
    return to_task_graph(reader.finish(), chunk_bytes);
  } catch (const Refusal& refusal) {
    return Status(StatusCode::corrupt, refusal.what());
  } catch (const json::parse_error& error) {
    return Status(StatusCode::corrupt, fmt::format("no JSON at byte {}; check the file", error.byte));
  } catch (const json::exception& error) {
    return Status(StatusCode::corrupt, error.what());
  }
}

}  // namespace

Result<analyzer::TaskGraph> parse_graph(std::string_view text, uint64_t chunk_bytes) {
  return parse(text.begin(), text.end(), chunk_bytes);
}

Result<analyzer::TaskGraph> read_graph(const std::string& path, uint64_t chunk_bytes) {
  if (const Status readable = check_readable(path); !readable.ok()) return readable;
  const auto named = [&](const Status& status) {
    return Status(status.code(), fmt::format("{}: {}", path, status.message()));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return named({StatusCode::not_found, "cannot be opened"});
  Text text(file.get(), ends_with(path, ".zst"));
  Result<analyzer::TaskGraph> graph = parse(Text::Iterator{&text}, Text::Iterator{}, chunk_bytes);
  if (!text.status().ok()) return named(text.status());
  if (!graph.ok()) return named(graph.status());
  return graph;
}

}  // namespace reprise::tools
