// A view of untrusted bytes whose every access is checked. Callers: the image parsers only.
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

namespace reprise::images {

class Bytes {
 public:
  Bytes() = default;
  Bytes(const void* data, size_t size) : data_(static_cast<const uint8_t*>(data)), size_(size) {}

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // `size` bytes from `offset`, or nothing where they do not all exist.
  std::optional<Bytes> slice(uint64_t offset, uint64_t size) const {
    if (offset > size_ || size > size_ - offset) return std::nullopt;
    return Bytes(data_ + offset, size);
  }

  // A plain value at any alignment.
  template <typename T>
  std::optional<T> read(uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto part = slice(offset, sizeof(T));
    if (!part) return std::nullopt;
    T value;
    std::memcpy(&value, part->data(), sizeof value);
    return value;
  }

  // The zero-terminated text at `offset`; nothing when the terminator is missing.
  std::optional<std::string_view> text(uint64_t offset) const {
    if (offset >= size_) return std::nullopt;
    const auto* first = reinterpret_cast<const char*>(data_ + offset);
    const void* end = std::memchr(first, 0, size_ - offset);
    if (end == nullptr) return std::nullopt;
    return std::string_view(first, static_cast<size_t>(static_cast<const char*>(end) - first));
  }

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace reprise::images
