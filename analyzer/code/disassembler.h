// nvdisasm, which is NVIDIA's and may not be handed on: found on this machine, run on a cubin in a process of its own.
// Callers: `reprise code`.
#pragma once
#include <string>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::code {

// The program: `named` where it is not empty, else where Python packages, toolkits and PATH have it.
Result<std::string> find_disassembler(const std::string& named);

// The text of the functions with these symbols. The cubin goes through a temporary file in `folder`.
Result<std::string> disassemble(const std::string& program, const std::string& cubin,
                                const std::vector<uint32_t>& symbols, const std::string& folder);

}  // namespace reprise::code
