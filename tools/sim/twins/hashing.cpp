#include "tools/sim/twins/hashing.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "preload/structures/structures.h"
#include "preload/trace/signature.h"

namespace reprise::sim {
namespace {

using trace::hash_bytes;
using trace::hash_mix;

struct Tensor {
  uint64_t base;
  uint64_t bytes;
};

uint64_t load_word(const uint8_t* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// splitmix64's finaliser: every input bit reaches every output bit.
uint64_t scramble(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
  return word ^ (word >> 31);
}

class Hasher {
 public:
  Hasher(const KernelRun& run, ExtentLookup extents) : run_(run), extents_(extents) {
    std::vector<trace::ParameterLayout> layout;
    for (const auto& parameter : run.kernel->parameters) layout.push_back({parameter.offset, parameter.bytes});
    structure_ = structures::recognize(run.kernel->name.c_str(), layout.data(), static_cast<uint32_t>(layout.size()));
  }

  void execute() {
    const auto& name = run_.kernel->name;
    hash_ = hash_bytes(name.data(), name.size());
    for (const uint32_t extent : run_.grid) hash_ = hash_mix(hash_, extent);
    for (const uint32_t extent : run_.block) hash_ = hash_mix(hash_, extent);
    hash_ = hash_mix(hash_, run_.shared_bytes);
    add_parameters();
    for (const Tensor& tensor : tensors_) {
      hash_ = hash_mix(hash_, hash_content(reinterpret_cast<const void*>(tensor.base), tensor.bytes));
    }
    uint64_t number = 0;
    for (const Tensor& tensor : tensors_) {
      fill_content(reinterpret_cast<void*>(tensor.base), tensor.bytes, hash_mix(hash_, ++number));
    }
  }

 private:
  void add_parameters() {
    const auto& parameters = run_.kernel->parameters;
    if (!run_.kernel->parameters_known || parameters.empty()) {
      add_bytes(0, run_.parameter_bytes);
      return;
    }
    for (const auto& parameter : parameters) {
      const uint32_t offset = parameter.offset - parameters.front().offset;
      if (offset > run_.parameter_bytes || parameter.bytes > run_.parameter_bytes - offset) return;
      if (!add_structure(parameter.offset, offset)) add_bytes(offset, offset + parameter.bytes);
    }
  }

  // Of a structure that is not set as a whole, the rest may be anything.
  bool add_structure(uint32_t recorded_offset, uint32_t offset) {
    structures::Structure structure = structure_;
    if (structure.kind == structures::Kind::unknown || structure.offset != recorded_offset) return false;
    structure.offset = offset;
    const auto is_live = [](void* user, uint64_t word) {
      Tensor ignored{};
      return static_cast<Hasher*>(user)->extents_(word, &ignored.base, &ignored.bytes);
    };
    structures::Range ranges[structures::kMostRanges];
    const uint32_t count = structures::used_ranges(structure, run_.parameters, run_.grid[0], is_live, this, ranges);
    for (uint32_t i = 0; i < count; ++i) add_bytes(ranges[i].begin, ranges[i].end);
    return count > 0;
  }

  void add_bytes(uint32_t first, uint32_t last) {
    while (first < last) {
      const uint32_t next = std::min((first & ~7u) + 8, last);
      if (next - first == 8) {
        add_word(load_word(run_.parameters + first));
      } else {
        hash_ = hash_bytes(run_.parameters + first, next - first, hash_);
      }
      first = next;
    }
  }

  void add_word(uint64_t word) {
    Tensor tensor{};
    const bool inside = extents_(word, &tensor.base, &tensor.bytes);
    if (!inside && (word == 0 || !extents_(word - 1, &tensor.base, &tensor.bytes))) {
      hash_ = hash_mix(hash_, word);
      return;
    }
    const auto known =
        std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& other) { return other.base == tensor.base; });
    hash_ = hash_mix(hash_, static_cast<uint64_t>(known - tensors_.begin()));
    hash_ = hash_mix(hash_, word - tensor.base);
    hash_ = hash_mix(hash_, tensor.bytes);
    if (known == tensors_.end()) tensors_.push_back(tensor);
  }

  const KernelRun& run_;
  ExtentLookup extents_;
  structures::Structure structure_;
  std::vector<Tensor> tensors_;
  uint64_t hash_ = 0;
};

}  // namespace

uint64_t hash_content(const void* data, uint64_t bytes) {
  const auto* at = static_cast<const uint8_t*>(data);
  // Four chains that do not wait for each other.
  uint64_t lanes[4] = {1, 2, 3, 4};
  uint64_t left = bytes;
  for (; left >= 32; left -= 32, at += 32) {
    for (int i = 0; i < 4; ++i) lanes[i] = hash_mix(lanes[i], load_word(at + 8 * i));
  }
  uint64_t hash = hash_bytes(at, left, bytes);
  for (const uint64_t lane : lanes) hash = hash_mix(hash, lane);
  return hash;
}

void fill_content(void* data, uint64_t bytes, uint64_t seed) {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15ull;
  auto* at = static_cast<uint8_t*>(data);
  uint64_t left = bytes;
  for (; left >= 8; left -= 8, at += 8) {
    seed += kStep;
    const uint64_t word = scramble(seed);
    std::memcpy(at, &word, sizeof word);
  }
  const uint64_t tail = scramble(seed + kStep);
  std::memcpy(at, &tail, left);
}

void hash_kernel(const KernelRun& run, ExtentLookup extents) { Hasher(run, extents).execute(); }

}  // namespace reprise::sim
