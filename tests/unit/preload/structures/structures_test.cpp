// Structures whose unset parts look like addresses: found by name and size, and read only where they are what they
// should.
#include "preload/structures/structures.h"

#include <rapidcheck.h>

#include "tests/support/test.h"

namespace reprise::structures {
namespace {

// What the compiler makes of PyTorch's lists: the sizes that the table reckons with.
template <typename Number, size_t kLists, size_t kCapacity, size_t kBlocks>
struct Lists {
  const void* addresses[kLists][kCapacity];
  int64_t sizes[kCapacity];
  Number tensor_of[kBlocks];
  int chunk_of[kBlocks];
  int start;
};
template <typename Number, typename Scalar, size_t kLists, size_t kCapacity, size_t kBlocks>
struct ScalarLists {
  const void* addresses[kLists][kCapacity];
  int64_t sizes[kCapacity];
  Scalar scalars[kCapacity];
  Number tensor_of[kBlocks];
  int chunk_of[kBlocks];
};
template <typename Number, size_t kLists, size_t kCapacity, size_t kCounters, size_t kBlocks>
struct FusedLists {
  const void* addresses[kLists][kCapacity];
  int64_t sizes[kCapacity];
  const void* counters[kCounters];
  Number tensor_of[kBlocks];
  int chunk_of[kBlocks];
  int start;
};
using Large2 = Lists<uint16_t, 2, 448, 2240>;
using Small1 = Lists<uint8_t, 1, 110, 320>;
using Fused4 = FusedLists<uint16_t, 4, 252, 252, 2240>;

const std::string kPlainName = "_ZN2at6native12_GLOBAL__N__25multi_tensor_apply_kernelINS1_18TensorListMetadataILi";
const std::string kScalarName =
    "_ZN2at6native12_GLOBAL__N__25multi_tensor_apply_kernelINS1_28TensorListScalarListMetadataI";
const std::string kFusedName =
    "_ZN2at6native12_GLOBAL__N__25multi_tensor_apply_kernelINS1_32FusedOptimizerTensorListMetadataILi";
constexpr const char* kStridedName = "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastEviT1_";

Structure first(const Structures& found) { return found.count == 0 ? Structure{} : found.items[0]; }

Structure of(const std::string& name, uint32_t bytes) {
  const trace::ParameterLayout parameters[] = {{0, bytes}, {bytes, 1}};
  return first(recognize(name.c_str(), parameters, 2));
}

std::vector<Range> ranges_of(const Structure& structure, const void* content, Grid grid, bool live = true) {
  Range room[kMostRanges];
  const auto is_address = [](void* user, uint64_t word) { return *static_cast<bool*>(user) && word != 0; };
  const uint32_t count = used_ranges(structure, static_cast<const uint8_t*>(content), grid, is_address, &live, room);
  return {room, room + count};
}

template <typename Content>
Content with_blocks(std::initializer_list<int> tensor_of) {
  Content content;
  std::memset(&content, 0x5a, sizeof content);
  size_t block = 0;
  for (const int tensor : tensor_of) content.tensor_of[block++] = static_cast<decltype(+content.tensor_of[0])>(tensor);
  return content;
}

TEST(Structures, ListsAreKnownByNameAndSize) {
  const Structure large = of(kPlainName + "2EEE", sizeof(Large2));
  EXPECT_EQ(large.kind, Kind::tensor_lists);
  EXPECT_EQ(large.lists, 2u);
  EXPECT_EQ(large.capacity, 448u);
  EXPECT_EQ(large.tensor_of_at, offsetof(Large2, tensor_of));
  const Structure small = of(kPlainName + "1EEE", sizeof(Small1));
  EXPECT_EQ(small.capacity, 110u);
  EXPECT_EQ(small.number_bytes, 1u);
  EXPECT_EQ(small.tensor_of_at, offsetof(Small1, tensor_of));
  const Structure fused = of(kFusedName + "4EEE", sizeof(Fused4));
  EXPECT_EQ(fused.lists, 4u);
  EXPECT_EQ(fused.steps_at, offsetof(Fused4, counters));
  EXPECT_EQ(fused.tensor_of_at, offsetof(Fused4, tensor_of));
  using Floats = ScalarLists<uint16_t, float, 3, 336, 2240>;
  using Doubles = ScalarLists<uint8_t, double, 1, 96, 320>;
  EXPECT_EQ(of(kScalarName + "fLi3EEE", sizeof(Floats)).tensor_of_at, offsetof(Floats, tensor_of));
  EXPECT_EQ(of(kScalarName + "dLi1EEE", sizeof(Doubles)).tensor_of_at, offsetof(Doubles, tensor_of));
}

// As PyTorch 2.15 for CUDA 13.2 has them.
TEST(Structures, SizesThatWereSeen) {
  EXPECT_EQ(of(kPlainName + "1EEE", 25768).capacity, 770u);
  EXPECT_EQ(of(kPlainName + "2EEE", 24200).capacity, 448u);
  EXPECT_EQ(of(kPlainName + "3EEE", 24200).capacity, 336u);
  EXPECT_EQ(of(kScalarName + "fLi1EEE", 26880).capacity, 672u);
  EXPECT_EQ(of(kScalarName + "fLi3EEE", 25536).capacity, 336u);
  const trace::ParameterLayout parameters[] = {{0, 4}, {8, 648}};
  EXPECT_EQ(first(recognize(kStridedName, parameters, 2)).lists, 3u);
}

TEST(Structures, WhatHasAnotherSizeOrNameIsUnknown) {
  EXPECT_EQ(of(kPlainName + "2EEE", sizeof(Large2) + 8).kind, Kind::unknown);
  EXPECT_EQ(of(kPlainName + "3EEE", sizeof(Small1)).kind, Kind::unknown);
  EXPECT_EQ(of(kPlainName + "7EEE", sizeof(Large2)).kind, Kind::unknown);
  EXPECT_EQ(of("a_kernel", sizeof(Large2)).kind, Kind::unknown);
  const trace::ParameterLayout parameters[] = {{0, 4}, {8, 100}};
  EXPECT_EQ(first(recognize(kStridedName, parameters, 2)).kind, Kind::unknown);
}

TEST(Structures, ListsHoldAsManyAddressesAsTheBlocksSay) {
  const Structure structure = of(kPlainName + "2EEE", sizeof(Large2));
  const auto content = with_blocks<Large2>({0, 0, 1, 2, 2, 2, 3});
  EXPECT_EQ(ranges_of(structure, &content, {7}), (std::vector<Range>{{0, 32}, {448 * 8, 448 * 8 + 32}}));
  EXPECT_EQ(ranges_of(structure, &content, {3}), (std::vector<Range>{{0, 16}, {448 * 8, 448 * 8 + 16}}));
}

TEST(Structures, StepCountersAreAddressesToo) {
  const auto content = with_blocks<Fused4>({0, 1});
  const auto ranges = ranges_of(of(kFusedName + "4EEE", sizeof(Fused4)), &content, {2});
  ASSERT_EQ(ranges.size(), 5u);
  EXPECT_EQ(ranges.back(), (Range{offsetof(Fused4, counters), offsetof(Fused4, counters) + 16}));
}

TEST(Structures, BlocksThatAreNotInOrderMakeEveryWordCount) {
  const Structure structure = of(kPlainName + "2EEE", sizeof(Large2));
  for (const auto& content : {with_blocks<Large2>({1, 2}), with_blocks<Large2>({0, 2}), with_blocks<Large2>({1, 0})})
    EXPECT_TRUE(ranges_of(structure, &content, {2}).empty());
  const auto content = with_blocks<Large2>({0, 1});
  EXPECT_TRUE(ranges_of(structure, &content, {3}).empty()) << "the third block has no tensor";
  EXPECT_TRUE(ranges_of(structure, &content, {2241}).empty());
  EXPECT_TRUE(ranges_of(structure, &content, {0}).empty());
}

TEST(Structures, MoreTensorsThanThereIsRoomForMakeEveryWordCount) {
  auto content = with_blocks<Small1>({});
  for (uint8_t block = 0; block < 120; ++block) content.tensor_of[block] = block;
  const Structure structure = of(kPlainName + "1EEE", sizeof(Small1));
  EXPECT_EQ(ranges_of(structure, &content, {110}).size(), 1u);
  EXPECT_TRUE(ranges_of(structure, &content, {111}).empty());
}

struct Divisor {
  uint32_t divisor, factor, shift;
};
Divisor divisor_of(uint32_t value) {
  uint32_t shift = 0;
  while ((uint64_t{1} << shift) < value) ++shift;
  const uint64_t above = (uint64_t{1} << shift) - value;
  return {value, static_cast<uint32_t>((above << 32) / value + 1), shift};
}

struct Strided3 {
  int dimensions;
  Divisor sizes[25];
  uint32_t strides[25][3];
  char* addresses[3];
  char functor[16];
};
struct Launch3 {
  int64_t count;
  Strided3 captured;
};
constexpr trace::ParameterLayout kLaunch3[] = {{0, 4}, {8, sizeof(Strided3)}};

Launch3 strided(const std::vector<uint32_t>& sizes) {
  Launch3 launch;
  std::memset(&launch, 0x5a, sizeof launch);
  launch.captured.dimensions = static_cast<int>(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) launch.captured.sizes[i] = divisor_of(sizes[i]);
  return launch;
}

TEST(Structures, StridedOnesHoldTheirAddressesBehindTheStrides) {
  const Structure structure = first(recognize(kStridedName, kLaunch3, 2));
  ASSERT_EQ(structure.lists, 3u);
  const uint32_t begin = 8 + offsetof(Strided3, addresses);
  for (const auto& sizes : {std::vector<uint32_t>{7}, {512, 2048}, std::vector<uint32_t>(25, 3)}) {
    const Launch3 launch = strided(sizes);
    EXPECT_EQ(ranges_of(structure, &launch, {4}), (std::vector<Range>{{begin, 8 + sizeof(Strided3)}}));
  }
}

TEST(Structures, StridedOnesThatAreNotAsExpectedMakeEveryWordCount) {
  const Structure structure = first(recognize(kStridedName, kLaunch3, 2));
  Launch3 launch = strided({512, 2048});
  EXPECT_TRUE(ranges_of(structure, &launch, {4}, false).empty()) << "no operand is at an address";
  launch.captured.addresses[1] = nullptr;
  EXPECT_TRUE(ranges_of(structure, &launch, {4}).empty());
  EXPECT_TRUE(ranges_of(structure, &(launch = strided({})), {4}).empty()) << "nothing says that it is one";
  launch = strided(std::vector<uint32_t>(25, 1));
  std::memcpy(launch.captured.strides, launch.captured.sizes, sizeof launch.captured.sizes[0]);
  launch.captured.dimensions = 26;  // and what stands there looks like one more
  EXPECT_TRUE(ranges_of(structure, &launch, {4}).empty());
  launch = strided({512, 2048});
  launch.captured.dimensions = 3;  // the third size is not one
  EXPECT_TRUE(ranges_of(structure, &launch, {4}).empty());
}

TEST(Structures, SizesMustDivide) {
  EXPECT_TRUE(rc::check("a size is what makes dividing by it cheap, and nothing else is", [] {
    const Structure structure = first(recognize(kStridedName, kLaunch3, 2));
    const auto size = *rc::gen::inRange<uint32_t>(1, INT32_MAX);
    Launch3 launch = strided({size});
    RC_ASSERT(ranges_of(structure, &launch, {1}).size() == 1u);
    Divisor& divisor = launch.captured.sizes[0];
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        divisor.factor += *rc::gen::inRange<uint32_t>(1, 1000);
        break;
      case 1:
        divisor.shift += *rc::gen::inRange<uint32_t>(1, 1000);
        break;
      default:
        divisor.divisor = 0;
    }
    RC_ASSERT(ranges_of(structure, &launch, {1}).empty());
  }));
}

}  // namespace
}  // namespace reprise::structures
