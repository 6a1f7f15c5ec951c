// The work that the fake CUPTI tells of when the program runs on the simulated device: that device's own records.
// Without it there is none. Callers: library.cpp.
#pragma once
#include <cstdint>

// CUPTI's clock, far from CLOCK_MONOTONIC as the real one's.
uint64_t fake_device_now();

void fake_device_enable(bool enabled);
void fake_device_push(uint64_t id);
void fake_device_pop();

// Work that is complete, with the id that was pushed when it was issued (0: none), on CUPTI's clock.
void fake_device_read(void (*take)(uint64_t id, uint64_t start, uint64_t end));
