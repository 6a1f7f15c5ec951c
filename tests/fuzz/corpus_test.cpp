// What libFuzzer starts from, and what it has found, through the same functions in an ordinary build: seeds are
// accepted, as they are and with their ends cut off or bytes changed nothing breaks, and no finding comes back.
#include "tests/fuzz/readers.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/test.h"

namespace reprise::fuzz {
namespace {

const Reader* find(const std::string& name) {
  for (const Reader& reader : kReaders) {
    if (name == reader.name) return &reader;
  }
  return nullptr;
}

// No input may take long, whatever it says of itself. Far more than it takes, for machines that do other work.
template <typename Read>
void expect_quick(const std::string& name, Read&& read) {
  const auto begin = std::chrono::steady_clock::now();
  read();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << name;
}

TEST(Corpus, SeedsAreAcceptedByTheirReaders) {
  std::set<std::string> tried;
  for (const Seed& seed : seeds()) {
    const Reader* reader = find(seed.reader);
    ASSERT_NE(reader, nullptr) << seed.reader;
    EXPECT_TRUE(reader->read(seed.bytes)) << seed.reader << "/" << seed.name;
    tried.insert(seed.reader);
  }
  EXPECT_EQ(tried.size(), std::size(kReaders)) << "a reader without a seed";
}

TEST(Corpus, WhatIsCutOffOrChangedBreaksNothing) {
  std::mt19937_64 random(1);
  for (const Seed& seed : seeds()) {
    const Reader* reader = find(seed.reader);
    ASSERT_NE(reader, nullptr) << seed.reader;
    for (int round = 0; round < 20; ++round) {
      std::string bytes = seed.bytes.substr(0, random() % (seed.bytes.size() + 1));
      expect_quick(seed.name, [&] { reader->read(bytes); });
      bytes = seed.bytes;
      if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<char>(random());
      expect_quick(seed.name, [&] { reader->read(bytes); });
    }
  }
}

TEST(Corpus, FindingsStayMended) {
  const std::vector<Seed> found = regressions();
  EXPECT_FALSE(found.empty());
  for (const Seed& seed : found) {
    const Reader* reader = find(seed.reader);
    ASSERT_NE(reader, nullptr) << seed.reader << ": no such reader";
    expect_quick(seed.reader + "/" + seed.name, [&] { reader->read(seed.bytes); });
  }
}

}  // namespace
}  // namespace reprise::fuzz
