#include "preload/record/activity/cupti_records.h"

#include <sys/mman.h>

#include <cstddef>

namespace reprise {
namespace {

template <typename T>
T* map_array(size_t count) noexcept {
  void* memory =
      ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

// CUPTI 11.8 to 13 differ only behind the fields that are read here, so an older or newer library of these works with
// the structs of this build's header.
using Kernel = CUpti_ActivityKernel10;
using Copy = CUpti_ActivityMemcpy6;
using PeerCopy = CUpti_ActivityMemcpyPtoP4;
using Set = CUpti_ActivityMemset4;

}  // namespace

bool CuptiRecords::create() noexcept {
  known_ = map_array<Correlation>(kKnown);
  work_ = map_array<TimedWork>(kWork);
  return known_ != nullptr && work_ != nullptr;
}

void CuptiRecords::add(const CUpti_Activity* record, int64_t offset_ns) noexcept {
  const auto work = [&](const auto* one) { add_work(one->correlationId, one->start, one->end, offset_ns); };
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto* link = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      // Ids of other kinds were pushed by other tools.
      if (link->externalKind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2) return;
      ++links_;
      known_[link->correlationId % kKnown] = {link->correlationId, link->externalId};
      return;
    }
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return work(reinterpret_cast<const Kernel*>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return work(reinterpret_cast<const Copy*>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return work(reinterpret_cast<const PeerCopy*>(record));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return work(reinterpret_cast<const Set*>(record));
    default:
      return;
  }
}

void CuptiRecords::add_work(uint32_t correlation, uint64_t start, uint64_t end, int64_t offset_ns) noexcept {
  ++works_;
  if (start == 0 || end < start) return;  // CUPTI could not time it
  if (last_ - first_ == kWork) ++first_;
  const auto offset = static_cast<uint64_t>(offset_ns);
  work_[last_ % kWork] = {correlation, start + offset, end + offset};
  ++last_;
}

void CuptiRecords::deliver(ActivityCallback callback, void* user) noexcept {
  const uint64_t end = last_;
  last_ = first_;
  for (uint64_t i = first_; i < end; ++i) {
    const TimedWork work = work_[i % kWork];
    const Correlation& known = known_[work.correlation % kKnown];
    if (known.correlation == work.correlation && known.id != 0) {
      callback(user, known.id, work.start_ns, work.end_ns);
    } else {
      work_[last_ % kWork] = work;
      ++last_;
    }
  }
}

}  // namespace reprise
