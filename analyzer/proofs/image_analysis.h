// One cubin from its bytes to the code facts of some of its kernels: disassembled and analysed. Callers: `reprise
// code`, what fills the cache.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "analyzer/code/facts.h"
#include "preload/trace/status.h"

namespace reprise::code {

// Facts of the kernels whose names `wanted` takes, in the cubin's order; of NVIDIA's own they are unknown, without a
// look. `program`: nvdisasm. The cubin goes through a temporary file.
Result<std::vector<CodeFacts>> analyse_cubin(const std::string& program, const std::string& cubin,
                                             const std::function<bool(const std::string& name)>& wanted);

}  // namespace reprise::code
