#include "replay/lookahead/look_ahead.h"

#include <algorithm>
#include <array>

#include "replay/base/poll_pace.h"

namespace reprise::replay {
namespace {

constexpr size_t kMostArriving = 4;           // what is urgent waits behind them
constexpr uint64_t kAllocation = UINT64_MAX;  // the signature of one: it may take room at once
constexpr uint64_t kMostLooks = 24;           // moves that one step tries
// What is to leave may be in the hands of work that waits for the program: then something else leaves.
constexpr uint64_t kPatienceNs = 200'000'000;

bool is_op(const LogEntry& entry) noexcept {
  return entry.kind == EntryKind::op || (entry.kind == EntryKind::allocate && entry.chunk_count > 0);
}

}  // namespace

LookAhead::LookAhead(Shared* shared, ManagedMemory* memory, Pager* pager) noexcept
    : shared_(*shared), memory_(*memory), pager_(*pager), notes_(&shared->run_log, memory) {
  pager_.hooks.next_use = {&LookAhead::next_use, this};
}

// For the pager, which makes room for an op that is performed now.
uint64_t LookAhead::next_use(void* self, const ResidentTensor& tensor) noexcept {
  const auto& ahead = *static_cast<LookAhead*>(self);
  if (ahead.stopped_ || ahead.next_ == 0) return CallHistory::kNever;
  return ahead.history_.next_use(mover_of(tensor), ahead.next_ - 1);
}

void LookAhead::stop() noexcept {
  if (stopped_) return;
  memory_.safety->finish_arrivals(pager_);
  notes_.end();
  counts_.out_bytes += memory_.traffic.offloaded_bytes - counts_.before.offloaded_bytes;
  counts_.in_bytes += memory_.traffic.reloaded_bytes - counts_.before.reloaded_bytes;
  stopped_ = true;
  waiting_ = false;
}

void LookAhead::begin(uint64_t position) noexcept {
  if (!stopped_) return;
  history_.interrupt();
  ahead_.clear();
  where_.clear();
  next_ = history_.tail();
  read_ = position;
  counts_.before = memory_.traffic;
  notes_.begin();
  stopped_ = false;
  replan_ = true;
}

void LookAhead::write(RunLogWriter& log) noexcept {
  stop();
  if (history_.tail() == 0) return;
  RunLogLine line(run_log::look_ahead::line);
  line.add(run_log::look_ahead::foreseen, history_.foreseen())
      .add(run_log::look_ahead::unforeseen, history_.unforeseen())
      .add(run_log::look_ahead::in_time, counts_.in_time)
      .add(run_log::look_ahead::late, counts_.late)
      .add(run_log::look_ahead::missed, counts_.missed)
      .add(run_log::look_ahead::moved_out_bytes, counts_.out_bytes)
      .add(run_log::look_ahead::moved_in_bytes, counts_.in_bytes);
  log.write(line);
}

void LookAhead::step(bool may_leave) noexcept {
  if (stopped_ || memory_.lanes.given_up()) return;
  for (const uint64_t tail = shared_.command_log.tail(); read_ < tail; ++read_) read(*shared_.command_log.at(read_));
  if (shared_.common.captures.load() > 0 || everything_fits()) return;
  memory_.safety->poll_arrivals(pager_);
  plan_moves();
  move(may_leave);
}

// Nothing had to leave for a call yet. A budget that follows the peak would seem too small for what is still to come.
bool LookAhead::everything_fits() const noexcept {
  return memory_.traffic.offloaded_bytes + memory_.traffic.spared_bytes == 0;
}

void LookAhead::read(const LogEntry& entry) {
  if (entry.done) return;
  if (entry.kind == EntryKind::op) return read_op(entry);
  if (entry.kind == EntryKind::allocate && entry.chunk_count > 0) {
    const Mover mover = mover_of_allocation(entry.allocation);
    ahead_[entry.address] = {mover, entry.position};
    where_[mover] = entry.address;
    history_.set_chunks(mover, entry.chunk_count);
    add_op(kAllocation, false, {mover});
    claim_chunks(entry);
  }
  if (entry.kind != EntryKind::free) return;
  const Mover mover = mover_at(entry.address);
  if (mover == Mover::none || is_block(mover)) return;
  ahead_[entry.address] = {Mover::none, entry.position};
  history_.add_free(mover);
  window_.freed(history_, mover);
}

// Where its range has led since a tensor was freed there.
void LookAhead::claim_chunks(const LogEntry& allocation) {
  const Mapping* const mapping = memory_.mappings.find(allocation.address);
  if (mapping == nullptr || mapping->chunks.size() != allocation.chunk_count) return;
  for (const ChunkIndex chunk : mapping->chunks) memory_.chunks.claim(chunk, allocation.position);
}

void LookAhead::read_op(const LogEntry& entry) {
  const Command& command = entry.command;
  std::vector<Mover> movers;
  for (uint32_t i = 0; i < command.access_count; ++i) {
    const Mover mover = mover_at(command.accesses[i].address - command.accesses[i].offset);
    if (mover == Mover::none || std::find(movers.begin(), movers.end(), mover) != movers.end()) continue;
    movers.push_back(mover);
  }
  const uint64_t what =
      static_cast<uint64_t>(command.op) << 56 | uint64_t{command.access_count} << 40 | command.function;
  add_op(what, (command.flags & trace::kOpOpaque) != 0, movers);
}

void LookAhead::add_op(uint64_t signature, bool everything, const std::vector<Mover>& movers) {
  const HistoryIndex index = history_.tail();
  history_.add(signature, everything, movers);
  if (!window_.confirm(history_, index)) replan_ = true;
}

// As of the entry that is read.
Mover LookAhead::mover_at(CUdeviceptr base) {
  const auto ahead = ahead_.find(base);
  if (ahead != ahead_.end()) return ahead->second.mover;
  ResidentTensor* const tensor = memory_.tensors.find(base);
  if (tensor != nullptr && tensor->chunk_count > 0) {
    const Mover mover = mover_of(*tensor);
    where_[mover] = base;
    history_.set_chunks(mover, tensor->chunk_count);
    return mover;
  }
  if (!memory_.arena.slabs.contains(base) && !memory_.arena.plan.contains(base)) return Mover::none;
  const Mover mover = mover_of_block(memory_.blocks.base_of(base));
  where_[mover] = memory_.blocks.base_of(base);
  history_.set_chunks(mover, 1);
  return mover;
}

ResidentTensor* LookAhead::tensor_of(Mover mover) noexcept {
  const auto found = where_.find(mover);
  if (found == where_.end()) return nullptr;
  if (is_block(mover)) return memory_.blocks.find(found->second);
  ResidentTensor* const tensor = memory_.tensors.find(found->second);
  return tensor != nullptr && mover_of(*tensor) == mover ? tensor : nullptr;
}

void LookAhead::performed(const LogEntry& entry) noexcept {
  if (stopped_) return;
  note(entry);
  if (is_op(entry) && entry.program_issues) held_.emplace_back(entry.position, history_.called(next_).movers);
  if (is_op(entry)) ++next_;
  memory_.chunks.end_claims(entry.position + 1);
  if (entry.kind == EntryKind::ordered || entry.kind == EntryKind::errand) replan_ = true;
  if (entry.kind == EntryKind::allocate || entry.kind == EntryKind::free) {
    const auto ahead = ahead_.find(entry.address);
    if (ahead != ahead_.end() && ahead->second.position == entry.position) ahead_.erase(ahead);
    if (entry.kind == EntryKind::free) where_.erase(mover_of_allocation(entry.allocation));
  }
}

void LookAhead::made(const LogEntry& entry) noexcept {
  std::erase_if(held_, [&](const auto& held) { return held.first == entry.position; });
}

void LookAhead::note(const LogEntry& entry) {
  if (entry.kind == EntryKind::free) notes_.freed(mover_of_allocation(entry.allocation));
  if (!is_op(entry)) return;
  std::vector<std::pair<Mover, uint64_t>> touched;
  for (const Mover mover : history_.called(next_).movers) touched.emplace_back(mover, history_.chunks_of(mover));
  notes_.call(touched);
}

void LookAhead::plan_moves() {
  const uint64_t limit = memory_.chunks.limit();
  if (replan_ || window_.cursor() < next_ || !window_.set_limit(limit)) {
    window_.restart(next_, memory_.chunks.available(), limit);
    memory_.for_each_mover([&](ResidentTensor& tensor) {
      where_[mover_of(tensor)] = tensor.base;  // no call may have named it since begin()
      if (!tensor.is_resident() && tensor.state() != Residency::State::arriving) return;
      window_.is_there(history_, mover_of(tensor), tensor.chunk_count);
    });
    replan_ = false;
  }
  window_.extend(history_, next_);
}

void LookAhead::move(bool may_leave) noexcept {
  waiting_ = memory_.safety->arriving() > 0;
  // What is free, and will be at least, before and behind each of the moves so far.
  int64_t balance = static_cast<int64_t>(memory_.chunks.available()), room = balance;
  uint64_t looks = 0;
  std::array<Mover, kMostLooks> behind;  // that have an earlier move in the list
  size_t kept = 0;
  std::deque<Move>& moves = window_.moves();
  for (size_t i = 0; i < moves.size() && looks < kMostLooks && !replan_; ++looks) {
    const Move one = moves[i];
    const int64_t before = static_cast<int64_t>(memory_.chunks.available());
    const bool waits = std::find(behind.begin(), behind.begin() + kept, one.mover) != behind.begin() + kept;
    const bool over = !waits && (one.kind == Move::Kind::leave ? let_leave(one, may_leave) : let_come(one, room));
    const int64_t change = static_cast<int64_t>(memory_.chunks.available()) - before;
    balance += change;
    room += change;
    if (over) {
      moves.erase(moves.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      balance += one.kind == Move::Kind::leave ? static_cast<int64_t>(one.chunks) : -static_cast<int64_t>(one.chunks);
      room = std::min(room, balance);
      behind[kept++] = one.mover;
      ++i;
    }
  }
}

// True: it has left, or need not.
bool LookAhead::let_leave(const Move& move, bool may_leave) noexcept {
  if (next_ < move.at || next_ == 0) return false;  // until then it may come, or be allocated
  ResidentTensor* const tensor = tensor_of(move);
  if (tensor == nullptr || !tensor->is_resident()) return true;
  const auto needs = [&](const auto& held) {
    return std::find(held.second.begin(), held.second.end(), move.mover) != held.second.end();
  };
  if (!may_leave || std::any_of(held_.begin(), held_.end(), needs)) return false;
  if (history_.next_use(move.mover, next_ - 1) == next_) return true;
  if (!memory_.safety->may_leave(*tensor)) {
    waiting_ = true;
    return false;
  }
  if (pager_.page_out(*tensor) != CUDA_SUCCESS) replan_ = true;
  return true;
}

// True: it comes, or need not.
bool LookAhead::let_come(const Move& move, int64_t room) noexcept {
  ResidentTensor* const tensor = tensor_of(move);
  if (tensor == nullptr ? move.at < next_ : !tensor->is_away()) return true;
  if (tensor == nullptr || room < int64_t{tensor->chunk_count} || memory_.safety->arriving() >= kMostArriving) {
    return false;
  }
  if (memory_.safety->bring_in(pager_, *tensor) != CUDA_SUCCESS) replan_ = true;
  waiting_ = true;
  return true;
}

// All that is missing is on its way, or will be without anything else being done.
bool LookAhead::is_due(const std::vector<ResidentTensor*>& set) const noexcept {
  if (!waiting_) return false;
  return std::all_of(set.begin(), set.end(), [this](ResidentTensor* tensor) {
    const ResidentTensor& mover = memory_.mover_of(*tensor);
    if (mover.is_resident() || mover.state() == Residency::State::arriving) return true;
    const Mover name = mover_of(mover);
    const auto& moves = window_.moves();
    return std::any_of(moves.begin(), moves.end(), [&](const Move& move) {
      return move.kind == Move::Kind::come && move.lives_later == 0 && move.mover == name;
    });
  });
}

bool LookAhead::is_there(const std::vector<ResidentTensor*>& set) const noexcept {
  return std::all_of(set.begin(), set.end(),
                     [this](ResidentTensor* tensor) { return memory_.mover_of(*tensor).is_resident(); });
}

void LookAhead::wait_for(const std::vector<ResidentTensor*>& set) noexcept {
  if (stopped_ || shared_.common.captures.load() > 0) return;
  if (is_there(set)) return void(++counts_.in_time);
  const uint64_t deadline = RunLogWriter::now_ns() + kPatienceNs;
  PollPace pace;
  for (bool waited = false;; waited = true) {
    step(true);
    if (is_there(set)) return void(++(waited ? counts_.late : counts_.in_time));
    if (!is_due(set) || memory_.lanes.fault() != CUDA_SUCCESS || RunLogWriter::now_ns() > deadline) break;
    pace.sleep();
  }
  ++counts_.missed;
  replan_ = true;
}

}  // namespace reprise::replay
