// Writes a trace that was read, and perhaps changed, as a file again. Callers: `reprise export --format reprise`,
// tests. What a program calls is recorded by writer.h, not by this.
#pragma once
#include <string>

#include "preload/trace/reader.h"
#include "preload/trace/status.h"

namespace reprise::trace {

// Everything that the reader keeps: not the records of kinds that it does not know, nor what lies behind a damage.
Status write_trace(const Trace& trace, const std::string& path);

}  // namespace reprise::trace
