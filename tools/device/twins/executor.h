// Runs one kernel of the simulated device on the calling thread: its host twin where one is registered, else the
// dataflow-hash executor. Callers: modules (launch, module), cuInit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "analyzer/code/facts.h"
#include "preload/images/image.h"
#include "tools/device/base/written.h"

namespace reprise::sim {

using images::KernelImage;

// A word of the parameters, `at` bytes from the first.
struct AddressWord {
  uint32_t at;
  uint64_t word;
  uint64_t base;  // of the program's allocation that it points into, or just behind
  uint64_t bytes;
  WrittenBytes* written;  // nullptr: it points into none, but to some other memory that the driver knows
};

// What a word that may be an address points to, as of the program's call: `written` is set for a tensor's.
struct Pointee {
  uint64_t base = 0;
  uint64_t bytes = 0;
  WrittenBytes* written = nullptr;
};

// The addresses among the words of `parameters`. `find` answers false for what is no address that the driver knows.
template <typename Find>
std::vector<AddressWord> find_addresses(const uint8_t* parameters, uint32_t bytes, Find find) {
  constexpr uint64_t kLowestAddress = 1 << 16;  // no memory is below
  std::vector<AddressWord> found;
  for (uint32_t at = 0; at + 8 <= bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, parameters + at, sizeof word);
    Pointee pointee;
    if (word >= kLowestAddress && (find(word, &pointee) || find(word - 1, &pointee))) {
      found.push_back({at, word, pointee.base, pointee.bytes, pointee.written});
    }
  }
  // One just behind a tensor means it where another word points into it; else it may as well mean what comes next.
  for (AddressWord& behind : found) {
    if (behind.written == nullptr || behind.word != behind.base + behind.bytes) continue;
    bool named = false;
    for (const AddressWord& other : found) named = named || other.word - behind.base < behind.bytes;
    if (!named) behind.written = nullptr;
  }
  return found;
}

struct KernelRun {
  const KernelImage* kernel;
  // A copy: parameter i stands at kernel->parameters[i].offset - kernel->parameters[0].offset.
  const uint8_t* parameters;
  uint32_t parameter_bytes;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  // The words of the parameters that are addresses, in their order, as they were when the program made the call.
  std::span<const AddressWord> addresses;
  uint64_t call;             // position in the program's order, for the log of hashes
  uint64_t kernel_seed = 0;  // of natures.h
  bool kernel_lies = false;
  const code::CodeFacts* code = nullptr;  // what a kernel without a twin does; nullptr: not known
};

// Loads twin libraries: `blas.twins.so` and `digest.twins.so` beside the driver, those named by REPRISE_SIM_TWINS
// (colon separated) and
// `<program>.twins.so` beside the executable. Called once at cuInit. Prints nothing; a library that does not load is
// reported by *problem.
void load_twins(const char** problem);

// Executes. Device memory is plain host memory at the same addresses; a bad access raises SIGSEGV on this thread, which
// the driver's engine turns into CUDA_ERROR_ILLEGAL_ADDRESS.
void execute_kernel(const KernelRun& run);

// The address of a twin library's own variable for a module's global `name`, or nullptr. The driver then uses that
// memory as the global, so that kernels' twins and cudaMemcpyToSymbol see the same bytes.
void* find_twin_global(const char* name, size_t bytes);

}  // namespace reprise::sim
