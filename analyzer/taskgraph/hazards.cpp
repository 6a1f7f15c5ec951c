#include "analyzer/taskgraph/hazards.h"

#include <algorithm>

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

void Hazards::split_at(uint64_t position) {
  const auto inside = [&](const Segment& s) { return s.begin < position && position < s.end; };
  const auto found = std::find_if(segments_.begin(), segments_.end(), inside);
  if (found == segments_.end()) return;
  Segment tail = *found;
  tail.begin = position;
  found->end = position;
  segments_.insert(found + 1, std::move(tail));
}

void Hazards::access(uint64_t begin, uint64_t end, bool writes, Stamp stamp, std::vector<Stamp>& before) {
  if (begin >= end) return;
  split_at(begin);
  split_at(end);
  const auto first =
      std::find_if(segments_.begin(), segments_.end(), [&](const Segment& s) { return s.begin >= begin; });
  const auto last = std::find_if(first, segments_.end(), [&](const Segment& s) { return s.begin >= end; });
  for (auto s = first; s != last; ++s) wait_for(*s, writes, stamp, before);
  if (writes) {
    const auto at = segments_.erase(first, last);
    segments_.insert(at, Segment{begin, end, true, stamp, {}});
    return;
  }
  // Readers are noted on what exists; gaps become segments that nobody has written.
  std::vector<Segment> updated;
  uint64_t next = begin;
  for (auto s = first; s != last; ++s) {
    if (s->begin > next) updated.push_back({next, s->begin, false, {}, {stamp}});
    next = s->end;
    if (s->readers.empty() || s->readers.back() != stamp) s->readers.push_back(stamp);
    updated.push_back(std::move(*s));
  }
  if (next < end) updated.push_back({next, end, false, {}, {stamp}});
  const auto at = segments_.erase(first, last);
  segments_.insert(at, std::make_move_iterator(updated.begin()), std::make_move_iterator(updated.end()));
}

void Hazards::frontier(std::vector<Stamp>& stamps) const {
  for (const Segment& segment : segments_) {
    if (segment.written && segment.readers.empty()) stamps.push_back(segment.writer);
    stamps.insert(stamps.end(), segment.readers.begin(), segment.readers.end());
  }
}

}  // namespace reprise::analyzer
