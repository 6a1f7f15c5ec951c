// The probe's only way to the CUDA driver: found at run time, so that the program starts on a machine without one.
// Callers: everything in tools/lab/probe that calls the driver.
#pragma once
#include <cuda.h>

#include <string>

#include "preload/trace/status.h"

namespace reprise::probe {

struct Driver {
#define REPRISE_PROBE_FUNCTION(name) decltype(&::name) name = nullptr;
#include "tools/lab/probe/measure/driver_functions.def"
#undef REPRISE_PROBE_FUNCTION
  void* library = nullptr;
  std::string path;        // of the file that was opened, absolute
  bool simulated = false;  // it is our simulated device
};

// Opens REPRISE_DRIVER, else libcuda.so.1 where the loader and common installations have it. not_found: none there, or
// one that lacks what every driver since CUDA 12 has. The library stays open until the process ends.
Result<Driver> open_driver();

// "cuMemMap: CUDA_ERROR_INVALID_VALUE" as a Status; success for CUDA_SUCCESS.
Status check(const Driver& driver, CUresult result, const char* what);

}  // namespace reprise::probe

// Return the failing call's Status from the enclosing function (which returns Status or Result). The counter gives each
// use its own name: they stand inside each other's lambdas.
#define PROBE_NAME_(name, number) name##number
#define PROBE_NAME(name, number) PROBE_NAME_(name, number)
#define PROBE_TRY_AS(status, expression)                                      \
  do {                                                                        \
    if (::reprise::Status status = (expression); !status.ok()) return status; \
  } while (false)
#define PROBE_TRY(expression) PROBE_TRY_AS(PROBE_NAME(probe_status_, __COUNTER__), expression)
#define PROBE_CALL(driver, function, ...)                                                    \
  PROBE_TRY((driver).function                                                                \
                ? ::reprise::probe::check(driver, (driver).function(__VA_ARGS__), #function) \
                : ::reprise::Status(::reprise::StatusCode::unsupported, #function ": this driver lacks it"))
