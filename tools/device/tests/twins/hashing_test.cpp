// Dataflow hashing: every byte of every argument counts, addresses do not.
#include "tools/device/twins/hashing.h"

#include "tests/support/test.h"
#include "tools/device/twins/parameter_kinds.h"

namespace reprise::sim {
namespace {

// The program's allocations, and all other memory that the driver knows.
struct Memory {
  struct Tensor {
    uint64_t bytes;
    std::unique_ptr<WrittenBytes> written;
  };
  std::map<uint64_t, Tensor> tensors;  // by base

  // `written`: all of it.
  WrittenBytes& add(const void* base, uint64_t bytes, bool written = true) {
    Tensor& tensor = tensors[reinterpret_cast<uint64_t>(base)];
    tensor = {bytes, std::make_unique<WrittenBytes>(bytes)};
    if (written) tensor.written->mark_all();
    return *tensor.written;
  }

  bool find(uint64_t address, Pointee* pointee) const {
    auto above = tensors.upper_bound(address);
    if (above == tensors.begin()) return false;
    --above;
    if (address - above->first >= above->second.bytes) return false;
    *pointee = {above->first, above->second.bytes, above->second.written.get()};
    return true;
  }
};

void run_kernel(const KernelImage& kernel, const void* parameters, uint32_t bytes, const Memory& memory,
                uint32_t grid = 1, uint32_t shared_bytes = 0, uint64_t kernel_seed = 0) {
  const auto* blob = static_cast<const uint8_t*>(parameters);
  const auto addresses =
      find_addresses(blob, bytes, [&](uint64_t address, Pointee* pointee) { return memory.find(address, pointee); });
  execute_kernel({&kernel, blob, bytes, {grid, 1, 1}, {32, 1, 1}, shared_bytes, addresses, 1, kernel_seed});
}

// One launch of kernel(float* a, float* b, int n, const float* inside_a) on tensors of its own, somewhere in memory.
class Scene {
 public:
  explicit Scene(size_t shift = 0) : memory_(4096 + shift), a_(memory_.data() + shift), b_(a_ + 2048) {
    for (size_t i = 0; i < 1000; ++i) a_[i] = static_cast<uint8_t>(i * 7);
    for (size_t i = 0; i < 500; ++i) b_[i] = static_cast<uint8_t>(i * 3);
  }

  std::vector<uint8_t> run() {
    Memory memory;
    memory.add(a_, 1000);
    memory.add(b_, 500);
    KernelImage kernel;
    kernel.name = name_;
    kernel.parameters = {{0x210, 8}, {0x218, 8}, {0x220, 4}, {0x228, 8}};
    kernel.parameters_known = true;
    uint8_t blob[32];
    std::memset(blob, static_cast<int>(padding_), sizeof blob);
    const uint64_t words[] = {address(a_), address(b_), address(a_) + inside_};
    std::memcpy(blob, words, 16);
    std::memcpy(blob + 16, &count_, 4);
    std::memcpy(blob + 24, words + 2, 8);
    run_kernel(kernel, blob, sizeof blob, memory, grid_, shared_bytes_, kernel_seed_);
    std::vector<uint8_t> result(1500);
    std::memcpy(result.data(), a_, 1000);
    std::memcpy(result.data() + 1000, b_, 500);
    EXPECT_EQ(a_[1000], 0);  // beyond the extents nothing is written
    EXPECT_EQ(b_[500], 0);
    return result;
  }

  std::string name_ = "kernel";
  uint32_t grid_ = 8;
  uint32_t shared_bytes_ = 0;
  uint64_t kernel_seed_ = 0;
  int count_ = 5;
  uint64_t inside_ = 100;
  unsigned padding_ = 0;

 private:
  static uint64_t address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
  std::vector<uint8_t> memory_;

 public:
  uint8_t* a_;
  uint8_t* b_;
};

TEST(Hashing, SameDataElsewhereGivesSameResult) {
  const auto expected = Scene().run();
  EXPECT_EQ(Scene(512).run(), expected);
  Scene padded;
  padded.padding_ = 0xee;  // bytes between parameters belong to none
  EXPECT_EQ(padded.run(), expected);
}

TEST(Hashing, EverythingElseCounts) {
  const auto expected = Scene().run();
  const auto differs = [&](auto change) {
    Scene scene;
    change(scene);
    const auto result = scene.run();
    // Both tensors change, not only the one that was touched.
    return !std::equal(result.begin(), result.begin() + 1000, expected.begin()) &&
           !std::equal(result.begin() + 1000, result.end(), expected.begin() + 1000);
  };
  EXPECT_FALSE(differs([](Scene&) {}));
  EXPECT_TRUE(differs([](Scene& scene) { scene.name_ = "other"; }));
  EXPECT_TRUE(differs([](Scene& scene) { scene.grid_ = 9; }));
  EXPECT_TRUE(differs([](Scene& scene) { scene.shared_bytes_ = 16; }));
  EXPECT_TRUE(differs([](Scene& scene) { scene.count_ = 6; }));
  EXPECT_TRUE(differs([](Scene& scene) { scene.inside_ = 104; }));
  for (const size_t at : {0u, 1u, 31u, 32u, 500u, 992u, 999u}) {
    EXPECT_TRUE(differs([&](Scene& scene) { scene.a_[at] ^= 1; })) << at;
  }
  EXPECT_TRUE(differs([](Scene& scene) { scene.b_[499] ^= 0x80; }));
}

// With a seed a kernel does one of three things with each operand, the same in every launch.
TEST(Hashing, KernelsHaveANature) {
  int only_read = 0, only_written = 0, updated = 0;
  for (int i = 0; i < 200; ++i) {
    const auto run = [&](auto change) {
      Scene scene;
      scene.name_ = "kernel" + std::to_string(i);
      scene.kernel_seed_ = 7;
      change(scene);
      return scene.run();
    };
    const auto first_of = [](const std::vector<uint8_t>& all) { return std::vector(all.begin(), all.begin() + 1000); };
    const auto second_of = [](const std::vector<uint8_t>& all) { return std::vector(all.begin() + 1000, all.end()); };
    const auto before = second_of([] {
      const Scene scene;
      std::vector<uint8_t> both(scene.a_, scene.a_ + 1000);
      both.insert(both.end(), scene.b_, scene.b_ + 500);
      return both;
    }());
    const auto plain = run([](Scene&) {});
    EXPECT_EQ(run([](Scene&) {}), plain);
    const auto other = run([](Scene& scene) { scene.b_[100] ^= 1; });
    const bool reads = first_of(other) != first_of(plain);
    const bool writes = second_of(plain) != before;
    EXPECT_TRUE(reads || writes);
    only_read += reads && !writes;
    only_written += !reads && writes;
    updated += reads && writes;
    if (!reads) {
      EXPECT_EQ(other, plain) << "what is not read does not matter";
    }
  }
  EXPECT_GT(only_read, 80);
  EXPECT_GT(only_written, 10);
  EXPECT_GT(updated, 10);
}

TEST(Hashing, PointerBehindTheLastByteNamesTheTensor) {
  Scene behind;
  behind.inside_ = 1000;
  const auto first = behind.run();
  Scene again(256);
  again.inside_ = 1000;
  EXPECT_EQ(again.run(), first);
}

TEST(Hashing, StreamHasNoRepetition) {
  std::vector<uint64_t> words(4096);
  fill_content(words.data(), words.size() * 8 - 3, 42);
  EXPECT_EQ(reinterpret_cast<uint8_t*>(words.data())[words.size() * 8 - 1], 0);
  std::sort(words.begin(), words.end());
  EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
}

TEST(Hashing, UnknownLayoutIsScannedAsAWhole) {
  std::vector<uint64_t> tensor(16);
  Memory memory;
  memory.add(tensor.data(), 128);
  KernelImage kernel;
  kernel.name = "unknown";
  const uint64_t blob[2] = {7, reinterpret_cast<uint64_t>(tensor.data())};
  run_kernel(kernel, blob, sizeof blob, memory);
  for (const uint64_t word : tensor) EXPECT_NE(word, 0u);
}

// A tensor of 256 bytes, of which some are written, and a kernel that takes it and what else the blob holds.
std::vector<uint8_t> run_on_tensor(const KernelImage& kernel, std::vector<uint64_t> blob, uint8_t garbage,
                                   uint64_t written_from, uint64_t written_to) {
  std::vector<uint8_t> tensor(256, garbage);
  for (uint64_t i = written_from; i < written_to; ++i) tensor[i] = static_cast<uint8_t>(i);
  Memory memory;
  memory.add(tensor.data(), tensor.size(), false).mark(written_from, written_to);
  blob[0] = reinterpret_cast<uint64_t>(tensor.data());
  run_kernel(kernel, blob.data(), static_cast<uint32_t>(blob.size() * 8), memory);
  EXPECT_TRUE(memory.tensors.begin()->second.written->complete()) << "a kernel writes all of its operands";
  return tensor;
}

KernelImage kernel_of(const char* name, std::vector<images::ParameterImage> parameters) {
  KernelImage kernel;
  kernel.name = name;
  kernel.parameters = std::move(parameters);
  kernel.parameters_known = true;
  return kernel;
}

TEST(Hashing, WhatNothingWroteIsNoInput) {
  const KernelImage kernel = kernel_of("kernel", {{0, 8}});
  const auto expected = run_on_tensor(kernel, {0}, 0xcb, 64, 192);
  EXPECT_EQ(run_on_tensor(kernel, {0}, 0x11, 64, 192), expected);
  EXPECT_NE(run_on_tensor(kernel, {0}, 0xcb, 64, 193), expected) << "where it was written counts";
  EXPECT_NE(run_on_tensor(kernel, {0}, 0xcb, 0, 0), expected);
  EXPECT_EQ(run_on_tensor(kernel, {0}, 0xcb, 0, 0), run_on_tensor(kernel, {0}, 0x11, 0, 0));
  EXPECT_NE(run_on_tensor(kernel, {0}, 0xcb, 0, 256), run_on_tensor(kernel, {0}, 0xcb, 0, 255));
}

TEST(Hashing, OfAScalarItsOwnBytesCount) {
  const KernelImage kernel = kernel_of("_Z6kernelPfid", {{0, 8}, {8, 4}, {16, 8}});
  const auto expected = run_on_tensor(kernel, {0, 5, 7}, 0, 0, 256);
  EXPECT_EQ(run_on_tensor(kernel, {0, 5 | uint64_t{0xdead} << 32, 7}, 0, 0, 256), expected);
  EXPECT_NE(run_on_tensor(kernel, {0, 6, 7}, 0, 0, 256), expected);
  EXPECT_NE(run_on_tensor(kernel, {0, 5, 8}, 0, 0, 256), expected);
}

TEST(Hashing, OfAnUnknownStructureOnlyAddressesCount) {
  const KernelImage kernel = kernel_of("_Z6kernelPf6Unseen", {{0, 8}, {8, 24}});
  const auto expected = run_on_tensor(kernel, {0, 1, 2, 3}, 0, 0, 256);
  EXPECT_EQ(run_on_tensor(kernel, {0, 4, 5, 6}, 0, 0, 256), expected);
  std::vector<uint8_t> other(64, 1);
  const auto with_other = [&](uint8_t content) {
    std::vector<uint8_t> tensor(256);
    std::fill(other.begin(), other.end(), content);
    Memory memory;
    memory.add(tensor.data(), tensor.size());
    memory.add(other.data(), other.size());
    const uint64_t blob[] = {reinterpret_cast<uint64_t>(tensor.data()), 1, reinterpret_cast<uint64_t>(other.data()), 3};
    run_kernel(kernel, blob, sizeof blob, memory);
    return tensor;
  };
  EXPECT_EQ(with_other(1), with_other(1));
  EXPECT_NE(with_other(1), with_other(2));
}

TEST(ParameterKinds, TypesOfAMangledName) {
  using Types = std::vector<std::string>;
  EXPECT_EQ(parameter_types("plain"), Types{});
  EXPECT_EQ(parameter_types("_Z1kv"), Types{});
  EXPECT_EQ(parameter_types("_Z1kPKfiS0_d"), (Types{"float const*", "int", "float const*", "double"}));
  EXPECT_EQ(parameter_types(
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_"),
            (Types{"int", "at::native::FillFunctor<float>", "std::array<char*, 1ul>"}));
}

// The sizes that PyTorch's binaries report for these types.
TEST(ParameterKinds, WhatIsSureToBeSet) {
  const auto set = [](const char* name, std::vector<uint32_t> sizes) {
    KernelImage kernel;
    kernel.name = name;
    uint32_t offset = 0;
    for (const uint32_t bytes : sizes) {
      kernel.parameters.push_back({offset, bytes});
      offset += (bytes + 7) / 8 * 8;
    }
    std::vector<std::pair<uint32_t, uint32_t>> found;
    for (const SetBytes& one : set_bytes(kernel)) found.emplace_back(one.first, one.last);
    return found;
  };
  using Found = std::vector<std::pair<uint32_t, uint32_t>>;
  EXPECT_EQ(set("triton_kernel", {8, 4, 12}), (Found{{0, 8}, {0, 4}, {0, 0}}));
  EXPECT_EQ(set("_Z1kifx", {4, 4, 8}), (Found{{0, 4}, {0, 4}, {0, 8}}));
  EXPECT_EQ(set("_Z1kN2at15PhiloxCudaStateE", {32}), (Found{{0, 25}}));
  EXPECT_EQ(set("_Z1kN2at15PhiloxCudaStateE", {40}), (Found{{0, 0}})) << "another layout";
  EXPECT_EQ(set("_Z1kN2at6native13AUnaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEE", {8}), (Found{{4, 8}}));
  EXPECT_EQ(set("_Z1ki", {4, 4}), (Found{{0, 0}, {0, 0}})) << "a name that does not fit the image";
}

}  // namespace
}  // namespace reprise::sim
