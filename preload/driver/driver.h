// The real driver, typed: everything Reprise itself calls. Callers: all that asks the driver in preload/ and replay/.
// driver().cuMemAlloc(...) is cuda.h's cuMemAlloc (so cuMemAlloc_v2), and never comes back to our own hooks.
#pragma once
#include <cuda.h>

#include <type_traits>

namespace reprise {

// An entry that the driver lacks answers CUDA_ERROR_NOT_FOUND (CUDA_ERROR_STUB_LIBRARY when there is no driver at all),
// so every pointer can be called; driver_has() tells beforehand.
struct DriverTable {
#define REPRISE_DRIVER(name) decltype(&::name) name;
#define REPRISE_DRIVER_OR(name, older) decltype(&::name) name;
#define REPRISE_DRIVER_AS(symbol, like) decltype(&::like) symbol;
#define REPRISE_DRIVER_FORM(member, symbol, type) std::add_pointer_t<type> member;
#include "preload/driver/driver.def"
#undef REPRISE_DRIVER
#undef REPRISE_DRIVER_OR
#undef REPRISE_DRIVER_AS
#undef REPRISE_DRIVER_FORM
};

namespace detail {
extern DriverTable driver_table;
extern bool driver_ready;
const DriverTable& load_driver_table() noexcept;
CUresult driver_entry_missing() noexcept;
}  // namespace detail

// Loads the driver on the first call (see resolve.h for which one). Thread safe.
inline const DriverTable& driver() noexcept {
  if (__builtin_expect(__atomic_load_n(&detail::driver_ready, __ATOMIC_ACQUIRE), true)) return detail::driver_table;
  return detail::load_driver_table();
}

// Does the driver have this entry of driver()?
template <typename Function>
bool driver_has(Function* entry) noexcept {
  return reinterpret_cast<void*>(entry) != reinterpret_cast<void*>(&detail::driver_entry_missing);
}

}  // namespace reprise
