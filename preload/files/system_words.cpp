#include "preload/files/system_words.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace reprise {

std::string system_words(int error) {
  struct rlimit files {};
  if (error != EMFILE || getrlimit(RLIMIT_NOFILE, &files) != 0) return std::strerror(error);
  char line[100];
  std::snprintf(line, sizeof line, "the limit of open files, %llu, is too low; raise it (ulimit -n)",
                static_cast<unsigned long long>(files.rlim_cur));
  return line;
}

}  // namespace reprise
