// The error cases that cuda.h documents, as data: call, what is wrong with it, the code it must answer. error_test.cpp
// asks the driver under test; with REPRISE_ERROR_TABLE=<file> it also writes what each answered, one line a row, so
// that the simulated driver and a real one can be compared row by row.
#pragma once

#include "tools/device/tests/driver.h"

namespace reprise::sim_test {

// Good things to combine with one bad thing. Fresh for each row.
struct Good {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;       // void empty()
  CUfunction one_parameter = nullptr;  // void hold(int*)
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;  // kBytes of them
  void* pinned = nullptr;  // kBytes of them
  CUgraph graph = nullptr;
  CUmemoryPool pool = nullptr;
  size_t unit = 0;  // VMM granularity
  CUmemAllocationProp properties = {};
  CUdeviceptr reserved = 0;  // four units, the first one mapped and accessible
  CUmemGenericAllocationHandle chunk = 0;
};
inline constexpr size_t kBytes = 4096;

struct ErrorCase {
  const char* call;
  const char* wrong;
  CUresult expected;
  // Asked of the simulated driver only: a handle that a real one may follow without a look, or what an H100's takes
  // without a word (driver 580) and a program had better not do.
  bool simulated_only;
  std::function<CUresult(Good&)> ask;
};

std::vector<ErrorCase> context_cases();
std::vector<ErrorCase> memory_cases();
std::vector<ErrorCase> stream_cases();
std::vector<ErrorCase> module_cases();
std::vector<ErrorCase> graph_cases();

}  // namespace reprise::sim_test

#define CASE(call, wrong, expected, ...)                                                                       \
  ErrorCase {                                                                                                  \
#call, wrong, expected, false, [](Good& g) -> CUresult { static_cast<void>(g); return CU(call)(__VA_ARGS__); } \
  }
#define CASE_SIM(call, wrong, expected, ...)                                                                  \
  ErrorCase {                                                                                                 \
#call, wrong, expected, true, [](Good& g) -> CUresult { static_cast<void>(g); return CU(call)(__VA_ARGS__); } \
  }
// With statements before the call.
#define CASE_DO(call, wrong, expected, ...)                                                  \
  ErrorCase {                                                                                \
#call, wrong, expected, false, [](Good& g) -> CUresult { static_cast<void>(g); __VA_ARGS__ } \
  }
#define CASE_DO_SIM(call, wrong, expected, ...)                                             \
  ErrorCase {                                                                               \
#call, wrong, expected, true, [](Good& g) -> CUresult { static_cast<void>(g); __VA_ARGS__ } \
  }
