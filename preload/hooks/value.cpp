// Stream memory operations that write one word: an ordinary access of 4 or 8 bytes. Those that wait for a word stay
// opaque (hooks.def says why), and batches of both.
#include "preload/access/pointees.h"
#include "preload/base/export.h"
#include "preload/driver/driver.h"
#include "preload/hooks/submit.h"

namespace reprise {
namespace {

struct WriteValue {
  CUdeviceptr to;
  uint64_t value;
  unsigned flags;
  bool wide;   // 64 bits
  bool first;  // the form of before CUDA 11.7

  static constexpr trace::OpKind kOp = trace::OpKind::memset;
  static constexpr const char* kName = "write value";
  static constexpr uint32_t kMaxAccesses = 1;

  static CUresult issue(const void* payload, CUstream stream) noexcept {
    const auto& write = *static_cast<const WriteValue*>(payload);
    const auto& call = driver();
    if (write.wide) {
      return (write.first ? call.cuStreamWriteValue64_v1 : call.cuStreamWriteValue64)(stream, write.to, write.value,
                                                                                      write.flags);
    }
    return (write.first ? call.cuStreamWriteValue32_v1 : call.cuStreamWriteValue32)(
        stream, write.to, static_cast<cuuint32_t>(write.value), write.flags);
  }

  void describe(CommandBuilder& builder) const noexcept {
    const uint64_t bytes = wide ? 8 : 4;
    builder.command.size = bytes;
    // A word outside all known allocations may be one that a host thread waits for: opaque, so it is not deferred.
    if (!builder.touch(to, bytes, trace::kAccessWrite)) builder.flag(trace::kOpOpaque);
    if (wide) {
      record_payload(to, {&value, 8});  // it may be an address
    } else {
      mark_half_written(to);
    }
  }
};

}  // namespace
}  // namespace reprise

using namespace reprise;

// One family per width: the first form, its per-thread form, the second form, its per-thread form.
#define REPRISE_WRITE_VALUES(bits)                                                                                    \
  REPRISE_EXPORT CUresult cuStreamWriteValue##bits##_ptsz(CUstream stream, CUdeviceptr to, cuuint##bits##_t value,    \
                                                          unsigned flags) {                                           \
    return run_on_stream(WriteValue{to, value, flags, bits == 64, true}, explicit_stream(stream, kPerThread));        \
  }                                                                                                                   \
  REPRISE_EXPORT CUresult cuStreamWriteValue##bits##_v2(CUstream stream, CUdeviceptr to, cuuint##bits##_t value,      \
                                                        unsigned flags) {                                             \
    return run_on_stream(WriteValue{to, value, flags, bits == 64, false}, explicit_stream(stream, kLegacy));          \
  }                                                                                                                   \
  REPRISE_EXPORT CUresult cuStreamWriteValue##bits##_v2_ptsz(CUstream stream, CUdeviceptr to, cuuint##bits##_t value, \
                                                             unsigned flags) {                                        \
    return run_on_stream(WriteValue{to, value, flags, bits == 64, false}, explicit_stream(stream, kPerThread));       \
  }

REPRISE_WRITE_VALUES(32)
REPRISE_WRITE_VALUES(64)

// cuda.h gives these names to the second form.
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
REPRISE_EXPORT CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned flags) {
  return run_on_stream(WriteValue{to, value, flags, false, true}, explicit_stream(stream, kLegacy));
}
REPRISE_EXPORT CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr to, cuuint64_t value, unsigned flags) {
  return run_on_stream(WriteValue{to, value, flags, true, true}, explicit_stream(stream, kLegacy));
}
