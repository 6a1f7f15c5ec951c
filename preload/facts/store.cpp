#include "preload/facts/store.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

#include "preload/facts/replace.h"
#include "preload/trace/signature.h"

namespace reprise::facts {
namespace {

namespace fs = std::filesystem;
constexpr char kEnding[] = ".facts";

Result<std::string> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(StatusCode::not_found, path);
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

Result<KernelFacts> read(const std::string& path) {
  const Result<std::string> text = content_of(path);
  if (!text.ok()) return text.status();
  Result<KernelFacts> facts = from_text(text.value());
  if (facts.ok()) return facts;
  return Status(StatusCode::corrupt, fmt::format("{} is not used: {}; remove it, or let it be examined anew", path,
                                                 facts.status().message()));
}

std::string cache_folder(const std::string& name) {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::string(cache) + "/reprise/" + name;
  }
  const char* const home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/reprise/" + name : std::string();
}

}  // namespace

std::string today() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

std::string folder_of_facts(const char* chosen) {
  return chosen != nullptr && *chosen != '\0' ? chosen : cache_folder("kernels");
}

std::string folder_of_plans(const char* chosen) {
  return chosen != nullptr && *chosen != '\0' ? std::string(chosen) + "/plans" : cache_folder("plans");
}

const char* why_no_facts() noexcept {
  return "neither HOME nor XDG_CACHE_HOME is set: facts are not kept; name a folder in REPRISE_FACTS";
}

std::string Store::path_of(uint64_t kernel, const std::string& device) const {
  return fmt::format("{}/{:016x}-{:08x}{}", folder_, kernel,
                     static_cast<uint32_t>(trace::hash_bytes(device.data(), device.size())), kEnding);
}

Result<KernelFacts> Store::load(uint64_t kernel, const std::string& device) const {
  const std::string path = path_of(kernel, device);
  Result<KernelFacts> facts = read(path);
  if (facts.ok() && (facts.value().kernel != kernel || facts.value().device != device)) {
    return Status(StatusCode::corrupt, fmt::format("{} is not used: it is of another kernel; remove it", path));
  }
  return facts;
}

Status Store::add(const KernelFacts& more) {
  std::error_code error;
  fs::create_directories(folder_, error);
  const FolderLock lock(folder_);
  if (lock.held() && !tidied_) {
    remove_left(folder_, kEnding);
    tidied_ = true;
  }
  KernelFacts facts;
  if (Result<KernelFacts> known = load(more.kernel, more.device); known.ok()) facts = std::move(known.value());
  merge(facts, more);
  const std::string path = path_of(more.kernel, more.device);
  if (!error) error = replace_file(path, to_text(facts));
  if (!error) return {};
  return {StatusCode::io_error, fmt::format("cannot write {}: {}", path, error.message())};
}

Status Store::remove(uint64_t kernel, const std::string& device) const {
  std::error_code error;
  const std::string path = path_of(kernel, device);
  if (fs::remove(path, error)) return {};
  if (!error) return {StatusCode::not_found, path};
  return {StatusCode::io_error, fmt::format("cannot remove {}: {}", path, error.message())};
}

std::vector<KernelFacts> Store::all(std::vector<std::string>* problems) const {
  std::vector<KernelFacts> found;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != kEnding) continue;
    Result<KernelFacts> facts = read(at->path().string());
    if (facts.ok() && path_of(facts.value().kernel, facts.value().device) != at->path().string()) {
      problems->push_back(fmt::format("{} is not used: it is of another kernel; remove it", at->path().string()));
    } else if (facts.ok()) {
      found.push_back(std::move(facts.value()));
    } else {
      problems->push_back(facts.status().message());
    }
  }
  std::sort(problems->begin(), problems->end());
  std::sort(found.begin(), found.end(), [](const KernelFacts& a, const KernelFacts& b) {
    return std::tie(a.name, a.kernel, a.device) < std::tie(b.name, b.kernel, b.device);
  });
  return found;
}

}  // namespace reprise::facts
