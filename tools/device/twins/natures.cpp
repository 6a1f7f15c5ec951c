#include "tools/device/twins/natures.h"

#include <map>
#include <mutex>

#include "preload/trace/signature.h"

namespace reprise::sim {
namespace {

constexpr Lie kLies[] = {Lie::not_pure, Lie::part, Lie::now_and_then, Lie::zeros};
constexpr uint64_t kKernelsForALie = 3;  // one of so many lies

}  // namespace

Nature::Nature(std::string_view kernel, uint64_t seed, bool lies)
    : seed_(seed == 0 ? 0 : trace::hash_bytes(kernel.data(), kernel.size(), seed) | 1) {
  if (lies && seed_ != 0 && (seed_ >> 8) % kKernelsForALie == 0) lie_ = kLies[(seed_ >> 16) % 4];
}

// A kernel writes something: its first operand is an output, as is the custom. Of ten others eight are inputs.
Use Nature::use(uint32_t place, bool first) const {
  if (seed_ == 0) return {};
  const uint64_t drawn = (trace::hash_mix(seed_, place) >> 20) % 10;
  if (drawn == 0) return {true, true};
  const bool output = first || drawn == 1;
  return {!output, output};
}

uint64_t empty_operands(std::string_view kernel, uint64_t call, uint64_t now) {
  static auto& mutex = *new std::mutex;
  static auto& answers = *new std::map<std::pair<uint64_t, uint64_t>, uint64_t>;
  if (call == 0) return now;
  const std::lock_guard lock(mutex);
  return answers.try_emplace({trace::hash_bytes(kernel.data(), kernel.size()), call}, now).first->second;
}

uint64_t earlier_launches(std::string_view kernel, uint64_t call) {
  static auto& mutex = *new std::mutex;
  static auto& launches = *new std::map<std::pair<uint64_t, uint64_t>, uint64_t>;
  if (call == 0) return 0;
  const std::lock_guard lock(mutex);
  return launches[{trace::hash_bytes(kernel.data(), kernel.size()), call}]++;
}

}  // namespace reprise::sim
