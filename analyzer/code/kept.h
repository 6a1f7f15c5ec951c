// Code facts as text, for the cache of kernel facts: what launches are resolved with, without the instructions that it
// comes from. Callers: the store of code facts.
#pragma once
#include <cstdint>
#include <string>

#include "analyzer/code/facts.h"
#include "preload/trace/status.h"

namespace reprise::code {

// A line each; the last one is a checksum. Facts of another analyser are errors: what it says may be wrong by now.
std::string to_text(const CodeFacts& facts);
// What to_text() made. Computed places are any word of the parameters, for their expressions are not kept. Instructions
// are empty. Errors: corrupt.
Result<CodeFacts> from_text(const std::string& text);

}  // namespace reprise::code
