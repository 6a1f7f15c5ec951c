// What the program holds around Reprise, as it changes without a call that asks for memory: graphs that allocate. And
// the most that was used with it at once. Callers: the dispatcher and the issuer, behind launches of graphs; the
// enforcer, behind calls about graphs and at the program's end.
#pragma once
#include "replay/issue/shared.h"

namespace reprise::replay {

// Asks what graphs hold, where any can hold something.
void look_at_graphs(Shared& shared) noexcept;

// What the program would take of the device without us is so much now, beside what graphs hold: is it the most so far?
void set_footprint(Shared& shared, uint64_t bytes) noexcept;

// What a percentage is of, without what is held around Reprise now: of `peak_footprint`, where no graph allocates.
// Where graphs do, what else was most at once may have been gone before they came.
uint64_t peak_beside_outside(const Shared& shared, uint64_t peak_footprint) noexcept;

// The most that the program would take of the device without us.
uint64_t peak_of_program(const Shared& shared) noexcept;

// Our chunks are this much, beside what is held around them now: is it the most so far?
void raise_peak(Shared& shared, uint64_t chunk_bytes) noexcept;

// The most that was used of the device, chunks and what is held around them, as far as that was seen at once.
uint64_t peak_used(const Shared& shared) noexcept;

// The most that was held around Reprise: what it was when the driver was asked last, with what graphs held at most.
uint64_t outside_at_most(const Shared& shared) noexcept;

}  // namespace reprise::replay
