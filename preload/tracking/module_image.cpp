#include "preload/tracking/module_image.h"

#include <fstream>
#include <iterator>
#include <string>

#include "preload/images/image.h"

namespace reprise {
namespace {

// What the parser throws is std::bad_alloc.
template <typename Parse>
ImageTraits traits(Parse&& parse) noexcept {
  try {
    const Result<images::Image> image = parse();
    if (image.ok()) return {images::holds_variables(image.value()), image.value().prints};
  } catch (...) {
  }
  return {};
}

}  // namespace

ImageTraits traits_of_image(const void* image) noexcept {
  return traits([image] { return images::parse_image(image); });
}

ImageTraits traits_of_file(const char* path) noexcept {
  return traits([path] {
    std::ifstream file(path, std::ios::binary);
    return images::parse_image(std::string{std::istreambuf_iterator<char>(file), {}});
  });
}

}  // namespace reprise
