#include "preload/module_image.h"

#include <fstream>
#include <iterator>
#include <string>

#include "preload/images/image.h"

namespace reprise {
namespace {

// What the parser throws is std::bad_alloc.
template <typename Parse>
bool holds(Parse&& parse) noexcept {
  try {
    const Result<images::Image> image = parse();
    return !image.ok() || images::holds_variables(image.value());
  } catch (...) {
    return true;
  }
}

}  // namespace

bool may_hold_variables(const void* image) noexcept {
  return holds([image] { return images::parse_image(image); });
}

bool file_may_hold_variables(const char* path) noexcept {
  return holds([path] {
    std::ifstream file(path, std::ios::binary);
    return images::parse_image(std::string{std::istreambuf_iterator<char>(file), {}});
  });
}

}  // namespace reprise
