// Global memory of one launch: objects at addresses far from each other, filled at random where they are first looked
// at, and a log of what was touched. Contents follow a seed alone, so that the same world can be made again, also at
// other addresses. Callers: the memory operations; trials, which make worlds and compare what came of them.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace reprise::sass {

// What an object is filled with.
enum class Filling : uint8_t { zeros, small32, small64, reals, doubles, bytes, pointers, pointers_or_null };

struct Object {
  Filling filling = Filling::zeros;
  bool of_module = false;
  std::vector<uint8_t> initial;  // from its base on
  uint64_t base = 0;             // a set's addresses: 8 GiB below it to 8 GiB above it
  bool read = false;
  bool written = false;
};

class World {
 public:
  // `seed`: of contents; `places`: of addresses.
  World(uint64_t seed, uint64_t places) : seed_(seed), places_(places) {}

  size_t add(Filling filling);
  Object& object(size_t number) { return objects_[number]; }
  const std::vector<Object>& objects() const { return objects_; }
  // The object that an address lies in.
  std::optional<size_t> find(uint64_t address) const;
  // Pointers that lie in memory lead to the objects from here on.
  void set_hidden(size_t first) { hidden_ = first; }

  // Whether the bytes lie in an object.
  bool read(uint64_t address, void* to, uint32_t bytes);
  bool write(uint64_t address, const void* from, uint32_t bytes, uint32_t thread);
  // An atomic's store, which races with none.
  void change(uint64_t address, const void* bytes, uint32_t count);
  void mark(uint64_t address, bool written);
  // The bytes wherever either was looked at. `raced`: they differ, but only where two threads wrote to one place.
  enum class Likeness : uint8_t { same, raced, differ };
  static Likeness compare(World& a, World& b);

 private:
  static constexpr uint32_t kPage = 4096;
  static constexpr uint32_t kSeveral = 0xffffffff;
  struct Page {
    uint8_t bytes[kPage];
    std::unique_ptr<uint32_t[]> writers;  // threads from 1 on, or kSeveral
  };

  Page* page_of(uint64_t address);
  static Likeness compare_pages(const Page& a, const Page& b);
  void fill(Page& page, uint64_t number, const Object& object, size_t of) const;
  uint64_t word(uint64_t place, const Object& object, size_t of) const;

  uint64_t seed_;
  uint64_t places_;
  size_t hidden_ = 0;
  std::vector<Object> objects_;
  std::unordered_map<uint64_t, size_t> by_span_;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
};

uint64_t mixed(uint64_t a, uint64_t b);

}  // namespace reprise::sass
