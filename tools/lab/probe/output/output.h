// Writes a whole text file, replacing it atomically. Callers: main (JSON), machine_file.
#pragma once
#include <string>

#include "preload/trace/status.h"

namespace reprise::probe {

Status write_text(const std::string& path, const std::string& text);

}  // namespace reprise::probe
