// How this process was called, with blanks between the words. Callers: the recorder and the run log's first line.
#pragma once
#include <cstddef>

namespace reprise {

// Empty where the system does not tell; cut off where there is no room.
void read_command_line(char* text, size_t capacity) noexcept;

// ... and where the arguments begin in it: behind the program's own name, which may hold blanks.
const char* read_arguments(char* text, size_t capacity) noexcept;

}  // namespace reprise
