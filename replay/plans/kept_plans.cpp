#include "replay/plans/kept_plans.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "preload/facts/replace.h"
#include "preload/trace/identity.h"
#include "replay/plans/plan_words.h"

namespace reprise::replay {
namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".plan";
constexpr size_t kDigits = 16;
constexpr uint64_t kMostOrders = 4096;
// Of a budget: what is free of a device, or what a program holds around Reprise, differs a little from run to run.
constexpr uint64_t kShareOfBudget = 16;

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct File {
  std::string name;
  uint64_t used_ns = 0;
  uint64_t bytes = 0;
};

// PROGRAM-LOOP.plan
bool is_name(const std::string& name) {
  const size_t digits = 2 * kDigits + 1;
  return name.size() == digits + sizeof kEnding - 1 && name.ends_with(kEnding) && name[kDigits] == '-' &&
         name.find_first_not_of("0123456789abcdef-") == digits;
}

uint64_t used_at(const struct stat& file) {
  return static_cast<uint64_t>(file.st_mtim.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(file.st_mtim.tv_nsec);
}

// Regular ones alone: to open anything else may take for ever.
std::vector<File> files_of(const std::string& folder, const std::string& prefix) {
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    File file{at->path().filename().string()};
    struct stat told {};
    if (!is_name(file.name) || !file.name.starts_with(prefix)) continue;
    if (lstat(at->path().c_str(), &told) != 0 || !S_ISREG(told.st_mode)) continue;
    file.used_ns = used_at(told);
    file.bytes = static_cast<uint64_t>(told.st_size);
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return std::tie(b.used_ns, a.name) < std::tie(a.used_ns, b.name); });
  return files;
}

std::vector<std::string> words_of_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::string text_of(const DeviceBudget& budget) {
  if (budget.free) return "free";
  return budget.fraction > 0 ? fmt::format("{}%", budget.fraction * 100) : fmt::format("{}", budget.bytes);
}

std::set<uint64_t> audited_kernels(const plan::Plan& plan) {
  std::set<uint64_t> kernels;
  for (const plan::Call& call : plan.calls) {
    if (call.audited != 0 && (call.flags & plan::kCallProven) == 0) kernels.insert(call.audited);
  }
  return kernels;
}

bool rests_on_facts(const plan::Call& call) {
  const auto is_kept = [](const plan::OpAccess& access) { return (access.mode & trace::kAccessUnchanged) != 0; };
  return call.op == trace::OpKind::launch && call.kind == plan::CallKind::op && (call.flags & plan::kCallProven) == 0 &&
         (call.pure || std::any_of(call.accesses.begin(), call.accesses.end(), is_kept));
}

bool holds(const plan::Call& call, const facts::KernelFacts& known) {
  if (call.pure && facts::pure(known) != facts::Answer::yes) return false;
  return std::all_of(call.accesses.begin(), call.accesses.end(), [&](const plan::OpAccess& access) {
    return (access.mode & trace::kAccessUnchanged) == 0 ||
           facts::writes(known, access.parameter_offset) == facts::Answer::no;
  });
}

}  // namespace

uint64_t key_of(const PlanUse& use) {
  const std::string text =
      fmt::format("{:016x}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", use.program, use.script, use.device, use.budget,
                  use.policy, plan::name_of(use.safety), use.chunk_bytes, plan::kPlanVersion, facts::kCodeVersion);
  return trace::hash_bytes(text.data(), text.size());
}

std::string script_of(const std::vector<std::string>& arguments) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "-m" && i + 1 < arguments.size()) return "-m " + arguments[i + 1];  // a module of Python's
    if (word.empty() || word[0] == '-') continue;
    std::error_code error;
    if (!fs::is_regular_file(word, error)) return {};
    return fs::canonical(word, error).string();
  }
  return {};
}

PlanUse use_of_process(const Config& config, plan::Safety safety, uint64_t chunk_bytes, const std::string& device) {
  return {trace::program_identity("/proc/self/exe"),
          script_of(words_of_process()),
          device,
          text_of(config.budget),
          config.policy,
          safety,
          chunk_bytes};
}

KeptPlans::KeptPlans(std::string folder, std::string facts, PlanUse use, KeptLimits limits)
    : folder_(std::move(folder)),
      facts_(std::move(facts)),
      use_(std::move(use)),
      prefix_(fmt::format("{:016x}-", key_of(use_))),
      limits_(limits),
      started_ns_(now_ns()) {}

// What looks pure by its code has been seen to make something else.
bool KeptPlans::was_unequal(uint64_t kernel) const {
  const Result<facts::KernelFacts> known = facts_.load(kernel, use_.device);
  return known.ok() && facts::pure(known.value()) == facts::Answer::no;
}

// Which shapes of kernels are audited is part of the name: a plan does not say of which shapes its launches are.
std::string KeptPlans::path_of(const plan::Plan& plan) const {
  std::vector<uint64_t> loop = {calls_of(plan), alive_at_start(plan)};
  for (const uint64_t kernel : audited_kernels(plan)) {
    const Result<facts::KernelFacts> known = facts_.load(kernel, use_.device);
    if (!known.ok()) continue;
    for (const facts::AuditedShape& shape : known.value().shapes) {
      if (facts::audited(known.value(), shape.shape) == facts::Answer::yes) loop.push_back(shape.shape);
    }
  }
  return fmt::format("{}/{}{:016x}{}", folder_, prefix_, trace::hash_bytes(loop.data(), loop.size() * sizeof loop[0]),
                     kEnding);
}

bool KeptPlans::facts_hold(const plan::Plan& plan) const {
  for (const plan::Call& call : plan.calls) {
    if (call.pure && (call.flags & plan::kCallProven) != 0 && was_unequal(call.audited)) return false;
  }
  for (const uint64_t kernel : audited_kernels(plan)) {
    const Result<facts::KernelFacts> known = facts_.load(kernel, use_.device);
    if (!known.ok() || known.value().strayed != 0) return false;
  }
  if (std::none_of(plan.calls.begin(), plan.calls.end(), rests_on_facts)) return true;
  std::vector<std::string> problems;
  const std::vector<facts::KernelFacts> all = facts_.all(&problems);
  return std::all_of(plan.calls.begin(), plan.calls.end(), [&](const plan::Call& call) {
    return !rests_on_facts(call) || std::any_of(all.begin(), all.end(), [&](const facts::KernelFacts& known) {
      return known.device == use_.device && known.name == call.name && holds(call, known);
    });
  });
}

std::vector<KeptPlan> KeptPlans::load(std::vector<std::string>* problems) const {
  std::vector<KeptPlan> kept;
  for (const File& file : files_of(folder_, prefix_)) {
    if (kept.size() == limits_.plans_of_program) break;
    const std::string path = folder_ + "/" + file.name;
    Result<plan::Plan> plan = file.bytes > limits_.bytes_of_plan
                                  ? Status(StatusCode::corrupt, fmt::format("{}: it is too large", path))
                                  : plan::read_plan(path);
    if (!plan.ok() && plan.status().code() == StatusCode::not_found) continue;  // another process has removed it
    if (plan.ok() && !facts_hold(plan.value())) continue;
    const bool is_ours = plan.ok() && plan.value().program_hash == use_.program && plan.value().safety == use_.safety &&
                         plan.value().chunk_bytes == use_.chunk_bytes;
    if (is_ours && path_of(plan.value()) == path) {
      kept.push_back({path, std::move(plan.value())});
      continue;
    }
    if (!is_ours) {
      problems->push_back(plan.ok() ? fmt::format("{}: it is of another program", path) : plan.status().message());
    }
    std::error_code error;
    fs::remove(path, error);
  }
  return kept;
}

Status KeptPlans::keep(const plan::Plan& plan) {
  const std::string bytes = plan::serialize(plan);
  if (bytes.size() > limits_.bytes_of_plan) return {StatusCode::unsupported, "the plan is too large to be kept"};
  std::error_code error;
  fs::create_directories(folder_, error);
  const std::string path = path_of(plan);
  const facts::FolderLock lock(folder_);
  if (lock.held()) facts::remove_left(folder_, kEnding);
  struct stat before {};
  const uint64_t before_ns = lstat(path.c_str(), &before) == 0 ? used_at(before) : 0;
  if (!error) error = facts::replace_file(path, bytes);
  if (error) return {StatusCode::io_error, fmt::format("cannot write {}: {}", path, error.message())};
  stamp(path, before_ns);
  make_room();
  return {};
}

void KeptPlans::used(const std::string& path) {
  struct stat before {};
  if (lstat(path.c_str(), &before) == 0) stamp(path, used_at(before));
}

// The times of a run's files are that of its start, and each a little less than the one before it.
void KeptPlans::stamp(const std::string& path, uint64_t before_ns) {
  const std::lock_guard lock(mutex_);
  const bool has_place = before_ns <= started_ns_ && before_ns + kMostOrders > started_ns_;
  const uint64_t at = has_place ? before_ns : started_ns_ - std::min(order_++, kMostOrders - 1);
  const timespec time = {static_cast<time_t>(at / 1'000'000'000), static_cast<long>(at % 1'000'000'000)};
  const timespec times[] = {time, time};
  utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

void KeptPlans::make_room() const {
  std::map<std::string, size_t> of_program;
  uint64_t bytes = 0;
  for (const File& file : files_of(folder_, "")) {
    const std::string program = file.name.substr(0, kDigits);
    const bool is_new = of_program.find(program) == of_program.end();
    const bool fits = (!is_new || of_program.size() < limits_.programs) &&
                      of_program[program] < limits_.plans_of_program && bytes + file.bytes <= limits_.bytes;
    if (fits) {
      ++of_program[program];
      bytes += file.bytes;
      continue;
    }
    std::error_code error;
    fs::remove(folder_ + "/" + file.name, error);
  }
}

bool is_of_budget(const plan::Plan& plan, uint64_t budget_bytes) {
  return plan.budget_bytes <= budget_bytes &&
         budget_bytes - plan.budget_bytes <= budget_bytes / kShareOfBudget + plan.chunk_bytes;
}

}  // namespace reprise::replay
