// What makes two kernels the same in all programs: the image that they come from, for a kernel may call what stands
// elsewhere in it; their names; their parameters. Callers: functions in the victim process, what looks for the code of
// recorded kernels.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "preload/trace/format.h"
#include "preload/trace/signature.h"

namespace reprise::trace {

// The hash of a module's code adds the images for each kind of device, one after the other. `before`: 0 for the first.
inline uint64_t code_of_image(uint64_t before, uint64_t content) noexcept { return hash_mix(before, content); }

inline uint64_t kernel_identity(uint64_t code, std::string_view name,
                                std::span<const ParameterLayout> parameters) noexcept {
  const uint64_t hash = hash_mix(code, hash_bytes(name.data(), name.size()));
  return hash_bytes(parameters.data(), parameters.size_bytes(), hash);
}

}  // namespace reprise::trace
