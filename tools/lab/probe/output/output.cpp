#include "tools/lab/probe/output/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace reprise::probe {

Status write_text(const std::string& path, const std::string& text) {
  const std::string partial = fmt::format("{}.{}.partial", path, getpid());
  FILE* file = std::fopen(partial.c_str(), "we");
  bool written = file != nullptr;
  if (written) {
    written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    written = (std::fclose(file) == 0) && written;
  }
  if (written && std::rename(partial.c_str(), path.c_str()) == 0) return Status::success();
  Status status(StatusCode::io_error, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  std::remove(partial.c_str());
  return status;
}

}  // namespace reprise::probe
