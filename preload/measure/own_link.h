// Measures the link of the current context's device with memory and streams of its own, which are gone afterwards.
// Caller: the forwarder, where a program is recorded and its memory is not managed.
#pragma once
#include "preload/measure/link.h"

namespace reprise {

// Nothing is measured where the device has no chunk free, or a call fails. It takes some 100 ms, and longer where the
// link is slow. No capture of the program is disturbed, whichever thread has one open.
LinkRates measure_own_link() noexcept;

}  // namespace reprise
