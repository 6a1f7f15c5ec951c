#include "tools/device/memory/vmm.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "preload/driver/sim_abi.h"
#include "preload/files/file_limit.h"
#include "preload/files/out_of_the_way.h"
#include "tools/device/base/settings.h"
#include "tools/device/engines/device.h"
#include "tools/device/engines/host_time.h"
#include "tools/device/memory/arena.h"
#include "tools/device/memory/memory.h"

namespace reprise::sim {
namespace {

constexpr int kHostBit = 63;  // in Range::readers and writers
constexpr uint64_t kFileBytes = 1ull << 44;

// A sparse memory file from which chunks are cut; neighbours in it can share one mapping of the kernel's.
class MemoryFile {
 public:
  // False when the operating system refuses.
  bool cut(uint64_t bytes, bool poisoned, int* file, uint64_t* offset) {
    const std::lock_guard lock(mutex_);
    if (file_ < 0 && !open()) return false;
    *offset = free_.take(bytes, std::min<uint64_t>(settings().granularity, kSlabBytes));
    if (*offset == 0) return false;
    *file = file_;
    const uint64_t end = *offset + bytes;
    if (end > touched_) {
      if (poisoned) poison(std::max(touched_, *offset), std::min(end, *offset + kPoisonedBytes));
      touched_ = end;
    }
    return true;
  }
  bool usable() {
    const std::lock_guard lock(mutex_);
    return file_ >= 0 || open();
  }
  void give(uint64_t offset, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    free_.give(offset, bytes);
  }

 private:
  bool open() {
    const FileLimitGuard guard;
    file_ = move_out_of_the_way(memfd_create("reprise-sim-device", MFD_CLOEXEC));
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(kFileBytes)) != 0) {
      const int error = errno;
      if (file_ >= 0) close(file_);
      file_ = -1;
      if (told_) return false;
      told_ = true;
      std::fprintf(stderr, "reprise: simulated device: no file in memory for what is mapped: %s%s\n",
                   std::strerror(error), error == EFBIG ? " (ulimit -f)" : "");
      return false;
    }
    free_.give(kSlabBytes, kFileBytes - kSlabBytes);
    return true;
  }
  void poison(uint64_t from, uint64_t to) {
    static const std::vector<uint8_t>& pattern = *new std::vector<uint8_t>(256u << 10, uint8_t{kPoison});
    while (from < to) {
      const size_t step = std::min<uint64_t>(pattern.size(), to - from);
      if (pwrite(file_, pattern.data(), step, static_cast<off_t>(from)) <= 0) return;
      from += step;
    }
  }

  std::mutex mutex_;
  int file_ = -1;
  bool told_ = false;  // that there is none
  FreeIntervals free_;
  uint64_t touched_ = 0;  // below: written before
};

MemoryFile& memory_file(const Device* device) {
  static MemoryFile* const files = new MemoryFile[65];
  return files[device == nullptr ? 64 : device->ordinal];
}

// base to bytes; guarded by the memory map's lock.
std::map<uint64_t, uint64_t>& reservations() {
  static auto& instance = *new std::map<uint64_t, uint64_t>;
  return instance;
}

bool lies_in_reservation(uint64_t base, uint64_t bytes) {
  auto next = reservations().upper_bound(base);
  if (next == reservations().begin()) return false;
  --next;
  return base + bytes > base && base + bytes <= next->first + next->second;
}

bool has_range(uint64_t base, uint64_t bytes) {
  const auto& ranges = memory_map().ranges();
  const auto next = ranges.lower_bound(base);
  if (next != ranges.end() && next->first < base + bytes) return true;
  return next != ranges.begin() && std::prev(next)->second.end() > base;
}

using RangeIterator = std::map<uint64_t, Range>::iterator;

// The whole mappings that make up [base, base + bytes): [*first, *last). False when they do not.
bool whole_mappings(uint64_t base, uint64_t bytes, RangeIterator* first, RangeIterator* last) {
  auto& ranges = memory_map().ranges();
  *first = *last = ranges.find(base);
  uint64_t covered = base;
  while (*last != ranges.end() && covered < base + bytes && (*last)->first == covered &&
         (*last)->second.kind == RangeKind::mapping) {
    covered = (*last)->second.end();
    ++*last;
  }
  return bytes > 0 && covered == base + bytes;
}

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

constexpr int kEmpty = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Back to addresses without memory. At the kernel's limit of mappings a mapping can only be removed, not replaced: the
// addresses are then free for a moment, and are taken again at once.
bool make_empty(uint64_t base, uint64_t bytes) {
  if (mmap(pointer(base), bytes, PROT_NONE, kEmpty | MAP_FIXED, -1, 0) != MAP_FAILED) return true;
  return munmap(pointer(base), bytes) == 0 &&
         mmap(pointer(base), bytes, PROT_NONE, kEmpty | MAP_FIXED_NOREPLACE, -1, 0) == pointer(base);
}

CUresult access_bit(const CUmemAccessDesc& descriptor, int* bit) {
  switch (descriptor.location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (find_device(descriptor.location.id) == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *bit = descriptor.location.id;
      break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      *bit = kHostBit;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  const bool known = descriptor.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                     descriptor.flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                     descriptor.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void apply(const CUmemAccessDesc& descriptor, int bit, Range& range) {
  const uint64_t mask = 1ull << bit;
  const bool reads = descriptor.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
  const bool writes = descriptor.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  range.readers = reads ? range.readers | mask : range.readers & ~mask;
  range.writers = writes ? range.writers | mask : range.writers & ~mask;
}

int protection(const Range& range) {
  return (range.readers != 0 ? PROT_READ : PROT_NONE) | (range.writers != 0 ? PROT_WRITE : PROT_NONE);
}

// What a GPU's driver needs to map one handle anew, whatever its size; relative to the granularity, so that a device of
// small chunks is a large one scaled down. Shares: an H200 and an H100, driver 580 (0.7, 24 and 15 us; bench/gpu).
double remap_ns() {
  return static_cast<double>(settings().map_cost.nanoseconds) * static_cast<double>(settings().granularity) / (2 << 20);
}

constexpr double kMapShare = 0.02;
constexpr double kAccessShare = 0.60;
constexpr double kUnmapShare = 1 - kMapShare - kAccessShare;

CUresult add_mapping(uint64_t base, uint64_t bytes, const std::shared_ptr<PhysicalChunk>& chunk) {
  const std::unique_lock lock(memory_map().mutex());
  if (bytes > chunk->bytes) return CUDA_ERROR_NOT_SUPPORTED;
  if (!lies_in_reservation(base, bytes) || has_range(base, bytes)) return CUDA_ERROR_INVALID_VALUE;
  // The kernel limits the number of mappings of a process; neighbours in file and address become one.
  void* place = mmap(pointer(base), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, chunk->file,
                     static_cast<off_t>(chunk->offset));
  if (place == MAP_FAILED) {
    // A failed mmap has left the old mapping or none: the addresses must not be free for others.
    (void)mmap(pointer(base), bytes, PROT_NONE, kEmpty | MAP_FIXED_NOREPLACE, -1, 0);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Range range;
  range.base = base;
  range.bytes = bytes;
  range.kind = RangeKind::mapping;
  range.device = chunk->device;
  range.chunk = chunk;
  range.buffer_id = next_buffer_id();
  memory_map().ranges().emplace(base, std::move(range));
  return CUDA_SUCCESS;
}

// `ns`: what that takes on a GPU.
CUresult give_access(uint64_t base, uint64_t bytes, const CUmemAccessDesc* descriptors, size_t count, double* ns) {
  const std::unique_lock lock(memory_map().mutex());
  RangeIterator first;
  RangeIterator last;
  if (!whole_mappings(base, bytes, &first, &last)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    int bit = 0;
    if (const CUresult result = access_bit(descriptors[i], &bit); result != CUDA_SUCCESS) return result;
    for (auto it = first; it != last; ++it) {
      // Device memory cannot be given to a host processor.
      if (bit == kHostBit && it->second.device != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  for (auto it = first; it != last; ++it) {
    *ns += kAccessShare * remap_ns();
    for (size_t i = 0; i < count; ++i) {
      int bit = 0;
      access_bit(descriptors[i], &bit);
      apply(descriptors[i], bit, it->second);
    }
  }
  // One call of the kernel for neighbours with the same rights.
  for (auto it = first; it != last;) {
    const uint64_t start = it->first;
    const int rights = protection(it->second);
    uint64_t end = start;
    while (it != last && protection(it->second) == rights) {
      end = it->second.end();
      ++it;
    }
    if (mprotect(pointer(start), end - start, rights) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

}  // namespace

ChunkTable& chunks() {
  static ChunkTable& table = *new ChunkTable;
  return table;
}

PhysicalChunk::~PhysicalChunk() {
  if (own_file) {
    close(file);
  } else if (file >= 0) {
    memory_file(device).give(offset, bytes);
  }
  if (charged) device->refund(bytes);
}

bool has_physical_memory() { return memory_file(nullptr).usable(); }

CUresult create_chunk(uint64_t bytes, const CUmemAllocationProp& properties, std::shared_ptr<PhysicalChunk>* result) {
  auto chunk = std::make_shared<PhysicalChunk>();
  Device* device =
      properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? find_device(properties.location.id) : nullptr;
  if (device != nullptr && !device->charge(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  chunk->device = device;
  chunk->charged = device != nullptr;
  chunk->bytes = bytes;
  chunk->properties = properties;
  if (properties.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    const FileLimitGuard guard;
    chunk->file = memfd_create("reprise-sim-shared", MFD_CLOEXEC);
    chunk->own_file = chunk->file >= 0;
    if (chunk->file < 0 || ftruncate(chunk->file, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  } else if (!memory_file(device).cut(bytes, device != nullptr, &chunk->file, &chunk->offset)) {
    chunk->file = -1;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *result = std::move(chunk);
  return CUDA_SUCCESS;
}

CUresult import_chunk(int file, std::shared_ptr<PhysicalChunk>* result) {
  struct stat status;
  if (fstat(file, &status) != 0 || status.st_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  auto chunk = std::make_shared<PhysicalChunk>();
  chunk->file = dup(file);
  if (chunk->file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  chunk->own_file = true;
  chunk->bytes = static_cast<uint64_t>(status.st_size);
  chunk->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  chunk->properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  chunk->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  chunk->device = find_device(0);  // not charged: the exporter pays for the bytes
  *result = std::move(chunk);
  return CUDA_SUCCESS;
}

bool is_reserved(uint64_t address) {
  const std::shared_lock lock(memory_map().mutex());
  return lies_in_reservation(address, 1);
}

uint64_t reserve_range(uint64_t bytes, uint64_t alignment, uint64_t hint) {
  const std::unique_lock lock(memory_map().mutex());
  if (bytes + alignment < bytes || bytes > kMostRange) return 0;
  if (kPlacesRanges && hint != 0 && hint % alignment == 0) {
    void* place = mmap(pointer(hint), bytes, PROT_NONE, kEmpty | MAP_FIXED_NOREPLACE, -1, 0);
    if (place == pointer(hint)) {
      reservations()[hint] = bytes;
      return hint;
    }
    if (place != MAP_FAILED) munmap(place, bytes);
  }
  void* place = mmap(nullptr, bytes + alignment, PROT_NONE, kEmpty, -1, 0);
  if (place == MAP_FAILED) return 0;
  const uint64_t start = reinterpret_cast<uint64_t>(place);
  const uint64_t base = round_up(start, alignment);
  if (base > start) munmap(place, base - start);
  if (const uint64_t rest = start + alignment - base; rest > 0) munmap(pointer(base + bytes), rest);
  reservations()[base] = bytes;
  return base;
}

CUresult free_range(uint64_t base, uint64_t bytes) {
  const std::unique_lock lock(memory_map().mutex());
  const auto found = reservations().find(base);
  if (found == reservations().end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (has_range(base, bytes)) return CUDA_ERROR_INVALID_VALUE;
  munmap(pointer(base), bytes);
  reservations().erase(found);
  return CUDA_SUCCESS;
}

CUresult map_chunk(uint64_t base, uint64_t bytes, const std::shared_ptr<PhysicalChunk>& chunk) {
  HostCall call;
  const CUresult result = add_mapping(base, bytes, chunk);
  if (result == CUDA_SUCCESS) call.takes(static_cast<uint64_t>(kMapShare * remap_ns()));
  return result;
}

CUresult set_access(uint64_t base, uint64_t bytes, const CUmemAccessDesc* descriptors, size_t count) {
  HostCall call;
  double ns = 0;
  const CUresult result = give_access(base, bytes, descriptors, count, &ns);
  if (result == CUDA_SUCCESS) call.takes(static_cast<uint64_t>(ns));
  return result;
}

namespace {

CUresult remove_mappings(uint64_t base, uint64_t bytes, double* ns) {
  std::vector<std::shared_ptr<PhysicalChunk>> released;  // destroyed after the lock
  const std::unique_lock lock(memory_map().mutex());
  RangeIterator first;
  RangeIterator last;
  if (!whole_mappings(base, bytes, &first, &last)) return CUDA_ERROR_INVALID_VALUE;
  if (!make_empty(base, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  for (auto it = first; it != last; ++it) {
    *ns += kUnmapShare * remap_ns();
    released.push_back(std::move(it->second.chunk));
  }
  memory_map().ranges().erase(first, last);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult unmap_chunks(uint64_t base, uint64_t bytes) {
  HostCall call;
  double ns = 0;
  const CUresult result = remove_mappings(base, bytes, &ns);
  if (result == CUDA_SUCCESS) call.takes(static_cast<uint64_t>(ns));
  return result;
}

}  // namespace reprise::sim

unsigned long long repriseSimMostMappings() {
  unsigned long long most = 65530;  // the kernel's default
  if (FILE* const file = std::fopen("/proc/sys/vm/max_map_count", "re"); file != nullptr) {
    if (std::fscanf(file, "%llu", &most) != 1) most = 65530;
    std::fclose(file);
  }
  return most / 8 * 3;  // two for the border of each, and the program has its own
}
