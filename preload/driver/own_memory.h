// How much of a device's memory this process holds, which cuMemGetInfo cannot tell: it knows all processes together.
// NVML tells it by process numbers. Callers: whoever counts what a call of the driver takes (taken.h), the doctor.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <optional>

#include "preload/driver/nvml.h"

namespace reprise {

// All of it: context, code, memory, as NVML has it for the process of our number. nullopt: nobody tells, as without
// NVML or in a container, whose process numbers are its own. One question takes up to a millisecond, so there is an end
// to them (kMostAskingNs). Loads NVML on the first call; thread safe.
std::optional<uint64_t> own_bytes(CUdevice device) noexcept;
inline constexpr uint64_t kMostAskingNs = 2'000'000'000;

// NVML's name of a device, "GPU-" or "MIG-" and its UUID. false: the driver has no such device.
bool nvml_name(CUdevice device, const char* kind, nvml::Name* name) noexcept;

// Is that figure of this process? One of another that has our number elsewhere does not follow what we do: a chunk is
// made and released, once a device. A context of the device must be current.
bool own_bytes_follow(CUdevice device) noexcept;

// What this process holds of the device, of which `known` bytes are known by calls that were seen: as NVML tells it, or
// no more than what is known. A context of the device must be current.
uint64_t held_by_process(CUdevice device, uint64_t known) noexcept;

namespace detail {
// For tests: these functions instead of NVML's, and nothing is known of any device; nullptr: NVML's again.
void take_nvml(const nvml::Functions* functions) noexcept;
}  // namespace detail

}  // namespace reprise
