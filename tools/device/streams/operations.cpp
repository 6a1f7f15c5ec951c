#include "tools/device/streams/operations.h"

#include "tools/device/base/thread.h"
#include "tools/device/engines/clock.h"
#include "tools/device/streams/context.h"

namespace reprise::sim {
namespace {

class EmptyOperation final : public Operation {
 public:
  OperationKind kind() const override { return OperationKind::empty; }
  void execute(const Execution&) const override {}
};

class HostOperation final : public Operation {
 public:
  HostOperation(CUhostFn function, void* data) : parameters{function, data} {}
  OperationKind kind() const override { return OperationKind::host; }
  void execute(const Execution& execution) const override {
    const HostWork time(execution.time_ns);
    thread_state.in_callback = true;
    parameters.fn(parameters.userData);
    thread_state.in_callback = false;
  }
  const CUDA_HOST_NODE_PARAMS parameters;
};

class CallbackOperation final : public Operation {
 public:
  CallbackOperation(CUstream stream, CUstreamCallback callback, void* data)
      : stream_(stream), callback_(callback), data_(data) {}
  OperationKind kind() const override { return OperationKind::other; }
  bool runs_after_failure() const override { return true; }
  void execute(const Execution& execution) const override {
    const HostWork time(execution.time_ns);
    thread_state.in_callback = true;
    callback_(stream_, execution.context.status(), data_);
    thread_state.in_callback = false;
  }

 private:
  const CUstream stream_;
  const CUstreamCallback callback_;
  void* const data_;
};

}  // namespace

OperationPointer empty_operation() {
  static const OperationPointer& instance = *new OperationPointer(std::make_shared<EmptyOperation>());
  return instance;
}

OperationPointer host_operation(CUhostFn function, void* data) {
  return std::make_shared<HostOperation>(function, data);
}

OperationPointer callback_operation(CUstream stream, CUstreamCallback callback, void* data) {
  return std::make_shared<CallbackOperation>(stream, callback, data);
}

CUDA_HOST_NODE_PARAMS host_parameters(const Operation& operation) {
  return static_cast<const HostOperation&>(operation).parameters;
}

}  // namespace reprise::sim
