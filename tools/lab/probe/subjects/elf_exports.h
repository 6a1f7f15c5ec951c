// The names that a shared library defines for others, read from its file. Callers: section 1 (which driver functions
// are there at all) and --exports. The file is untrusted: every offset is checked.
#pragma once
#include <string>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::probe {

// Sorted, without duplicates: functions and objects with global or weak binding of a 64-bit little-endian ELF file.
Result<std::vector<std::string>> read_exports(const std::string& path);

}  // namespace reprise::probe
