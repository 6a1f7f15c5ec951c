#include "tests/unit/preload/scripted/recording_handler.h"

#include <algorithm>
#include <cstring>

#include "preload/driver/driver.h"

namespace reprise {
namespace {
RecordingHandler* current = nullptr;
}

RecordingHandler& handler() {
  if (current == nullptr) current = new RecordingHandler;
  return *current;
}

void watch(uint8_t flags) {
  detail::runtime.handler = &handler();
  __atomic_store_n(&reprise_watch, flags, __ATOMIC_RELEASE);
}

void stop_watching() {
  __atomic_store_n(&reprise_watch, uint8_t{0}, __ATOMIC_RELEASE);
  current = nullptr;  // leaked, as handlers are
}

CUresult RecordingHandler::allocate(const AllocateCall& call, CUdeviceptr* address) noexcept {
  allocations.push_back(call);
  return answer != CUDA_SUCCESS ? answer : driver().cuMemAlloc(address, call.size);
}
CUresult RecordingHandler::release(const FreeCall& call) noexcept {
  frees.push_back(call);
  return answer;
}
CUresult RecordingHandler::submit(const Command& command) noexcept {
  SeenCommand seen;
  seen.command = command;
  seen.accesses.assign(command.accesses, command.accesses + command.access_count);
  const auto* bytes = static_cast<const uint8_t*>(command.payload);
  seen.payload.assign(bytes, bytes + command.payload_bytes);
  if (command.parameters != nullptr) {
    seen.parameters.assign(command.parameters, command.parameters + command.parameter_bytes);
  }
  seen.name = command.name;
  commands.push_back(std::move(seen));
  if (while_submitting) {
    if (const CUresult result = while_submitting(); result != CUDA_SUCCESS) return result;
  }
  if (answer != CUDA_SUCCESS) return answer;
  return issue ? command.issue(command.payload, command.stream) : CUDA_SUCCESS;
}
bool RecordingHandler::read_back(const ReadBack& request) noexcept {
  reads.push_back(request);
  std::vector<unsigned char> bytes;
  for (uint32_t i = 0; i < request.count; ++i) {
    const ReadBackPart& part = request.parts[i];
    read_parts.push_back(part);
    std::vector<unsigned char> all(part.offset + part.bytes);
    const std::vector<uint64_t>& content = contents[part.base];
    if (!content.empty()) std::memcpy(all.data(), content.data(), std::min(all.size(), content.size() * 8));
    bytes.insert(bytes.end(), all.begin() + static_cast<std::ptrdiff_t>(part.offset), all.end());
  }
  if (while_reading) while_reading();
  if (read_answer && request.take != nullptr) request.take(request.user, bytes.data());
  return read_answer;
}
CUresult RecordingHandler::event_record(CUevent, CUstream stream, unsigned) noexcept {
  streams.push_back(stream);
  return answer;
}
CUresult RecordingHandler::stream_wait_event(CUstream stream, CUevent, unsigned) noexcept {
  streams.push_back(stream);
  return answer;
}
CUresult RecordingHandler::stream_synchronize(CUstream stream) noexcept {
  streams.push_back(stream);
  return answer;
}
CUresult RecordingHandler::memory_info(size_t* free_bytes, size_t* total_bytes) noexcept {
  *free_bytes = 111;
  *total_bytes = 222;
  return CUDA_SUCCESS;
}
CUresult RecordingHandler::total_memory(size_t* bytes, CUdevice) noexcept {
  *bytes = 333;
  return CUDA_SUCCESS;
}
CUresult RecordingHandler::before_beside(BesideCall* call) noexcept {
  beside.push_back(*call);
  return beside_answer;
}
void RecordingHandler::after_beside(const BesideCall&, CUresult) noexcept { ++beside_ended; }

}  // namespace reprise
