// Measures the link of the current context's device with memory and streams of its own, which are gone afterwards.
// Callers: the forwarder, where a program is recorded and its memory is not managed; the dispatcher, where it is and
// nothing is recorded.
#pragma once
#include "preload/measure/link.h"

namespace reprise {

// Nothing is measured where the device has no chunk free, or a call fails. It takes some 100 ms. No capture of the
// program is disturbed, whichever thread has one open. `chunk_bytes`: a copy has up to so many bytes, a multiple of the
// device's chunk; 0: up to as many as the measurement chooses.
LinkRates measure_own_link(uint64_t chunk_bytes = 0) noexcept;

}  // namespace reprise
