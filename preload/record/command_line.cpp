#include "preload/record/command_line.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace reprise {

void read_command_line(char* text, size_t capacity) noexcept { read_arguments(text, capacity); }

const char* read_arguments(char* text, size_t capacity) noexcept {
  text[0] = '\0';
  const int file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  const ssize_t size = ::read(file, text, capacity - 1);
  ::close(file);
  if (size <= 0) return text;
  text[size] = '\0';
  const char* const program_end = text + std::strlen(text);
  for (ssize_t i = 0; i + 1 < size; ++i) {
    if (text[i] == '\0') text[i] = ' ';
  }
  return *program_end == ' ' ? program_end + 1 : program_end;
}

}  // namespace reprise
