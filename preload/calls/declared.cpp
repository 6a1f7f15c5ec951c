#include "preload/calls/declared.h"

namespace reprise::detail {

constinit thread_local const DeclaredCall* declared_call __attribute__((tls_model("initial-exec"))) = nullptr;

}  // namespace reprise::detail
