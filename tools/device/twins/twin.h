// What a twin library offers: for each kernel the entry that runs it on the calling thread. Callers: cuda_host.h, which
// fills it in inside the library, and the registry, which finds the library's list by kTwinListSymbol.
#pragma once
#include <cstdint>

namespace reprise::sim {

struct TwinLaunch {
  const uint8_t* parameters;  // parameter i stands at Twin::offsets[i]; at any alignment
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
};

// Told of each part that a launch writes.
struct WrittenParts {
  void (*mark)(void* user, uint64_t address, uint64_t bytes);
  void* user;
};

struct Twin {
  const void* kernel;  // the host function, whose dynamic symbol is the kernel's mangled name
  uint32_t parameter_count;
  const uint32_t* offsets;
  const uint32_t* sizes;
  void (*run)(const TwinLaunch& launch);
  // Says what the launch has written; nullptr: it may be all that the parameters name.
  void (*tell_written)(const TwinLaunch& launch, const WrittenParts& parts);
  const Twin* next;
};

// extern "C" const Twin* reprise_twins_2(): the head of the list. The number is the version of the structures above.
inline constexpr char kTwinListSymbol[] = "reprise_twins_2";
using TwinList = const Twin* (*)();

}  // namespace reprise::sim
