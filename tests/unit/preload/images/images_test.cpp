// What the image parser finds in what nvcc writes, and that damaged images are refused and never read beyond their end.
#include <elf.h>
#include <zstd.h>

#include <random>

#include "preload/images/code.h"
#include "preload/images/mapped_file.h"
#include "preload/images/parsers.h"
#include "tests/support/test.h"

namespace reprise::images {
namespace {

constexpr uint32_t kDevice = 90;

std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<char> read_bytes(const std::string& name) { return read_file(std::string(IMAGES_FOLDER) + "/" + name); }

const KernelImage* find_kernel(const Image& image, const std::string& name) {
  const auto found = std::find_if(image.kernels.begin(), image.kernels.end(),
                                  [&](const KernelImage& kernel) { return kernel.name == name; });
  return found == image.kernels.end() ? nullptr : &*found;
}

const GlobalImage* find_global(const Image& image, const std::string& name) {
  const auto found = std::find_if(image.globals.begin(), image.globals.end(),
                                  [&](const GlobalImage& global) { return global.name == name; });
  return found == image.globals.end() ? nullptr : &*found;
}

using Layout = std::vector<std::pair<uint32_t, uint32_t>>;

// Offsets relative to the first parameter.
Layout layout(const KernelImage& kernel) {
  Layout result;
  for (const auto& parameter : kernel.parameters) {
    result.emplace_back(parameter.offset - kernel.parameters[0].offset, parameter.bytes);
  }
  return result;
}

// Of a template's kernel a relocatable cubin does not say which shared memory is its own.
void expect_kernels_cu(const Image& image, uint32_t shared_bytes = 256) {
  EXPECT_EQ(image.kernels.size(), 3u);
  const auto* add = find_kernel(image, "_ZN6nested3addIfEEvPKT_PS1_i5Large");
  ASSERT_NE(add, nullptr);
  EXPECT_TRUE(add->parameters_known);
  EXPECT_EQ(layout(*add), (Layout{{0, 8}, {8, 8}, {16, 4}, {24, 328}}));
  EXPECT_EQ(add->static_shared_bytes, shared_bytes);
  EXPECT_EQ(add->max_threads, 256u);
  const auto* mixed = find_kernel(image, "mixed");
  ASSERT_NE(mixed, nullptr);
  EXPECT_EQ(layout(*mixed), (Layout{{0, 1}, {2, 2}, {8, 8}, {16, 8}}));
  EXPECT_EQ(mixed->static_shared_bytes, 0u);
  EXPECT_EQ(mixed->max_threads, 1024u);
  const auto* none = find_kernel(image, "none");
  ASSERT_NE(none, nullptr);
  EXPECT_TRUE(none->parameters_known);
  EXPECT_TRUE(none->parameters.empty());

  EXPECT_EQ(image.globals.size(), 3u);
  const auto* table = find_global(image, "table");
  ASSERT_NE(table, nullptr);
  EXPECT_TRUE(table->constant);
  const float expected[4] = {1, 2, 3, 4};
  ASSERT_EQ(table->initial.size(), sizeof expected);
  EXPECT_EQ(std::memcmp(table->initial.data(), expected, sizeof expected), 0);
  const auto* counter = find_global(image, "counter");
  ASSERT_NE(counter, nullptr);
  EXPECT_FALSE(counter->constant);
  EXPECT_EQ(counter->initial, (std::vector<uint8_t>{7, 0, 0, 0}));
  const auto* zeros = find_global(image, "zeros");
  ASSERT_NE(zeros, nullptr);
  EXPECT_EQ(zeros->bytes, 400u);
  EXPECT_TRUE(zeros->initial.empty());
}

class EveryImage : public testing::TestWithParam<const char*> {};

TEST_P(EveryImage, SaysWhatTheSourceSays) {
  auto bytes = read_bytes(GetParam());
  bytes.push_back(0);  // PTX text ends in a zero byte
  const auto image = good(parse_image(bytes.data(), kDevice));
  expect_kernels_cu(image);
  EXPECT_TRUE(holds_variables(image));
  bytes.pop_back();
  const auto of_file = good(parse_image(std::string(bytes.begin(), bytes.end()), kDevice));
  expect_kernels_cu(of_file);
}

INSTANTIATE_TEST_SUITE_P(Images, EveryImage,
                         testing::Values("sm_90.cubin", "sm_75.cubin", "sm_120.cubin", "zstd.fatbin", "plain.fatbin",
                                         "ptx_only.fatbin", "text.ptx", "linked.cubin"));

TEST(Images, RelocatableCubins) {
  for (const char* file : {"relocatable.cubin", "relocatable.fatbin"}) {
    const auto bytes = read_bytes(file);
    const auto image = good(parse_image(bytes.data(), kDevice));
    expect_kernels_cu(image, 0);
    EXPECT_TRUE(holds_variables(image));
  }
}

// Memory without a content has no bytes in the file; the section that follows begins where it does.
TEST(Images, ARelocatableCubinMayEndWhereItsMemoryBegins) {
  auto bytes = read_bytes("relocatable.cubin");
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  size_t changed = 0;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto at = bytes.begin() + static_cast<long>(header.e_shoff + i * sizeof(Elf64_Shdr));
    Elf64_Shdr section;
    std::copy_n(at, sizeof section, reinterpret_cast<char*>(&section));
    if (section.sh_type != SHT_LOPROC + 0x7 && section.sh_type != SHT_LOPROC + 0xa) continue;
    section.sh_offset = bytes.size();
    std::copy_n(reinterpret_cast<const char*>(&section), sizeof section, at);
    ++changed;
  }
  EXPECT_EQ(changed, 2u) << "variables and shared memory";
  EXPECT_EQ(elf_extent(bytes.data()), bytes.size());
  const auto image = good(parse_cubin(Bytes(bytes.data(), bytes.size())));
  expect_kernels_cu(image, 0);
}

TEST(Images, ParametersOfMoreThan16KiB) {
  const auto bytes = read_bytes("large.cubin");
  const auto image = good(parse_image(std::string(bytes.begin(), bytes.end()), kDevice));
  const auto* large = find_kernel(image, "large");
  ASSERT_NE(large, nullptr);
  EXPECT_TRUE(large->parameters_known);
  EXPECT_EQ(layout(*large), (Layout{{0, 18160}, {18160, 8}, {18168, 4}}));
}

// An attribute of this number is none that the parser knows: the layout has a gap then.
TEST(Images, ParametersThatAreDescribedInAnotherWayAreNotKnown) {
  auto bytes = read_bytes("large.cubin");
  const uint8_t described[] = {0x04, 0x45, 0x0c, 0x00};
  const auto last = std::find_end(bytes.begin(), bytes.end(), std::begin(described), std::end(described));
  const auto first = std::search(bytes.begin(), bytes.end(), std::begin(described), std::end(described));
  ASSERT_NE(first, bytes.end());
  for (const auto at : {first, last}) {
    auto changed = bytes;
    changed[static_cast<size_t>(at - bytes.begin()) + 1] = 0x7e;
    const auto image = good(parse_image(std::string(changed.begin(), changed.end()), kDevice));
    EXPECT_FALSE(find_kernel(image, "large")->parameters_known);
  }
  for (auto at = bytes.begin();
       (at = std::search(at, bytes.end(), std::begin(described), std::end(described))) != bytes.end();)
    at[1] = 0x7e;
  const auto image = good(parse_image(std::string(bytes.begin(), bytes.end()), kDevice));
  EXPECT_FALSE(find_kernel(image, "large")->parameters_known) << "no parameters at all, where there is room for some";
}

// Where the size of a parameter has a word of its own, its upper half holds flags: 0x05000008 for 8 bytes.
TEST(Images, SizesOfParametersAreTheLowerHalfOfTheirWord) {
  auto bytes = read_bytes("large.cubin");
  const uint8_t described[] = {0x04, 0x45, 0x0c, 0x00};
  uint32_t changed = 0;
  for (auto at = bytes.begin();
       (at = std::search(at, bytes.end(), std::begin(described), std::end(described))) != bytes.end(); ++at) {
    at[4 + 11] = 0x05;
    at[4 + 10] = static_cast<char>(++changed);
  }
  ASSERT_EQ(changed, 3u);
  const auto image = good(parse_image(std::string(bytes.begin(), bytes.end()), kDevice));
  const auto* large = find_kernel(image, "large");
  ASSERT_NE(large, nullptr);
  EXPECT_TRUE(large->parameters_known);
  EXPECT_EQ(layout(*large), (Layout{{0, 18160}, {18160, 8}, {18168, 4}}));
}

TEST(Images, ParametersBeyondTheirSpaceAreNotKnown) {
  auto bytes = read_bytes("large.cubin");
  const uint8_t described[] = {0x04, 0x45, 0x0c, 0x00};
  const auto at = std::search(bytes.begin(), bytes.end(), std::begin(described), std::end(described));
  ASSERT_NE(at, bytes.end());
  at[4 + 9] = 0x7f;
  const auto image = good(parse_image(std::string(bytes.begin(), bytes.end()), kDevice));
  EXPECT_FALSE(find_kernel(image, "large")->parameters_known);
}

// The kernel's parameter has as many bytes as the number of the architecture that it was compiled for.
std::string entry_for(const std::string& file, uint32_t device) {
  const auto bytes = read_bytes(file);
  const auto image = parse_image(std::string(bytes.begin(), bytes.end()), device);
  if (!image.ok()) return image.status().code() == StatusCode::unsupported ? "none" : image.status().message();
  std::string found;
  for (const auto& kernel : image.value().kernels) found += std::to_string(kernel.parameters.at(0).bytes);
  return found;
}

TEST(Images, TheEntryForTheDevice) {
  // sm_80, sm_86, sm_90, sm_100; PTX of compute_75 and compute_100
  const std::pair<uint32_t, const char*> expected[] = {
      {70, "none"}, {75, "75"},   {80, "80"},   {86, "86"},   {89, "86"},
      {90, "90"},   {100, "100"}, {103, "100"}, {120, "100"}, {kAnyArchitecture, "100"}};
  for (const auto& [device, entry] : expected) EXPECT_EQ(entry_for("several.fatbin", device), entry) << device;
}

TEST(Images, EntriesForOneArchitectureAloneAreForNoOther) {
  // sm_90a, sm_100a and PTX of compute_90a
  const std::pair<uint32_t, const char*> expected[] = {{89, "none"},  {90, "90"},    {100, "100"},
                                                       {103, "none"}, {120, "none"}, {kAnyArchitecture, "100"}};
  for (const auto& [device, entry] : expected) EXPECT_EQ(entry_for("exact.fatbin", device), entry) << device;
}

TEST(Images, WrapperOfAProgram) {
  const auto bytes = read_bytes("zstd.fatbin");
  const struct {
    uint32_t magic = kFatbinWrapperMagic, version = 1;
    const void* data;
    const void* prelinked = nullptr;
  } wrapper{.data = bytes.data()};
  const auto image = good(parse_image(&wrapper, kDevice));
  expect_kernels_cu(image);
}

TEST(Images, WrapperWithPrelinkedParts) {
  const auto first = read_bytes("zstd.fatbin");
  auto text = read_bytes("text.ptx");
  text.push_back(0);
  const void* parts[] = {text.data(), nullptr};
  const struct {
    uint32_t magic = kFatbinWrapperMagic, version = 2;
    const void* data;
    const void* const* prelinked;
  } wrapper{.data = first.data(), .prelinked = parts};
  const auto image = good(parse_image(&wrapper, kDevice));
  expect_kernels_cu(image);  // what both have is there once
}

// A one-entry fatbin around PTX that LZ4 packed, as CUDA 12 and before wrote it.
TEST(Images, Lz4Entry) {
  const auto bytes = read_bytes("lz4.fatbin");
  const auto image = good(parse_fatbin(Bytes(bytes.data(), bytes.size()), kDevice));
  expect_kernels_cu(image);
}

TEST(Images, RefusesWhatIsNoImage) {
  EXPECT_FALSE(parse_image(nullptr, kDevice).ok());
  EXPECT_FALSE(parse_image("", kDevice).ok());
  EXPECT_FALSE(parse_image("x", kDevice).ok());
  EXPECT_FALSE(parse_image("hello, world", kDevice).ok());
  for (const char* content : {"", "x", "hello, world", "\x50\xed\x55\xba", "\x7f\x45\x4c\x46"}) {
    EXPECT_FALSE(parse_image(std::string(content), kDevice).ok());
  }
  const struct {
    uint32_t magic = kFatbinWrapperMagic, version = 1;
    const void* data = "";
    const void* prelinked = nullptr;
  } wrapper;  // in a file its pointers would mean nothing
  EXPECT_FALSE(parse_image(std::string(reinterpret_cast<const char*>(&wrapper), sizeof wrapper), kDevice).ok());
  const auto self = read_file(HOST_ELF);  // an ELF file, but for this machine
  EXPECT_EQ(parse_cubin(Bytes(self.data(), self.size())).status().code(), StatusCode::unsupported);
}

TEST(Images, KernelsThatPrint) {
  for (const char* name : {"printing.cubin", "printing.ptx"}) {
    const auto bytes = read_bytes(name);
    const auto image = good(parse_image(std::string(bytes.begin(), bytes.end()), kDevice));
    EXPECT_TRUE(image.prints) << name;
    EXPECT_FALSE(holds_variables(image)) << name;
    Image merged;
    merge_image(merged, image);
    EXPECT_TRUE(merged.prints);
  }
  for (const char* name : {"sm_90.cubin", "text.ptx"}) {
    const auto bytes = read_bytes(name);
    EXPECT_FALSE(parse_image(std::string(bytes.begin(), bytes.end()), kDevice).value().prints) << name;
  }
}

// Every copy lies in memory of its exact size, so that a sanitizer sees any byte read beyond it.
Result<Image> parse_exact(const std::string& kind, const char* data, size_t size) {
  const auto copy = std::make_unique<char[]>(size);
  std::memcpy(copy.get(), data, size);
  if (kind == "cubin") return parse_cubin(Bytes(copy.get(), size));
  if (kind == "fatbin") return parse_fatbin(Bytes(copy.get(), size), kDevice);
  return parse_ptx(std::string_view(copy.get(), size));
}

class Damaged : public testing::TestWithParam<const char*> {
 protected:
  std::string kind() const {
    const std::string name = GetParam();
    return name.substr(name.rfind('.') + 1);
  }
};

TEST_P(Damaged, TruncatedAnywhere) {
  const auto bytes = read_bytes(GetParam());
  size_t refused = 0;
  for (size_t size = 0; size < bytes.size(); size += size < 256 ? 1 : 37) {
    if (!parse_exact(kind(), bytes.data(), size).ok()) ++refused;
  }
  EXPECT_GT(refused, 0u);
  if (kind() == "fatbin") {
    EXPECT_FALSE(parse_exact(kind(), bytes.data(), bytes.size() - 1).ok());
  }
}

TEST_P(Damaged, AnyByteChanged) {
  const auto bytes = read_bytes(GetParam());
  uint32_t random = 1;
  for (size_t at = 0; at < bytes.size(); at += at < 512 ? 1 : 11) {
    auto copy = bytes;
    random = random * 1664525 + 1013904223;
    copy[at] = static_cast<char>(copy[at] ^ static_cast<char>((random >> 24) | 1));
    const auto image = parse_exact(kind(), copy.data(), copy.size());
    if (!image.ok()) {
      EXPECT_FALSE(image.status().message().empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Images, Damaged,
                         testing::Values("sm_90.cubin", "zstd.fatbin", "lz4.fatbin", "plain.fatbin", "text.ptx"));

TEST(Images, VariablesAreWhatKernelsCanWrite) {
  const auto holds = [](const std::string& variable) {
    const auto image =
        parse_ptx(".version 9.0\n.target sm_90\n.address_size 64\n" + variable + ".entry k() { ret; }\n");
    EXPECT_TRUE(image.ok()) << image.status().message();
    return holds_variables(image.value());
  };
  EXPECT_FALSE(holds(""));
  EXPECT_FALSE(holds(".const .align 4 .b32 constant = 1;\n"));
  EXPECT_FALSE(holds(".global .align 1 .b8 $str[3] = {37, 100, 0};\n.global .align 1 .b8 __unnamed_1[2] = {65, 0};\n"));
  EXPECT_FALSE(holds(".global .align 1 .b8 _ZN2_x4cuda3std3__45__cpo5beginE[1];\n.global .b8 _ZN6thrust3seqE[1];\n"));
  EXPECT_FALSE(holds(".global .b8 _ZN2_x4cuda3std6ranges3__45__cpo3endE[1];\n.global .b8 _ZN2_x4cute2_1E[1];\n"));
  EXPECT_FALSE(holds(".global .b8 _ZN2_x4cuda9execution3__411determinism10run_to_runE[1];\n"));
  EXPECT_FALSE(holds(".global .align 4 .b32 __cudart_i2opi_f[2] = {1, 2};\n"));
  EXPECT_FALSE(holds(".global .align 4 .b32 mrg32k3aM1[2] = {1, 2};\n"));
  EXPECT_TRUE(holds(".global .align 4 .b32 __cudart_i2opi_f[2];\n")) << "a table has a content";
  EXPECT_TRUE(holds(".global .align 4 .b32 my_mrg32k3aM1[2] = {1, 2};\n"));
  EXPECT_TRUE(holds(".global .align 1 .b8 _ZN2_x4cuda3std3__45__cpo5beginE[2];\n"));
  EXPECT_TRUE(holds(".global .align 1 .b8 _ZN2at4cuda4flagE[1];\n")) << "PyTorch's own namespace";
  EXPECT_TRUE(holds(".global .align 1 .b8 flag[1];\n"));
  EXPECT_TRUE(holds(".global .align 4 .u32 counter;\n"));
  EXPECT_TRUE(holds(".const .align 4 .b32 constant = 1;\n.visible .global .align 4 .b32 table[100];\n"));
}

// Bytes of the initial values and names that an image was read into.
uint64_t bytes_held(const Image& image) {
  uint64_t bytes = 0;
  for (const GlobalImage& global : image.globals) bytes += global.name.size() + global.initial.size();
  for (const KernelImage& kernel : image.kernels) bytes += kernel.name.size();
  return bytes;
}

TEST(Ptx, AVariableTakesNoMoreMemoryThanItsText) {
  const std::string text = ".version 9.0\n.global .u8 large[2147483648] = {1};\n.global .u8 less[1] = {1, 2};\n";
  const auto image = good(parse_ptx(text));
  EXPECT_EQ(find_global(image, "large")->bytes, uint64_t{1} << 31);
  EXPECT_LT(bytes_held(image), text.size());
  EXPECT_EQ(find_global(image, "less")->initial.size(), 1u);
}

template <typename T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A cubin with one section of names, one of data, and as many symbols as asked for, each of the whole data.
std::string cubin_of_symbols(const std::string& names, uint64_t data_bytes, const std::vector<Elf64_Sym>& symbols) {
  constexpr uint64_t kSections = 4;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = 190;
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  header.e_shstrndx = 1;
  uint64_t at = sizeof header + kSections * sizeof(Elf64_Shdr);
  const auto section = [&at](uint32_t name, uint32_t type, uint64_t size, uint32_t link) {
    Elf64_Shdr one{};
    one.sh_name = name;
    one.sh_type = type;
    one.sh_offset = at;
    one.sh_size = size;
    one.sh_link = link;
    at += size;
    return one;
  };
  std::string bytes;
  append(bytes, header);
  append(bytes, Elf64_Shdr{});
  append(bytes, section(0, SHT_STRTAB, names.size(), 0));
  append(bytes, section(1, SHT_PROGBITS, data_bytes, 0));
  append(bytes, section(0, SHT_SYMTAB, symbols.size() * sizeof(Elf64_Sym), 1));
  bytes += names + std::string(data_bytes, 'd');
  for (const Elf64_Sym& symbol : symbols) append(bytes, symbol);
  return bytes;
}

// Every symbol begins one byte further in the same long name.
TEST(Cubin, SymbolsThatShareTheirBytesDoNotMultiplyThem) {
  constexpr uint64_t kBytes = 1 << 16;
  constexpr char kNames[] = "\0.nv.global.init";  // of sections, each with a zero behind it
  std::string names(kNames, sizeof kNames);
  const auto first = static_cast<uint32_t>(names.size());
  names += std::string(kBytes, 'n') + std::string(1, '\0');
  for (const unsigned char type : {STT_OBJECT, STT_FUNC}) {
    std::vector<Elf64_Sym> symbols;
    for (uint32_t i = 0; i < 3000; ++i) {
      Elf64_Sym symbol{};
      symbol.st_name = first + i;
      symbol.st_info = type;
      symbol.st_other = 0x10;
      symbol.st_shndx = 2;
      symbol.st_size = kBytes;
      symbols.push_back(symbol);
    }
    const std::string bytes = cubin_of_symbols(names, kBytes, symbols);
    const auto image = parse_cubin(Bytes(bytes.data(), bytes.size()));
    EXPECT_FALSE(image.ok()) << "holds " << bytes_held(image.value()) << " of " << bytes.size() << " bytes";
    symbols.resize(1);
    const std::string one = cubin_of_symbols(names, kBytes, symbols);
    EXPECT_TRUE(parse_cubin(Bytes(one.data(), one.size())).ok()) << "a symbol may have a long name";
  }
}

// Both formats unpack runs of one byte from next to nothing.
TEST(Fatbin, WhatUnpacksToFarMoreThanItsFileIsRefused) {
  const auto fatbin_of = [](uint64_t zeros) {
    std::string text = ".version 9.0\n.entry k() { ret; }\n//";
    text.resize(zeros, 'z');
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
    std::string bytes;
    append(bytes, uint32_t{kFatbinMagic});
    append(bytes, uint16_t{1});
    append(bytes, uint16_t{16});
    append(bytes, uint64_t{64 + packed.size()});
    const uint32_t entry[16] = {1u << 16 | 1,
                                64,
                                static_cast<uint32_t>(packed.size()),
                                0,
                                static_cast<uint32_t>(packed.size()),
                                0,
                                0,
                                90,
                                0,
                                0,
                                0x8000,
                                0,
                                0,
                                0,
                                static_cast<uint32_t>(text.size()),
                                0};
    append(bytes, entry);
    return bytes + packed;
  };
  const std::string modest = fatbin_of(8 << 20);
  EXPECT_EQ(good(parse_fatbin(Bytes(modest.data(), modest.size()), kDevice)).kernels.size(), 1u);
  const std::string bomb = fatbin_of(300 << 20);
  EXPECT_LT(bomb.size(), 100u << 10);
  EXPECT_FALSE(parse_fatbin(Bytes(bomb.data(), bomb.size()), kDevice).ok());
}

TEST(Ptx, InitialValuesAndForeignVariables) {
  const auto image =
      good(parse_ptx(".version 9.0\n.target sm_90\n.address_size 64\n"
                     ".extern .global .align 4 .b32 elsewhere;\n"
                     ".visible .global .align 8 .f64 pi = 0d400921FB54442D18;\n"
                     ".global .f32 pair[2] = {0f3F800000, 0f40000000};\n"
                     ".global .s32 minus = -2; /* a comment { */\n"
                     ".global .align 1 .b8 text[] = {65, 66, 0};\n"
                     ".func (.param .b32 r) helper(.param .b64 x) { .reg .b32 a; { .global .u32 inside; ret; } }\n"
                     ".weak .entry k(.param .u64 .ptr .global .align 4 k_param_0, .param .align 16 .b8 k_param_1[32])\n"
                     ".maxntid 8, 4, 1 .minnctapersm 2 { ret; }\n"));
  const Image& parsed = image;
  EXPECT_EQ(find_global(parsed, "elsewhere"), nullptr);
  EXPECT_EQ(find_global(parsed, "inside"), nullptr);
  double pi;
  ASSERT_NE(find_global(parsed, "pi"), nullptr);
  ASSERT_EQ(find_global(parsed, "pi")->initial.size(), 8u);
  std::memcpy(&pi, find_global(parsed, "pi")->initial.data(), 8);
  EXPECT_DOUBLE_EQ(pi, 3.141592653589793);
  ASSERT_NE(find_global(parsed, "pair"), nullptr);
  EXPECT_EQ(find_global(parsed, "pair")->initial, (std::vector<uint8_t>{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}));
  EXPECT_EQ(find_global(parsed, "minus")->initial, (std::vector<uint8_t>{0xfe, 0xff, 0xff, 0xff}));
  EXPECT_EQ(find_global(parsed, "text")->bytes, 3u);
  ASSERT_EQ(parsed.kernels.size(), 1u);
  EXPECT_EQ(layout(parsed.kernels[0]), (Layout{{0, 8}, {16, 32}}));
  EXPECT_EQ(parsed.kernels[0].max_threads, 32u);
}

TEST(BytesOf, AnImageAreThoseThatItsHeadersName) {
  for (const char* name : {"sm_90.cubin", "zstd.fatbin", "plain.fatbin"}) {
    std::vector<char> bytes = read_bytes(name);
    const size_t whole = bytes.size();
    bytes.resize(whole + 64, 'x');  // what stands behind it in memory is not its own
    const std::string_view found = bytes_of(bytes.data());
    EXPECT_EQ(found.data(), bytes.data()) << name;
    EXPECT_LE(found.size(), whole) << name;
    EXPECT_EQ(good(parse_image(std::string(found), kDevice)).content, good(parse_image(bytes.data(), kDevice)).content);
  }
  EXPECT_TRUE(bytes_of(read_bytes("text.ptx").data()).empty());
  EXPECT_TRUE(bytes_of("a").empty());
}

std::vector<std::string> cubins_in(const std::string& name, uint32_t architecture, Status* status) {
  const std::vector<char> bytes = read_bytes(name);
  std::vector<std::string> found;
  *status = each_cubin({bytes.begin(), bytes.end()}, architecture, [&](const std::string& cubin) {
    found.push_back(cubin);
    return Status{};
  });
  return found;
}

TEST(EachCubin, OfAProgramIsFoundInAnyOfItsFatbins) {
  Status status;
  const std::vector<std::string> found = cubins_in("programs/both.elf", 90, &status);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(found.size(), 2u);
  expect_kernels_cu(good(parse_image(found[0], 90)));
  EXPECT_TRUE(good(parse_image(found[1], 90)).prints);
  EXPECT_EQ(cubins_in("programs/both.elf", 80, &status).size(), 1u) << "one of the two has nothing for it";
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(cubins_in("programs/both.elf", 75, &status).size(), 0u);
  EXPECT_EQ(status.code(), StatusCode::unsupported);
  EXPECT_EQ(cubins_in("zstd.fatbin", 90, &status), cubins_in("plain.fatbin", 90, &status));
}

// Whatever stands in the section: no byte behind it is read, and what is whole is found.
TEST(EachCubin, DamagedProgramsAreReadNoFurtherThanTheyGo) {
  const std::vector<char> whole = read_bytes("programs/both.elf");
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<char> bytes = whole;
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    for (int i = 0; i < 4 && !bytes.empty(); ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    static_cast<void>(each_cubin({bytes.begin(), bytes.end()}, 90, [](const std::string&) { return Status{}; }));
  }
  std::string cut(whole.begin(), whole.end());
  cut.resize(cut.size() / 2);
  EXPECT_FALSE(each_cubin(cut, 90, [](const std::string&) { return Status{}; }).ok());
}

TEST(FileOf, AnImageIsThatWhichItWasMappedFrom) {
  static const char kInHere[] = "bytes of this program";
  const MappedFile here = file_of(kInHere);
  ASSERT_TRUE(here.found);
  const std::vector<char> program = read_file(here.path);
  ASSERT_LE(here.offset + sizeof kInHere, program.size());
  EXPECT_STREQ(program.data() + here.offset, kInHere);
  const std::string on_heap(1000, 'x');
  EXPECT_FALSE(file_of(on_heap).found);
  EXPECT_FALSE(file_of({}).found);
}

}  // namespace
}  // namespace reprise::images
