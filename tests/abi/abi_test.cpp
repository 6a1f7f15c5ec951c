#include <dlfcn.h>

#include "tests/abi/files.h"

namespace reprise::abi {
namespace {

struct Row {
  std::string row_class;
  std::string touches;
  std::string stream;
  uint32_t outputs;
  std::string base;
  int version;
};

const std::map<std::string, Row>& table() {
  static const auto& rows = *new std::map<std::string, Row>{
#define REPRISE_ROW(symbol, row_class, touches, stream, outputs, waits, base, version) \
  {#symbol, {#row_class, #touches, #stream, outputs, #base, version}},
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
  };
  return rows;
}

std::set<std::string> table_symbols() {
  std::set<std::string> result;
  for (const auto& [symbol, row] : table()) result.insert(symbol);
  return result;
}

std::string missing(const std::set<std::string>& wanted, const std::set<std::string>& there) {
  std::string result;
  for (const std::string& name : wanted) {
    if (there.count(name) == 0) result += name + " ";
  }
  return result;
}

// Not in any libcuda.so.1: Windows' own, and a function that is defined in the header itself.
std::set<std::string> of_linux(std::set<std::string> names) {
  names.erase("cuWGLGetDevice");
  names.erase("cuGetProcAddress_v2_ptsz");
  return names;
}

TEST(Abi, TableKnowsEveryFunctionOfTheHeaders) {
  const std::set<std::string> declared = of_linux(
      declared_functions(REPRISE_CUDA_HEADERS, {"cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h"}));
  ASSERT_GT(declared.size(), 600u);
  EXPECT_EQ(missing(declared, table_symbols()), "") << "add a row to preload/exports/hooks.def";
}

TEST(Abi, TableKnowsEveryFunctionOfTheStub) {
  if (!std::ifstream(REPRISE_DRIVER_STUB).good()) GTEST_SKIP() << "no stub library";
  EXPECT_EQ(missing(exported_symbols(REPRISE_DRIVER_STUB), table_symbols()), "");
}

TEST(Abi, LibraryExportsTheTableAndNothingElse) {
  const std::set<std::string> exported = exported_symbols(REPRISE_LIBRARY);
  std::set<std::string> wanted = table_symbols();
#define REPRISE_LIBRARY_CALL(symbol, ...) wanted.insert(#symbol);
#include "preload/libraries/calls.def"
#undef REPRISE_LIBRARY_CALL
  for (const char* symbol : {"cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasLtCreate",
                             "cublasLtMatmul", "cublasLtMatmulDescDestroy", "cublasLtMatmulDescSetAttribute",
                             "cublasLtMatrixLayoutDestroy", "cublasLtMatrixLayoutSetAttribute"}) {
    wanted.insert(symbol);
  }
  wanted.insert("reprise_mark");
  wanted.insert("reprise_told_memory");
  EXPECT_EQ(missing(wanted, exported), "");
  EXPECT_EQ(missing(exported, wanted), "");
}

TEST(Abi, VersionsAreThoseOfTheTypedefs) {
  std::map<std::pair<std::string, std::string>, std::map<int, int>> forms;  // -> form -> version of the table
  for (const auto& [symbol, row] : table()) {
    const SymbolName name = split(symbol);
    EXPECT_EQ(row.base, name.base) << symbol;
    forms[{name.base, name.suffix}][name.form] = row.version;
  }
  for (const char* header :
       {"cudaTypedefs.h", "cudaGLTypedefs.h", "cudaEGLTypedefs.h", "cudaVDPAUTypedefs.h", "cudaProfilerTypedefs.h"}) {
    for (const auto& [name, versions] : typedef_versions(std::string(REPRISE_CUDA_HEADERS) + "/" + header)) {
      if (name.first == "cuWGLGetDevice") continue;
      std::vector<int> of_table;
      for (const auto& [form, version] : forms[name]) of_table.push_back(version);
      EXPECT_EQ(of_table, std::vector<int>(versions.begin(), versions.end())) << name.first << name.second;
    }
  }
}

// A row's stream is the first parameter of that type; what it writes on the host are pointers to what is not constant.
TEST(Abi, StreamsAndOutputsAreThoseOfTheHeaders) {
  const auto declared =
      declared_parameters(REPRISE_CUDA_HEADERS, {"cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h"});
  size_t compared = 0;
  for (const auto& [symbol, row] : table()) {
    const SymbolName name = split(symbol);
    const auto found = declared.find(symbol.substr(0, symbol.size() - name.suffix.size()));
    if (found == declared.end()) continue;  // the older forms of some names are declared nowhere
    ++compared;
    std::string stream = "no";
    for (size_t i = 0; i < found->second.size(); ++i) {
      const std::string& parameter = found->second[i];
      if (stream == "no" && parameter.rfind("CUstream ", 0) == 0 && parameter.find('*') == std::string::npos) {
        stream = "s" + std::to_string(i);
      }
      if ((row.outputs >> i & 1) == 0) continue;
      EXPECT_NE(parameter.find('*'), std::string::npos) << symbol << ": " << parameter;
      EXPECT_FALSE(has(parameter, "const")) << symbol;
    }
    EXPECT_EQ(row.stream, stream) << symbol;
    EXPECT_EQ(uint64_t{row.outputs} >> found->second.size(), 0u) << symbol;
  }
  EXPECT_GT(compared, 600u);
}

TEST(Abi, AFunctionAndItsPerThreadFormAreOfOneClass) {
  for (const auto& [symbol, row] : table()) {
    const SymbolName name = split(symbol);
    if (name.suffix.empty()) continue;
    const auto plain = table().find(symbol.substr(0, symbol.size() - name.suffix.size()));
    if (plain != table().end()) {
      EXPECT_EQ(plain->second.row_class, row.row_class) << symbol;
      EXPECT_EQ(plain->second.touches, row.touches) << symbol;
      EXPECT_EQ(plain->second.stream, row.stream) << symbol;
      EXPECT_EQ(plain->second.outputs, row.outputs) << symbol;
    }
  }
}

// A new function whose name says that it ends memory or who may reach it is to be ordered, as ends_test tries.
TEST(Abi, WhatEndsMemoryByItsNameIsMarkedSo) {
  const char* const words[] = {"Free",   "Destroy", "Release",  "Unmap",     "Unregister", "Unload",
                               "Reset",  "Trim",    "Close",    "Discard",   "Advise",     "Unbind",
                               "Detach", "MemMap",  "Prefetch", "SetAccess", "Peer"};
  // Objects without memory of their own, graphs that run nothing, a handle whose mappings keep the memory.
  const std::set<std::string> others = {"cuLogsUnregisterCallback",
                                        "cuDeviceUnregisterAsyncNotification",
                                        "cuDeviceCanAccessPeer",
                                        "cuCtxResetPersistingL2Cache",
                                        "cuGraphAddMemFreeNode",
                                        "cuGraphDestroy",
                                        "cuGraphDestroyNode",
                                        "cuGraphMemFreeNodeGetParams",
                                        "cuGraphReleaseUserObject",
                                        "cuUserObjectRelease",
                                        "cuDestroyExternalSemaphore",
                                        "cuMemRelease",
                                        "cuTexRefDestroy",
                                        "cuLinkDestroy",
                                        "cuEventDestroy",
                                        "cuStreamDestroy"};
  for (const auto& [symbol, row] : table()) {
    const auto sounds = [&symbol = symbol](const char* word) { return symbol.find(word) != std::string::npos; };
    if (std::none_of(std::begin(words), std::end(words), sounds) || row.touches != "nothing") continue;
    EXPECT_TRUE(others.count(row.base) > 0 || row.row_class == "refused") << symbol << " touches nothing";
  }
}

TEST(Abi, LibraryStandsForTheDriver) {
  EXPECT_EQ(dynamic_entries(REPRISE_LIBRARY, "SONAME"), std::vector<std::string>{"libcuda.so.1"});
}

class Preloaded : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Libraries, Preloaded, testing::Values(REPRISE_LIBRARY, REPRISE_NVML_LIBRARY));

TEST_P(Preloaded, NeedsNothingButTheCLibrary) {
  const std::set<std::string> allowed = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2",
                                         "ld-linux-x86-64.so.2"};
  const std::vector<std::string> needed = dynamic_entries(GetParam(), "NEEDED");
  EXPECT_EQ(missing({needed.begin(), needed.end()}, allowed), "");
}

// The goal is glibc 2.28, of RHEL 8. A symbol that is newer here stands in preload/older_glibc, or is missing there.
TEST_P(Preloaded, SystemsWithGlibc228HaveWhatItNeeds) {
  const std::map<std::string, std::string> needed = needed_versions(GetParam(), "GLIBC_");
  ASSERT_GT(needed.size(), 5u);
  for (const auto& [symbol, version] : needed) {
    EXPECT_LE(std::stod(version.substr(version.find("2.") + 2)), 28) << symbol << " of glibc " << version;
  }
  for (const char* foreign : {"GLIBCXX_", "CXXABI_", "GCC_"}) {
    EXPECT_TRUE(needed_versions(GetParam(), foreign).empty()) << foreign;
  }
}

// A look-up anywhere else could find our own exports instead of the driver's.
TEST(Abi, OneFileLooksUpSymbols) {
  std::istringstream archives(REPRISE_ARCHIVES);
  std::set<std::string> members;
  for (std::string archive; archives >> archive;) {
    std::string member;
    for (const std::string& line : lines_of("nm --undefined-only '" + archive + "'")) {
      if (!line.empty() && line.back() == ':') member = line;
      for (const char* name : {" dlopen", " dlsym", " dlvsym", " dlmopen"}) {
        const size_t at = line.rfind(name);
        if (at != std::string::npos && at + std::string(name).size() == line.size()) members.insert(member);
      }
    }
  }
  EXPECT_EQ(members, std::set<std::string>{"resolve.cpp.o:"});
}

// Every child process maps the library: loading it must not start anything, nor need a driver.
TEST(Abi, LoadingStartsNothing) {
  setenv("REPRISE_BUDGET", "1GiB", 1);
  const size_t before = lines_of("ls /proc/" + std::to_string(getpid()) + "/task").size();
  void* library = dlopen(REPRISE_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  for (const auto& [symbol, row] : table()) EXPECT_NE(dlsym(library, symbol.c_str()), nullptr) << symbol;
  EXPECT_EQ(lines_of("ls /proc/" + std::to_string(getpid()) + "/task").size(), before);
  EXPECT_EQ(dlclose(library), 0);
}

}  // namespace
}  // namespace reprise::abi
