// cuInit: where Reprise begins.
#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/base/log.h"
#include "preload/driver/driver.h"
#include "preload/driver/resolve.h"
#include "preload/start/entry.h"

namespace {
bool said_no_driver = false;
}

REPRISE_EXPORT CUresult cuInit(unsigned flags) {
  using namespace reprise;
  if (!detail::inside_hook) before_driver_starts();
  const CUresult result = driver().cuInit(flags);
  if (driver_path() == nullptr && !__atomic_exchange_n(&said_no_driver, true, __ATOMIC_RELAXED)) {
    log_line(LogLevel::warn, "%s", driver_problem());
  }
  if (result == CUDA_SUCCESS && !detail::inside_hook) start();
  return result;
}
