// The build id of a loaded file, read from its notes in memory, by which a report finds the file again. Caller: the
// recorder's call sites, on the trace's writer thread. Nothing here allocates.
#pragma once
#include <cstddef>

namespace reprise {

// Hexadecimal digits and a zero byte into `text`; an empty text where the file has none. `base`: where it is loaded.
void build_id_text(const void* base, char* text, size_t capacity) noexcept;

}  // namespace reprise
