// The one account of device memory: our chunks, and what the program holds around them, as the driver tells it each
// time that either may have changed; what the program would take without us; the most of each. Callers: the dispatcher
// and the issuer, behind what makes the driver take memory; the enforcer, behind the program's own calls and at its
// end.
#pragma once
#include "replay/issue/shared.h"
#include "replay/memory/memory.h"

namespace reprise::replay {

// Asks the driver what is held around our chunks, and keeps what follows. Any thread; a context of the managed device
// must be current.
void look_around(Shared& shared, ManagedMemory& memory) noexcept;

// Asks what graphs hold, where any can hold something, and around them where that has changed.
void look_at_graphs(Shared& shared, ManagedMemory& memory) noexcept;

// What the program would take of the device without us is so much now, beside what it holds around us: is it the most
// so far?
void set_footprint(Shared& shared, uint64_t bytes) noexcept;

// So much was held at once before memory was managed, of which `by_calls` was made by calls that hooks saw.
void held_before(Shared& shared, uint64_t bytes, uint64_t by_calls) noexcept;

// What a percentage is of, without what is held around Reprise now: of `peak_footprint`, where no call ever made any of
// that. Else what was most at once may have been gone before it came.
uint64_t peak_beside_outside(const Shared& shared, uint64_t peak_footprint) noexcept;

// The most that the program would take of the device without us.
uint64_t peak_of_program(const Shared& shared) noexcept;

// Our chunks, and what is held around them, were this much at once: is it the most so far?
void raise_peak(Shared& shared, uint64_t bytes) noexcept;

// The most that was used of the device, chunks and what is held around them, as far as that was seen at once.
uint64_t peak_used(const Shared& shared, bool others) noexcept;

// The most that was held around Reprise. Where others were seen to take memory, what it was when the driver was asked
// last.
uint64_t outside_at_most(const Shared& shared, bool others) noexcept;

// What of the things that are held around us now no call of the program has made: context, code and so on.
uint64_t held_by_driver(const Shared& shared) noexcept;

}  // namespace reprise::replay
