#include "tools/report/view/frames.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <sstream>
#include <vector>

namespace reprise::report {
namespace {

constexpr int kMostLayers = 3;        // of functions that pass on, one behind the other
constexpr size_t kFewestCallers = 3;  // fewer may be a loop that allocates all by itself

// PyTorch's packages have no names for what is not exported: its allocators, and the wrappers of each operation.
bool is_nameless_of_pytorch(const std::string& frame) {
  return frame.rfind("0x", 0) == 0 && frame.find(" (libtorch") != std::string::npos;
}

}  // namespace

bool is_foreign(const std::string& frame) {
  static constexpr std::array foreign = {"libcuda.so",        "libcudart.so",   "libreprise",        "c10::cuda",
                                         "CachingAllocator",  "at::detail::e",  "at::native::empty", "operator new",
                                         "(libc10_cuda.so)",  "(libc10.so)",    "at::_ops::empty",   "at::empty",
                                         "at::native::zeros", "at::_ops::zeros"};
  if (is_nameless_of_pytorch(frame) || frame.rfind(kForeign, 0) == 0) return true;
  const bool driver = frame.rfind("cu", 0) == 0 && frame.size() > 4 &&
                      (std::isupper(static_cast<unsigned char>(frame[2])) != 0 || frame.rfind("cuda", 0) == 0);
  return driver || std::any_of(foreign.begin(), foreign.end(),
                               [&](const char* word) { return frame.find(word) != std::string::npos; });
}

namespace {

std::vector<std::string> frames_of(const std::string& stack) {
  std::vector<std::string> frames;
  std::istringstream lines(stack);
  for (std::string line; std::getline(lines, line);) frames.push_back(line);
  return frames;
}

size_t asking(const std::vector<std::string>& frames, const std::set<std::string>& passing_on) {
  size_t at = 0;
  while (at < frames.size() && (is_foreign(frames[at]) || passing_on.count(function_of(frames[at])) != 0)) ++at;
  return at;
}

// How many allocations a function asks for, and for whom.
struct Asked {
  uint64_t count = 0;
  std::set<std::string> callers;
};

// Functions that launch something, themselves or by what they call.
std::set<std::string> launching(const trace::Trace& trace) {
  std::set<uint32_t> sites;
  for (const trace::Event& event : trace.events) {
    const auto* const op = std::get_if<trace::Op>(&event);
    if (op != nullptr && op->record.op == trace::OpKind::launch) sites.insert(op->record.call_site);
  }
  std::set<std::string> functions;
  for (const uint32_t site : sites) {
    if (site == 0 || site > trace.call_sites.size()) continue;
    for (const std::string& frame : frames_of(trace.call_sites[site - 1])) functions.insert(function_of(frame));
  }
  return functions;
}

std::map<std::string, Asked> by_function(const trace::Trace& trace, const std::map<uint32_t, uint64_t>& by_site,
                                         const std::set<std::string>& passing_on) {
  std::map<std::string, Asked> functions;
  for (const auto& [site, count] : by_site) {
    const std::vector<std::string> frames = frames_of(trace.call_sites[site - 1]);
    const size_t at = asking(frames, passing_on);
    if (at + 1 >= frames.size()) continue;
    Asked& asked = functions[function_of(frames[at])];
    asked.count += count;
    asked.callers.insert(function_of(frames[at + 1]));
  }
  return functions;
}

}  // namespace

std::string function_of(const std::string& frame) {
  std::string text = frame.substr(0, frame.rfind(" ("));
  if (const size_t place = text.rfind(" at "); place != std::string::npos) text.erase(place);
  return text;
}

std::set<std::string> passing_on(const trace::Trace& trace) {
  std::map<uint32_t, uint64_t> by_site;
  uint64_t all = 0;
  for (const trace::Event& event : trace.events) {
    const auto* const allocate = std::get_if<trace::Allocate>(&event);
    if (allocate == nullptr || allocate->record.origin == trace::Origin::host) continue;
    const uint32_t site = allocate->record.call_site;
    if (site == 0 || site > trace.call_sites.size()) continue;
    ++by_site[site];
    ++all;
  }
  const std::set<std::string> working = launching(trace);
  std::set<std::string> found;
  for (int layer = 0; layer < kMostLayers; ++layer) {
    std::set<std::string> more;
    for (const auto& [function, asked] : by_function(trace, by_site, found)) {
      if (asked.callers.size() < kFewestCallers) continue;
      const bool nearly_all = 10 * asked.count >= 9 * all;
      const bool nothing_else = !working.empty() && working.count(function) == 0;
      if (nearly_all || nothing_else) more.insert(function);
    }
    if (more.empty()) break;
    found.merge(more);
  }
  return found;
}

std::string own_frame(const std::string& stack, const std::set<std::string>& passing_on) {
  const std::vector<std::string> frames = frames_of(stack);
  size_t at = asking(frames, passing_on);
  if (at == frames.size()) at = asking(frames, {});
  if (at < frames.size()) return frames[at];
  return frames.empty() ? "" : frames.front();
}

std::string short_frame(const std::string& frame) {
  const size_t module = frame.rfind(" (");
  std::string text = frame.substr(0, module);
  if (const size_t clone = text.find(" [clone"); clone != std::string::npos) {
    const size_t end = text.find(']', clone);
    if (end != std::string::npos) text.erase(clone, end + 1 - clone);
  }
  if (text.size() <= 60) return text;
  const size_t place = text.rfind(" at ");
  const std::string line = place == std::string::npos ? "" : text.substr(place);
  const size_t open = text.find('(');
  if (open == std::string::npos || open == 0) return text;
  return text.substr(0, open) + "(...)" + line;
}

}  // namespace reprise::report
