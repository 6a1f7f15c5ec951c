// What the running call of a library (cuBLAS) says that its launches touch: its operands, from its arguments. Set by
// preload/libraries around the call, on the calling thread; read by the scan of launches and by allocation hooks.
#pragma once
#include <cuda.h>

#include <cstdint>

namespace reprise {

struct DeclaredOperand {
  CUdeviceptr address;  // of device memory, or of the host: then it is no operand
  uint32_t mode;        // trace::AccessMode bits
};

inline constexpr uint32_t kMostDeclared = 24;  // operands of a call

// `operands` outlive the call.
struct DeclaredCall {
  const DeclaredOperand* operands;
  uint32_t count;
  bool complete;  // its launches touch these and the library's own memory alone; otherwise nothing is said of them
};

namespace detail {
extern constinit thread_local const DeclaredCall* declared_call __attribute__((tls_model("initial-exec")));
}

// nullptr: this thread is in no such call.
inline const DeclaredCall* declared_call() noexcept { return detail::declared_call; }

class DeclaredScope {
 public:
  explicit DeclaredScope(const DeclaredCall& call) noexcept : outer_(detail::declared_call) {
    detail::declared_call = &call;
  }
  ~DeclaredScope() { detail::declared_call = outer_; }
  DeclaredScope(const DeclaredScope&) = delete;
  DeclaredScope& operator=(const DeclaredScope&) = delete;

 private:
  const DeclaredCall* const outer_;
};

}  // namespace reprise
