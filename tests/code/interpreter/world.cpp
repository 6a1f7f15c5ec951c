#include "tests/code/interpreter/world.h"

#include <algorithm>
#include <cstring>

namespace reprise::sass {
namespace {

constexpr uint32_t kSpanBits = 34;  // an object's addresses
constexpr uint64_t kFirstSpan = 64;
constexpr uint64_t kSpans = (uint64_t{1} << (47 - kSpanBits)) - kFirstSpan;

uint64_t pair(float low, float high) {
  uint32_t bits[2];
  std::memcpy(&bits[0], &low, 4);
  std::memcpy(&bits[1], &high, 4);
  return bits[0] | uint64_t{bits[1]} << 32;
}

float real(uint64_t random) { return static_cast<float>(static_cast<int>(random % 4001) - 2000) / 500.0F; }

}  // namespace

uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15ULL + b + 0x7f4a7c15ULL;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x ^ x >> 31;
}

size_t World::add(Filling filling) {
  const size_t number = objects_.size();
  uint64_t span = 0;
  for (uint64_t attempt = 0; span == 0 || by_span_.contains(span); ++attempt) {
    span = kFirstSpan + mixed(places_, number * 1000 + attempt) % kSpans;
  }
  by_span_.emplace(span, number);
  Object object;
  object.filling = filling;
  // The lower half is never small: with a number in front of it, it is no address.
  object.base = (span << kSpanBits) + (uint64_t{1} << (kSpanBits - 1)) + 512 * (64 + mixed(seed_, number) % 100000);
  objects_.push_back(std::move(object));
  return number;
}

std::optional<size_t> World::find(uint64_t address) const {
  const auto found = by_span_.find(address >> kSpanBits);
  return found == by_span_.end() ? std::nullopt : std::optional(found->second);
}

// Eight bytes at a place that is counted from the object's base, so that contents do not depend on addresses.
uint64_t World::word(uint64_t place, const Object& object, size_t of) const {
  const uint64_t random = mixed(mixed(seed_, of + 1), place);
  const uint64_t other = mixed(random, 1);
  switch (object.filling) {
    case Filling::zeros:
      return 0;
    case Filling::small32:
      return random % 13 | (other % 13) << 32;
    case Filling::small64:
      return random % 13;
    case Filling::reals:
      return pair(real(random), real(other));
    case Filling::doubles: {
      const double value = real(random);
      uint64_t bits = 0;
      std::memcpy(&bits, &value, 8);
      return bits;
    }
    case Filling::bytes:
      return random;
    case Filling::pointers_or_null:
      if (random % 3 == 0) return 0;
      [[fallthrough]];
    case Filling::pointers: {
      const bool hidden = hidden_ < objects_.size() && random % 8 != 0;
      const size_t first = hidden ? hidden_ : 0;
      return objects_[first + other % (objects_.size() - first)].base + 16 * (mixed(other, 2) % 8);
    }
  }
  return 0;
}

void World::fill(Page& page, uint64_t number, const Object& object, size_t of) const {
  for (uint32_t at = 0; at < kPage; at += 8) {
    const uint64_t place = number * kPage + at - object.base;
    const uint64_t value = word(place, object, of);
    std::memcpy(page.bytes + at, &value, 8);
  }
  for (uint32_t at = 0; at < kPage && !object.initial.empty(); ++at) {
    const uint64_t place = number * kPage + at - object.base;
    if (place < object.initial.size()) page.bytes[at] = object.initial[place];
  }
}

World::Page* World::page_of(uint64_t address) {
  const auto of = find(address);
  if (!of) return nullptr;
  std::unique_ptr<Page>& page = pages_[address / kPage];
  if (!page) {
    page = std::make_unique<Page>();
    fill(*page, address / kPage, objects_[*of], *of);
  }
  return page.get();
}

bool World::read(uint64_t address, void* to, uint32_t bytes) {
  Page* page = page_of(address);
  if (page == nullptr) return false;
  std::memcpy(to, page->bytes + address % kPage, bytes);
  return true;
}

bool World::write(uint64_t address, const void* from, uint32_t bytes, uint32_t thread) {
  Page* page = page_of(address);
  if (page == nullptr) return false;
  std::memcpy(page->bytes + address % kPage, from, bytes);
  if (!page->writers) page->writers = std::make_unique<uint32_t[]>(kPage);
  for (uint32_t at = 0; at < bytes; ++at) {
    uint32_t& writer = page->writers[address % kPage + at];
    writer = writer == 0 || writer == thread + 1 ? thread + 1 : kSeveral;
  }
  return true;
}

void World::change(uint64_t address, const void* bytes, uint32_t count) {
  if (Page* page = page_of(address)) std::memcpy(page->bytes + address % kPage, bytes, count);
}

void World::mark(uint64_t address, bool written) {
  Object& object = objects_[*find(address)];
  (written ? object.written : object.read) = true;
}

World::Likeness World::compare_pages(const Page& a, const Page& b) {
  Likeness found = Likeness::same;
  for (uint32_t at = 0; at < kPage; ++at) {
    if (a.bytes[at] == b.bytes[at]) continue;
    const bool several = (a.writers && a.writers[at] == kSeveral) || (b.writers && b.writers[at] == kSeveral);
    if (!several) return Likeness::differ;
    found = Likeness::raced;
  }
  return found;
}

World::Likeness World::compare(World& a, World& b) {
  Likeness found = Likeness::same;
  for (World* one : {&a, &b}) {
    World& other = one == &a ? b : a;
    for (const auto& [number, page] : one->pages_) {
      const Page* there = other.page_of(number * kPage);
      found = std::max(found, there == nullptr ? Likeness::differ : compare_pages(*page, *there));
    }
  }
  return found;
}

}  // namespace reprise::sass
