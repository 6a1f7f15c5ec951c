// The twin of the kernel that products are. Like every kernel without a twin it computes no numbers but a dataflow
// hash, as the numbers around it are hashes, too; it reads and writes exactly what a product does: an element of D
// depends on its row of op(A), its column of op(B), its bias, its element of C where beta is not zero, and on every
// parameter but addresses. What lies between the rows and columns stays as it is. Loaded by tools/device/twins from the
// driver's folder.
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "preload/trace/signature.h"
#include "tools/device/blas/types.h"

extern "C" __attribute__((visibility("default"))) void reprise_blas_product(
#define PARAMETER64(name) uint64_t,
#define PARAMETER32(name) uint32_t,
#include "tools/device/blas/parameters.def"
#undef PARAMETER64
#undef PARAMETER32
    ...) {
}

namespace reprise::sim::blas {
namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;

constexpr uint32_t kSizes[] = {
#define PARAMETER64(name) 8,
#define PARAMETER32(name) 4,
#include "tools/device/blas/parameters.def"
#undef PARAMETER64
#undef PARAMETER32
};
constexpr uint32_t kOffsets[] = {
#define PARAMETER64(name) offsetof(Parameters, name),
#define PARAMETER32(name) offsetof(Parameters, name),
#include "tools/device/blas/parameters.def"
#undef PARAMETER64
#undef PARAMETER32
};
constexpr uint32_t kCount = sizeof kSizes / sizeof *kSizes;
constexpr uint32_t kBytes = kOffsets[kCount - 1] + kSizes[kCount - 1];

// Every step keeps what is in `hash`, and the next one moves it: no single change of a word is lost.
uint64_t step(uint64_t hash, uint64_t word) { return std::rotl((hash ^ word) * kOdd, 29); }

uint64_t scramble(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
  return word ^ (word >> 31);
}

// Steps in bytes.
struct Lines {
  const uint8_t* at;
  int64_t count;
  int64_t step;
  int64_t length;
  int64_t inner_step;
};

template <uint32_t Bytes>
uint64_t add(uint64_t hash, const uint8_t* element) {
  uint64_t words[2] = {};
  std::memcpy(words, element, Bytes);
  hash = step(hash, words[0]);
  return Bytes > 8 ? step(hash, words[1]) : hash;
}

// A hash of each line, in the order in which they lie in memory.
template <uint32_t Bytes>
void hash_lines(const Lines& lines, std::vector<uint64_t>& hashes) {
  if (std::abs(lines.inner_step) <= std::abs(lines.step)) {
    for (int64_t i = 0; i < lines.count; ++i) {
      const uint8_t* at = lines.at + i * lines.step;
      uint64_t hash = hashes[static_cast<size_t>(i)];
      for (int64_t l = 0; l < lines.length; ++l) hash = add<Bytes>(hash, at + l * lines.inner_step);
      hashes[static_cast<size_t>(i)] = hash;
    }
    return;
  }
  for (int64_t l = 0; l < lines.length; ++l) {
    const uint8_t* at = lines.at + l * lines.inner_step;
    for (int64_t i = 0; i < lines.count; ++i) {
      uint64_t& hash = hashes[static_cast<size_t>(i)];
      hash = add<Bytes>(hash, at + i * lines.step);
    }
  }
}

std::vector<uint64_t> hash_lines(const Lines& lines, uint32_t bytes, uint64_t seed) {
  std::vector<uint64_t> hashes(static_cast<size_t>(lines.count), seed);
  if (bytes == 1) hash_lines<1>(lines, hashes);
  if (bytes == 2) hash_lines<2>(lines, hashes);
  if (bytes == 4) hash_lines<4>(lines, hashes);
  if (bytes == 8) hash_lines<8>(lines, hashes);
  if (bytes == 16) hash_lines<16>(lines, hashes);
  return hashes;
}

void tell_lines(const Lines& lines, int64_t bytes, const WrittenParts& parts) {
  const auto tell = [&parts](const uint8_t* at, int64_t length) {
    parts.mark(parts.user, reinterpret_cast<uint64_t>(at), static_cast<uint64_t>(length));
  };
  const bool neighbours = lines.inner_step == bytes || lines.length == 1;
  const int64_t line = lines.length * bytes;
  if (neighbours && lines.step == line) return tell(lines.at, lines.count * line);
  for (int64_t i = 0; i < lines.count; ++i) {
    const uint8_t* const at = lines.at + i * lines.step;
    if (neighbours) {
      tell(at, line);
      continue;
    }
    for (int64_t l = 0; l < lines.length; ++l) tell(at + l * lines.inner_step, bytes);
  }
}

struct Output {
  uint8_t* d;
  const uint8_t* c;  // nullptr: not read
  const uint8_t* bias;
  int64_t m, n, d_row, d_column, c_row, c_column;
};

template <uint32_t Bytes>
void fill(const Output& to, const std::vector<uint64_t>& rows, const std::vector<uint64_t>& columns) {
  for (int64_t j = 0; j < to.n; ++j) {
    for (int64_t i = 0; i < to.m; ++i) {
      uint64_t hash = step(rows[static_cast<size_t>(i)], columns[static_cast<size_t>(j)]);
      if (to.bias != nullptr) hash = add<Bytes>(hash, to.bias + i * int64_t{Bytes});
      if (to.c != nullptr) hash = add<Bytes>(hash, to.c + i * to.c_row + j * to.c_column);
      const uint64_t words[2] = {scramble(hash), scramble(hash + kOdd)};
      std::memcpy(to.d + i * to.d_row + j * to.d_column, words, Bytes);
    }
  }
}

class Run {
 public:
  explicit Run(const TwinLaunch& launch) {
    std::memcpy(static_cast<void*>(&p_), launch.parameters, kBytes);
    read_scalars();
    hash_parameters(launch);
  }

  void execute() const {
    for (uint32_t i = 0; i < p_.batch; ++i) multiply(i);
  }

  void tell_written(const WrittenParts& parts) const {
    const int64_t bytes = number_type(p_.d_type).bytes();
    Lines lines{nullptr, static_cast<int64_t>(p_.n), in_bytes(p_.d_column, p_.d_type), static_cast<int64_t>(p_.m),
                in_bytes(p_.d_row, p_.d_type)};
    if (lines.inner_step != bytes) {
      std::swap(lines.count, lines.length);
      std::swap(lines.step, lines.inner_step);
    }
    for (uint32_t i = 0; i < p_.batch; ++i) {
      lines.at = matrix(p_.d, p_.d_matrix, p_.d_type, i);
      tell_lines(lines, bytes, parts);
    }
  }

 private:
  void read_scalars() {
    const NumberType scale = number_type(p_.scale_type);
    if (p_.alpha_at != 0) std::memcpy(&p_.alpha_0, reinterpret_cast<const void*>(p_.alpha_at), scale.bytes());
    if (p_.beta_at != 0) std::memcpy(&p_.beta_0, reinterpret_cast<const void*>(p_.beta_at), scale.bytes());
    if (is_zero(reinterpret_cast<const uint8_t*>(&p_.beta_0), scale)) p_.c = 0;
  }

  void hash_parameters(const TwinLaunch& launch) {
    Parameters values;
    std::memcpy(static_cast<void*>(&values), &p_, kBytes);
    values.a = values.b = values.c = values.d = values.bias = values.workspace = values.alpha_at = values.beta_at = 0;
    seed_ = trace::hash_bytes(&values, kBytes);
    for (int i = 0; i < 3; ++i) seed_ = trace::hash_mix(seed_, uint64_t{launch.grid[i]} << 32 | launch.block[i]);
  }

  // The address of a matrix of the batch.
  uint8_t* matrix(uint64_t base, uint64_t step, uint32_t type, uint32_t index) const {
    auto* at = reinterpret_cast<uint8_t*>(base);
    if (base == 0) return nullptr;
    if (p_.tables == 0) return at + static_cast<int64_t>(step) * index * int64_t{number_type(type).bytes()};
    uint64_t entry = 0;
    std::memcpy(&entry, at + uint64_t{8} * index, sizeof entry);
    return reinterpret_cast<uint8_t*>(entry);
  }

  static int64_t in_bytes(uint64_t elements, uint32_t type) {
    return static_cast<int64_t>(elements) * int64_t{number_type(type).bytes()};
  }

  void multiply(uint32_t index) const {
    const uint64_t seed = trace::hash_mix(seed_, index);
    const auto k = static_cast<int64_t>(p_.k);
    const Lines rows{matrix(p_.a, p_.a_matrix, p_.a_type, index), static_cast<int64_t>(p_.m),
                     in_bytes(p_.a_row, p_.a_type), k, in_bytes(p_.a_column, p_.a_type)};
    const Lines columns{matrix(p_.b, p_.b_matrix, p_.b_type, index), static_cast<int64_t>(p_.n),
                        in_bytes(p_.b_column, p_.b_type), k, in_bytes(p_.b_row, p_.b_type)};
    const uint32_t bytes = number_type(p_.d_type).bytes();
    const Output to{matrix(p_.d, p_.d_matrix, p_.d_type, index),
                    matrix(p_.c, p_.c_matrix, p_.c_type, index),
                    p_.bias == 0
                        ? nullptr
                        : reinterpret_cast<const uint8_t*>(p_.bias) + in_bytes(p_.bias_matrix, p_.d_type) * index,
                    static_cast<int64_t>(p_.m),
                    static_cast<int64_t>(p_.n),
                    in_bytes(p_.d_row, p_.d_type),
                    in_bytes(p_.d_column, p_.d_type),
                    in_bytes(p_.c_row, p_.c_type),
                    in_bytes(p_.c_column, p_.c_type)};
    const std::vector<uint64_t> row_hashes = hash_lines(rows, number_type(p_.a_type).bytes(), seed);
    const std::vector<uint64_t> column_hashes = hash_lines(columns, number_type(p_.b_type).bytes(), scramble(seed));
    if (bytes == 2) fill<2>(to, row_hashes, column_hashes);
    if (bytes == 4) fill<4>(to, row_hashes, column_hashes);
    if (bytes == 8) fill<8>(to, row_hashes, column_hashes);
    if (bytes == 16) fill<16>(to, row_hashes, column_hashes);
  }

  Parameters p_;
  uint64_t seed_ = 0;
};

class Registered {
 public:
  Registered()
      : twin_{reinterpret_cast<const void*>(&reprise_blas_product),
              kCount,
              kOffsets,
              kSizes,
              [](const TwinLaunch& launch) { Run(launch).execute(); },
              [](const TwinLaunch& launch, const WrittenParts& parts) { Run(launch).tell_written(parts); },
              twin::library_twins} {
    twin::library_twins = &twin_;
  }

 private:
  Twin twin_;
};

const Registered registered;

}  // namespace
}  // namespace reprise::sim::blas
