// Memsets: 8, 16 and 32 bit, one or two dimensions.
#include "preload/access/pointees.h"
#include "preload/base/export.h"
#include "preload/driver/driver.h"
#include "preload/hooks/submit.h"

namespace reprise {
namespace {

struct Memset {
  uint32_t element_bytes;
  uint32_t value;
  bool async;
  bool flat;
  CUdeviceptr to;
  size_t pitch;
  size_t width;  // elements
  size_t height;

  static constexpr trace::OpKind kOp = trace::OpKind::memset;
  static constexpr const char* kName = "memset";
  static constexpr uint32_t kMaxAccesses = 1;

  static CUresult issue(const void* payload, CUstream stream) noexcept {
    const auto& set = *static_cast<const Memset*>(payload);
    if (set.flat) return set.async ? set.flat_async(stream) : set.flat_now(stream == CU_STREAM_PER_THREAD);
    return set.async ? set.rows_async(stream) : set.rows_now(stream == CU_STREAM_PER_THREAD);
  }

  size_t row() const noexcept { return width * element_bytes; }
  size_t span() const noexcept { return flat ? row() : height == 0 ? 0 : pitch * (height - 1) + row(); }

  void describe(CommandBuilder& builder) const noexcept {
    builder.command.size = row() * height;
    const bool done = hold_to_memory(builder, to, span());
    // Rows with gaps leave some bytes as they were.
    const bool dense = flat || pitch == row() || height == 1;
    if (span() > 0) builder.touch(to, span(), dense ? trace::kAccessWrite : trace::kAccessWrite | trace::kAccessRead);
    if (dense && done) mark_overwritten(to, span());
    if (element_bytes == 4 && value != 0) mark_half_written(to);
  }

 private:
  CUresult flat_now(bool per_thread) const noexcept {
    const auto& call = driver();
    const auto byte = static_cast<unsigned char>(value);
    const auto half = static_cast<unsigned short>(value);
    if (element_bytes == 1) return (per_thread ? call.cuMemsetD8_v2_ptds : call.cuMemsetD8_v2)(to, byte, width);
    if (element_bytes == 2) return (per_thread ? call.cuMemsetD16_v2_ptds : call.cuMemsetD16_v2)(to, half, width);
    return (per_thread ? call.cuMemsetD32_v2_ptds : call.cuMemsetD32_v2)(to, value, width);
  }
  CUresult flat_async(CUstream stream) const noexcept {
    if (element_bytes == 1) return driver().cuMemsetD8Async(to, static_cast<unsigned char>(value), width, stream);
    if (element_bytes == 2) return driver().cuMemsetD16Async(to, static_cast<unsigned short>(value), width, stream);
    return driver().cuMemsetD32Async(to, value, width, stream);
  }
  CUresult rows_now(bool per_thread) const noexcept {
    const auto& call = driver();
    const auto byte = static_cast<unsigned char>(value);
    const auto half = static_cast<unsigned short>(value);
    if (element_bytes == 1) {
      return (per_thread ? call.cuMemsetD2D8_v2_ptds : call.cuMemsetD2D8_v2)(to, pitch, byte, width, height);
    }
    if (element_bytes == 2) {
      return (per_thread ? call.cuMemsetD2D16_v2_ptds : call.cuMemsetD2D16_v2)(to, pitch, half, width, height);
    }
    return (per_thread ? call.cuMemsetD2D32_v2_ptds : call.cuMemsetD2D32_v2)(to, pitch, value, width, height);
  }
  CUresult rows_async(CUstream stream) const noexcept {
    const auto& call = driver();
    if (element_bytes == 1) {
      return call.cuMemsetD2D8Async(to, pitch, static_cast<unsigned char>(value), width, height, stream);
    }
    if (element_bytes == 2) {
      return call.cuMemsetD2D16Async(to, pitch, static_cast<unsigned short>(value), width, height, stream);
    }
    return call.cuMemsetD2D32Async(to, pitch, value, width, height, stream);
  }
};

CUresult flat(uint32_t element, CUdeviceptr to, uint32_t value, size_t count, bool async, CUstream stream) {
  return run_on_stream(Memset{element, value, async, true, to, 0, count, 1}, stream);
}
CUresult grid(uint32_t element, CUdeviceptr to, size_t pitch, uint32_t value, size_t width, size_t height, bool async,
              CUstream stream) {
  return run_on_stream(Memset{element, value, async, false, to, pitch, width, height}, stream);
}

}  // namespace
}  // namespace reprise

using namespace reprise;

// One family per element type: cuMemsetD8_v2, its per-thread form, cuMemsetD8Async, its per-thread form; the same in
// 2D.
#define REPRISE_MEMSETS(bits, Type)                                                                                \
  REPRISE_EXPORT CUresult cuMemsetD##bits##_v2(CUdeviceptr to, Type value, size_t count) {                         \
    return flat(bits / 8, to, value, count, false, CU_STREAM_LEGACY);                                              \
  }                                                                                                                \
  REPRISE_EXPORT CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr to, Type value, size_t count) {                    \
    return flat(bits / 8, to, value, count, false, CU_STREAM_PER_THREAD);                                          \
  }                                                                                                                \
  REPRISE_EXPORT CUresult cuMemsetD##bits##Async(CUdeviceptr to, Type value, size_t count, CUstream stream) {      \
    return flat(bits / 8, to, value, count, true, explicit_stream(stream, kLegacy));                               \
  }                                                                                                                \
  REPRISE_EXPORT CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr to, Type value, size_t count, CUstream stream) { \
    return flat(bits / 8, to, value, count, true, explicit_stream(stream, kPerThread));                            \
  }                                                                                                                \
  REPRISE_EXPORT CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, Type value, size_t width,           \
                                                 size_t height) {                                                  \
    return grid(bits / 8, to, pitch, value, width, height, false, CU_STREAM_LEGACY);                               \
  }                                                                                                                \
  REPRISE_EXPORT CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr to, size_t pitch, Type value, size_t width,      \
                                                      size_t height) {                                             \
    return grid(bits / 8, to, pitch, value, width, height, false, CU_STREAM_PER_THREAD);                           \
  }                                                                                                                \
  REPRISE_EXPORT CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, Type value, size_t width,         \
                                                   size_t height, CUstream stream) {                               \
    return grid(bits / 8, to, pitch, value, width, height, true, explicit_stream(stream, kLegacy));                \
  }                                                                                                                \
  REPRISE_EXPORT CUresult cuMemsetD2D##bits##Async_ptsz(CUdeviceptr to, size_t pitch, Type value, size_t width,    \
                                                        size_t height, CUstream stream) {                          \
    return grid(bits / 8, to, pitch, value, width, height, true, explicit_stream(stream, kPerThread));             \
  }

REPRISE_MEMSETS(8, unsigned char)
REPRISE_MEMSETS(16, unsigned short)
REPRISE_MEMSETS(32, unsigned)
