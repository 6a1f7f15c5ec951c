// Who calls, and how often (REPRISE_SIM_CALLS). A call is the shim's own where it returns into libreprise.so: what the
// program calls and the shim merely hands on is a jump there, and returns into the program. Callers: faults.cpp.
#pragma once

namespace reprise::sim {

// Is this an address in the code of libreprise.so?
bool is_shim(const void* caller) noexcept;

// Starts to count when the environment asks for it; false: it does not.
bool count_calls() noexcept;
bool counting_calls() noexcept;
void note_call(const char* function, bool from_shim) noexcept;

}  // namespace reprise::sim
