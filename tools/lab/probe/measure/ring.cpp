#include "tools/lab/probe/measure/ring.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace reprise::probe {
namespace {

Status refused(const char* what) {
  return {StatusCode::unsupported, fmt::format("io_uring: {}: {}", what, std::strerror(errno))};
}

uint32_t& word(void* memory, uint32_t offset) {
  return *reinterpret_cast<uint32_t*>(static_cast<char*>(memory) + offset);
}

}  // namespace

Ring::Ring(Ring&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      memory_bytes_(other.memory_bytes_),
      entries_(std::exchange(other.entries_, nullptr)),
      entries_bytes_(other.entries_bytes_),
      parameters_(other.parameters_),
      pushed_(other.pushed_) {}

Ring::~Ring() {
  if (entries_) munmap(entries_, entries_bytes_);
  if (memory_) munmap(memory_, memory_bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

Result<Ring> Ring::open(unsigned entries) {
  Ring ring;
  io_uring_params& p = ring.parameters_;
  ring.descriptor_ = static_cast<int>(syscall(SYS_io_uring_setup, entries, &p));
  if (ring.descriptor_ < 0) return refused("setup");
  if (!(p.features & IORING_FEAT_SINGLE_MMAP)) return Status(StatusCode::unsupported, "io_uring: kernel before 5.4");
  ring.memory_bytes_ = std::max<size_t>(p.sq_off.array + p.sq_entries * sizeof(uint32_t),
                                        p.cq_off.cqes + p.cq_entries * sizeof(io_uring_cqe));
  void* rings = mmap(nullptr, ring.memory_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.descriptor_,
                     IORING_OFF_SQ_RING);
  if (rings == MAP_FAILED) return refused("mmap");
  ring.memory_ = rings;
  ring.entries_bytes_ = p.sq_entries * sizeof(io_uring_sqe);
  void* queue = mmap(nullptr, ring.entries_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.descriptor_,
                     IORING_OFF_SQES);
  if (queue == MAP_FAILED) return refused("mmap");
  ring.entries_ = static_cast<io_uring_sqe*>(queue);
  return Result<Ring>(std::move(ring));
}

void Ring::push(bool write, int descriptor, void* data, size_t bytes, uint64_t offset, uint64_t tag) {
  const std::atomic_ref<uint32_t> tail(word(memory_, parameters_.sq_off.tail));
  const uint32_t at = tail.load(std::memory_order_relaxed);
  const uint32_t slot = at & word(memory_, parameters_.sq_off.ring_mask);
  io_uring_sqe& entry = entries_[slot];
  std::memset(&entry, 0, sizeof(entry));
  entry.opcode = write ? IORING_OP_WRITE : IORING_OP_READ;
  entry.fd = descriptor;
  entry.addr = reinterpret_cast<uint64_t>(data);
  entry.len = static_cast<uint32_t>(bytes);
  entry.off = offset;
  entry.user_data = tag;
  word(memory_, parameters_.sq_off.array + slot * static_cast<uint32_t>(sizeof(uint32_t))) = slot;
  tail.store(at + 1, std::memory_order_release);  // the kernel reads the entry after it has seen the tail
  ++pushed_;
}

Status Ring::wait(uint64_t& tag, int& result) {
  const std::atomic_ref<uint32_t> head(word(memory_, parameters_.cq_off.head));
  const std::atomic_ref<uint32_t> tail(word(memory_, parameters_.cq_off.tail));
  while (pushed_ > 0 || head.load(std::memory_order_relaxed) == tail.load(std::memory_order_acquire)) {
    const unsigned wanted = head.load(std::memory_order_relaxed) == tail.load(std::memory_order_acquire) ? 1 : 0;
    const long taken = syscall(SYS_io_uring_enter, descriptor_, pushed_, wanted, IORING_ENTER_GETEVENTS, nullptr, 0);
    if (taken < 0 && errno != EINTR && errno != EAGAIN) return refused("enter");
    if (taken > 0) pushed_ -= static_cast<unsigned>(taken);
  }
  const uint32_t at = head.load(std::memory_order_relaxed);
  const auto* completions =
      reinterpret_cast<const io_uring_cqe*>(static_cast<char*>(memory_) + parameters_.cq_off.cqes);
  const io_uring_cqe& completion = completions[at & word(memory_, parameters_.cq_off.ring_mask)];
  tag = completion.user_data;
  result = completion.res;
  head.store(at + 1, std::memory_order_release);
  return Status::success();
}

}  // namespace reprise::probe
