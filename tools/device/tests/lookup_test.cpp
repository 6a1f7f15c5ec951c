// cuGetProcAddress against cudaTypedefs.h: every name at every version, both default streams.
#include <regex>

#include "tools/device/tests/driver.h"

#undef cuGetProcAddress

namespace reprise::sim_test {
namespace {

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
using GetProcAddressV1 = CUresult (*)(const char*, void**, int, cuuint64_t);

GetProcAddress resolver() { return reinterpret_cast<GetProcAddress>(symbol("cuGetProcAddress_v2")); }

struct Form {
  std::string base;
  int version;
  bool per_thread;
};

std::vector<Form> forms() {
  const std::string text = read_file(SIM_TEST_TYPEDEFS);
  const std::regex pattern(R"(\*PFN_(cu[A-Za-z0-9]+)_v(\d+)(_ptsz|_ptds)?\))");
  std::vector<Form> all;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it) {
    all.push_back({(*it)[1], std::stoi((*it)[2]), (*it)[3].matched});
  }
  return all;
}

// The symbols of a base name, oldest first: base, base_v2, base_v3, ...
std::vector<void*> symbols_of(const std::string& base, bool per_thread) {
  std::vector<void*> found;
  for (int i = 1; i < 9; ++i) {
    const std::string name = i == 1 ? base : base + "_v" + std::to_string(i);
    for (const char* suffix : {"_ptsz", "_ptds", ""}) {
      if ((*suffix == 0) == per_thread) continue;
      if (void* address = control_symbol((name + suffix).c_str()); address != nullptr) found.push_back(address);
    }
  }
  return found;
}

TEST(Lookup, EveryFormIsTheSymbolOfItsPlace) {
  std::map<std::pair<std::string, bool>, std::vector<int>> versions;
  for (const Form& form : forms()) versions[{form.base, form.per_thread}].push_back(form.version);
  ASSERT_GT(versions.size(), 400u);
  for (auto& [name, list] : versions) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    const std::vector<void*> symbols = symbols_of(name.first, name.second);
    ASSERT_GE(symbols.size(), list.size()) << name.first;  // a newer driver may have more
    for (size_t i = 0; i < list.size(); ++i) {
      void* found = nullptr;
      CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
      const cuuint64_t flags =
          name.second ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
      ASSERT_CU(resolver()(name.first.c_str(), &found, list[i], flags, &status));
      EXPECT_EQ(symbols[i], found) << name.first << " " << list[i];
      EXPECT_EQ(CU_GET_PROC_ADDRESS_SUCCESS, status);
    }
  }
}

TEST(Lookup, UnknownNamesAndOldVersionsAreToldApart) {
  void* found = &found;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_CU(resolver()("cuNoSuchThing", &found, 12000, 0, &status));
  EXPECT_EQ(nullptr, found);
  EXPECT_EQ(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, status);
  EXPECT_CU(resolver()("cuMemMap", &found, 9000, 0, &status));
  EXPECT_EQ(nullptr, found);
  EXPECT_EQ(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, status);
  EXPECT_CU(resolver()("", &found, 2000, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, resolver()("cuInit", &found, 99000, 0, nullptr));
}

// cuda.h says of neither what the answer is, and driver 580 reads the name without a look whether there is one.
TEST(Lookup, WithoutANameOrAPlaceThereIsAnError) {
  if (!simulated()) GTEST_SKIP() << "a real driver may follow these pointers";
  void* found = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, resolver()(nullptr, &found, 12000, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, resolver()("cuInit", nullptr, 12000, 0, nullptr));
}

TEST(Lookup, TheFirstFormHasNoStatus) {
  void* found = nullptr;
  const auto old = reinterpret_cast<GetProcAddressV1>(symbol("cuGetProcAddress"));
  EXPECT_CU(old("cuInit", &found, 11030, 0));
  EXPECT_EQ(symbol("cuInit"), found);
  EXPECT_EQ(CUDA_ERROR_NOT_FOUND, old("cuNoSuchThing", &found, 11030, 0));
}

TEST(Lookup, NamesWithoutAPerThreadFormFallBack) {
  void* found = nullptr;
  ASSERT_CU(resolver()("cuMemAlloc", &found, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  EXPECT_EQ(symbol("cuMemAlloc_v2"), found);
}

TEST(Lookup, ErrorsHaveNamesAndTexts) {
  const char* text = nullptr;
  ASSERT_CU(CU(cuGetErrorName)(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  EXPECT_STREQ("CUDA_ERROR_ILLEGAL_ADDRESS", text);
  ASSERT_CU(CU(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ("out of memory", text);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuGetErrorName)(static_cast<CUresult>(12345), &text));
  EXPECT_EQ(nullptr, text);
}

}  // namespace
}  // namespace reprise::sim_test
