#include "replay/memory/addresses/homes.h"

#include <algorithm>

namespace reprise::replay {

void Homes::reset(uint64_t most) {
  stop();
  kept_ = true;
  links_.assign(1, PlaceLink{});
  most_ = most;
}

void Homes::stop() noexcept {
  kept_ = false;
  homes_.clear();
  links_.clear();
  taken_ = held_ = count_ = 0;
}

const std::vector<Place>* Homes::of(uint64_t base) const noexcept {
  const auto found = homes_.find(base);
  return found == homes_.end() ? nullptr : &found->second.places;
}

bool Homes::is_free(uint64_t base) const noexcept {
  const std::vector<Place>* const places = of(base);
  return places != nullptr &&
         std::all_of(places->begin(), places->end(), [this](Place place) { return links_[place].free; });
}

uint64_t Homes::last_taken(uint64_t base) const noexcept {
  const auto found = homes_.find(base);
  return found == homes_.end() ? 0 : found->second.taken;
}

bool Homes::is_crowded(uint64_t count) const noexcept {
  const uint64_t places = std::max<uint64_t>(links_.size() - 1, taken_ + count);
  return held_ + count > std::min(kMostHomes * places, most_);
}

void Homes::unlink(Place place) noexcept {
  PlaceLink& link = links_[place];
  links_[link.before].after = link.after;
  links_[link.after].before = link.before;
  link.free = false;
}

void Homes::take(uint64_t base) noexcept {
  Home& home = homes_[base];
  for (const Place place : home.places) unlink(place);
  taken_ += home.places.size();
  home.taken = ++count_;
  home.live = true;
}

void Homes::settle(uint64_t base, uint64_t count) {
  Home& home = homes_[base];
  held_ += count - home.places.size();
  home.places.clear();
  for (Place place = links_[0].after; place != 0 && home.places.size() < count; place = links_[place].after) {
    home.places.push_back(place);
  }
  while (home.places.size() < count) {
    const auto place = static_cast<Place>(links_.size());
    links_.push_back({links_[0].before, 0, true});
    links_[links_[0].before].after = place;
    links_[0].before = place;
    home.places.push_back(place);
  }
  take(base);
}

void Homes::leave(uint64_t base) noexcept {
  const auto found = homes_.find(base);
  if (found == homes_.end() || !found->second.live) return;
  found->second.live = false;
  taken_ -= found->second.places.size();
  for (const Place place : found->second.places) {
    links_[place] = {links_[0].before, 0, true};
    links_[links_[0].before].after = place;
    links_[0].before = place;
  }
}

void Homes::forget_freed() noexcept {
  std::erase_if(homes_, [this](const auto& each) {
    if (!each.second.live) held_ -= each.second.places.size();
    return !each.second.live;
  });
}

}  // namespace reprise::replay
