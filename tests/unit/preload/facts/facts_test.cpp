// Kernel facts: what follows from evidence, the text form, and a cache whose files were damaged, moved or are of
// another version.
#include "preload/facts/store.h"
#include "tests/support/test.h"

namespace reprise::facts {
namespace {

namespace fs = std::filesystem;

SlotEvidence slot(uint32_t offset, uint64_t overwritten, uint64_t updated, uint64_t kept, uint64_t same,
                  uint64_t reached) {
  return {offset, overwritten, 0, updated, kept, same, reached, 4096, 4096, 0, 0};
}

KernelFacts scale() {
  KernelFacts facts;
  facts.kernel = 0x1234;
  facts.name = "_Z5scalePKfPf";
  facts.device = "a device";
  facts.launches = 1;
  facts.equal = 1;
  facts.first_day = facts.last_day = "2026-11-23";
  facts.slots = {slot(0, 0, 0, 1, 0, 1), slot(8, 1, 0, 0, 0, 0)};
  facts.slots[0].guarded = 5;
  facts.shapes = {{7, 3}, {9, kAuditedLaunches}};
  return facts;
}

TEST(Facts, AnswersFollowFromEvidence) {
  KernelFacts facts = scale();
  EXPECT_EQ(writes(facts, 0), Answer::no);
  EXPECT_EQ(reads(facts, 0), Answer::yes);
  EXPECT_EQ(writes(facts, 8), Answer::yes);
  EXPECT_EQ(reads(facts, 8), Answer::no);
  EXPECT_EQ(pure(facts), Answer::yes);
  EXPECT_EQ(writes(facts, 16), Answer::unknown);
  EXPECT_EQ(reads(facts, 16), Answer::unknown);
  EXPECT_EQ(pure(KernelFacts{}), Answer::unknown);
}

TEST(Facts, OnDoubtNothingIsKnown) {
  KernelFacts facts = scale();
  facts.slots = {slot(0, 0, 0, 0, 3, 0), slot(8, 2, 0, 0, 1, 0)};
  EXPECT_EQ(writes(facts, 0), Answer::unknown) << "the same bytes, but no others were tried";
  EXPECT_EQ(reads(facts, 8), Answer::unknown) << "once it left what was there: that may be what it does";
}

TEST(Facts, OneLaunchThatDoesOtherwiseIsEnough) {
  KernelFacts facts = scale(), more = scale();
  more.equal = 0;
  more.unequal = 1;
  more.slots = {slot(0, 0, 1, 0, 0, 0), slot(8, 0, 1, 0, 0, 0)};
  more.last_day = "2026-11-30";
  merge(facts, more);
  EXPECT_EQ(facts.launches, 2u);
  EXPECT_EQ(writes(facts, 0), Answer::yes);
  EXPECT_EQ(reads(facts, 8), Answer::yes);
  EXPECT_EQ(pure(facts), Answer::no);
  EXPECT_EQ(facts.first_day, "2026-11-23");
  EXPECT_EQ(facts.last_day, "2026-11-30");
}

// Enough launches of the very shape, and none of any shape that went astray.
TEST(Facts, AuditedIsAShapeOfAKernelThatNeverStrayed) {
  KernelFacts facts = scale();
  EXPECT_EQ(audited(facts, 9), Answer::yes);
  EXPECT_EQ(audited(facts, 7), Answer::unknown) << "too few";
  EXPECT_EQ(audited(facts, 8), Answer::unknown) << "never seen";
  KernelFacts more = scale();
  more.shapes = {{7, 1}, {8, 1}};
  merge(facts, more);
  EXPECT_EQ(audited(facts, 7), Answer::yes);
  EXPECT_EQ(audited(facts, 8), Answer::unknown);
  EXPECT_EQ(audited_launches(facts), 9u);
  more.strayed = 1;
  merge(facts, more);
  for (const uint64_t shape : {7u, 8u, 9u}) EXPECT_EQ(audited(facts, shape), Answer::no);
}

TEST(Facts, AShapeIsGridBlockSharedMemoryAndTheSizesOfOperands) {
  const uint32_t grid[3] = {4, 1, 1};
  const uint32_t block[3] = {256, 1, 1};
  const uint64_t shape = shape_of(grid, block, 0, {{0, 4096}, {8, 512}});
  EXPECT_EQ(shape_of(grid, block, 0, {{8, 512}, {0, 4096}}), shape) << "in whatever order they are found";
  EXPECT_NE(shape_of(block, grid, 0, {{0, 4096}, {8, 512}}), shape);
  EXPECT_NE(shape_of(grid, block, 64, {{0, 4096}, {8, 512}}), shape);
  EXPECT_NE(shape_of(grid, block, 0, {{0, 4096}, {8, 513}}), shape);
  EXPECT_NE(shape_of(grid, block, 0, {{0, 4096}, {16, 512}}), shape);
  EXPECT_NE(shape_of(grid, block, 0, {{0, 4096}}), shape);
}

TEST(Facts, ShapesBeyondTheMostStayUnknown) {
  KernelFacts facts = scale(), more = scale();
  more.shapes.clear();
  for (uint64_t shape = 100; shape < 100 + kMostShapes; ++shape) more.shapes.push_back({shape, kAuditedLaunches});
  merge(facts, more);
  EXPECT_EQ(facts.shapes.size(), kMostShapes);
  EXPECT_EQ(audited(facts, 100 + kMostShapes - 1), Answer::unknown);
  EXPECT_TRUE(from_text(to_text(facts)).ok());
}

TEST(Facts, TextSaysAll) {
  const KernelFacts facts = scale();
  const auto again = good(from_text(to_text(facts)));
  EXPECT_EQ(to_text(again), to_text(facts));
  EXPECT_EQ(again.device, "a device");
}

// Whichever byte is another one, or missing, the file is not used.
TEST(Facts, EveryDamageIsFound) {
  const std::string text = to_text(scale());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] = static_cast<char>(other[at] ^ 1);
    EXPECT_FALSE(from_text(other).ok()) << at;
    EXPECT_FALSE(from_text(text.substr(0, at)).ok()) << at;
  }
  EXPECT_FALSE(from_text(text + "slot 16 0 0 0 0 0 0 0 0 0\n").ok());
}

TEST(Facts, AnotherVersionIsNamed) {
  std::string text = to_text(scale());
  text.replace(0, sizeof "reprise facts 3" - 1, "reprise facts 2");
  EXPECT_TRUE(has(from_text(text).status().message(), "version"));
}

class StoreTest : public testing::Test {
 protected:
  std::string folder_ = testing::TempDir() + "facts" + std::to_string(getpid()) + "/kernels";
  Store store_{folder_};
  ~StoreTest() override { fs::remove_all(fs::path(folder_).parent_path()); }
  std::string only_file() const { return fs::directory_iterator(folder_)->path().string(); }
};

TEST_F(StoreTest, EvidenceAddsUp) {
  EXPECT_EQ(store_.load(0x1234, "a device").status().code(), StatusCode::not_found);
  ASSERT_TRUE(store_.add(scale()).ok());
  ASSERT_TRUE(store_.add(scale()).ok());
  EXPECT_EQ(good(store_.load(0x1234, "a device")).launches, 2u);
  EXPECT_EQ(store_.load(0x1234, "another device").status().code(), StatusCode::not_found);
  std::vector<std::string> problems;
  EXPECT_EQ(store_.all(&problems).size(), 1u);
  EXPECT_TRUE(problems.empty());
  EXPECT_TRUE(store_.remove(0x1234, "a device").ok());
  EXPECT_TRUE(store_.all(&problems).empty());
}

TEST_F(StoreTest, ADamagedFileIsToldAndReplaced) {
  ASSERT_TRUE(store_.add(scale()).ok());
  std::ofstream(only_file(), std::ios::app) << "more\n";
  EXPECT_EQ(store_.load(0x1234, "a device").status().code(), StatusCode::corrupt);
  std::vector<std::string> problems;
  EXPECT_TRUE(store_.all(&problems).empty());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(has(problems[0], only_file()));
  ASSERT_TRUE(store_.add(scale()).ok());
  EXPECT_TRUE(store_.load(0x1234, "a device").ok());
}

TEST_F(StoreTest, AFileOfAnotherKernelIsNotUsed) {
  ASSERT_TRUE(store_.add(scale()).ok());
  KernelFacts other = scale();
  other.kernel = 0x9999;
  std::ofstream(only_file()) << to_text(other);
  EXPECT_EQ(store_.load(0x1234, "a device").status().code(), StatusCode::corrupt);
  std::vector<std::string> problems;
  EXPECT_TRUE(store_.all(&problems).empty());
  EXPECT_EQ(problems.size(), 1u);
}

TEST_F(StoreTest, AFolderThatCannotBeMadeIsAnError) {
  Store nowhere("/proc/nowhere/kernels");
  EXPECT_FALSE(nowhere.add(scale()).ok());
  EXPECT_EQ(nowhere.load(1, "a device").status().code(), StatusCode::not_found);
}

}  // namespace
}  // namespace reprise::facts
