// nvdisasm, which is NVIDIA's and may not be handed on: found on this machine, run on a cubin in a process of its own.
// Callers: `reprise code`.
#pragma once
#include <string>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::code {

// The program: `named` where it is not empty, none where that is "none", else where Python packages, toolkits and PATH
// have it.
// `near`: a file of a Python package beside which it may be installed, as PyTorch's libraries are; or empty.
Result<std::string> find_disassembler(const std::string& named, const std::string& near = "");

// The text of the functions with these symbols. The cubin goes through a temporary file in `folder`.
Result<std::string> disassemble(const std::string& program, const std::string& cubin,
                                const std::vector<uint32_t>& symbols, const std::string& folder);

}  // namespace reprise::code
