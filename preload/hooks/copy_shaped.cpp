// Copies of two- and three-dimensional shapes, within a device and between two.
#include "preload/access/pointees.h"
#include "preload/base/export.h"
#include "preload/driver/driver.h"
#include "preload/hooks/copy_ends.h"
#include "preload/hooks/submit.h"

namespace reprise {
namespace {

// One side of a shaped copy as the range of bytes that contains it.
struct Side {
  CUmemorytype type;
  CUdeviceptr base;  // host or device address; not for arrays
  size_t x;
  size_t y;
  size_t z;
  size_t pitch;
  size_t rows;  // per slice
};
struct Shape {
  size_t width;  // bytes
  size_t height;
  size_t depth;
};

struct CopiedRange {
  CUdeviceptr begin = 0;
  uint64_t bytes = 0;
  bool dense = false;  // without gaps
};

CopiedRange range_of(const Side& side, const Shape& shape) {
  const size_t slice = side.pitch * (side.rows != 0 ? side.rows : shape.height);
  CopiedRange range;
  if (shape.width == 0 || shape.height == 0 || shape.depth == 0) return range;
  range.begin = side.base + side.z * slice + side.y * side.pitch + side.x;
  range.bytes = (shape.depth - 1) * slice + (shape.height - 1) * side.pitch + shape.width;
  range.dense = range.bytes == shape.width * shape.height * shape.depth;
  return range;
}

// Empty where nothing is copied or there is no address.
CopiedRange addresses_of(const Side& side, const Shape& shape) {
  return side.type == CU_MEMORYTYPE_ARRAY ? CopiedRange{} : range_of(side, shape);
}

Place place(const Side& side) {
  if (side.type == CU_MEMORYTYPE_DEVICE || side.type == CU_MEMORYTYPE_ARRAY) return Place::device;
  const Place found = place_of(side.base);
  // "Host" is the program's word for it; an address that the driver does not know is pageable.
  return side.type == CU_MEMORYTYPE_HOST && found == Place::device ? Place::pinned : found;
}

void describe_shaped(CommandBuilder& builder, const Side& from, const Side& to, const Shape& shape) {
  const Place from_place = place(from);
  const Place to_place = place(to);
  builder.command.size = shape.width * shape.height * shape.depth;
  classify(builder, from_place, to_place);
  if (from.type != CU_MEMORYTYPE_ARRAY) {
    const CopiedRange range = range_of(from, shape);
    touch_source(builder, range.begin, range.bytes, from_place);
  }
  if (to.type != CU_MEMORYTYPE_ARRAY) {
    const CopiedRange range = range_of(to, shape);
    touch_target(builder, range.begin, range.bytes, to_place, range.dense);
  }
}

// What pointers the rows hold moves along; rows without gaps on both sides are one range. Arrays hold what cannot be
// seen.
void follow_shaped(const Side& from, const Side& to, const Shape& shape) {
  const CopiedRange target = range_of(to, shape);
  if (to.type == CU_MEMORYTYPE_ARRAY || target.bytes == 0) return;
  const Place to_place = place(to);
  if (to_place == Place::pageable) return;
  if (from.type == CU_MEMORYTYPE_ARRAY) return mark_unknown(target.begin);
  const CopiedRange source = range_of(from, shape);
  const Place from_place = place(from);
  if (source.dense && target.dense) {
    return follow_pointers(target.begin, to_place, source.begin, from_place, target.bytes);
  }
  for (size_t slice = 0; slice < shape.depth; ++slice) {  // row by row
    for (size_t row = 0; row < shape.height; ++row) {
      const auto offset = [&](const Side& side) {
        return slice * side.pitch * (side.rows != 0 ? side.rows : shape.height) + row * side.pitch;
      };
      follow_pointers(target.begin + offset(to), to_place, source.begin + offset(from), from_place, shape.width);
    }
  }
}

CUdeviceptr base_of(CUmemorytype type, const void* host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device;
}

enum class PlaneForm : uint32_t { plain, unaligned, async };

struct PlaneCopy {
  PlaneForm form;
  CUDA_MEMCPY2D copy;
  static constexpr const char* kName = "memcpy 2D";

  static CUresult issue(const void* payload, CUstream stream) noexcept {
    const auto& self = *static_cast<const PlaneCopy*>(payload);
    const auto& call = driver();
    const bool per_thread = stream == CU_STREAM_PER_THREAD;
    if (self.form == PlaneForm::async) return call.cuMemcpy2DAsync(&self.copy, stream);
    if (self.form == PlaneForm::plain) return (per_thread ? call.cuMemcpy2D_v2_ptds : call.cuMemcpy2D_v2)(&self.copy);
    return (per_thread ? call.cuMemcpy2DUnaligned_v2_ptds : call.cuMemcpy2DUnaligned_v2)(&self.copy);
  }
  bool async() const { return form == PlaneForm::async; }
  // A pitch of 0 means rows without gaps.
  Side from() const {
    return {copy.srcMemoryType,
            base_of(copy.srcMemoryType, copy.srcHost, copy.srcDevice),
            copy.srcXInBytes,
            copy.srcY,
            0,
            copy.srcPitch != 0 ? copy.srcPitch : copy.WidthInBytes,
            0};
  }
  Side to() const {
    return {copy.dstMemoryType,
            base_of(copy.dstMemoryType, copy.dstHost, copy.dstDevice),
            copy.dstXInBytes,
            copy.dstY,
            0,
            copy.dstPitch != 0 ? copy.dstPitch : copy.WidthInBytes,
            0};
  }
  Shape shape() const { return {copy.WidthInBytes, copy.Height, 1}; }
};

// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER name their fields alike.
template <typename Copy>
struct VolumeSides {
  Copy copy;
  Side from() const {
    return {copy.srcMemoryType, base_of(copy.srcMemoryType, copy.srcHost, copy.srcDevice), copy.srcXInBytes, copy.srcY,
            copy.srcZ,          copy.srcPitch != 0 ? copy.srcPitch : copy.WidthInBytes,    copy.srcHeight};
  }
  Side to() const {
    return {copy.dstMemoryType, base_of(copy.dstMemoryType, copy.dstHost, copy.dstDevice), copy.dstXInBytes, copy.dstY,
            copy.dstZ,          copy.dstPitch != 0 ? copy.dstPitch : copy.WidthInBytes,    copy.dstHeight};
  }
  Shape shape() const { return {copy.WidthInBytes, copy.Height, copy.Depth}; }
};

struct VolumeCopy : VolumeSides<CUDA_MEMCPY3D> {
  bool is_async;
  static constexpr const char* kName = "memcpy 3D";
  static CUresult issue(const void* payload, CUstream stream) noexcept {
    const auto& self = *static_cast<const VolumeCopy*>(payload);
    const auto& call = driver();
    if (self.is_async) return call.cuMemcpy3DAsync(&self.copy, stream);
    return (stream == CU_STREAM_PER_THREAD ? call.cuMemcpy3D_v2_ptds : call.cuMemcpy3D_v2)(&self.copy);
  }
  bool async() const { return is_async; }
};

struct PeerVolumeCopy : VolumeSides<CUDA_MEMCPY3D_PEER> {
  bool is_async;
  static constexpr const char* kName = "memcpy 3D peer";
  static CUresult issue(const void* payload, CUstream stream) noexcept {
    const auto& self = *static_cast<const PeerVolumeCopy*>(payload);
    const auto& call = driver();
    if (self.is_async) return call.cuMemcpy3DPeerAsync(&self.copy, stream);
    return (stream == CU_STREAM_PER_THREAD ? call.cuMemcpy3DPeer_ptds : call.cuMemcpy3DPeer)(&self.copy);
  }
  bool async() const { return is_async; }
};

template <typename Copy>
CUresult run(const Copy& copy, CUstream stream) {
  const HookScope scope;
  if (!scope) return Copy::issue(&copy, stream);
  if (capturing(stream)) {
    const CopiedRange from = addresses_of(copy.from(), copy.shape());
    const CopiedRange to = addresses_of(copy.to(), copy.shape());
    if (outside_memory(from.begin, from.bytes) || outside_memory(to.begin, to.bytes)) return CUDA_ERROR_INVALID_VALUE;
    return with_operands(Copy::kName, {from.begin, to.begin}, [&copy, stream] { return Copy::issue(&copy, stream); });
  }
  Access room[2];
  CommandBuilder builder(trace::OpKind::other, Copy::kName, stream, room, 2);
  builder.command.issue = &Copy::issue;
  builder.command.payload = &copy;
  builder.command.payload_bytes = sizeof copy;
  const Side from = copy.from();
  const Side to = copy.to();
  const Shape shape = copy.shape();
  describe_shaped(builder, from, to, shape);
  if (!copy.async() && builder.command.op != trace::OpKind::copy_device_to_device) builder.flag(trace::kOpSynchronous);
  const CUresult result = submit(builder);
  if (result == CUDA_SUCCESS) follow_shaped(from, to, shape);
  return result;
}

CUresult plane(PlaneForm form, const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : run(PlaneCopy{form, *copy}, stream);
}
CUresult volume(bool async, const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : run(VolumeCopy{{*copy}, async}, stream);
}
CUresult peer(bool async, const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : run(PeerVolumeCopy{{*copy}, async}, stream);
}

}  // namespace
}  // namespace reprise

using namespace reprise;

REPRISE_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return plane(PlaneForm::plain, copy, CU_STREAM_LEGACY);
}
REPRISE_EXPORT CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* copy) {
  return plane(PlaneForm::plain, copy, CU_STREAM_PER_THREAD);
}
REPRISE_EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return plane(PlaneForm::unaligned, copy, CU_STREAM_LEGACY);
}
REPRISE_EXPORT CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* copy) {
  return plane(PlaneForm::unaligned, copy, CU_STREAM_PER_THREAD);
}
REPRISE_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return plane(PlaneForm::async, copy, explicit_stream(stream, kLegacy));
}
REPRISE_EXPORT CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return plane(PlaneForm::async, copy, explicit_stream(stream, kPerThread));
}
REPRISE_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return volume(false, copy, CU_STREAM_LEGACY); }
REPRISE_EXPORT CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* copy) {
  return volume(false, copy, CU_STREAM_PER_THREAD);
}
REPRISE_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return volume(true, copy, explicit_stream(stream, kLegacy));
}
REPRISE_EXPORT CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return volume(true, copy, explicit_stream(stream, kPerThread));
}
REPRISE_EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) { return peer(false, copy, CU_STREAM_LEGACY); }
REPRISE_EXPORT CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* copy) {
  return peer(false, copy, CU_STREAM_PER_THREAD);
}
REPRISE_EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return peer(true, copy, explicit_stream(stream, kLegacy));
}
REPRISE_EXPORT CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return peer(true, copy, explicit_stream(stream, kPerThread));
}
