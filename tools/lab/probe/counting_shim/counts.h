// What the counting shim keeps and writes: launches by kernel name, what is known of each kernel's parameters, live
// allocations. One lock over all of it: this shim counts, it does not measure time. Callers: shim, memory_calls,
// cupti_records.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace reprise::count {

// A handle from cuLibraryGetKernel: launches with it ask the driver as for a CUkernel.
void count_kernel(CUkernel kernel) noexcept;
// A call of the entry point `entry` that launched `function`; `captured`: into a graph, not onto the device.
void count_launch(const char* entry, CUfunction function, void** parameters, void** extra, bool captured) noexcept;
// An executable graph made from `graph`, and one launch of it.
void count_graph(CUgraphExec executable, CUgraph graph) noexcept;
void count_graph_launch(CUgraphExec executable) noexcept;
void count_allocation(CUdeviceptr address, size_t bytes) noexcept;
// What began in these bytes is no longer live: an allocation, or all chunks that were mapped there.
void count_free(CUdeviceptr address, size_t bytes = 1) noexcept;
// A successful call of an allocator's: allocations, frees, mappings, pools. `name`: without version.
void count_memory_call(const char* name) noexcept;
// A kernel that CUPTI recorded.
void count_record(const char* kernel_name) noexcept;
// How CUPTI fared: "on", or why it is not.
void count_cupti(const char* state, uint64_t dropped_records) noexcept;

// Writes everything as JSON to REPRISE_COUNT_OUTPUT.<pid>. Registered with atexit at the first cuInit.
void write_counts() noexcept;

}  // namespace reprise::count
