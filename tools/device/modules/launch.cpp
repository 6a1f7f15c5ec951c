#include "tools/device/modules/launch.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "preload/driver/sim_abi.h"
#include "tools/device/base/settings.h"
#include "tools/device/base/thread.h"
#include "tools/device/base/trap.h"
#include "tools/device/engines/device.h"
#include "tools/device/engines/engine.h"
#include "tools/device/memory/memory.h"
#include "tools/device/modules/kernel_code.h"
#include "tools/device/modules/last_fault.h"
#include "tools/device/streams/faults.h"
#include "tools/device/streams/stream.h"
#include "tools/device/twins/executor.h"
#include "tools/device/twins/registry.h"

namespace reprise::sim {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxBlock[3] = {1024, 1024, 64};
constexpr uint32_t kMaxGrid[3] = {0x7FFFFFFF, 65535, 65535};
constexpr uint64_t kResidentThreads = 132ull * 2048;  // what runs at once, for cooperative launches

uint64_t product(const uint32_t (&sizes)[3]) { return uint64_t{sizes[0]} * sizes[1] * sizes[2]; }

}  // namespace

CUresult check_launch(const Function& function, const LaunchShape& shape) {
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] == 0 || shape.grid[i] > kMaxGrid[i]) return CUDA_ERROR_INVALID_VALUE;
    if (shape.block[i] == 0 || shape.block[i] > kMaxBlock[i]) return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t threads = product(shape.block);
  if (threads > kMaxThreads) return CUDA_ERROR_INVALID_VALUE;
  if (threads > function.kernel->max_threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const uint64_t allowed = static_cast<uint64_t>(function.settings.max_dynamic_shared.load(std::memory_order_relaxed));
  if (shape.shared_bytes > allowed) return CUDA_ERROR_INVALID_VALUE;
  if (shape.cooperative && product(shape.grid) > kResidentThreads / threads) {
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return CUDA_SUCCESS;
}

uint8_t* ParameterBlob::make_room(uint32_t bytes) {
  bytes_ = bytes;
  if (bytes > sizeof(small_)) large_.resize(bytes);
  uint8_t* const room = large_.empty() ? small_ : large_.data();
  std::memset(room, 0, bytes);
  return room;
}

CUresult ParameterBlob::read(const Function& function, void** parameters, void** extra) {
  if (parameters != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (extra != nullptr) return read_buffer(function, extra);
  const std::vector<ParameterImage>& layout = function.kernel->parameters;
  if (layout.empty()) return CUDA_SUCCESS;
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint8_t* const room = make_room(function.parameter_bytes);
  for (size_t i = 0; i < layout.size(); ++i) {
    if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(room + (layout[i].offset - layout[0].offset), parameters[i], layout[i].bytes);
  }
  return CUDA_SUCCESS;
}

CUresult ParameterBlob::read_buffer(const Function& function, void** extra) {
  const uint8_t* buffer = nullptr;
  size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = static_cast<const uint8_t*>(extra[1]);
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  const uint32_t needed = function.parameter_bytes;
  if (needed == 0) return CUDA_SUCCESS;
  if (buffer == nullptr || bytes < needed) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(make_room(needed), buffer, needed);
  return CUDA_SUCCESS;
}

constexpr char kDigest[] = "reprise_digest";  // replay/digest/digest.cu

KernelOperation::KernelOperation(std::shared_ptr<const Function> its_function, const LaunchShape& its_shape,
                                 ParameterBlob its_blob)
    : function(std::move(its_function)), shape(its_shape), blob(std::move(its_blob)) {
  // A kernel of the shim's own only reads, and the program may have other allocations at these addresses by now.
  const bool moves = thread_state.call == kRepriseSimMoves;
  addresses_ = find_addresses(blob.data(), blob.bytes(), [&](uint64_t word, Pointee* pointee) {
    Extent extent;
    if (!find_extent(word, &extent)) return is_known_address(word);
    *pointee = {extent.base, extent.bytes, moves ? nullptr : extent.written.get()};
    extents_.push_back(std::move(extent));
    return true;
  });
  if (modelled_clock()) duration_ = kernel_duration(function->kernel->name, operand_bytes());
}

// A digest reads so many bytes as its second parameter says, of allocations that may have ended by the program's order
// and that lie in several mappings. Of other memory that is no allocation all of the mapping counts.
uint64_t KernelOperation::operand_bytes() const {
  if (function->kernel->name == kDigest && blob.bytes() >= 2 * sizeof(uint64_t)) {
    uint64_t digested = 0;
    std::memcpy(&digested, blob.data() + sizeof digested, sizeof digested);
    return digested;
  }
  std::set<uint64_t> counted;
  uint64_t bytes = 0;
  for (const AddressWord& operand : addresses_) {
    if (operand.written != nullptr) {
      if (counted.insert(operand.base).second) bytes += operand.bytes;
    } else if (const std::optional<Range> range = memory_map().find(operand.word); range && !range->is_host()) {
      if (counted.insert(range->base).second) bytes += range->bytes;
    }
  }
  return bytes;
}

void KernelOperation::execute(const Execution& execution) const {
  Device& device = execution.context.device;
  ++device.counters.launches;
  if (const CUresult fault = next_execution_fault(); fault != CUDA_SUCCESS) {
    execution.context.fail(fault);
    return;
  }
  const auto forbidden = [&](const AddressWord& word) { return !memory_map().may_touch(execution.context, word.word); };
  if (device_count() > 1) {
    const auto found = std::find_if(addresses_.begin(), addresses_.end(), forbidden);
    if (found != addresses_.end()) {
      keep_fault(found->word, function->kernel->name);
      execution.context.fail(CUDA_ERROR_ILLEGAL_ADDRESS);
      return;
    }
  }
  KernelRun run = {};
  run.kernel = function->kernel;
  run.parameters = blob.data();
  run.parameter_bytes = blob.bytes();
  std::memcpy(run.grid, shape.grid, sizeof(run.grid));
  std::memcpy(run.block, shape.block, sizeof(run.block));
  run.shared_bytes = shape.shared_bytes;
  run.addresses = addresses_;
  run.call = execution.call;
  run.kernel_seed = settings().kernels;
  run.kernel_lies = settings().kernels_lie;
  if (run.kernel_seed == 0 && find_twin(function->kernel->name) == nullptr) run.code = code_of(*function);
  const EngineUse use(device, EngineKind::compute, execution, duration_);
  auto body = [&] { execute_kernel(run); };
  if (run_trapped(body)) return;
  keep_fault(bad_address(), function->kernel->name);
  execution.context.fail(CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace reprise::sim
