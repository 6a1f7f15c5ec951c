// Who is alive when the program's memory is at its highest: allocations by call stack, outermost frame first.
#include <algorithm>
#include <map>
#include <sstream>
#include <unordered_map>

#include "tools/report/report.h"

namespace reprise::report {
namespace {

struct Node {
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::map<std::string, Node> children;
};

std::vector<std::string> frames_of(const std::string& stack) {
  std::vector<std::string> frames;
  std::istringstream lines(stack);
  for (std::string line; std::getline(lines, line);) frames.push_back(line);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

using Alive = std::unordered_map<uint64_t, const trace::AllocateRecord*>;

// The moment of the peak, as the position of the allocation that makes it.
size_t peak_of(const trace::Trace& trace, uint64_t* bytes) {
  std::unordered_map<uint64_t, uint64_t> sizes;
  uint64_t live = 0;
  size_t at = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    if (const auto* allocate = std::get_if<trace::Allocate>(&trace.events[i])) {
      if (allocate->record.origin == trace::Origin::host) continue;
      sizes[allocate->record.allocation] = allocate->record.size;
      live += allocate->record.size;
      if (live > *bytes) {
        *bytes = live;
        at = i;
      }
    } else if (const auto* release = std::get_if<trace::Free>(&trace.events[i])) {
      const auto found = sizes.find(release->record.allocation);
      if (found == sizes.end()) continue;
      live -= found->second;
      sizes.erase(found);
    }
  }
  return at;
}

Alive alive_at(const trace::Trace& trace, size_t last) {
  Alive alive;
  for (size_t i = 0; i <= last; ++i) {
    if (const auto* allocate = std::get_if<trace::Allocate>(&trace.events[i])) {
      if (allocate->record.origin != trace::Origin::host) alive[allocate->record.allocation] = &allocate->record;
    } else if (const auto* release = std::get_if<trace::Free>(&trace.events[i])) {
      alive.erase(release->record.allocation);
    }
  }
  return alive;
}

// What is too narrow to see stands together.
Json node_json(const std::string& name, const Node& node, uint64_t least) {
  std::vector<std::pair<std::string, const Node*>> shown;
  Node small;
  size_t others = 0;
  for (const auto& [child, value] : node.children) {
    if (value.bytes >= least) {
      shown.emplace_back(child, &value);
      continue;
    }
    ++others;
    small.bytes += value.bytes;
    small.count += value.count;
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto& a, const auto& b) { return a.second->bytes > b.second->bytes; });
  Json children = Json::array();
  for (const auto& [child, value] : shown) children.push_back(node_json(child, *value, least));
  if (others > 0) {
    children.push_back(node_json("(" + std::to_string(others) + " smaller)", small, least));
  }
  return {name, node.bytes, node.count, std::move(children)};
}

}  // namespace

std::string call_site_words(const trace::Trace& trace, const trace::AllocateRecord& record) {
  if (record.call_site > 0 && record.call_site <= trace.call_sites.size()) {
    return trace.call_sites[record.call_site - 1];
  }
  if ((record.header.flags & trace::kCaughtUp) != 0) {
    return "(not recorded: allocated while a plan was followed, when nothing is recorded)";
  }
  return trace.call_sites.empty() ? "(not recorded: the recording has no call stacks)"
                                  : "(not recorded: its call stack could not be walked)";
}

uint64_t asked_bytes(const trace::Trace& trace) {
  uint64_t bytes = 0;
  peak_of(trace, &bytes);
  return bytes;
}

std::vector<const trace::AllocateRecord*> tensors_at_peak(const trace::Trace& trace) {
  uint64_t bytes = 0;
  const size_t at = peak_of(trace, &bytes);
  std::vector<const trace::AllocateRecord*> tensors;
  if (bytes == 0) return tensors;
  for (const auto& [id, record] : alive_at(trace, at)) tensors.push_back(record);
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto* a, const auto* b) { return a->size > b->size; });
  return tensors;
}

Json peak_section(const Inputs& inputs) {
  if (inputs.trace == nullptr) return nullptr;
  uint64_t bytes = 0;
  const size_t at = peak_of(*inputs.trace, &bytes);
  if (bytes == 0) return nullptr;
  Node root;
  for (const auto& [id, record] : alive_at(*inputs.trace, at)) {
    Node* node = &root;
    const std::vector<std::string> frames = frames_of(call_site_words(*inputs.trace, *record));
    for (size_t i = 0;; ++i) {
      node->bytes += record->size;
      ++node->count;
      if (i == frames.size()) break;
      node = &node->children[frames[i]];
    }
  }
  return {{"bytes", bytes}, {"count", root.count}, {"tree", node_json("all", root, bytes / 1000)}};
}

}  // namespace reprise::report
