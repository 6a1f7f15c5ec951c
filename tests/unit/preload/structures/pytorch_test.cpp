// Structures of PyTorch's kernels besides lists and strided operands (structures_test.cpp): the table against what the
// compiler makes of them, and that content which is not as expected makes every word count.
#include "preload/structures/structures.h"
#include "tests/support/test.h"

namespace reprise::structures {
namespace {

constexpr uint64_t kLive = 0x7f0000000000;   // addresses from here on are live
constexpr uint64_t kStale = 0x7f5a5a5a5a5a;  // what unset parts look like

bool is_live(void*, uint64_t word) { return word >= kLive && word < kLive + (uint64_t{1} << 40); }

template <typename Content>
Content unset() {
  Content content;
  const uint64_t stale = kStale;
  auto* bytes = reinterpret_cast<uint8_t*>(&content);
  for (size_t at = 0; at + 8 <= sizeof content; at += 8) std::memcpy(bytes + at, &stale, 8);
  return content;
}

template <typename Content>
std::vector<Range> ranges_of(const Structure& structure, const Content& content, Grid grid = {}) {
  Range room[kMostRanges];
  const uint32_t count =
      used_ranges(structure, reinterpret_cast<const uint8_t*>(&content), grid, is_live, nullptr, room);
  return {room, room + count};
}

// The structure that is parameter `index` of a kernel, as if it stood at 0.
Structure of(const std::string& name, const std::vector<uint32_t>& sizes, uint32_t index) {
  std::vector<trace::ParameterLayout> layout;
  uint32_t offset = 0;
  for (const uint32_t bytes : sizes) {
    layout.push_back({offset, bytes});
    offset += (bytes + 7) / 8 * 8;
  }
  const Structures found = recognize(name.c_str(), layout.data(), static_cast<uint32_t>(layout.size()));
  const Structure* const structure = found.find(layout[index].offset);
  Structure result = structure == nullptr ? Structure{} : *structure;
  result.offset = 0;
  return result;
}

template <typename Index>
struct TensorInfo {
  uint64_t data;
  Index sizes[25];
  Index strides[25];
  int dims;
};
const std::string kDropout =
    "_ZN2at6native12_GLOBAL__N_124fused_dropout_kernel_vecIffjLi1ELi4EbEEvNS_4cuda6detail10TensorInfoIKT_T1_EE";

template <typename Index>
TensorInfo<Index> tensor_info(int dims) {
  auto info = unset<TensorInfo<Index>>();
  info.data = kLive;
  info.dims = dims;
  for (int i = 0; i < dims && i < 25; ++i) info.sizes[i] = static_cast<Index>(i) + 1;
  return info;
}

template <typename Index>
class TensorInfos : public testing::Test {};
using Indices = testing::Types<uint32_t, uint64_t>;
TYPED_TEST_SUITE(TensorInfos, Indices);

TYPED_TEST(TensorInfos, HoldOneAddress) {
  using Info = TensorInfo<TypeParam>;
  const uint32_t bytes = sizeof(Info);
  const std::vector<uint32_t> sizes = {bytes, bytes, bytes, 4, 4, 32};
  for (uint32_t index = 0; index < 3; ++index) EXPECT_EQ(of(kDropout, sizes, index).kind, Kind::tensor_info);
  EXPECT_EQ(of(kDropout, sizes, 5).kind, Kind::unknown);
  const Structure structure = of(kDropout, sizes, 0);
  for (const int dims : {1, 2, 25}) {
    EXPECT_EQ(ranges_of(structure, tensor_info<TypeParam>(dims)), (std::vector<Range>{{0, 8}})) << dims;
  }
}

// RNN.cu's kernels get one for a gradient or bias that there is not: as its constructor leaves it, or with its
// dimensions collapsed, which makes one of size and stride 1 of none.
TYPED_TEST(TensorInfos, OfNoTensorHaveNoOtherAddress) {
  const Structure structure = of(kDropout, {sizeof(TensorInfo<TypeParam>)}, 0);
  auto info = tensor_info<TypeParam>(0);
  info.data = 0;
  EXPECT_EQ(ranges_of(structure, info), (std::vector<Range>{{0, 8}}));
  info.dims = 1;
  EXPECT_TRUE(ranges_of(structure, info).empty());
  info.sizes[0] = info.strides[0] = 1;
  EXPECT_EQ(ranges_of(structure, info), (std::vector<Range>{{0, 8}}));
  info.strides[0] = 2;
  EXPECT_TRUE(ranges_of(structure, info).empty());
  info.strides[0] = info.sizes[1] = 1;
  info.dims = 2;
  EXPECT_TRUE(ranges_of(structure, info).empty());
}

TYPED_TEST(TensorInfos, ThatAreNoneMakeEveryWordCount) {
  using Info = TensorInfo<TypeParam>;
  const Structure structure = of(kDropout, {sizeof(Info)}, 0);
  ASSERT_EQ(structure.kind, Kind::tensor_info);
  for (const int dims : {0, 26, -1}) EXPECT_TRUE(ranges_of(structure, tensor_info<TypeParam>(dims)).empty()) << dims;
  auto info = tensor_info<TypeParam>(3);
  info.sizes[2] = 0;
  EXPECT_TRUE(ranges_of(structure, info).empty());
  info = tensor_info<TypeParam>(3);
  info.data = kLive - 8;
  EXPECT_TRUE(ranges_of(structure, info).empty());
  EXPECT_EQ(of("a_kernel", {sizeof(Info)}, 0).kind, Kind::unknown);
  EXPECT_EQ(of(kDropout, {sizeof(Info) + 8}, 0).kind, Kind::unknown);
}

TEST(TensorInfo, ASizeThatIsAnAddressMakesEveryWordCount) {
  auto info = tensor_info<uint64_t>(2);
  info.sizes[1] = kLive;
  EXPECT_TRUE(ranges_of(of(kDropout, {sizeof info}, 0), info).empty());
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
template <size_t kOperands>
struct Calculator {
  uint32_t dims;
  Divisor sizes[25];
  uint32_t strides[25][kOperands];
};

struct NoNumbers {};
template <size_t kOperands>
struct Gathered {
  Calculator<kOperands> offsets;
  uint64_t index;
  int64_t index_size;
  NoNumbers functor;
  uint64_t output;
  int64_t stride, count;
  uint64_t source;  // or the number that is scattered
};
const std::string kGather =
    "_ZN2at6native34_scatter_gather_elementwise_kernelILi128ELi8EZNS0_36_cuda_scatter_gather_internal_"
    "kernelILb0EEviT1_";

template <size_t kOperands>
Gathered<kOperands> gathered(uint32_t dims) {
  auto content = unset<Gathered<kOperands>>();
  content.offsets.dims = dims;
  for (uint32_t i = 0; i < dims; ++i) content.offsets.sizes[i] = divisor_of(3 * i + 7);
  content.index = kLive;
  content.output = kLive + 4096;
  content.source = kOperands == 3 ? kLive + 8192 : kStale;
  return content;
}

template <size_t kOperands>
void expect_gathered() {
  using Content = Gathered<kOperands>;
  const Structure structure = of(kGather, {4, sizeof(Content)}, 1);
  ASSERT_EQ(structure.kind, Kind::gathered);
  std::vector<Range> addresses;
  for (const size_t at : {offsetof(Content, index), offsetof(Content, output), offsetof(Content, source)}) {
    if (addresses.size() == kOperands) break;
    addresses.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(at) + 8});
  }
  for (const uint32_t dims : {1u, 3u, 25u}) EXPECT_EQ(ranges_of(structure, gathered<kOperands>(dims)), addresses);
  EXPECT_TRUE(ranges_of(structure, gathered<kOperands>(0)).empty()) << "nothing to know it by";
  const std::function<void(Content&)> changes[] = {[](Content& c) { c.index = 8; }, [](Content& c) { c.output = 8; },
                                                   [](Content& c) { c.offsets.dims = 26; },
                                                   [](Content& c) { c.offsets.sizes[1].factor ^= 1; }};
  for (const auto& change : changes) {
    auto content = gathered<kOperands>(2);
    change(content);
    EXPECT_TRUE(ranges_of(structure, content).empty());
  }
  EXPECT_EQ(of(kGather, {4, sizeof(Content) + 8}, 1).kind, Kind::unknown);
  EXPECT_EQ(of(kGather, {4, sizeof(Content), 8}, 1).kind, Kind::unknown);
}

TEST(Gathered, HoldsAddressesOfIndexOutputAndSource) {
  static_assert(sizeof(Gathered<3>) == 664 && sizeof(Gathered<2>) == 560);  // as PyTorch 2.15 for CUDA 13.2 has them
  expect_gathered<3>();
  auto content = gathered<3>(2);
  content.source = 8;
  EXPECT_TRUE(ranges_of(of(kGather, {4, sizeof content}, 1), content).empty());
}

TEST(Gathered, ANumberThatIsScatteredIsNoAddress) { expect_gathered<2>(); }

struct Config {
  int numbers[14];
  bool vectorized;
  int output_vector;
};
// `Words` of the reduction move the calculators to either place in front of the aligned tail.
template <size_t kWords>
struct Reduction {
  uint32_t reduction[kWords];
  Config config;
  Calculator<1> input;
  Calculator<2> output;
  uint64_t source;
  uint64_t outputs[2];
  uint64_t buffers[3];
  int64_t base;
  bool accumulate, last;
  int output_count;
};
const std::string kReduce =
    "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfEEjfLi4ELi4EEEEEvT1_";

template <size_t kWords>
Reduction<kWords> reduction(uint32_t inputs, uint32_t outputs, int output_count = 1) {
  auto content = unset<Reduction<kWords>>();
  content.input.dims = inputs;
  content.output.dims = outputs;
  for (uint32_t i = 0; i < inputs; ++i) content.input.sizes[i] = divisor_of(3 * i + 7);
  for (uint32_t i = 0; i < outputs; ++i) content.output.sizes[i] = divisor_of(5 * i + 2);
  content.source = kLive;
  content.outputs[0] = kLive + 4096;
  if (output_count > 1) content.outputs[1] = kLive + 8192;
  content.output_count = output_count;
  return content;
}

template <size_t kWords>
void expect_reduction() {
  using Content = Reduction<kWords>;
  const Structure structure = of(kReduce, {sizeof(Content)}, 0);
  ASSERT_EQ(structure.kind, Kind::reduce);
  const uint32_t first = (offsetof(Content, input) + 7) / 8 * 8;
  const auto source = static_cast<uint32_t>(offsetof(Content, source));
  const auto second = static_cast<uint32_t>(offsetof(Content, outputs) + 8);
  const std::vector<Range> one = {{0, first}, {source, second}, {second + 8, sizeof(Content)}};
  const std::vector<Range> two = {{0, first}, {source, second + 8}, {second + 8, sizeof(Content)}};
  EXPECT_EQ(ranges_of(structure, reduction<kWords>(1, 0)), one);
  EXPECT_EQ(ranges_of(structure, reduction<kWords>(2, 3)), one);
  EXPECT_EQ(ranges_of(structure, reduction<kWords>(1, 1, 2)), two);
  EXPECT_TRUE(ranges_of(structure, reduction<kWords>(0, 0)).empty()) << "nothing to know it by";
  EXPECT_TRUE(ranges_of(structure, reduction<kWords>(26, 1)).empty());
  EXPECT_TRUE(ranges_of(structure, reduction<kWords>(1, 1, 3)).empty());
  const std::function<void(Content&)> changes[] = {
      [](Content& c) { c.source = 8; }, [](Content& c) { c.outputs[0] = 8; },
      [](Content& c) { c.input.sizes[0].factor ^= 1; }, [](Content& c) { c.output.sizes[0].shift ^= 1; }};
  for (const auto& change : changes) {
    auto content = reduction<kWords>(1, 1);
    change(content);
    EXPECT_TRUE(ranges_of(structure, content).empty());
  }
}

TEST(Reduce, SizesAndStridesHoldNoAddresses) {
  static_assert((offsetof(Reduction<2>, input) + offsetof(Reduction<3>, input)) % 8 == 4);
  expect_reduction<2>();
  expect_reduction<3>();
}

template <typename Index, size_t kInputs, size_t kStrides>
struct CatInputs {
  uint64_t input[kInputs];
  Index offset[kInputs];
  Index size[kInputs];
  Index elements[kInputs];
  bool contiguous[kInputs];
  struct {
    Index sizes[4], strides[4];
  } strides[kStrides];
};
const std::string kCat =
    "_ZN2at6native12_GLOBAL__N_130CatArrayBatchedCopy_vectorizedEvPcNS1_25CatArrInputTensorMetadataIT_T0_XT2_EXT3_EEE";

template <typename Content>
void expect_cat() {
  const Structure structure = of(kCat, {8, sizeof(Content), 32}, 1);
  ASSERT_EQ(structure.kind, Kind::cat_inputs);
  auto content = unset<Content>();
  for (size_t i = 0; i < 3; ++i) {
    content.input[i] = kLive + 4096 * i;
    content.elements[i] = 10;
    content.contiguous[i] = true;
  }
  EXPECT_EQ(ranges_of(structure, content, {512, 3}), (std::vector<Range>{{0, 24}}));
  EXPECT_EQ(ranges_of(structure, content, {512, 2}), (std::vector<Range>{{0, 16}}));
  EXPECT_TRUE(ranges_of(structure, content, {512, 4}).empty()) << "the fourth is not set";
  EXPECT_TRUE(ranges_of(structure, content, {512, 0}).empty());
  content.elements[1] = 0;
  EXPECT_TRUE(ranges_of(structure, content, {512, 3}).empty());
  content.elements[1] = 1;
  content.input[2] = 0;
  EXPECT_TRUE(ranges_of(structure, content, {512, 3}).empty());
}

TEST(CatInputs, AreAsManyAsTheGridIsHigh) {
  expect_cat<CatInputs<uint32_t, 128, 1>>();
  expect_cat<CatInputs<uint32_t, 64, 64>>();
  expect_cat<CatInputs<uint64_t, 64, 1>>();
  EXPECT_EQ(of(kCat, {8, sizeof(CatInputs<uint32_t, 128, 1>) + 8, 32}, 1).kind, Kind::unknown);
  EXPECT_EQ(of(kCat, {sizeof(CatInputs<uint32_t, 128, 1>), 8}, 0).kind, Kind::unknown);
}

template <typename Index>
void expect_cat_output() {
  struct Strides {
    Index sizes[4], strides[4];
  };
  const std::string name = kCat + "NS1_16TensorSizeStrideIS8_Lj4EEEiS8_";
  const uint32_t inputs = sizeof(CatInputs<Index, 128, 1>);
  const Structure structure = of(name, {8, inputs, sizeof(Strides), 4, 4}, 2);
  ASSERT_EQ(structure.kind, Kind::cat_output);
  auto content = unset<Strides>();
  content.sizes[0] = 52;
  content.strides[0] = 1;
  EXPECT_EQ(ranges_of(structure, content), (std::vector<Range>{{0, 0}})) << "numbers, and what was there before";
  content.sizes[0] = 0;
  EXPECT_TRUE(ranges_of(structure, content).empty());
  EXPECT_EQ(of(name, {8, inputs, sizeof(Strides) + 8, 4, 4}, 2).kind, Kind::unknown);
  EXPECT_EQ(of(kCat, {8, inputs, sizeof(Strides), 4, 4}, 2).kind, Kind::unknown);
}

TEST(CatOutput, HoldsNoAddresses) {
  expect_cat_output<uint32_t>();
  expect_cat_output<uint64_t>();
}

TEST(Addresses, AreAsManyAsTheGridIsWide) {
  const std::string name =
      "_ZN2at6native14lpnorm_cleanupIfLNS0_8NormTypeE2EfLb1EfEEvPKT1_NS0_19TensorListAddressesEPKli";
  struct List {
    uint64_t addresses[400];
  };
  const Structure structure = of(name, {8, sizeof(List), 8, 4}, 1);
  ASSERT_EQ(structure.kind, Kind::addresses);
  auto list = unset<List>();
  for (uint64_t& address : list.addresses) address = kStale - kLive;
  for (size_t i = 0; i < 5; ++i) list.addresses[i] = kLive;
  EXPECT_EQ(ranges_of(structure, list, {5}), (std::vector<Range>{{0, 40}}));
  EXPECT_TRUE(ranges_of(structure, list, {6}).empty());
  EXPECT_TRUE(ranges_of(structure, list, {401}).empty());
  EXPECT_TRUE(ranges_of(structure, list, {0}).empty());
}

// at::PhiloxCudaState.
struct RandomState {
  union Payload {
    uint64_t value;
    uint64_t address;
  } seed, offset;
  uint64_t offset_in_graph;
  bool captured;
};

struct AttentionParams {
  uint64_t query, key, value, bias, starts_q, starts_k, lengths_k;
  int32_t causal_offset;
  uint64_t output, output_accumulator, logsumexp;
  int32_t window;
  float scale;
  int32_t head_dim, head_dim_value, queries, keys, keys_absolute;
  uint8_t mask_type;
  int32_t strides[8];
  int64_t bias_stride, strides_of_batches[4];
  int32_t batches, batch_offset, head_offset, heads, heads_per_key;
  bool dropout;
  unsigned long long random_offset;
  float dropout_probability;
  RandomState random;
  uint64_t extragraph_offset, random_seed;
};
static_assert(sizeof(AttentionParams) == 280 && offsetof(AttentionParams, random) == 232);

struct AttentionBackwardParams {
  uint64_t query, key, value, bias, logsumexp, output, output_gradient, delta, starts_q, starts_k;
  uint64_t gradients[4], workspaces[3];
  int32_t window;
  float scale;
  int32_t head_dim, head_dim_value, queries, keys, heads, heads_per_key;
  uint8_t mask_type;
  int64_t strides[6];
  int8_t multiplier;
  RandomState random;
  unsigned long long random_offset;
  float dropout_probability;
  int64_t output_stride;
  int32_t strides_of_heads[3];
  int64_t strides_of_batches[10];
  int32_t batches, batch_offset, head_offset;
  int16_t splits;
  int64_t strides_of_gradients[10];
};
static_assert(sizeof(AttentionBackwardParams) == 480 && offsetof(AttentionBackwardParams, random) == 232 &&
              offsetof(AttentionBackwardParams, workspaces[3]) == 136);

template <typename Content>
void expect_attention(const char* kernel, const std::vector<Range>& addresses,
                      const std::function<void(Content&)>& fill) {
  const std::string name = std::string("_Z12fmha_cutlassN22PyTorchMemEffAttention") + kernel +
                           "IfN7cutlass4arch4Sm80ELb1ELi64ELi64ELi64ELb1ELb1EE6ParamsE";
  const Structure structure = of(name, {sizeof(Content)}, 0);
  ASSERT_EQ(structure.kind, Kind::attention);
  auto content = unset<Content>();
  content.query = kLive;
  content.key = content.value = kLive + 4096;
  fill(content);
  content.random.captured = false;
  EXPECT_EQ(ranges_of(structure, content), addresses);
  content.random.captured = true;
  std::vector<Range> with_state = addresses;
  with_state.push_back({232, 248});
  EXPECT_EQ(ranges_of(structure, content), with_state);
  content.value = 0;
  EXPECT_TRUE(ranges_of(structure, content).empty());
  content.value = kLive;
  content.bias = 1;
  EXPECT_TRUE(ranges_of(structure, content).empty());
  EXPECT_EQ(of(name, {sizeof(Content) + 8}, 0).kind, Kind::unknown);
  EXPECT_EQ(of(name, {sizeof(Content), 8}, 0).kind, Kind::unknown);
}

TEST(Attention, NumbersAndTheRoomBetweenThemAreNoAddresses) {
  expect_attention<AttentionParams>("15AttentionKernel", {{0, 56}, {64, 88}, {264, 280}}, [](AttentionParams& content) {
    content.bias = content.starts_q = content.starts_k = content.lengths_k = content.output_accumulator = 0;
    content.output = content.logsumexp = kLive;
  });
  expect_attention<AttentionBackwardParams>(
      "23AttentionBackwardKernel", {{0, 136}}, [](AttentionBackwardParams& content) {
        std::memset(&content.bias, 0,
                    offsetof(AttentionBackwardParams, window) - offsetof(AttentionBackwardParams, bias));
        content.gradients[0] = kLive + 8192;
      });
}

}  // namespace
}  // namespace reprise::structures
