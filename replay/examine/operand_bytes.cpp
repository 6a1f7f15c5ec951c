#include "replay/examine/operand_bytes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"

namespace reprise::replay {

OperandBytes::OperandBytes(Lanes* lanes, Digests* digests, HostCopies* memory,
                           std::vector<TriedOperand> operands) noexcept
    : lanes_(*lanes), digests_(*digests), memory_(*memory), operands_(std::move(operands)), copies_(operands_.size()) {}

OperandBytes::~OperandBytes() {
  digests_.give_back(&now_);
  for (Copies& copies : copies_) {
    digests_.give_back(&copies.left);
    digests_.give_back(&copies.put);
  }
}

uint64_t OperandBytes::bytes_of_copies(const std::vector<TriedOperand>& operands) noexcept {
  uint64_t all = 0;
  uint64_t largest = 0;
  for (const TriedOperand& operand : operands) {
    all += 2 * HostCopies::taken_by(operand.bytes);
    largest = std::max(largest, HostCopies::taken_by(operand.bytes));
  }
  return all + largest;
}

bool OperandBytes::keep() noexcept {
  if (lanes_.enter_own() != CUDA_SUCCESS || !memory_.reset(bytes_of_copies(operands_))) return false;
  if (digests_.available()) {
    now_ = digests_.take();
    for (Copies& copies : copies_) {
      copies.left = digests_.take();
      copies.put = digests_.take();
    }
  }
  uint64_t largest = 0;
  for (size_t i = 0; i < operands_.size(); ++i) {
    copies_[i].before = memory_.take(operands_[i].bytes);
    largest = std::max(largest, operands_[i].bytes);
    if (!read(i, copies_[i].before)) return false;
    digest(i, copies_[i].put);
  }
  scratch_ = memory_.take(largest);
  return lanes_.fault() == CUDA_SUCCESS;
}

bool OperandBytes::hold_address(const LiveRanges& live) const noexcept {
  if (live.empty()) return false;
  const auto is_live = [&](CUdeviceptr word) {
    if (word < live.front().first || word >= live.back().second) return false;
    const auto behind = std::upper_bound(live.begin(), live.end(), word,
                                         [](CUdeviceptr at, const auto& range) { return at < range.first; });
    return behind != live.begin() && word < std::prev(behind)->second;
  };
  for (size_t i = 0; i < operands_.size(); ++i) {
    for (uint64_t at = 0; at + 8 <= operands_[i].bytes; at += 8) {
      uint64_t word;
      std::memcpy(&word, copies_[i].before + at, sizeof word);
      if (is_live(word)) return true;
    }
  }
  return false;
}

// What it changed, and its digests.
bool OperandBytes::look_behind_first() noexcept {
  for (size_t i = 0; i < operands_.size(); ++i) {
    Copies& copies = copies_[i];
    copies.after = copies.before;
    bool same = false;
    if (!holds(i, copies.before, copies.put, &same)) return false;
    if (!same) {
      copies.changed = true;
      copies.after = memory_.take(operands_[i].bytes);
      if (!read(i, copies.after)) return false;
      copies.counted = has_counted(around_first(i));
    }
    digest(i, copies.left);
    if (lanes_.fault() != CUDA_SUCCESS) return false;
  }
  return true;
}

bool OperandBytes::read(size_t i, unsigned char* to) noexcept {
  if (lanes_.enter_own() != CUDA_SUCCESS) return false;
  const CUstream stream = lanes_.stream(Lanes::kToHost);
  if (driver().cuMemcpyDtoHAsync(to, operands_[i].base, operands_[i].bytes, stream) != CUDA_SUCCESS) return false;
  LaneUses uses;
  uses.add(Lanes::kToHost, lanes_.advance(Lanes::kToHost));
  return lanes_.host_wait(uses) == CUDA_SUCCESS;
}

bool OperandBytes::digest(size_t i, DigestCell cell) noexcept {
  if (cell == kNoDigest || !digests_.available() || lanes_.enter_own() != CUDA_SUCCESS) return false;
  const CUstream stream = lanes_.stream(Lanes::kToHost);
  const TriedOperand& operand = operands_[i];
  const bool issued = digests_.begin(cell, stream) == CUDA_SUCCESS &&
                      digests_.add(cell, operand.base, operand.bytes, 0, stream) == CUDA_SUCCESS &&
                      digests_.finish(cell, stream) == CUDA_SUCCESS;
  LaneUses uses;
  uses.add(Lanes::kToHost, lanes_.advance(Lanes::kToHost));
  return issued && lanes_.host_wait(uses) == CUDA_SUCCESS;
}

bool OperandBytes::holds(size_t i, const unsigned char* bytes, DigestCell of_them, bool* same) noexcept {
  if (of_them != kNoDigest && digest(i, now_)) {
    *same = digests_.equal(of_them, now_);
    return true;
  }
  if (!read(i, scratch_)) return false;
  *same = std::memcmp(scratch_, bytes, operands_[i].bytes) == 0;
  return true;
}

// What disturb() has put there. Without digests the bytes are made again.
bool OperandBytes::holds_disturbed(size_t i, uint32_t pattern, bool* same) noexcept {
  const TriedOperand& operand = operands_[i];
  if (copies_[i].put != kNoDigest && digest(i, now_)) {
    *same = digests_.equal(copies_[i].put, now_);
    return true;
  }
  const std::unique_ptr<unsigned char[]> put(new (std::nothrow) unsigned char[operand.bytes]);
  if (put == nullptr) return false;
  disturb_words(put.get(), copies_[i].before, operand.bytes, pattern);
  return holds(i, put.get(), kNoDigest, same);
}

bool OperandBytes::write(size_t i, const unsigned char* from) noexcept {
  copies_[i].disturbed = from != copies_[i].after;
  if (lanes_.enter_own() != CUDA_SUCCESS) return false;
  const Performing moves(Performing::kMoves);
  const CUstream stream = lanes_.stream(Lanes::kToDevice);
  if (driver().cuMemcpyHtoDAsync(operands_[i].base, from, operands_[i].bytes, stream) != CUDA_SUCCESS) return false;
  LaneUses uses;
  uses.add(Lanes::kToDevice, lanes_.advance(Lanes::kToDevice));
  return lanes_.host_wait(uses) == CUDA_SUCCESS;
}

AroundLaunch OperandBytes::around_first(size_t i) const noexcept {
  return {copies_[i].before, copies_[i].after, operands_[i].bytes};
}

bool OperandBytes::lay(size_t i, const unsigned char* pattern) noexcept {
  Copies& copies = copies_[i];
  if (copies.counted) {
    copies.covered = false;
    return write(i, copies.before);
  }
  if (pattern == nullptr) return write(i, copies.after);
  copies.covered = lay_pattern(scratch_, around_first(i), *pattern) && copies.covered;
  return write(i, scratch_);
}

bool OperandBytes::disturb(size_t i, uint32_t pattern) noexcept {
  disturb_words(scratch_, copies_[i].before, operands_[i].bytes, pattern);
  if (!write(i, scratch_)) return false;
  digest(i, copies_[i].put);
  return lanes_.fault() == CUDA_SUCCESS;
}

// Everything as before the first launch.
bool OperandBytes::rewind() noexcept {
  for (size_t i = 0; i < operands_.size(); ++i) {
    if ((copies_[i].changed || copies_[i].disturbed) && !write(i, copies_[i].before)) return false;
  }
  return true;
}

bool OperandBytes::as_first(size_t but, bool* same) noexcept {
  *same = true;
  for (size_t i = 0; i < operands_.size(); ++i) {
    Copies& copies = copies_[i];
    if (i == but) continue;
    bool equal = false;
    if (!holds(i, copies.after, copies.left, &equal)) return false;
    copies.disturbed = !equal;
    *same = *same && equal;
  }
  return true;
}

// What it has changed, or may have left as it was because the same bytes were there already.
bool OperandBytes::may_be_written(size_t i) const noexcept { return copies_[i].changed || operands_[i].overwritten; }

bool OperandBytes::restore() noexcept {
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (copies_[i].disturbed && !write(i, copies_[i].after)) return false;
  }
  return true;
}

}  // namespace reprise::replay
