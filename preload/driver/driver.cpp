#include "preload/driver/driver.h"

#include <pthread.h>

#include "preload/driver/resolve.h"

namespace reprise::detail {

constinit DriverTable driver_table{};
constinit bool driver_ready = false;

namespace {

pthread_once_t load_once = PTHREAD_ONCE_INIT;

// Every entry returns CUresult and leaves the stack to its caller, so one function can stand in for all of them.
void* entry(const char* name, const char* older = nullptr) {
  void* symbol = driver_symbol(name);
  if (symbol == nullptr && older != nullptr) symbol = driver_symbol(older);
  return symbol != nullptr ? symbol : reinterpret_cast<void*>(&driver_entry_missing);
}

#define REPRISE_NAME(name) #name
#define REPRISE_EXPANDED_NAME(name) REPRISE_NAME(name)

void load() {
#define REPRISE_DRIVER(name) \
  driver_table.name = reinterpret_cast<decltype(driver_table.name)>(entry(REPRISE_EXPANDED_NAME(name)));
#define REPRISE_DRIVER_OR(name, older) \
  driver_table.name = reinterpret_cast<decltype(driver_table.name)>(entry(REPRISE_EXPANDED_NAME(name), older));
#define REPRISE_DRIVER_AS(symbol, like) \
  driver_table.symbol = reinterpret_cast<decltype(driver_table.symbol)>(entry(REPRISE_EXPANDED_NAME(symbol)));
#define REPRISE_DRIVER_FORM(member, symbol, type) \
  driver_table.member = reinterpret_cast<std::add_pointer_t<type>>(entry(symbol));
#include "preload/driver/driver.def"
#undef REPRISE_DRIVER
#undef REPRISE_DRIVER_OR
#undef REPRISE_DRIVER_AS
#undef REPRISE_DRIVER_FORM
  __atomic_store_n(&driver_ready, true, __ATOMIC_RELEASE);
}

}  // namespace

CUresult driver_entry_missing() noexcept {
  return driver_path() != nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_STUB_LIBRARY;
}

const DriverTable& load_driver_table() noexcept {
  pthread_once(&load_once, load);
  return driver_table;
}

}  // namespace reprise::detail
