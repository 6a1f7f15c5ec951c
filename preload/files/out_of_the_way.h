// Where files that stay open in the victim process have their descriptors: high, out of the way of the program, which
// may count on the next one's number, close low ones blindly, or have none of its own below 3: what it prints would go
// into the file. Callers: whoever keeps a file open there.
#pragma once
#include <fcntl.h>
#include <unistd.h>

namespace reprise {

// `file`, which is closed, under another number; as it is where there is none. -1 stays -1.
inline int move_out_of_the_way(int file) noexcept {
  constexpr int kOut = 900;
  const int high = file < 0 ? -1 : ::fcntl(file, F_DUPFD_CLOEXEC, kOut);
  if (high < 0) return file;
  ::close(file);
  return high;
}

}  // namespace reprise
