// The reader against damaged traces: it may refuse or stop early, but never crash, hang or ask for memory beyond
// reason. Mutates a sample in three ways: bytes of the file, bytes of a chunk's records under a right checksum, and
// fields set to extreme values. REPRISE_FUZZ_ROUNDS and REPRISE_FUZZ_SEED change the defaults for long runs.
#include "preload/trace/reader.h"
#include "tests/support/test.h"
#include "tests/support/trace_bytes.h"

namespace reprise::trace {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

class TraceFuzz : public ::testing::Test {
 protected:
  uint64_t below(uint64_t limit) { return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_); }

  void mutate(std::string& bytes, size_t from) {
    if (bytes.size() <= from) return;
    const size_t at = from + below(bytes.size() - from);
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2: {  // an aligned 32-bit field
        constexpr uint32_t kExtremes[] = {0, 1, 7, 8, 0x7fffffff, 0x80000000, 0xffffffff, 0x10000};
        const size_t field = at & ~size_t{3};
        const uint32_t value = kExtremes[below(std::size(kExtremes))];
        if (field + 4 <= bytes.size()) std::memcpy(bytes.data() + field, &value, 4);
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      default:
        bytes.insert(at, bytes.substr(from + below(bytes.size() - from), below(64)));
        break;
    }
  }

  void read(const std::string& bytes) {
    Result<Trace> result = parse_trace(bytes, "fuzz");
    if (!result.ok()) {
      ++refused_;
      return;
    }
    const Trace& trace = result.value();
    if (trace.tail.ok()) ++accepted_;
    // The text form walks everything that was read.
    EXPECT_FALSE(to_text(trace).empty());
    EXPECT_LE(trace.functions.size(), 2 * bytes.size() + 4096);
  }

  const uint64_t rounds_ = from_environment("REPRISE_FUZZ_ROUNDS", 10'000);
  std::mt19937_64 random_{from_environment("REPRISE_FUZZ_SEED", 1)};
  uint64_t refused_ = 0;
  uint64_t accepted_ = 0;
};

TEST_F(TraceFuzz, DamagedFiles) {
  const std::string sample = test::sample_trace().bytes();
  for (uint64_t round = 0; round < rounds_; ++round) {
    std::string bytes = sample;
    for (uint64_t i = 0; i <= below(4); ++i) mutate(bytes, 0);
    read(bytes);
  }
  EXPECT_GT(refused_, 0u);  // the file header was hit now and then
}

TEST_F(TraceFuzz, DamagedRecordsUnderARightChecksum) {
  const std::string sample = test::records_of(test::sample_trace().bytes());
  ASSERT_FALSE(sample.empty());
  for (uint64_t round = 0; round < rounds_; ++round) {
    std::string raw = sample;
    for (uint64_t i = 0; i <= below(4); ++i) mutate(raw, 0);
    test::TraceBytes bytes;
    read(bytes.chunk_of(raw).bytes());
  }
  EXPECT_GT(accepted_, 0u);  // values changed, structure intact
  EXPECT_LT(accepted_, rounds_);
}

}  // namespace
}  // namespace reprise::trace
