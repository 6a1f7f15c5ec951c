// The build id of a loaded file, read from its notes in memory, and its path, by which a report finds the file again.
// Caller: the recorder's call sites, on the trace's writer thread. Nothing here allocates.
#pragma once
#include <cstddef>

namespace reprise {

// Hexadecimal digits and a zero byte into `text`; an empty text where the file has none. `base`: where it is loaded.
void build_id_text(const void* base, char* text, size_t capacity) noexcept;

// The absolute path of the file that is mapped at `address`, as the kernel knows it; an empty text where there is none.
// The loader has what the program was started as, `./train` or `train`, which is no path later on.
void mapped_file(const void* address, char* path, size_t capacity) noexcept;

}  // namespace reprise
