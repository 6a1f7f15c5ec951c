#include "tools/device/twins/hashing.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <optional>
#include <vector>

#include "analyzer/code/launch.h"
#include "preload/structures/structures.h"
#include "preload/trace/signature.h"
#include "tools/device/twins/hash_log.h"
#include "tools/device/twins/natures.h"
#include "tools/device/twins/parameter_kinds.h"

namespace reprise::sim {
namespace {

using trace::hash_bytes;
using trace::hash_mix;

struct Tensor {
  uint64_t base;
  uint64_t bytes;
  WrittenBytes* written;
  Use use;
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

std::atomic<uint64_t> parameter_bytes{0};
std::atomic<uint64_t> hashed_bytes{0};

// Where it was written, and what is there.
uint64_t hash_written(const Tensor& tensor) {
  const auto hash_part = [&](uint64_t begin, uint64_t end) {
    return hash_content(reinterpret_cast<const void*>(tensor.base + begin), end - begin);
  };
  if (tensor.written->complete()) return hash_part(0, tensor.bytes);
  uint64_t hash = 0;
  for (const auto& [begin, end] : tensor.written->intervals()) {
    hash = hash_mix(hash_mix(hash, begin), hash_part(begin, end));
  }
  return hash;
}

class Hasher {
 public:
  explicit Hasher(const KernelRun& run) : run_(run), nature_(run.kernel->name, run.kernel_seed, run.kernel_lies) {
    std::vector<trace::ParameterLayout> layout;
    const auto& parameters = run.kernel->parameters;
    layout.reserve(parameters.size());
    for (const auto& parameter : parameters) {
      layout.push_back({parameter.offset - parameters.front().offset, parameter.bytes});
    }
    structures_ = structures::recognize(run.kernel->name.c_str(), layout.data(), static_cast<uint32_t>(layout.size()));
    if (run.code != nullptr) operands_ = code::operands_of(*run.code, launch_words());
  }

  void execute() {
    const auto& name = run_.kernel->name;
    hash_ = hash_bytes(name.data(), name.size());
    for (const uint32_t extent : run_.grid) hash_ = hash_mix(hash_, extent);
    for (const uint32_t extent : run_.block) hash_ = hash_mix(hash_, extent);
    hash_ = hash_mix(hash_, run_.shared_bytes);
    add_parameters();
    const uint64_t of_parameters = hash_;
    if (run_.kernel_seed != 0) write_empty_ones();
    HashedLaunch launch{run_, of_parameters, {}, 0};
    for (const Tensor& tensor : tensors_) {
      const uint64_t content = tensor.use.reads ? hash_written(tensor) : 0;
      launch.tensors.push_back({tensor.bytes, content});
      hash_ = hash_mix(hash_, content);
    }
    if (nature_.lie() == Lie::not_pure) hash_ = hash_mix(hash_, earlier_launches(name, run_.call));
    uint64_t number = 0;
    for (const Tensor& tensor : tensors_) write_result(tensor, ++number);
    launch.result = hash_;
    log_hashes(launch);
    parameter_bytes.fetch_add(run_.parameter_bytes, std::memory_order_relaxed);
    hashed_bytes.fetch_add(counted_, std::memory_order_relaxed);
  }

 private:
  code::LaunchWords launch_words() const {
    code::LaunchWords words;
    words.parameters.assign(run_.parameters, run_.parameters + run_.parameter_bytes);
    for (uint32_t at = 0; at + 8 <= run_.parameter_bytes; at += 8) {
      if (load_word(run_.parameters + at) == 0) words.null.insert(at);
    }
    const structures::UnsetParts unset =
        structures::unset_parts(structures_, run_.parameters, run_.parameter_bytes, {run_.grid[0], run_.grid[1]},
                                &Hasher::is_live, const_cast<Hasher*>(this));
    for (const AddressWord& word : run_.addresses) {
      if (!unset.holds(word.at)) words.live.insert(word.at);
    }
    std::copy(std::begin(run_.grid), std::end(run_.grid), std::begin(words.grid));
    return words;
  }

  Use use_of(uint32_t at) const {
    if (!operands_) return nature_.use(at, tensors_.empty());
    return {operands_->read.contains(at), operands_->written.contains(at)};
  }

  void write_empty_ones() {
    uint64_t empty = 0;
    for (size_t i = 0; i < std::min<size_t>(tensors_.size(), 64); ++i) {
      if (tensors_[i].written->intervals().empty() && !tensors_[i].written->complete()) empty |= uint64_t{1} << i;
    }
    empty = empty_operands(run_.kernel->name, run_.call, empty);
    for (size_t i = 0; i < std::min<size_t>(tensors_.size(), 64); ++i) {
      if ((empty >> i & 1) != 0) tensors_[i].use = {false, true};
    }
  }

  void write_result(const Tensor& tensor, uint64_t number) {
    const bool writes_inputs = nature_.lie() == Lie::now_and_then && hash_ % 8 == 0;
    if (!tensor.use.writes && !writes_inputs) return;
    // What nothing has written yet is set as a whole: no program reads bytes that nobody set.
    const bool in_part = nature_.lie() == Lie::part && tensor.written->complete();
    const uint64_t bytes = in_part ? (tensor.bytes + 1) / 2 : tensor.bytes;
    auto* const content = reinterpret_cast<void*>(tensor.base);
    if (nature_.lie() == Lie::zeros) {
      std::memset(content, 0, bytes);
    } else {
      fill_content(content, bytes, hash_mix(hash_, number));
    }
    tensor.written->mark(0, bytes);
  }

  void add_parameters() {
    const auto& parameters = run_.kernel->parameters;
    if (!run_.kernel->parameters_known || parameters.empty()) {
      add_addresses(0, run_.parameter_bytes);
      return;
    }
    const std::vector<SetBytes>& set = set_bytes(*run_.kernel);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const uint32_t offset = parameters[i].offset - parameters.front().offset;
      const uint32_t bytes = parameters[i].bytes;
      if (offset > run_.parameter_bytes || bytes > run_.parameter_bytes - offset) return;
      if (add_structure(offset)) continue;
      add_addresses(offset, offset + bytes);
      add_values(offset + set[i].first, offset + set[i].last);
    }
  }

  // Of a structure that is not set as a whole, the rest may be anything.
  bool add_structure(uint32_t offset) {
    const structures::Structure* const known = structures_.find(offset);
    if (known == nullptr) return false;
    structures::Range ranges[structures::kMostRanges];
    const uint32_t count =
        structures::used_ranges(*known, run_.parameters, {run_.grid[0], run_.grid[1]}, &Hasher::is_live, this, ranges);
    for (uint32_t i = 0; i < count; ++i) add_addresses(ranges[i].begin, ranges[i].end);
    return count > 0;
  }

  static bool is_live(void* user, uint64_t word) {
    const auto& all = static_cast<const Hasher*>(user)->run_.addresses;
    return std::any_of(all.begin(), all.end(), [word](const AddressWord& one) {
      return one.written != nullptr && word - one.base < one.bytes;
    });
  }

  // The first address at or behind `offset`.
  const AddressWord* address_from(uint32_t offset) const {
    return std::lower_bound(run_.addresses.data(), run_.addresses.data() + run_.addresses.size(), offset,
                            [](const AddressWord& word, uint32_t at) { return word.at < at; });
  }

  void add_addresses(uint32_t first, uint32_t last) {
    const AddressWord* const end = run_.addresses.data() + run_.addresses.size();
    for (const AddressWord* word = address_from(first); word != end && word->at + 8 <= last; ++word) {
      if (word->written != nullptr) add_tensor(*word, first);
    }
  }

  void add_tensor(const AddressWord& word, uint32_t first) {
    const Tensor tensor{word.base, word.bytes, word.written, use_of(word.at)};
    if (!tensor.use.reads && !tensor.use.writes) return;
    const auto known =
        std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& other) { return other.base == tensor.base; });
    hash_ = hash_mix(hash_, word.at - first);
    hash_ = hash_mix(hash_, static_cast<uint64_t>(known - tensors_.begin()));
    hash_ = hash_mix(hash_, word.word - tensor.base);
    hash_ = hash_mix(hash_, tensor.bytes);
    if (known == tensors_.end()) {
      tensors_.push_back(tensor);
    } else {
      known->use.reads = known->use.reads || tensor.use.reads;
      known->use.writes = known->use.writes || tensor.use.writes;
    }
    counted_ += 8;
  }

  // A word at a time, but for addresses: those of tensors are added already, those of other memory differ in each run.
  void add_values(uint32_t first, uint32_t last) {
    while (first < last) {
      const uint32_t next = std::min((first & ~7u) + 8, last);
      const AddressWord* const word = address_from(first);
      const bool address = word != run_.addresses.data() + run_.addresses.size() && word->at == first;
      if (!address || next - first < 8) {
        hash_ = hash_bytes(run_.parameters + first, next - first, hash_);
        counted_ += next - first;
      }
      first = next;
    }
  }

  const KernelRun& run_;
  const Nature nature_;
  structures::Structures structures_;
  std::optional<code::Operands> operands_;  // by its code; none: it does not say
  std::vector<Tensor> tensors_;
  uint64_t hash_ = 0;
  uint64_t counted_ = 0;
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

void hash_kernel(const KernelRun& run) { Hasher(run).execute(); }

HashedShare hashed_share() noexcept { return {parameter_bytes.load(), hashed_bytes.load()}; }

}  // namespace reprise::sim
