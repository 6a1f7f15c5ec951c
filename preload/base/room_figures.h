// Who has the memory of a device, in words: a budget that the device cannot give is not one that is too small. In the
// victim process, too. Callers: messages of the replay, the report.
#pragma once
#include <cstdint>
#include <string>

#include "preload/base/causes.h"

namespace reprise {

// In bytes, as of when the driver was asked last.
struct RoomFigures {
  uint64_t total = 0;      // of the device; 0: not known
  uint64_t elsewhere = 0;  // held by other programs and the driver
  uint64_t headroom = 0;   // kept free for what the driver loads and makes later
  uint64_t room = 0;       // the rest: this program's
};

// "of its 36.0 MiB other programs and the driver hold 18.0 MiB, and 1.1 MiB are kept free for the driver"
inline std::string who_has_the_rest(const RoomFigures& figures) {
  if (figures.total == 0) return phrase<Cause::rest_unknown>();
  if (figures.elsewhere == 0) return words<Cause::rest_is_headroom>(figures.total, figures.headroom);
  return words<Cause::rest_is_shared>(figures.total, figures.elsewhere, figures.headroom);
}

// What to do where `needed` bytes have no room: others that end are of use where they hold as much.
inline std::string how_to_get_room(const RoomFigures& figures, uint64_t needed) {
  const bool others = figures.total == 0 || (figures.elsewhere != 0 && figures.room + figures.elsewhere >= needed);
  return others ? phrase<Cause::when_others_ended>() : phrase<Cause::on_larger_device>();
}

}  // namespace reprise
