// Runs one kernel of the simulated device on the calling thread: its host twin where one is registered, else the
// dataflow-hash executor. Callers: modules (launch, module), cuInit.
#pragma once
#include <cstddef>
#include <cstdint>

#include "preload/images/image.h"

namespace reprise::sim {

using images::KernelImage;

struct KernelRun {
  const KernelImage* kernel;
  // A copy: parameter i stands at kernel->parameters[i].offset - kernel->parameters[0].offset.
  const uint8_t* parameters;
  uint32_t parameter_bytes;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
};

// Extent of a program allocation, as the shim or cuMemAlloc recorded it: false when `address` is in none.
using ExtentLookup = bool (*)(uint64_t address, uint64_t* base, uint64_t* bytes);

// Loads twin libraries: those named by REPRISE_SIM_TWINS (colon separated) and `<program>.twins.so` beside the
// executable. Called once at cuInit. Prints nothing; a library that does not load is reported by *problem.
void load_twins(const char** problem);

// Executes. Device memory is plain host memory at the same addresses; a bad access raises SIGSEGV on this thread, which
// the driver's engine turns into CUDA_ERROR_ILLEGAL_ADDRESS.
void execute_kernel(const KernelRun& run, ExtentLookup extents);

// The address of a twin library's own variable for a module's global `name`, or nullptr. The driver then uses that
// memory as the global, so that kernels' twins and cudaMemcpyToSymbol see the same bytes.
void* find_twin_global(const char* name, size_t bytes);

}  // namespace reprise::sim
