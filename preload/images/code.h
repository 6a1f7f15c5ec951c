// What a disassembly needs of a cubin beside its code: which symbols are functions, where kernels find their
// parameters, and which addresses the linker writes into constant memory. Callers: the analysis of machine code.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "preload/images/image.h"

namespace reprise::images {

struct KernelCode {
  std::string name;
  uint32_t symbol = 0;
  uint32_t section = 0;        // that it stands in
  uint32_t parameters_at = 0;  // in constant bank 0; 0: not known
  std::vector<ParameterImage> parameters;
  bool parameters_known = false;
};

// No kernel. It may stand in the section of the kernel that calls it.
struct FunctionCode {
  uint32_t symbol = 0;
  uint32_t section = 0;
};

struct CodeImage {
  std::vector<KernelCode> kernels;
  std::vector<FunctionCode> functions;
  std::unordered_map<uint32_t, std::string> addresses;  // in constant bank 4, by offset: the symbol that it is of
  bool relocated_literals = false;                      // the linker writes into constant bank 2
};

Result<CodeImage> parse_code(const std::string& cubin);

// The cubins that parse_image() reads of a cubin or fatbin.
Result<std::vector<std::string>> cubins_of(const std::string& content, uint32_t architecture);
// The same of a file that may also be a program or library of the host's, with any number of fatbins in it: one cubin
// at a time, until one is answered with an error. Fatbins that have nothing for the architecture are left out.
Status each_cubin(const std::string& content, uint32_t architecture,
                  const std::function<Status(const std::string& cubin)>& use);

}  // namespace reprise::images
