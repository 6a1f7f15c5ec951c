#include "tests/e2e/hidden/tables.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hidden {
namespace {

constexpr size_t kPinnedBytes = 4096;
constexpr size_t kRowBytes = 24;
constexpr size_t kInsideOffset = 4096 + 64;
constexpr size_t kInsideBytes = 200 << 10;

struct LateWrite {
  unsigned char* to;
  std::vector<unsigned char> image;
};

void CUDA_CB write_late(void* data) {
  auto* const late = static_cast<LateWrite*>(data);
  std::memcpy(late->to, late->image.data(), late->image.size());
  delete late;
}

}  // namespace

TableAtWork::TableAtWork(Device* device, const Group& group, std::vector<Tensor>* weights, Tensor* counter,
                         uint64_t seed)
    : device_(device), group_(group), weights_(weights), counter_(counter), seed_(seed) {
  CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&pinned_image_), kPinnedBytes, 0));
  if (group_.place == Place::pinned) {
    CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&host_table_), kPinnedBytes, CU_MEMHOSTALLOC_DEVICEMAP));
  } else if (group_.place == Place::managed) {
    CUdeviceptr managed = 0;
    CHECK(cuMemAllocManaged(&managed, kPinnedBytes, CU_MEM_ATTACH_GLOBAL));
    host_table_ = reinterpret_cast<unsigned char*>(managed);
  }
  if (host_table_ != nullptr) std::memset(host_table_, 0, kPinnedBytes);
  make_memory(0);
  if (group_.table.coding == kIndirect) inner_ = device_->zeros(group_.table.count * 8 + 16, 0);
  if (group_.build == Build::device || group_.build == Build::copied_by_kernel) {
    staging_ = device_->zeros(kPinnedBytes, 0);
  }
  if (!transient()) {
    allocate_targets(0, Freeing::at_once);
    build(0, 0);
    if (group_.filled_hidden && group_.targets != Targets::shared) fill(0, static_cast<uint32_t>(seed));
  }
}

void TableAtWork::make_memory(int stream) {
  if (on_host()) return;
  memory_ = device_->zeros(group_.place == Place::inside ? kInsideBytes : image_bytes(group_.table), stream);
}

// Split tables have two halves; a multiple of eight bytes.
size_t TableAtWork::image_bytes(const Table& table) const {
  const size_t halves = table.coding == kSplit ? 2 : 1;
  return (table.offset + halves * table.count * table.stride + 15) / 8 * 8;
}

Table TableAtWork::table() const {
  Table table = group_.table;
  const CUdeviceptr inside = memory_.address + (group_.place == Place::inside ? kInsideOffset : 0);
  table.base = on_host() ? host_table_ : reinterpret_cast<unsigned char*>(inside);
  return table;
}

uint32_t TableAtWork::words() const {
  if (group_.targets != Targets::shared) return static_cast<uint32_t>(group_.target_bytes / 4);
  size_t least = SIZE_MAX;
  for (uint32_t j = 0; j < group_.table.count; ++j) least = std::min(least, (*weights_)[j % weights_->size()].bytes);
  return static_cast<uint32_t>(least / 4);
}

bool TableAtWork::due(int iteration) const { return group_.build_every > 0 && iteration % group_.build_every == 0; }

bool TableAtWork::followed(int iteration) const {
  const auto at = static_cast<uint32_t>(iteration);
  return at >= group_.first && at % group_.period == group_.phase;
}

void TableAtWork::allocate_targets(int stream, Freeing freeing) {
  if (group_.targets == Targets::shared) return;
  const bool one = group_.targets == Targets::interior;
  own_.clear();
  for (uint32_t j = 0; j < (one ? 1 : group_.table.count); ++j) {
    own_.push_back(device_->allocate(group_.target_bytes * (one ? group_.table.count : 1), stream, freeing));
    if (group_.filled_hidden) continue;
    device_->use(&own_.back(), stream);
    CHECK(cuMemsetD32Async(own_.back().address, static_cast<unsigned>(seed_) * 31 + j, own_.back().bytes / 4,
                           device_->stream(stream)));
  }
}

void TableAtWork::free_targets(Freeing freeing) {
  for (Tensor& tensor : own_) device_->free(&tensor, freeing);
  own_.clear();
}

std::vector<uint64_t> TableAtWork::pointers(int iteration) const {
  std::vector<uint64_t> all;
  for (uint32_t j = 0; j < group_.table.count; ++j) {
    if (group_.targets == Targets::shared) {
      all.push_back((*weights_)[j % weights_->size()].address);
    } else if (group_.targets == Targets::interior) {
      all.push_back(own_[0].address + j * group_.target_bytes);
    } else {
      all.push_back(own_[j].address);
    }
  }
  // A range is one sequence, which no order changes.
  if (iteration >= group_.rotate_from && group_.build != Build::range)
    std::rotate(all.begin(), all.begin() + 1, all.end());
  return all;
}

void TableAtWork::build(int stream, int iteration) {
  if (group_.renewed && iteration > 0 && !on_host()) {
    device_->free(&memory_, Freeing::at_once);
    make_memory(stream);
  }
  const std::vector<uint64_t> to = pointers(iteration);
  if (group_.table.coding != kIndirect) {
    write(table(), &memory_, to, stream);
    return;
  }
  Table plain = group_.table;
  plain.coding = kPlain;
  plain.offset = 0;
  plain.stride = 8;
  plain.base = reinterpret_cast<unsigned char*>(inner_.address);
  const Place place = std::exchange(group_.place, Place::own);
  write(plain, &inner_, to, stream);
  group_.place = place;
  const Build by = std::exchange(group_.build, Build::sync);
  Table outer = table();
  outer.count = 1;
  write(outer, &memory_, {inner_.address}, stream);
  group_.build = by;
}

void TableAtWork::write(const Table& table, Tensor* memory, const std::vector<uint64_t>& pointers, int stream) {
  image_.assign(image_bytes(table), 0);
  for (uint32_t j = 0; j < table.count; ++j) store(table, image_.data(), j, pointers[j]);
  switch (group_.build) {
    case Build::put:
    case Build::range:
    case Build::copied_by_kernel:
      return write_by_kernels(table, memory, pointers, stream);
    default:
      if (on_host()) return write_host(table, pointers, stream);
      return write_image(memory, reinterpret_cast<CUdeviceptr>(table.base), stream);
  }
}

void TableAtWork::write_by_kernels(const Table& table, Tensor* memory, const std::vector<uint64_t>& pointers,
                                   int stream) {
  device_->use(memory, stream);
  if (group_.build == Build::range && group_.targets == Targets::interior) {
    device_->launch("put_range", 1, stream, table, pointers[0], static_cast<uint64_t>(group_.target_bytes));
    return;
  }
  if (group_.build != Build::copied_by_kernel) {
    for (uint32_t j = 0; j < table.count; ++j) device_->launch("put", 1, stream, table, j, pointers[j]);
    return;
  }
  Table from = table;
  from.base = reinterpret_cast<unsigned char*>(staging_.address);
  from.coding = kPlain;
  from.stride = 8;
  from.offset = 0;
  device_->use(&staging_, 0);
  CHECK(cuMemcpyHtoD(staging_.address, pointers.data(), pointers.size() * 8));
  device_->use(&staging_, stream);
  device_->launch("copy_table", 1, stream, table, from);
}

// Memory that the host writes without any call, or in a host function.
void TableAtWork::write_host(const Table& table, const std::vector<uint64_t>&, int stream) {
  device_->use(&memory_, stream);
  if (group_.build == Build::late) {
    CHECK(cuLaunchHostFunc(device_->stream(stream), write_late, new LateWrite{table.base, image_}));
    return;
  }
  device_->synchronize();
  std::memcpy(table.base, image_.data(), image_.size());
}

void TableAtWork::write_image(Tensor* memory, CUdeviceptr to, int stream) {
  const size_t bytes = image_.size();
  const CUstream on = device_->stream(stream);
  if (group_.build == Build::sync) stream = 0;  // where synchronous copies go
  device_->use(memory, stream);
  switch (group_.build) {
    case Build::sync:
      return CHECK(cuMemcpyHtoD(to, image_.data(), bytes));
    case Build::pageable:
      return CHECK(cuMemcpyHtoDAsync(to, image_.data(), bytes, on));
    case Build::late:
      CHECK(cuLaunchHostFunc(on, write_late, new LateWrite{pinned_image_, image_}));
      return CHECK(cuMemcpyHtoDAsync(to, pinned_image_, bytes, on));
    case Build::device:
      device_->use(&staging_, 0);
      CHECK(cuMemcpyHtoD(staging_.address, image_.data(), bytes));
      device_->use(&staging_, stream);
      return CHECK(cuMemcpyDtoDAsync(to, staging_.address, bytes, on));
    case Build::rows: {
      const size_t rows = bytes / 8;
      rows_.assign(rows * kRowBytes, 0xEE);
      for (size_t i = 0; i < rows; ++i) std::memcpy(rows_.data() + i * kRowBytes, image_.data() + 8 * i, 8);
      CUDA_MEMCPY2D copy = {};
      copy.srcMemoryType = CU_MEMORYTYPE_HOST;
      copy.srcHost = rows_.data();
      copy.srcPitch = kRowBytes;
      copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
      copy.dstDevice = to;
      copy.dstPitch = 8;
      copy.WidthInBytes = 8;
      copy.Height = rows;
      return CHECK(cuMemcpy2DAsync(&copy, on));
    }
    case Build::memset:
      return write_words(to, stream, true);
    case Build::values:
      return write_words(to, stream, false);
    default:
      std::memcpy(pinned_image_, image_.data(), bytes);
      if (group_.build == Build::unified) {
        return CHECK(cuMemcpyAsync(to, reinterpret_cast<CUdeviceptr>(pinned_image_), bytes, on));
      }
      return CHECK(cuMemcpyHtoDAsync(to, pinned_image_, bytes, on));
  }
}

void TableAtWork::write_words(CUdeviceptr to, int stream, bool by_memset) {
  for (size_t i = 0; i < image_.size(); i += 8) {
    const uint64_t word = read_bytes(image_.data() + i, 8);
    if (by_memset) {
      CHECK(cuMemsetD32Async(to + i, static_cast<unsigned>(word), 1, device_->stream(stream)));
      CHECK(cuMemsetD32Async(to + i + 4, static_cast<unsigned>(word >> 32), 1, device_->stream(stream)));
    } else {
      CHECK(cuStreamWriteValue64(device_->stream(stream), to + i, word, 0));
    }
  }
}

void TableAtWork::use(int stream) {
  device_->use(&memory_, stream);
  if (group_.table.coding == kIndirect) device_->use(&inner_, stream);
  device_->use(counter_, stream);
  for (Tensor& tensor : own_) device_->use(&tensor, stream);
  if (group_.targets != Targets::shared) return;
  for (uint32_t j = 0; j < group_.table.count; ++j) device_->use(&(*weights_)[j % weights_->size()], stream);
}

void TableAtWork::fill(int stream, uint32_t salt) {
  use(stream);
  device_->launch("fill_hidden", blocks_for(words()), stream, table(), always(), words(), salt);
}

When TableAtWork::when() const {
  return {reinterpret_cast<const uint32_t*>(counter_->address), group_.period, group_.phase, group_.first};
}

When TableAtWork::always() const { return {reinterpret_cast<const uint32_t*>(counter_->address), 1, 0, 0}; }

std::vector<Tensor*> TableAtWork::targets() {
  std::vector<Tensor*> all;
  for (Tensor& tensor : own_) all.push_back(&tensor);
  return all;
}

}  // namespace hidden
