// The hook API: where a call goes after the hook has understood it. Two implementations: Forwarder
// (preload/start/forwarder.h: straight to the driver) and Enforcer (replay/enforcer/enforcer.h: manages memory under a
// budget). Each has two halves, and a hook calls exactly one function of one of them. All are noexcept and callable
// from any thread.
#pragma once
#include "preload/calls/memory_handler.h"
#include "preload/calls/order_handler.h"

namespace reprise {

// Objects live as long as the process and are never destroyed.
class Handler {
 public:
  OrderHandler& order;
  MemoryHandler& memory;

  // At process exit; in a fork child.
  virtual void finish() noexcept = 0;
  virtual void abandon() noexcept = 0;

 protected:
  Handler(OrderHandler* order_half, MemoryHandler* memory_half) noexcept : order(*order_half), memory(*memory_half) {}
  ~Handler() = default;
};

}  // namespace reprise
