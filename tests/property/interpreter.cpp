#include "tests/property/interpreter.h"

#include <algorithm>
#include <utility>

#include "preload/trace/signature.h"

namespace reprise::analyzer::testing {
namespace {

using plan::kNone;
using trace::hash_mix;

constexpr uint64_t kSlabUnit = 512;

uint64_t words_of(const plan::Plan& plan, uint32_t tensor) {
  return std::max<uint64_t>(plan.tensors[tensor].chunk_count, 1);
}
bool is_alive_at(const plan::Tensor& tensor, uint32_t call) {
  return tensor.allocate_call == kNone || (tensor.allocate_call < call && call < tensor.free_call);
}
// The same for a word of an allocation whether that stands as one tensor or as several.
uint64_t name_of_word(const plan::Plan& plan, uint32_t tensor, uint64_t word) {
  const plan::Tensor& entry = plan.tensors[tensor];
  return hash_mix(entry.recorded_allocation, entry.part_offset / plan.chunk_bytes + word);
}
uint64_t initial_word(const plan::Plan& plan, uint32_t tensor, uint64_t word) {
  return hash_mix(77, name_of_word(plan, tensor, word)) | 1;
}

struct WordRange {
  uint64_t begin;
  uint64_t end;
};
WordRange range_of(const plan::Plan& plan, const plan::OpAccess& access) {
  const uint64_t words = words_of(plan, access.tensor);
  if (access.size == 0 || plan.tensors[access.tensor].chunk_count == 0) return {0, words};
  return {access.offset / plan.chunk_bytes, (access.offset + access.size + plan.chunk_bytes - 1) / plan.chunk_bytes};
}

// One access of an op, with what does not change from run to run.
struct Step {
  plan::OpAccess access;
  WordRange range;
  bool takes_slab = false;  // the first op of a small transient tensor
};

// All accesses of an op; an opaque one updates every live tensor.
std::vector<plan::OpAccess> accesses_of(const plan::Plan& plan, uint32_t call) {
  std::vector<plan::OpAccess> accesses = plan.calls[call].accesses;
  if ((plan.calls[call].flags & trace::kOpOpaque) == 0) return accesses;
  for (uint32_t t = 0; t < plan.tensors.size(); ++t) {
    if (!is_alive_at(plan.tensors[t], call)) continue;
    plan::OpAccess access;
    access.tensor = t;
    access.mode = 3;
    accesses.push_back(access);
  }
  return accesses;
}

std::vector<std::vector<Step>> steps_of(const plan::Plan& plan) {
  std::vector<std::vector<Step>> steps(plan.calls.size());
  std::vector<uint32_t> first_user(plan.tensors.size(), kNone);
  for (uint32_t call = 0; call < plan.calls.size(); ++call) {
    if (plan.calls[call].kind != plan::CallKind::op) continue;
    for (const plan::OpAccess& access : accesses_of(plan, call)) {
      const plan::Tensor& tensor = plan.tensors[access.tensor];
      if (first_user[access.tensor] == kNone) first_user[access.tensor] = call;
      const bool takes = tensor.chunk_count == 0 && tensor.allocate_call != kNone && first_user[access.tensor] == call;
      steps[call].push_back({access, range_of(plan, access), takes});
    }
  }
  return steps;
}

// Of every call: the same whatever the plan inserts between those of the program.
std::vector<uint64_t> names_of(const plan::Plan& plan) {
  std::vector<uint64_t> names;
  uint64_t number = 0;
  for (const plan::Call& call : plan.calls)
    names.push_back(call.recompute_of != kNone ? names[call.recompute_of]
                                               : hash_mix(call.signature, call.inserted ? number : number++));
  return names;
}

// `word(tensor, index)` is a reference to where the contents are. Returns the op's hash.
template <typename Word>
uint64_t run_op(const plan::Plan& plan, uint64_t name, const std::vector<Step>& steps, Word&& word) {
  uint64_t hash = name;
  for (const Step& step : steps) {
    if ((step.access.mode & trace::kAccessRead) == 0) continue;
    for (uint64_t i = step.range.begin; i < step.range.end; ++i) hash = hash_mix(hash, word(step.access.tensor, i));
  }
  for (const Step& step : steps) {
    if (!changes(step.access)) continue;  // the facts are right here
    for (uint64_t i = step.range.begin; i < step.range.end; ++i) {
      word(step.access.tensor, i) = hash_mix(hash, name_of_word(plan, step.access.tensor, i)) | 1;
    }
  }
  return hash;
}

}  // namespace

// What is the same in every run of a plan.
struct Interpreter::Fixed {
  Fixed(const plan::Plan& of, uint32_t iterations)
      : plan(of), rounds(iterations), steps(steps_of(of)), names(names_of(of)) {
    const size_t count = plan.vertices.size();
    successors.resize(count);
    waiting.assign(count * rounds, 0);
    for (uint32_t v = 0; v < count; ++v) {
      for (const plan::Predecessor& p : plan.vertices[v].predecessors) {
        successors[p.vertex].emplace_back(v, p.distance);
        for (uint32_t round = p.distance; round < rounds; ++round) ++waiting[round * count + v];
      }
    }
    set_mappings();
  }

  // Where each vertex finds its tensors in the plan's own order: in every other order it must be the same place.
  void set_mappings() {
    mapping.resize(plan.vertices.size());
    std::vector<uint32_t> now(plan.tensors.size());
    for (uint32_t t = 0; t < plan.tensors.size(); ++t) now[t] = plan.tensors[t].home;
    for (const uint32_t v : plan.order) {
      const plan::Vertex& vertex = plan.vertices[v];
      for (const plan::Acquire& acquire : vertex.acquires) now[acquire.tensor] = acquire.placement;
      if (vertex.kind == plan::VertexKind::offload) mapping[v] = {now[vertex.tensor]};
      if (vertex.kind != plan::VertexKind::op) continue;
      for (const Step& step : steps[vertex.call]) mapping[v].push_back(now[step.access.tensor]);
    }
  }

  const plan::Plan& plan;
  uint32_t rounds;
  std::vector<std::vector<Step>> steps;                               // call -> accesses
  std::vector<uint64_t> names;                                        // call -> name
  std::vector<std::vector<uint32_t>> mapping;                         // vertex -> placement of each access's tensor
  std::vector<std::vector<std::pair<uint32_t, uint8_t>>> successors;  // vertex -> (vertex, distance)
  std::vector<uint32_t> waiting;                                      // node -> predecessors
};

namespace {

class Machine {
 public:
  explicit Machine(const Interpreter::Fixed& fixed)
      : fixed_(fixed),
        plan_(fixed.plan),
        vertices_(static_cast<uint32_t>(plan_.vertices.size())),
        chunks_(plan_.chunk_count, 0),
        owner_(plan_.chunk_count, kNone),
        slab_(plan_.slab_bytes / kSlabUnit + 2, 0),
        small_(plan_.tensors.size(), 0),
        host_(plan_.tensors.size()),
        host_valid_(plan_.tensors.size(), 0),
        mapped_(plan_.tensors.size(), kNone),
        waiting_(fixed.waiting),
        op_hash_(fixed.rounds, std::vector<uint64_t>(plan_.calls.size(), 0)) {
    set_start();
    for (uint32_t node = 0; node < waiting_.size(); ++node) {
      if (waiting_[node] == 0) ready_.push_back(node);
    }
  }

  const std::vector<std::vector<uint64_t>>& op_hash() const { return op_hash_; }
  // Empty, or what an access found that must not be.
  const std::string& fault() const { return fault_; }
  // The most chunks that held something of a tensor.
  uint32_t peak_chunks() const { return peak_; }
  uint32_t vertex_of(uint32_t node) const { return node % vertices_; }
  uint32_t round_of(uint32_t node) const { return node / vertices_; }

  const std::vector<uint32_t>& ready() const { return ready_; }
  std::vector<uint32_t> ready(const std::function<bool(uint32_t)>& allowed) const {
    std::vector<uint32_t> nodes;
    for (const uint32_t node : ready_) {
      if (allowed(node)) nodes.push_back(node);
    }
    return nodes;
  }

  void run(uint32_t node) {
    const uint32_t v = vertex_of(node);
    const plan::Vertex& vertex = plan_.vertices[v];
    if (vertex.kind == plan::VertexKind::op) op(v, round_of(node));
    if (vertex.kind == plan::VertexKind::offload) offload(v, round_of(node));
    if (vertex.kind == plan::VertexKind::reload) reload(vertex);
    ready_.erase(std::find(ready_.begin(), ready_.end(), node));
    for (const auto& [successor, distance] : fixed_.successors[v]) {
      const uint32_t round = round_of(node) + distance;
      if (round < fixed_.rounds && --waiting_[round * vertices_ + successor] == 0)
        ready_.push_back(round * vertices_ + successor);
    }
  }

  // As the replay derives it when the program diverges: on the device if all chunks are still the tensor's.
  bool resident(uint32_t tensor) const {
    if (mapped_[tensor] == kNone) return false;
    const std::vector<uint32_t>& chunks = plan_.placements[mapped_[tensor]].chunks;
    return std::all_of(chunks.begin(), chunks.end(), [&](uint32_t c) { return owner_[c] == tensor; });
  }
  bool host_valid(uint32_t tensor) const { return host_valid_[tensor] != 0; }

  Contents contents(uint32_t tensor) {
    Contents words;
    const bool chunked = plan_.tensors[tensor].chunk_count != 0;
    if (chunked && !resident(tensor)) return host_[tensor];
    for (uint64_t i = 0; i < words_of(plan_, tensor); ++i) words.push_back(word(tensor, i));
    return words;
  }

 private:
  void set_start() {
    for (uint32_t t = 0; t < plan_.tensors.size(); ++t) {
      const plan::Tensor& tensor = plan_.tensors[t];
      mapped_[t] = tensor.chunk_count != 0 ? tensor.home : kNone;
      if (tensor.allocate_call != kNone) continue;
      host_[t].assign(words_of(plan_, t), 0xbadbadbad);
      for (uint64_t i = 0; i < words_of(plan_, t); ++i) {
        if (tensor.chunk_count == 0) small_[t] = initial_word(plan_, t, i);
        if (!tensor.resident_at_start || tensor.clean_at_start) host_[t][i] = initial_word(plan_, t, i);
        if (!tensor.resident_at_start) continue;
        chunks_[plan_.placements[tensor.home].chunks[i]] = initial_word(plan_, t, i);
        own(plan_.placements[tensor.home].chunks[i], t);
      }
      host_valid_[t] = !tensor.resident_at_start || tensor.clean_at_start ? 1 : 0;
    }
  }

  void own(uint32_t chunk, uint32_t tensor) {
    if (owner_[chunk] == kNone) ++used_;
    owner_[chunk] = tensor;
    peak_ = std::max(peak_, used_);
  }

  uint64_t& word(uint32_t tensor, uint64_t index) {
    const plan::Tensor& entry = plan_.tensors[tensor];
    if (entry.chunk_count != 0) return chunks_[plan_.placements[mapped_[tensor]].chunks[index]];
    return entry.allocate_call == kNone ? small_[tensor] : slab_[entry.slab_offset / kSlabUnit];
  }

  void take(const plan::Acquire& acquire) {
    mapped_[acquire.tensor] = acquire.placement;
    for (const uint32_t chunk : plan_.placements[acquire.placement].chunks) {
      own(chunk, acquire.tensor);
      chunks_[chunk] = 0;
    }
  }

  // A vertex must find a tensor on the device, mapped to the chunks that the plan means.
  void check(uint32_t vertex, uint32_t tensor, uint32_t placement) {
    if (plan_.tensors[tensor].chunk_count == 0 || !fault_.empty()) return;
    const uint32_t found = mapped_[tensor];
    const bool elsewhere = found != placement && (found == kNone || placement == kNone ||
                                                  plan_.placements[found].chunks != plan_.placements[placement].chunks);
    const char* what = elsewhere ? " mapped elsewhere" : resident(tensor) ? nullptr : " gone";
    if (what != nullptr) fault_ = "vertex " + std::to_string(vertex) + " finds tensor " + std::to_string(tensor) + what;
  }

  void op(uint32_t v, uint32_t round) {
    const plan::Vertex& vertex = plan_.vertices[v];
    const std::vector<Step>& steps = fixed_.steps[vertex.call];
    for (const plan::Acquire& acquire : vertex.acquires) {
      take(acquire);
      host_valid_[acquire.tensor] = 0;
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      check(v, steps[i].access.tensor, fixed_.mapping[v][i]);
      if (!steps[i].takes_slab) continue;  // all new bytes of the slab are undefined
      const plan::Tensor& tensor = plan_.tensors[steps[i].access.tensor];
      for (uint64_t b = 0; b < tensor.size; b += kSlabUnit) slab_[(tensor.slab_offset + b) / kSlabUnit] = 0;
    }
    op_hash_[round][vertex.call] = run_op(plan_, fixed_.names[vertex.call], steps,
                                          [this](uint32_t tensor, uint64_t i) -> uint64_t& { return word(tensor, i); });
    for (const Step& step : steps) {
      if (writes(step.access)) host_valid_[step.access.tensor] = 0;
    }
  }

  // A clean one copies only where there is no copy yet, in the first iteration.
  void offload(uint32_t v, uint32_t round) {
    const uint32_t tensor = plan_.vertices[v].tensor;
    check(v, tensor, fixed_.mapping[v][0]);
    const Contents before = std::move(host_[tensor]);
    host_[tensor].clear();
    for (uint64_t i = 0; i < words_of(plan_, tensor); ++i) host_[tensor].push_back(word(tensor, i));
    host_valid_[tensor] = 1;
    if (!plan_.vertices[v].clean || round == 0 || !fault_.empty() || before == host_[tensor]) return;
    fault_ = "vertex " + std::to_string(v) + " is no clean offload of tensor " + std::to_string(tensor);
  }

  void reload(const plan::Vertex& vertex) {
    take(vertex.acquires[0]);
    for (uint64_t i = 0; i < words_of(plan_, vertex.tensor); ++i) {
      word(vertex.tensor, i) = i < host_[vertex.tensor].size() ? host_[vertex.tensor][i] : 0xdead;
    }
  }

  const Interpreter::Fixed& fixed_;
  const plan::Plan& plan_;
  uint32_t vertices_;
  std::vector<uint64_t> chunks_;
  std::vector<uint32_t> owner_;
  std::vector<uint64_t> slab_;
  std::vector<uint64_t> small_;
  std::vector<Contents> host_;
  std::vector<uint8_t> host_valid_;
  std::vector<uint32_t> mapped_;  // tensor -> placement its range is mapped to
  std::vector<uint32_t> waiting_;
  std::vector<uint32_t> ready_;
  std::vector<std::vector<uint64_t>> op_hash_;
  std::string fault_;
  uint32_t used_ = 0;
  uint32_t peak_ = 0;
};

}  // namespace

SerialRun run_serially(const plan::Plan& plan, uint32_t rounds, bool keep_contents) {
  SerialRun run;
  const std::vector<std::vector<Step>> steps = steps_of(plan);
  const std::vector<uint64_t> names = names_of(plan);
  std::vector<Contents> now(plan.tensors.size());
  std::vector<uint8_t> touched(plan.tensors.size(), 0);
  for (uint32_t t = 0; t < plan.tensors.size(); ++t) {
    now[t].assign(words_of(plan, t), 0);
    if (plan.tensors[t].allocate_call != kNone) continue;
    touched[t] = 1;
    for (uint64_t i = 0; i < now[t].size(); ++i) now[t][i] = initial_word(plan, t, i);
  }
  for (uint32_t round = 0; round < rounds; ++round) {
    run.op_hash.emplace_back(plan.calls.size(), 0);
    run.contents.emplace_back();
    for (uint32_t call = 0; call < plan.calls.size(); ++call) {
      std::vector<Contents>& before = run.contents[round].emplace_back(keep_contents ? plan.tensors.size() : 0);
      for (uint32_t t = 0; t < before.size(); ++t) {
        if (touched[t] != 0) before[t] = now[t];
      }
      const plan::Call& entry = plan.calls[call];
      if (entry.kind == plan::CallKind::op) {
        run.op_hash[round][call] = run_op(plan, names[call], steps[call],
                                          [&](uint32_t tensor, uint64_t i) -> uint64_t& { return now[tensor][i]; });
        for (const Step& step : steps[call]) touched[step.access.tensor] = 1;
      } else if (entry.kind != plan::CallKind::late_free) {
        touched[entry.tensor] = 0;
        std::fill(now[entry.tensor].begin(), now[entry.tensor].end(), 0);
      }
    }
  }
  run.final_contents = now;
  return run;
}

std::vector<Strategy> strategies(const plan::Plan& plan, std::mt19937& random) {
  const auto is_transfer = [&plan](uint32_t node) {
    const plan::VertexKind kind = plan.vertices[node % plan.vertices.size()].kind;
    return kind == plan::VertexKind::offload || kind == plan::VertexKind::reload;
  };
  const auto prefer = [](auto better) {
    return [better](const std::vector<uint32_t>& ready) {
      return static_cast<size_t>(std::min_element(ready.begin(), ready.end(), better) - ready.begin());
    };
  };
  const auto kind = [&plan](uint32_t node) { return plan.vertices[node % plan.vertices.size()].kind; };
  std::vector<Strategy> result;
  const auto any = [&random](const std::vector<uint32_t>& ready) { return size_t{random() % ready.size()}; };
  result.push_back({"random", any});
  result.push_back(
      {"transfers last", prefer([=](uint32_t a, uint32_t b) { return !is_transfer(a) && is_transfer(b); })});
  result.push_back(
      {"transfers first", prefer([=](uint32_t a, uint32_t b) { return is_transfer(a) && !is_transfer(b); })});
  result.push_back({"newest first", prefer([](uint32_t a, uint32_t b) { return a > b; })});
  result.push_back({"reloads first, newest", prefer([=](uint32_t a, uint32_t b) {
                      const bool x = kind(a) == plan::VertexKind::reload, y = kind(b) == plan::VertexKind::reload;
                      return x != y ? x : a > b;
                    })});
  result.push_back({"offloads last", prefer([=](uint32_t a, uint32_t b) {
                      const bool x = kind(a) == plan::VertexKind::offload, y = kind(b) == plan::VertexKind::offload;
                      return x != y ? y : a > b;
                    })});
  return result;
}

Interpreter::Interpreter(const plan::Plan& plan, uint32_t rounds)
    : fixed_(std::make_unique<Fixed>(plan, rounds)), serial_(run_serially(plan, rounds, false)) {}
Interpreter::~Interpreter() = default;

std::string Interpreter::compare(const Choice& choose) {
  const plan::Plan& plan = fixed_->plan;
  Machine machine(*fixed_);
  size_t ran = 0;
  for (; !machine.ready().empty(); ++ran) machine.run(machine.ready()[choose(machine.ready())]);
  peak_chunks_ = std::max(peak_chunks_, machine.peak_chunks());
  if (ran != plan.vertices.size() * fixed_->rounds) return "not every vertex became ready";
  if (!machine.fault().empty()) return machine.fault();
  for (uint32_t round = 0; round < fixed_->rounds; ++round) {
    for (uint32_t call = 0; call < plan.calls.size(); ++call) {
      if (machine.op_hash()[round][call] != serial_.op_hash[round][call]) {
        return "call " + std::to_string(call) + " of iteration " + std::to_string(round) + " computed something else";
      }
    }
  }
  for (uint32_t t = 0; t < plan.tensors.size(); ++t) {
    if (plan.tensors[t].allocate_call != kNone) continue;
    if (machine.contents(t) != serial_.final_contents[t]) return "tensor " + std::to_string(t) + " differs at the end";
  }
  return "";
}

std::string check_divergence(const plan::Plan& plan, uint32_t submitted, uint32_t extra, const Choice& choose) {
  constexpr uint32_t kRounds = 3;
  const SerialRun serial = run_serially(plan, 2, true);
  const Interpreter::Fixed fixed(plan, kRounds);
  Machine machine(fixed);
  const auto is_submitted = [&](uint32_t node) {
    const uint32_t call = plan.vertices[machine.vertex_of(node)].call;
    if (call == kNone)
      return machine.round_of(node) <= (submitted < plan.calls.size() ? 1u : 2u);  // may go out at once
    return machine.round_of(node) == 0 || (machine.round_of(node) == 1 && call < submitted);
  };
  const auto is_call = [&](uint32_t node) { return plan.vertices[machine.vertex_of(node)].call != kNone; };
  size_t calls_left = 0;
  for (uint32_t v = 0; v < plan.vertices.size(); ++v) {
    if (plan.vertices[v].call == kNone) continue;
    calls_left += plan.vertices[v].call < submitted ? size_t{2} : size_t{1};
  }
  for (uint32_t more = 0; calls_left > 0 || more < extra;) {
    const std::vector<uint32_t> ready = machine.ready(is_submitted);
    if (ready.empty()) break;
    const uint32_t node = ready[choose(ready)];
    if (calls_left == 0) ++more;
    if (is_call(node)) --calls_left;
    machine.run(node);
  }
  if (calls_left > 0) return "a submitted call waits for one that the program has not made";
  const bool at_end = submitted >= plan.calls.size();
  for (uint32_t t = 0; t < plan.tensors.size(); ++t) {
    const plan::Tensor& tensor = plan.tensors[t];
    if (tensor.chunk_count == 0) continue;
    if (tensor.allocate_call != kNone &&
        (at_end || !(tensor.allocate_call < submitted && submitted <= tensor.free_call))) {
      continue;
    }
    const Contents& right = at_end ? serial.final_contents[t] : serial.contents[1][submitted][t];
    if (right.empty()) continue;  // never touched: nothing to keep
    const std::string name = "tensor " + std::to_string(t);
    if (!machine.resident(t) && !machine.host_valid(t)) return name + " is neither on the device nor on the host";
    if (machine.contents(t) != right) return name + " has the wrong bytes";
  }
  return "";
}

}  // namespace reprise::analyzer::testing
