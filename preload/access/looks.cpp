#include "preload/access/looks.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "preload/access/pointees.h"
#include "preload/base/causes.h"
#include "preload/base/runtime.h"
#include "preload/calls/handler.h"
#include "preload/driver/driver.h"
#include "preload/trace/signature.h"
#include "preload/tracking/handle_map.h"
#include "preload/tracking/streams.h"

namespace reprise {
namespace {

constexpr uint64_t kMost = 64 << 20;             // bytes of a buffer that are read although it is large
constexpr uint32_t kMostParts = 16;              // of one request
constexpr uint8_t kMostContents = 4;             // different ones without an address, before an operand is left alone
constexpr uint8_t kMostLooks = 16;               // ... and looks in all
constexpr uint8_t kMostRefusals = 3;             // ... and looks that came to nothing
constexpr uint64_t kPatience = 2'000'000'000;    // ns that work may take which a look waits for
constexpr uint64_t kShortPatience = 20'000'000;  // where it took too long before

// What is known of an operand (of a kernel, not of a buffer): does it ever hold addresses?
struct SeenOperand {
  uint8_t looks = 0;
  uint8_t contents = 0;
  uint8_t refusals = 0;
  uint8_t found = 0;
  uint32_t hash = 0;  // of the last content

  bool worth_a_look() const {
    return found != 0 || (contents < kMostContents && looks < kMostLooks && refusals < kMostRefusals);
  }
};

constinit HandleMap operands;                          // key_of() -> SeenOperand, packed
constinit std::atomic<bool> host_function_ran{false};  // since pinned memory was last known to be up to date

// A graph's operands have no place in parameters, but an order.
uint64_t key_of(const LookRange& range, const Access* accesses, uint32_t index) {
  const bool ordered = accesses[index].parameter_offset == trace::kNoParameter && range.depth == 0;
  const uint64_t place = ordered ? uint64_t{index} << 32 : accesses[index].parameter_offset;
  return trace::hash_mix(trace::hash_mix(range.reader, place), range.depth) | 1;
}

constexpr uint64_t kKnown = uint64_t{1} << 31;  // a packed operand is never 0

SeenOperand operand_of(uint64_t key) {
  const uint64_t word = operands.find(key);
  return {static_cast<uint8_t>(word), static_cast<uint8_t>(word >> 8), static_cast<uint8_t>(word >> 16 & 0x7f),
          static_cast<uint8_t>(word >> 24 & 1), static_cast<uint32_t>(word >> 32)};
}

void keep(uint64_t key, const SeenOperand& operand) {
  operands.set(key, uint64_t{operand.looks} | uint64_t{operand.contents} << 8 | uint64_t{operand.refusals} << 16 |
                        uint64_t{operand.found} << 24 | kKnown | uint64_t{operand.hash} << 32);
}

uint8_t more(uint8_t count) { return count < 100 ? static_cast<uint8_t>(count + 1) : count; }

bool wanted(const Allocation& allocation, const SeenOperand& operand) {
  return allocation.unknown || allocation.holds_pointers || operand.worth_a_look();
}

// Managed memory can be read in place while kernels run, except on old systems.
bool readable_in_place(const Allocation& allocation) {
  if (allocation.origin == trace::Origin::host) return true;
  int concurrent = 0;
  return driver().cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, allocation.device) ==
             CUDA_SUCCESS &&
         concurrent != 0;
}

Handler& handler() { return *runtime().handler; }
bool may_read() { return !any_capture() && handler().order.reads_back(); }

// A range of one operand's memory that is to be looked at.
struct Part {
  Allocation allocation;
  uint64_t key;
  uint64_t offset;
  uint64_t bytes;
  uint64_t version;  // of its pointees before: a copy that is recorded meanwhile is not forgotten
  bool in_place;
};

class Looks {
 public:
  explicit Looks(CommandBuilder& builder) noexcept : builder_(builder) {}

  void add(const Part& part) noexcept;
  void finish() noexcept;

 private:
  bool fetch() noexcept;
  void see(const Part& part, const unsigned char* bytes, bool settled) noexcept;
  void refuse(const Part& part) noexcept;
  void see_large(Part part) noexcept;

  CommandBuilder& builder_;
  Part parts_[kMostParts];
  uint32_t count_ = 0;
  uint64_t bytes_ = 0;
};

void Looks::add(const Part& part) noexcept {
  if (!part.in_place && part.bytes > ReadBack::kMostBytes) return see_large(part);
  const uint64_t bytes = part.in_place ? 0 : part.bytes;
  if (count_ == kMostParts || bytes_ + bytes > ReadBack::kMostBytes) finish();
  parts_[count_++] = part;
  bytes_ += bytes;
}

// The marks go before the bytes are read: what is written after that sets them again.
void unmark(const Allocation& allocation) {
  if (allocation.written) set_written(allocation.address, false);
  if (allocation.unknown) set_unknown(allocation.address, false);
}

void mark_again(const Allocation& allocation) {
  if (allocation.written) set_written(allocation.address, true);
  if (allocation.unknown) set_unknown(allocation.address, true);
}

bool Looks::fetch() noexcept {
  ReadBackPart parts[kMostParts];
  ReadBack request;
  request.parts = parts;
  request.patience_ns = kPatience;
  bool ran = false;
  for (uint32_t i = 0; i < count_; ++i) {
    const Part& part = parts_[i];
    unmark(part.allocation);
    builder_.fresh_writes = true;  // the command itself may write to it
    if (operand_of(part.key).refusals > 0) request.patience_ns = kShortPatience;
    if (!part.in_place) {
      parts[request.count++] = {part.allocation.id, part.allocation.address, part.offset, part.bytes};
      continue;
    }
    if (!ran) ran = host_function_ran.exchange(false);
    request.after_everything = request.after_everything || ran || part.allocation.written;
  }
  request.user = this;
  request.take = [](void* user, const unsigned char* bytes) {
    auto& self = *static_cast<Looks*>(user);
    for (uint32_t i = 0; i < self.count_; ++i) {
      if (self.parts_[i].in_place) continue;
      self.see(self.parts_[i], bytes, true);
      bytes += self.parts_[i].bytes;
    }
  };
  if (request.count == 0 && !request.after_everything) return true;
  if (handler().order.read_back(request)) return true;
  if (ran) host_function_ran.store(true);
  return false;
}

void Looks::finish() noexcept {
  if (count_ == 0) return;
  const bool fetched = fetch();
  for (uint32_t i = 0; i < count_; ++i) {
    const Part& part = parts_[i];
    // What the host can read is seen in any case, and added to what was known if more may come.
    if (part.in_place)
      see(part, reinterpret_cast<const unsigned char*>(part.allocation.address + part.offset), fetched);
    if (!fetched) refuse(part);
  }
  count_ = 0;
  bytes_ = 0;
}

void Looks::see(const Part& part, const unsigned char* bytes, bool settled) noexcept {
  const bool replace = settled && pointees_version(part.allocation.id) == part.version;
  const uint64_t found = record_payload(part.allocation.address + part.offset,
                                        {bytes, part.bytes, part.allocation.write_combined, replace});
  SeenOperand operand = operand_of(part.key);
  // Write-combined memory is not read twice: its content counts once.
  const uint64_t hashed = part.allocation.write_combined ? 0 : part.bytes;
  const auto hash = static_cast<uint32_t>(trace::hash_bytes(bytes, hashed) >> 32);
  if (operand.looks == 0 || operand.hash != hash) operand.contents = more(operand.contents);
  operand.looks = more(operand.looks);
  operand.hash = hash;
  if (found != 0) {
    operand.found = 1;
    builder_.holds_pointers = true;
    look_counters.tables.fetch_add(1, std::memory_order_relaxed);
  }
  keep(part.key, operand);
  look_counters.buffers.fetch_add(1, std::memory_order_relaxed);
  look_counters.bytes.fetch_add(part.bytes, std::memory_order_relaxed);
}

void Looks::refuse(const Part& part) noexcept {
  mark_again(part.allocation);
  SeenOperand operand = operand_of(part.key);
  operand.refusals = more(operand.refusals);
  keep(part.key, operand);
  const bool needed = part.allocation.unknown || part.allocation.holds_pointers || operand.found != 0;
  if (needed) builder_.flag(trace::kOpOpaque);
  if (look_counters.not_scanned.fetch_add(1, std::memory_order_relaxed) != 0) return;
  // No warning: what follows from it, a call that is refused or a kernel that faults, has its own line.
  say<Cause::buffer_unread>(builder_.command.name, part.allocation.size,
                            needed ? phrase<Cause::taken_as_any>() : phrase<Cause::taken_as_unknown>());
}

// A buffer that something unknown was copied into, piece by piece.
void Looks::see_large(Part part) noexcept {
  finish();
  const uint64_t end = part.offset + part.bytes;
  if (part.bytes > kMost) return refuse(part);
  for (; part.offset < end && (builder_.command.flags & trace::kOpOpaque) == 0; part.offset += part.bytes) {
    part.bytes = std::min(end - part.offset, ReadBack::kMostBytes);
    part.version = pointees_version(part.allocation.id);
    parts_[count_++] = part;
    finish();
  }
}

// Seen without waiting: while a plan is in force or a capture is open.
void glance(CommandBuilder& builder, const Part& part) {
  if (!part.in_place) return;
  const auto* bytes = reinterpret_cast<const unsigned char*>(part.allocation.address + part.offset);
  const Payload payload{bytes, part.bytes, part.allocation.write_combined, false};
  if (record_payload(part.allocation.address + part.offset, payload) != 0) builder.holds_pointers = true;
}

bool find_part(const LookRange& range, const Access* accesses, uint32_t index, Part* part) {
  const Access& access = accesses[index];
  Allocation& allocation = part->allocation;
  if (access.address == 0 || !find_allocation(access.address - access.offset, &allocation)) return false;
  if (allocation.id != access.allocation) return false;
  part->in_place = is_host_readable(allocation.origin);
  if (!part->in_place && !allocation.unknown && !(allocation.written && allocation.size < kLargestLook)) return false;
  part->key = key_of(range, accesses, index);
  if (!wanted(allocation, operand_of(part->key))) return false;
  // Device memory as a whole, so that it counts as seen; of host memory, which is never that, what the operand names.
  part->offset = part->in_place ? access.offset / 8 * 8 : 0;
  part->bytes = allocation.size - part->offset;
  if (part->in_place) part->bytes = std::min(part->bytes, kLargestLook);
  return !part->in_place || readable_in_place(allocation);
}

}  // namespace

void look(CommandBuilder& builder, const LookRange& range) noexcept {
  const bool may = may_read();
  if (!may && !any_capture()) builder.command.blind = true;
  if (!may && !builder.host_readable) return;
  Looks looks(builder);
  for (uint32_t i = range.begin; i < range.end; ++i) {
    Part part;
    if (!find_part(range, builder.accesses, i, &part)) continue;
    if (!may) {
      glance(builder, part);
      continue;
    }
    part.version = pointees_version(part.allocation.id);
    looks.add(part);
  }
  looks.finish();
}

void record_host_copy(uint64_t to, uint64_t from, uint64_t bytes) noexcept {
  Allocation source;
  const bool known = find_allocation(from, &source);
  const auto* data = reinterpret_cast<const void*>(from);
  bool settled = !known || !(source.written || host_function_ran.load());
  if (!settled && may_read()) {
    unmark(source);
    const bool ran = host_function_ran.exchange(false);
    ReadBack request;
    request.after_everything = true;
    request.patience_ns = kPatience;
    settled = handler().order.read_back(request);
    if (!settled) {
      mark_again(source);
      if (ran) host_function_ran.store(true);
      mark_unknown(to);
      look_counters.not_scanned.fetch_add(1, std::memory_order_relaxed);
    }
  }
  record_payload(to, {data, bytes, source.write_combined, settled});
}

void mark_submitted(const CommandBuilder& builder) noexcept {
  const Command& command = builder.command;
  if (command.op == trace::OpKind::host_function) host_function_ran.store(true);
  if ((command.flags & trace::kOpOpaque) != 0) return mark_all_written();
  if (!builder.fresh_writes) return;
  if (command.op != trace::OpKind::launch && command.op != trace::OpKind::graph_launch) return;
  for (uint32_t i = 0; i < command.access_count; ++i) {
    const Access& access = builder.accesses[i];
    Allocation allocation;
    if (access.address == 0 || (access.mode & trace::kAccessWrite) == 0) continue;
    if (!find_allocation(access.address - access.offset, &allocation) || allocation.written) continue;
    if (is_host_readable(allocation.origin) || allocation.size < kLargestLook) {
      set_written(allocation.address, true);
    }
  }
}

}  // namespace reprise
