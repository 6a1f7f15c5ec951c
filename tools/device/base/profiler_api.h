// The driver's profiler calls. NVIDIA's Python packages leave cudaProfiler.h out, so where it is missing its three
// functions are declared here. Callers: the simulated driver and its runtime.
#pragma once
#include <cuda.h>

#if __has_include(<cudaProfiler.h>)
#include <cudaProfiler.h>
#else
extern "C" {
typedef enum CUoutput_mode_enum { CU_OUT_KEY_VALUE_PAIR = 0, CU_OUT_CSV = 1 } CUoutput_mode;
CUresult CUDAAPI cuProfilerInitialize(const char* config_file, const char* output_file, CUoutput_mode output_mode);
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);
}
#endif
