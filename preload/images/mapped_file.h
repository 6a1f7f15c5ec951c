// Which file a module image lies in, as the loader mapped it. Callers: what tells the planner of images, the simulated
// device.
#pragma once
#include <limits.h>

#include <cstdint>
#include <string_view>

namespace reprise::images {

struct MappedFile {
  char path[PATH_MAX] = {};
  uint64_t offset = 0;  // of the first byte
  bool found = false;   // else the bytes are in no file
};

// `image`: all of its bytes.
MappedFile file_of(std::string_view image) noexcept;

}  // namespace reprise::images
