#include "replay/issue/fault_report.h"

#include <algorithm>

#include "preload/base/causes.h"
#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"

namespace reprise::replay {

void FaultReport::issued(LaneUse use, const char* name) noexcept {
  issued_[issued_count_++ % kRemembered] = {use, name};
}

// A sticky error may be our own (work that could not be served): then the device still answers. A program that was told
// of a shortage is about to end for that, with one message; the device's failure is another matter once a call answers
// it.
void FaultReport::look() noexcept {
  if (looked_ || !is_sticky(shared_.faults.peek())) return;
  if (shared_.counters.shortages.load() != 0 && !shared_.faults.answered()) return;
  looked_ = true;
  const CUresult result = ask();
  if (is_sticky(result)) tell(result);
}

CUresult FaultReport::ask() noexcept {
  memory_.lanes.enter_own();
  return driver().cuStreamQuery(memory_.lanes.stream(Lanes::kToDevice));
}

bool FaultReport::failed() noexcept {
  const CUresult result = ask();
  if (is_sticky(result)) shared_.faults.report(result);
  return is_sticky(result);
}

// Work is remembered in the order of its issue; lanes were polled while the device was alive.
const FaultReport::Issued* FaultReport::oldest_unfinished(uint64_t* count) noexcept {
  const Issued* oldest = nullptr;
  *count = 0;
  const uint64_t first = issued_count_ - std::min<uint64_t>(issued_count_, kRemembered);
  for (uint64_t i = first; i < issued_count_; ++i) {
    const Issued& work = issued_[i % kRemembered];
    if (memory_.lanes.known_complete(work.use)) continue;
    if (oldest == nullptr) oldest = &work;
    ++*count;
  }
  return oldest;
}

// What a kernel may have reached by a pointer from memory, and what helps. By now some of it may be back.
std::string FaultReport::away() const {
  uint64_t count = 0;
  uint64_t bytes = 0;
  memory_.tensors.for_each([&](ResidentTensor& tensor) {
    if (memory_.mover_of(tensor).is_resident()) return;
    ++count;
    bytes += tensor.size;
  });
  return count == 0 ? phrase<Cause::none_away>() : words<Cause::some_away>(count, bytes, advice());
}

std::string FaultReport::advice() const {
  return words<Cause::budget_for_all>(shared_.counters.peak_requested_bytes.load(std::memory_order_relaxed));
}

// The simulated device knows the access.
bool FaultReport::tell_of_address() noexcept {
  char kernel[256] = "";
  uint64_t address = 0;
  if (!find_fault(&address, kernel, sizeof kernel)) return false;
  ResidentTensor* touched = nullptr;
  memory_.tensors.for_each([&](ResidentTensor& tensor) {
    if (address - tensor.base < std::max<uint64_t>(tensor.size, 1)) touched = &tensor;
  });
  if (touched == nullptr || memory_.mover_of(*touched).is_resident()) return false;
  say<Cause::reached_away>(kernel, touched->allocation, touched->size, address - touched->base, advice());
  return true;
}

void FaultReport::tell(CUresult result) noexcept {
  if (shared_.strict && result == CUDA_ERROR_ILLEGAL_ADDRESS && tell_of_address()) return;
  uint64_t unfinished = 0;
  const Issued* const oldest = oldest_unfinished(&unfinished);
  const char* const name = oldest != nullptr ? oldest->name : phrase<Cause::work_unknown>();
  if (!shared_.strict || result != CUDA_ERROR_ILLEGAL_ADDRESS) {
    say<Cause::device_failed>(result, name, unfinished);
    return;
  }
  say<Cause::reached_unmapped>(name, unfinished, result, away());
}

}  // namespace reprise::replay
