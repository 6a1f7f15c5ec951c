#include "analyzer/taskgraph/hazards.h"

#include <algorithm>
#include <iterator>

namespace reprise::analyzer {

void Hazards::wait_for(const Segment& segment, bool writes, Stamp stamp, std::vector<Stamp>& before) {
  bool reader_waits = false;
  if (writes) {
    for (const Stamp& reader : segment.readers) {
      if (reader == stamp) continue;
      before.push_back(reader);
      reader_waits = true;
    }
  }
  // A reader has waited for the writer already.
  if (segment.written && !reader_waits && segment.writer != stamp) before.push_back(segment.writer);
}

// The first segment that ends behind `position`.
size_t Hazards::behind(uint64_t position) const {
  const auto found = std::partition_point(segments_.begin(), segments_.end(),
                                          [&](const Segment& segment) { return segment.end <= position; });
  return static_cast<size_t>(found - segments_.begin());
}

void Hazards::split_at(uint64_t position) {
  const size_t at = behind(position);
  if (at == segments_.size() || segments_[at].begin >= position) return;
  Segment tail = segments_[at];
  tail.begin = position;
  segments_[at].end = position;
  segments_.insert(segments_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(tail));
}

void Hazards::access(uint64_t begin, uint64_t end, bool writes, Stamp stamp, std::vector<Stamp>& before) {
  if (begin >= end) return;
  split_at(begin);
  split_at(end);
  const auto first = segments_.begin() + static_cast<std::ptrdiff_t>(behind(begin));
  const auto last =
      std::partition_point(first, segments_.end(), [&](const Segment& segment) { return segment.begin < end; });
  for (auto s = first; s != last; ++s) wait_for(*s, writes, stamp, before);
  if (writes) {
    overwrite(first, last, {begin, end, true, stamp, {}});
    return;
  }
  // Readers are recorded on the segments that exist; gaps become segments without a writer.
  std::vector<Segment> gaps;
  uint64_t next = begin;
  for (auto s = first; s != last; ++s) {
    if (s->begin > next) gaps.push_back({next, s->begin, false, {}, {stamp}});
    next = s->end;
    if (s->readers.empty() || s->readers.back() != stamp) s->readers.push_back(stamp);
  }
  if (next < end) gaps.push_back({next, end, false, {}, {stamp}});
  if (gaps.empty()) return;
  const auto at = static_cast<std::ptrdiff_t>(first - segments_.begin());
  const auto count = last - first + static_cast<std::ptrdiff_t>(gaps.size());
  segments_.insert(last, std::make_move_iterator(gaps.begin()), std::make_move_iterator(gaps.end()));
  std::sort(segments_.begin() + at, segments_.begin() + at + count,
            [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
}

// In place: the slab of a large graph has many thousands of segments.
void Hazards::overwrite(std::vector<Segment>::iterator first, std::vector<Segment>::iterator last, Segment segment) {
  if (first == last) {
    segments_.insert(first, std::move(segment));
    return;
  }
  segment.readers = std::move(first->readers);
  segment.readers.clear();
  *first = std::move(segment);
  segments_.erase(first + 1, last);
}

void Hazards::frontier(std::vector<Stamp>& stamps) const {
  for (const Segment& segment : segments_) {
    if (segment.written && segment.readers.empty()) stamps.push_back(segment.writer);
    stamps.insert(stamps.end(), segment.readers.begin(), segment.readers.end());
  }
}

}  // namespace reprise::analyzer
