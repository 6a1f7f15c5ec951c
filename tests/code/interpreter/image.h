// What the interpreter needs of a cubin beside its text: contents of constant memory and of variables, which lie in
// objects of their own, and how much shared memory a kernel has. Callers: trials.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace reprise::sass {

// An address in constant memory: at `offset` of bank 4 that of a variable.
struct AddressEntry {
  uint32_t offset = 0;
  bool initialised = false;  // in .nv.global.init, else in .nv.global
  uint64_t place = 0;        // in its section
};

struct Surroundings {
  std::vector<uint8_t> constants;  // __constant__ variables
  std::vector<uint8_t> literals;   // of the kernel
  std::vector<uint8_t> initial;    // .nv.global.init
  std::vector<AddressEntry> addresses;
  uint32_t address_bytes = 0;  // of bank 4
  uint32_t shared_bytes = 0;
  uint32_t most_threads = 1024;
};

Surroundings surroundings_of(const std::string& cubin, const std::string& kernel);

}  // namespace reprise::sass
