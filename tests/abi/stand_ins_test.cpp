// The simulated device's runtime and cuBLAS have every function that CUDA's headers declare: a program that names one
// which is not simulated is told so by the call, not by the loader.
#include <dlfcn.h>

#include <regex>

#include "tests/abi/files.h"

namespace reprise::abi {
namespace {

using Names = std::set<std::string>;

struct StandIn {
  const char* name;
  const char* path;
  const char* linkage;
  std::vector<std::string> headers;
  Names unsupported;  // rows of its entries.def
};

const Names kRuntime = {
#define ENTRY(name) #name,
#include "tools/device/runtime/entries.def"
};
const Names kCupti = {
#include "tools/device/cupti/entries.def"
};
const Names kBlas = {
#include "tools/device/blas/entries.def"
};
const Names kBlasLt = {
#include "tools/device/blas/lt/entries.def"
#undef ENTRY
};

std::vector<StandIn> stand_ins() {
  std::vector<StandIn> all = {
      {"runtime",
       REPRISE_SIM_CUDART,
       "CUDARTAPI",
       {"cuda_runtime_api.h", "cuda_profiler_api.h", "cuda_gl_interop.h", "cuda_egl_interop.h", "cuda_vdpau_interop.h"},
       kRuntime}};
  all.push_back({"cupti",
                 REPRISE_SIM_CUPTI,
                 "CUPTIAPI",
                 {"cupti_activity.h", "cupti_activity_deprecated.h", "cupti_callbacks.h", "cupti_checkpoint.h",
                  "cupti_events.h", "cupti_metrics.h", "cupti_pcsampling.h", "cupti_pmsampling.h",
                  "cupti_profiler_host.h", "cupti_profiler_target.h", "cupti_range_profiler.h", "cupti_result.h",
                  "cupti_sass_metrics.h", "cupti_version.h"},
                 kCupti});
#ifdef REPRISE_SIM_CUBLAS
  const std::vector<std::string> headers = {"cublas_api.h", "cublas.h", "cublasXt.h"};
  all.push_back({"cublas", REPRISE_SIM_CUBLAS, "CUBLASWINAPI", headers, kBlas});
  all.push_back({"cublasLt", REPRISE_SIM_CUBLASLT, "CUBLASWINAPI", {"cublasLt.h"}, kBlasLt});
#endif
  return all;
}

std::string missing(const Names& wanted, const Names& there) {
  std::string result;
  for (const std::string& name : wanted) {
    if (there.count(name) == 0) result += name + " ";
  }
  return result;
}

class StandIns : public testing::TestWithParam<StandIn> {};

Names exported_by(const StandIn& library) {
  Names exported = exported_symbols(library.path);
  std::erase_if(exported, [](const std::string& name) { return name.starts_with("__cuda"); });  // for nvcc's own code
  return exported;
}

TEST_P(StandIns, LibraryExportsEveryFunctionOfTheHeaders) {
  Names declared;
  for (const std::string& header : GetParam().headers) {
    for (const char* folder : {REPRISE_CUDA_HEADERS, REPRISE_CUBLAS_HEADERS}) {
      if (std::ifstream(std::string(folder) + "/" + header).good()) {
        declared.merge(declared_functions(folder, {header}, GetParam().linkage));
      }
    }
  }
  declared.erase("cudaWGLGetDevice");  // Windows' own
  ASSERT_GT(declared.size(), 40u);
  EXPECT_EQ(missing(declared, exported_by(GetParam())), "") << "add a row to entries.def";
}

TEST_P(StandIns, LibraryExportsTheTable) { EXPECT_EQ(missing(GetParam().unsupported, exported_by(GetParam())), ""); }

#ifdef REPRISE_SIM_CUBLAS
// preload/libraries/calls.def against the headers: every address is in the row, and what is const is only read.
struct ForwardedCall {
  const char* symbol;
  size_t words;
  std::set<size_t> read;
  std::set<size_t> written;
  bool handle;
};
constexpr bool handle = true;
constexpr bool nothing = false;
#define REPRISE_SET(...) \
  { __VA_ARGS__ }
#define REPRISE_LIBRARY_CALL(symbol, words, read, written, first) \
  ForwardedCall{#symbol, words, REPRISE_SET read, REPRISE_SET written, first},
const std::vector<ForwardedCall> kForwarded = {
#include "preload/libraries/calls.def"
};
#undef REPRISE_LIBRARY_CALL

TEST(Forwarded, CallsHaveTheAddressesThatTheHeadersDeclare) {
  const auto declared = declared_parameters(REPRISE_CUBLAS_HEADERS, {"cublas_api.h"}, "CUBLASWINAPI");
  ASSERT_GT(kForwarded.size(), 50u);
  for (const ForwardedCall& call : kForwarded) {
    const auto found = declared.find(call.symbol);
    ASSERT_NE(found, declared.end()) << call.symbol;
    EXPECT_EQ(found->second.size(), call.words) << call.symbol;
    EXPECT_EQ(found->second[0].starts_with("cublasHandle_t"), call.handle) << call.symbol;
    std::set<size_t> read;
    std::set<size_t> written;
    for (size_t i = 0; i < found->second.size(); ++i) {
      const std::string& parameter = found->second[i];
      if (has(parameter, "*")) (has(parameter, "const") ? read : written).insert(i);
      EXPECT_FALSE(has(parameter, "**") || has(parameter, "[]") || has(parameter, "float alpha")) << call.symbol;
    }
    EXPECT_EQ(call.read, read) << call.symbol;
    EXPECT_EQ(call.written, written) << call.symbol;
  }
}

TEST(Forwarded, AttributesHaveTheNumbersOfTheHeader) {
  std::ifstream file(std::string(REPRISE_CUBLAS_HEADERS) + "/cublasLt.h");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::pair<std::string, int> rows[] = {
#define REPRISE_PRODUCT_ATTRIBUTE(name, number, kind) {"CUBLASLT_MATMUL_DESC_" #name, number},
#define REPRISE_MATRIX_ATTRIBUTE(name, number, kind) {"CUBLASLT_MATRIX_LAYOUT_" #name, number},
#include "preload/libraries/attributes.def"
#undef REPRISE_PRODUCT_ATTRIBUTE
#undef REPRISE_MATRIX_ATTRIBUTE
  };
  size_t known = 0;  // older headers lack the newest
  for (const auto& [name, number] : rows) {
    const size_t at = text.find(" " + name + " = ");
    if (at == std::string::npos) continue;
    ++known;
    EXPECT_EQ(std::stoi(text.substr(at + name.size() + 4)), number) << name;
  }
  EXPECT_GT(known, 35u);
  // ... and what is named a pointer there is an address here.
  static const std::regex pointers(R"(CUBLASLT_MATMUL_DESC_(\w+_POINTER) = )");
  for (std::sregex_iterator found(text.begin(), text.end(), pointers); found != std::sregex_iterator(); ++found) {
    const std::string name = (*found)[1];
    bool is_address = false;
#define REPRISE_PRODUCT_ATTRIBUTE(row, number, kind) is_address |= name == #row && std::string(#kind) == "address";
#define REPRISE_MATRIX_ATTRIBUTE(row, number, kind)
#include "preload/libraries/attributes.def"
#undef REPRISE_PRODUCT_ATTRIBUTE
#undef REPRISE_MATRIX_ATTRIBUTE
    EXPECT_TRUE(is_address) << name;
  }
}
#endif

INSTANTIATE_TEST_SUITE_P(Libraries, StandIns, testing::ValuesIn(stand_ins()),
                         [](const auto& tested) { return std::string(tested.param.name); });

template <typename Function>
Function* find(const char* library, const char* name) {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(loaded, nullptr) << dlerror();
  return loaded == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(loaded, name));
}

TEST(Errors, OfTheHeaderHaveNamesAndTexts) {
  std::ifstream file(std::string(REPRISE_CUDA_HEADERS) + "/driver_types.h");
  auto* const name_of = find<const char*(int)>(REPRISE_SIM_CUDART, "cudaGetErrorName");
  auto* const text_of = find<const char*(int)>(REPRISE_SIM_CUDART, "cudaGetErrorString");
  ASSERT_TRUE(name_of != nullptr && text_of != nullptr);
  static const std::regex value(R"(^\s*(cudaSuccess|cudaError[A-Z]\w*)\s*=\s*(\d+))");
  const std::string unknown = text_of(-1);
  size_t compared = 0;
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    if (!std::regex_search(line, found, value)) continue;
    ++compared;
    EXPECT_EQ(name_of(std::stoi(found[2])), found[1].str());
    EXPECT_NE(text_of(std::stoi(found[2])), unknown) << found[1];
  }
  EXPECT_GT(compared, 120u);
}

TEST(Unsupported, CuptiSaysSoOnce) {
  constexpr int kNotSupported = 27;
  int (*const subscribe)() = find<int()>(REPRISE_SIM_CUPTI, "cuptiSubscribe");
  int (*const enable)() = find<int()>(REPRISE_SIM_CUPTI, "cuptiActivityEnable");
  auto* const name_of = find<int(int, const char**)>(REPRISE_SIM_CUPTI, "cuptiGetResultString");
  ASSERT_TRUE(subscribe != nullptr && enable != nullptr && name_of != nullptr);
  testing::internal::CaptureStderr();
  EXPECT_EQ(subscribe(), kNotSupported);
  EXPECT_EQ(enable(), kNotSupported);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  const char* name = nullptr;
  EXPECT_EQ(name_of(kNotSupported, &name), 0);
  EXPECT_STREQ(name, "CUPTI_ERROR_NOT_SUPPORTED");
}

TEST(Unsupported, IsAnErrorOfTheRuntimesCall) {
  constexpr int kNotSupported = 801;
  int (*const call)() = find<int()>(REPRISE_SIM_CUDART, "cudaMallocArray");
  int (*const last_error)() = find<int()>(REPRISE_SIM_CUDART, "cudaGetLastError");
  ASSERT_TRUE(call != nullptr && last_error != nullptr);
  testing::internal::CaptureStderr();
  EXPECT_EQ(call(), kNotSupported);
  EXPECT_EQ(last_error(), kNotSupported);
  EXPECT_EQ(last_error(), 0);
  EXPECT_EQ(call(), kNotSupported);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("cudaMallocArray"), said.rfind("cudaMallocArray")) << "once";
  EXPECT_TRUE(has(said, "cudaMallocArray"));
}

#ifdef REPRISE_SIM_CUBLAS
TEST(Unsupported, IsAnErrorOfCublassCall) {
  constexpr int kNotSupported = 15;
  for (const auto& [library, name] : {std::pair(REPRISE_SIM_CUBLAS, "cublasSgetrfBatched"),
                                      std::pair(REPRISE_SIM_CUBLASLT, "cublasLtMatrixTransform")}) {
    int (*const call)() = find<int()>(library, name);
    ASSERT_NE(call, nullptr) << name;
    testing::internal::CaptureStderr();
    EXPECT_EQ(call(), kNotSupported);
    EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), name));
  }
}
#endif

}  // namespace
}  // namespace reprise::abi
