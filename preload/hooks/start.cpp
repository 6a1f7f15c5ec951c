// cuInit: where Reprise begins.
#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/driver/driver.h"
#include "preload/exports/getprocaddress.h"
#include "preload/start/entry.h"

REPRISE_EXPORT CUresult cuInit(unsigned flags) {
  using namespace reprise;
  if (!detail::inside_hook) before_driver_starts();
  const CUresult result = driver().cuInit(flags);
  say_if_no_driver();
  if (result == CUDA_SUCCESS && !detail::inside_hook) start();
  return result;
}
