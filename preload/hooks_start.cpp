// cuInit: where Reprise begins.
#include "preload/driver.h"
#include "preload/entry.h"
#include "preload/export.h"
#include "preload/guard.h"
#include "preload/log.h"
#include "preload/resolve.h"

namespace {
bool said_no_driver = false;
}

REPRISE_EXPORT CUresult cuInit(unsigned flags) {
  using namespace reprise;
  const CUresult result = driver().cuInit(flags);
  if (driver_path() == nullptr && !__atomic_exchange_n(&said_no_driver, true, __ATOMIC_RELAXED)) {
    log_line(LogLevel::warn, "%s", driver_problem());
  }
  if (result == CUDA_SUCCESS && !detail::inside_hook) start();
  return result;
}
