// What the environment says about the simulated device (REPRISE_SIM_*). Read once, at cuInit. Callers: all of the
// driver.
#pragma once
#include <cstddef>
#include <cstdint>

namespace reprise::sim {

struct Microseconds {
  uint64_t nanoseconds = 0;
};

// A field for each row of variables.def, which says what it means.
struct Settings {
#define REPRISE_VARIABLE(field, name, Field, values, standard, help) Field field{};
#define REPRISE_LONE_VARIABLE(name, values, standard, help)
#include "tools/device/base/variables.def"
#undef REPRISE_VARIABLE
#undef REPRISE_LONE_VARIABLE
};

// The settings; reads the environment on the first call. A value that cannot be read is reported on stderr, and its
// default holds.
const Settings& settings() noexcept;

// "12GiB", "800MiB", "4096", "1.5GB"; false when it is none.
bool parse_size(const char* text, uint64_t* bytes) noexcept;

}  // namespace reprise::sim
