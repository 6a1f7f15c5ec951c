// Both directions of the plan's binary form. One description of the fields (plan_fields) serves the writer and the
// reader, so that they cannot disagree. Used by serialize.cpp and deserialize.cpp only.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "analyzer/plan/plan.h"

namespace reprise::plan {

inline constexpr char kPlanMagic[8] = {'R', 'P', 'P', 'L', 'A', 'N', '\r', '\n'};

// At offset 0 of the file; the payload follows and ends the file.
struct PlanHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved;  // 0
  uint64_t payload_bytes;
  uint64_t checksum;  // hash_bytes() of the payload
};
static_assert(sizeof(PlanHeader) == 32);

// Appends fields to a string.
class Encoder {
 public:
  template <typename T>
  void operator()(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      bytes_.push_back(value ? 1 : 0);
    } else {
      static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    }
  }
  void operator()(const std::string& text) {
    (*this)(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  template <typename T, typename Fields>
  void list(const std::vector<T>& items, Fields&& fields) {
    (*this)(static_cast<uint32_t>(items.size()));
    for (const T& item : items) fields(*this, item);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads fields; after the first one that does not fit, ok() is false and everything else reads as zero.
class Decoder {
 public:
  Decoder(const char* data, size_t size) : next_(data), left_(size) {}
  bool ok() const { return ok_; }
  size_t left() const { return left_; }

  template <typename T>
  void operator()(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;
      (*this)(byte);
      if (byte > 1) ok_ = false;
      value = byte == 1;
    } else {
      static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
      if (!claim(sizeof(T))) return;
      std::memcpy(&value, next_, sizeof(T));
      advance(sizeof(T));
    }
  }
  void operator()(std::string& text) {
    uint32_t size = 0;
    (*this)(size);
    if (!claim(size)) return;
    text.assign(next_, size);
    advance(size);
  }
  template <typename T, typename Fields>
  void list(std::vector<T>& items, Fields&& fields) {
    uint32_t count = 0;
    (*this)(count);
    // No element is shorter than four bytes, so a lying count cannot make us allocate more than a multiple of the file.
    if (!claim(size_t{count} * 4)) return;
    items.resize(count);
    for (T& item : items) {
      if (!ok_) return;
      fields(*this, item);
    }
  }

 private:
  bool claim(size_t bytes) {
    if (bytes > left_) ok_ = false;
    return ok_;
  }
  void advance(size_t bytes) {
    next_ += bytes;
    left_ -= bytes;
  }

  const char* next_;
  size_t left_;
  bool ok_ = true;
};

// The fields in file order. `Codec` is Encoder (with a const Plan) or Decoder.
template <typename Codec, typename AnyPlan>
void plan_fields(Codec& codec, AnyPlan& plan) {
  codec(plan.program);
  codec(plan.program_hash);
  codec(plan.iteration_hash);
  codec(plan.policy);
  codec(plan.safety);
  codec(plan.link.machine);
  codec(plan.link.assumed);
  codec(plan.link.h2d_bytes_per_s);
  codec(plan.link.d2h_bytes_per_s);
  codec(plan.link.latency_ns);
  codec(plan.link.remap_ns_per_chunk);
  codec(plan.chunk_bytes);
  codec(plan.budget_bytes);
  codec(plan.reserved_bytes);
  codec(plan.chunk_count);
  codec(plan.slab_bytes);
  codec(plan.peak_bytes);
  codec(plan.minimum_bytes);
  codec(plan.compute_ns);
  codec(plan.predicted_ns);
  codec(plan.offload_bytes);
  codec(plan.reload_bytes);
  codec(plan.remap_count);
  const auto word = [](auto& c, auto& value) { c(value); };
  codec.list(plan.device_chunks, word);
  codec.list(plan.tensors, [](auto& c, auto& tensor) {
    c(tensor.size);
    c(tensor.recorded_allocation);
    c(tensor.chunk_count);
    c(tensor.allocate_call);
    c(tensor.free_call);
    c(tensor.home);
    c(tensor.slab_offset);
    c(tensor.resident_at_start);
    c(tensor.clean_at_start);
    c(tensor.device);
    c(tensor.recompute_of);
    c(tensor.part_of);
    c(tensor.part_offset);
    c(tensor.aliased);
  });
  codec.list(plan.placements, [&](auto& c, auto& placement) { c.list(placement.chunks, word); });
  codec.list(plan.calls, [&](auto& c, auto& call) {
    c(call.kind);
    c(call.op);
    c(call.origin);
    c(call.flags);
    c(call.stream);
    c(call.signature);
    c(call.tensor);
    c(call.vertex);
    c(call.name);
    c(call.duration_ns);
    c(call.device);
    c(call.pure);
    c(call.recompute_of);
    c(call.inserted);
    c(call.waited);
    c(call.audited);
    c.list(call.null_words, word);
    c.list(call.accesses, [](auto& d, auto& access) {
      d(access.tensor);
      d(access.mode);
      d(access.offset);
      d(access.size);
      d(access.parameter_offset);
    });
  });
  codec.list(plan.vertices, [](auto& c, auto& vertex) {
    c(vertex.kind);
    c(vertex.call);
    c(vertex.tensor);
    c(vertex.clean);
    c(vertex.predicted_start_ns);
    c(vertex.predicted_end_ns);
    c.list(vertex.predecessors, [](auto& d, auto& predecessor) {
      d(predecessor.vertex);
      d(predecessor.kind);
      d(predecessor.distance);
    });
    c.list(vertex.acquires, [](auto& d, auto& acquire) {
      d(acquire.tensor);
      d(acquire.placement);
    });
  });
  codec.list(plan.order, word);
}

}  // namespace reprise::plan
