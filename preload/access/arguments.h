// Which memory may a kernel touch? Scans its parameter bytes for addresses of live allocations, TMA descriptors and
// pointer tables, and adds what the kernel reaches without parameters. Callers: launch hooks, graph walking.
#pragma once
#include <cstdint>

#include "preload/access/command_builder.h"
#include "preload/tracking/functions.h"

namespace reprise {

// Scans every 8-byte aligned word of [begin, begin + bytes) of `parameters`: pointers may stand inside by-value
// structs. `begin` and the found offsets count from the start of the parameter space. Each access is for reading and
// writing.
void scan_words(CommandBuilder& builder, const uint8_t* parameters, uint32_t begin, uint32_t bytes) noexcept;

// All of a launch: `parameters` holds each parameter at the layout's offset, or, without a layout, the program's own
// buffer of `parameter_bytes`; with this grid.
void scan_launch(CommandBuilder& builder, const Function& function, const uint8_t* parameters, uint32_t parameter_bytes,
                 structures::Grid grid) noexcept;

// How many accesses scan_launch() may need room for; more make the launch opaque.
uint32_t access_room(uint32_t parameter_bytes) noexcept;

}  // namespace reprise
