#include "replay/queue/command_log.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <utility>

namespace reprise::replay {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr int kSpins = 2000;
constexpr int kFewestSpins = 16;

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ns) noexcept {
  timespec limit{static_cast<time_t>(timeout_ns / 1000000000), static_cast<long>(timeout_ns % 1000000000)};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, &limit, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) noexcept {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

void pause_briefly() noexcept { __builtin_ia32_pause(); }

constexpr uint64_t aligned(uint64_t bytes, uint64_t alignment) noexcept {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

// Waiters outlive their threads, because the dispatcher may still wake one that has its answer, and serve later ones.
Waiter& Waiter::of_this_thread() noexcept {
  static thread_local Waiter* waiter = nullptr;
  if (waiter != nullptr) return *waiter;
  static constinit std::mutex mutex;
  static constinit Waiter* unused = nullptr;
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    pthread_key_create(&made, [](void* ended) {
      const std::lock_guard lock(mutex);
      waiter->next_ = std::exchange(unused, static_cast<Waiter*>(ended));
      waiter = nullptr;
    });
    return made;
  }();
  {
    const std::lock_guard lock(mutex);
    if (unused != nullptr) waiter = std::exchange(unused, unused->next_);
  }
  if (waiter == nullptr) waiter = new (std::nothrow) Waiter;
  pthread_setspecific(key, waiter);
  return *waiter;
}

void Waiter::announce(uint32_t state) noexcept {
  state_.store(state, std::memory_order_release);
  futex_wake(state_);
}

void Waiter::done(CUresult result) noexcept {
  result_ = result;
  announce(kDone);
}

void Waiter::grant() noexcept { announce(kGranted); }

bool Waiter::wait() noexcept {
  for (int spin = 0;; ++spin) {
    const uint32_t state = state_.load(std::memory_order_acquire);
    if (state == kDone) return false;
    if (state == kGranted) return true;
    if (spin < kSpins) {
      pause_briefly();
    } else {
      futex_wait(state_, state, 1000000000);
    }
  }
}

CommandLog::~CommandLog() {
  if (ring_ != nullptr) munmap(ring_, ring_bytes_);
  delete[] slots_;
}

bool CommandLog::open(uint64_t bytes) noexcept {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  slots_ = new (std::nothrow) LogEntry*[kEntries];
  if (slots_ == nullptr) return false;
  ring_ = static_cast<unsigned char*>(memory);
  ring_bytes_ = bytes;
  return true;
}

// Contiguous space for one entry; the rest of the ring is skipped when it does not fit before the end. The skipped
// bytes belong to the entry, so that reclaiming is one addition.
void* CommandLog::take(uint64_t bytes) noexcept {
  const uint64_t offset = written_ % ring_bytes_;
  const uint64_t skipped = offset + bytes > ring_bytes_ ? ring_bytes_ - offset : 0;
  const uint64_t total = skipped + bytes;
  const auto fits = [&] {
    return written_ + total - reclaimed_.load(std::memory_order_acquire) <= ring_bytes_ &&
           next_position_ - head_.load(std::memory_order_acquire) < kEntries;
  };
  if (!fits()) {
    enter_blocked();
    for (int spin = 0; !fits(); ++spin) {
      const uint64_t head = head_.load(std::memory_order_acquire);
      if (!fits()) head_.wait(head);
    }
    leave_blocked();
  }
  void* const place = ring_ + (written_ + skipped) % ring_bytes_;
  written_ += total;
  auto* const entry = new (place) LogEntry;
  entry->bytes = total;
  entry->position = next_position_++;
  return entry;
}

LogEntry* CommandLog::append(EntryKind kind) noexcept {
  auto* const entry = static_cast<LogEntry*>(take(aligned(sizeof(LogEntry), kAlignment)));
  entry->kind = kind;
  return entry;
}

LogEntry* CommandLog::append_op(const Command& command) noexcept {
  const uint64_t accesses = aligned(command.access_count * sizeof(Access), 16);
  const uint64_t header = aligned(sizeof(LogEntry), 16);
  auto* const entry = static_cast<LogEntry*>(take(aligned(header + accesses + command.payload_bytes, kAlignment)));
  entry->kind = EntryKind::op;
  entry->command = command;
  auto* const bytes = reinterpret_cast<unsigned char*>(entry);
  auto* const access_copy = reinterpret_cast<Access*>(bytes + header);
  unsigned char* const payload = bytes + header + accesses;
  if (command.access_count != 0) std::memcpy(access_copy, command.accesses, command.access_count * sizeof(Access));
  if (command.payload_bytes != 0) std::memcpy(payload, command.payload, command.payload_bytes);
  entry->command.accesses = access_copy;
  entry->command.payload = payload;
  entry->command.parameters = nullptr;  // for the recorder only
  return entry;
}

void CommandLog::publish(LogEntry* entry) noexcept {
  slots_[entry->position % kEntries] = entry;
  tail_.store(entry->position + 1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) != 0) wake();
}

void CommandLog::wait_settled(uint64_t position) noexcept {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (is_settled(position)) return;
    pause_briefly();
  }
  enter_blocked();
  uint64_t settled;
  while ((settled = settled_.load(std::memory_order_acquire)) <= position) settled_.wait(settled);
  leave_blocked();
}

// Before head_ moves: the entries behind it are still there to be looked at.
void CommandLog::move_settled() noexcept {
  const uint64_t before = settled_.load(std::memory_order_relaxed);
  const uint64_t tail = tail_.load(std::memory_order_acquire);
  uint64_t settled = before;
  while (settled != tail && (at(settled)->done || at(settled)->passed)) ++settled;
  if (settled == before) return;
  settled_.store(settled, std::memory_order_release);
  settled_.notify_all();
}

void CommandLog::pass(LogEntry* entry) noexcept {
  entry->passed = true;
  move_settled();
}

void CommandLog::done(LogEntry* entry) noexcept {
  entry->done = true;
  move_settled();
  uint64_t head = head_.load(std::memory_order_relaxed);
  if (entry->position != head) return;
  const uint64_t tail = tail_.load(std::memory_order_acquire);
  uint64_t bytes = 0;
  while (head != tail && at(head)->done) {
    bytes += at(head)->bytes;
    ++head;
  }
  reclaimed_.fetch_add(bytes, std::memory_order_release);
  head_.store(head, std::memory_order_release);
  head_.notify_all();
}

// While a program calls often, looking a little longer is cheaper than making its next call wake this thread.
void CommandLog::wait_for_work(uint64_t seen_tail, uint64_t timeout_ns) noexcept {
  const uint32_t signal = signal_.load(std::memory_order_acquire);
  for (int spin = 0; spin < patience_; ++spin) {
    if (tail_.load(std::memory_order_acquire) != seen_tail || signal_.load(std::memory_order_relaxed) != signal) {
      patience_ = std::min(patience_ * 2, kSpins);
      return;
    }
    pause_briefly();
  }
  patience_ = std::max(patience_ / 2, kFewestSpins);
  sleeping_.store(1, std::memory_order_seq_cst);
  if (tail_.load(std::memory_order_seq_cst) == seen_tail) {
    futex_wait(signal_, signal, timeout_ns == 0 ? 1000000000 : timeout_ns);
  }
  sleeping_.store(0, std::memory_order_relaxed);
}

void CommandLog::wake() noexcept {
  signal_.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(signal_);
}

}  // namespace reprise::replay
