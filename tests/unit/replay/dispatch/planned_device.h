// A plan executor on a fake driver, its plan, and kernels that compute: what tests of it share.
#pragma once

#include "analyzer/verify/verify.h"
#include "preload/trace/signature.h"
#include "replay/dispatch/plan_executor.h"
#include "replay/dispatch/repeats.h"
#include "tests/support/test.h"
#include "tests/unit/replay/memory/small_device.h"

namespace reprise::replay {

using plan::CallKind;
using plan::EdgeKind;
using plan::VertexKind;
inline constexpr uint64_t kBytes = 2 * 4096;  // of each tensor but the last word of the sum
inline constexpr uint32_t kW = 0, kSum = 1, kX = 2, kT = 3, kAgain = 4, kY = 5, kYAgain = 6;

// An iteration: x is made of w, used, and idle while t takes its chunks; then x is made again and used, the sum of all
// that was used is shown to the host, and w takes a step.
class PlanBuilder {
 public:
  plan::Plan single() {
    begin({0, 1, 2, 2, 2});
    allocate(kX);
    op("make", {{kW, false}, {kX, true}}, {{10, EdgeKind::data, 1}, {9, EdgeKind::memory, 1}, {7, EdgeKind::memory, 1}},
       kX);
    op("use", {{kX, false}, {kSum, true}}, {{0, EdgeKind::data, 0}, {8, EdgeKind::data, 1}});
    free(kX, true);
    allocate(kT);
    op("work", {{kT, true}}, {{2, EdgeKind::memory, 0}, {1, EdgeKind::memory, 0}}, kT);
    op("use", {{kT, false}, {kSum, true}}, {{3, EdgeKind::data, 0}, {1, EdgeKind::data, 0}});
    free(kT, false);
    allocate(kAgain);
    op("make", {{kW, false}, {kAgain, true}}, {{5, EdgeKind::memory, 0}, {4, EdgeKind::memory, 0}}, kAgain);
    op("use", {{kAgain, false}, {kSum, true}}, {{6, EdgeKind::data, 0}, {4, EdgeKind::data, 0}});
    op("show", {{kSum, false}}, {{7, EdgeKind::data, 0}});
    free(kAgain, false);
    op("step", {{kW, true}}, {{6, EdgeKind::data, 0}});
    recompute(1, 9);
    return std::move(plan_);
  }

  // ... and y is made of x, dropped and made again, too, of the x that was made again.
  plan::Plan chain() {
    constexpr EdgeKind kData = EdgeKind::data, kMemory = EdgeKind::memory;
    begin({0, 1, 2, 2, 2, 3, 3});
    allocate(kX);
    op("make", {{kW, false}, {kX, true}}, {{16, kData, 1}, {14, kMemory, 1}, {11, kMemory, 1}, {10, kMemory, 1}}, kX);
    op("use", {{kX, false}, {kSum, true}}, {{0, kData, 0}, {13, kData, 1}});
    allocate(kY);
    op("make", {{kX, false}, {kY, true}}, {{0, kData, 0}, {15, kMemory, 1}, {12, kMemory, 1}}, kY);
    op("use", {{kY, false}, {kSum, true}}, {{2, kData, 0}, {1, kData, 0}});
    free(kY, true);
    free(kX, true);
    allocate(kT);
    op("work", {{kT, true}}, {{5, kMemory, 0}, {1, kMemory, 0}, {2, kMemory, 0}}, kT);
    op("use", {{kT, false}, {kSum, true}}, {{6, kData, 0}, {3, kData, 0}});
    free(kT, false);
    allocate(kAgain);
    op("make", {{kW, false}, {kAgain, true}}, {{8, kMemory, 0}, {7, kMemory, 0}}, kAgain);
    allocate(kYAgain);
    op("make", {{kAgain, false}, {kYAgain, true}}, {{9, kData, 0}, {4, kMemory, 0}, {3, kMemory, 0}}, kYAgain);
    op("use", {{kAgain, false}, {kSum, true}}, {{9, kData, 0}, {7, kData, 0}});
    op("use", {{kYAgain, false}, {kSum, true}}, {{10, kData, 0}, {11, kData, 0}});
    op("show", {{kSum, false}}, {{12, kData, 0}});
    free(kAgain, false);
    free(kYAgain, false);
    op("step", {{kW, true}}, {{9, kData, 0}});
    recompute(1, 13);
    recompute(4, 15);
    return std::move(plan_);
  }

  // The sum is used and leaves until the next iteration, while w takes `steps` steps.
  plan::Plan line(uint32_t steps) {
    begin({0, 1});
    const uint32_t last = steps, offload = steps + 1, reload = steps + 2;
    op("use", {{kW, false}, {kSum, true}}, {{last, EdgeKind::data, 1}, {reload, EdgeKind::data, 1}});
    for (uint32_t i = 0; i < steps; ++i) op("step", {{kW, true}}, {{i, EdgeKind::data, 0}});
    transfer(VertexKind::offload, kSum, {{0, EdgeKind::data, 0}});
    transfer(VertexKind::reload, kSum, {{offload, EdgeKind::data, 0}});
    return std::move(plan_);
  }

  // The sum leaves, and w behind it, which a kernel is thought to change that never does; then w comes back, and the
  // sum behind it.
  plan::Plan both_leave() {
    begin({0, 1});
    op("use", {{kW, false}, {kSum, true}}, {{4, EdgeKind::data, 1}, {5, EdgeKind::data, 1}});
    op("show", {{kW, true}}, {{0, EdgeKind::data, 0}});
    transfer(VertexKind::offload, kSum, {{0, EdgeKind::data, 0}});
    transfer(VertexKind::offload, kW, {{1, EdgeKind::data, 0}});
    transfer(VertexKind::reload, kW, {{3, EdgeKind::data, 0}});
    transfer(VertexKind::reload, kSum, {{2, EdgeKind::data, 0}, {4, EdgeKind::memory, 0}});
    return std::move(plan_);
  }

 private:
  void transfer(VertexKind kind, uint32_t tensor, std::vector<plan::Predecessor> predecessors) {
    plan_.order.push_back(static_cast<uint32_t>(plan_.vertices.size()));
    plan::Vertex& made = plan_.vertices.emplace_back();
    made.kind = kind;
    made.tensor = tensor;
    made.predecessors = std::move(predecessors);
    (kind == VertexKind::reload ? plan_.reload_bytes : plan_.offload_bytes) += kBytes;
    if (kind == VertexKind::reload) made.acquires = {{tensor, plan_.tensors[tensor].home}};
  }
  // `homes`: of each tensor.
  void begin(const std::vector<uint32_t>& homes) {
    const uint32_t placements = 1 + *std::max_element(homes.begin(), homes.end());
    plan_.chunk_bytes = 4096;
    plan_.chunk_count = 2 * placements;
    plan_.budget_bytes = plan_.chunk_count * 4096;
    for (uint32_t i = 0; i < placements; ++i) plan_.placements.push_back({{2 * i, 2 * i + 1}});
    for (const uint32_t home : homes) {
      plan::Tensor& tensor = plan_.tensors.emplace_back();
      tensor.size = kBytes;
      tensor.chunk_count = 2;
      tensor.home = home;
    }
    for (const uint32_t persistent : {kW, kSum}) plan_.tensors[persistent].resident_at_start = true;
    if (homes.size() > kAgain) plan_.tensors[kAgain].recompute_of = kX;
    if (homes.size() > kYAgain) plan_.tensors[kYAgain].recompute_of = kY;
  }
  // The call `again` and the allocation before it are the plan's.
  void recompute(uint32_t first, uint32_t again) {
    plan_.calls[first].pure = true;
    plan_.calls[again - 1].inserted = plan_.calls[again].inserted = true;
    plan_.calls[again].recompute_of = first;
    plan_.calls[again].signature = plan_.calls[first].signature;
  }
  struct Use {
    uint32_t tensor;
    bool written;
  };
  plan::Call& call(CallKind kind, uint32_t tensor) {
    plan::Call& made = plan_.calls.emplace_back();
    made.kind = kind;
    made.tensor = tensor;
    made.signature = plan_.calls.size();
    return made;
  }
  void allocate(uint32_t tensor) {
    plan_.tensors[tensor].allocate_call = static_cast<uint32_t>(plan_.calls.size());
    call(CallKind::allocate, tensor);
  }
  plan::Vertex& vertex(VertexKind kind, std::vector<plan::Predecessor> predecessors) {
    plan_.order.push_back(static_cast<uint32_t>(plan_.vertices.size()));
    plan_.calls.back().vertex = plan_.order.back();
    plan::Vertex& made = plan_.vertices.emplace_back();
    made.kind = kind;
    made.call = static_cast<uint32_t>(plan_.calls.size() - 1);
    made.predecessors = std::move(predecessors);
    return made;
  }
  void op(const char* name, const std::vector<Use>& uses, std::vector<plan::Predecessor> predecessors,
          uint32_t acquired = plan::kNone) {
    plan::Call& made = call(CallKind::op, plan::kNone);
    made.op = trace::OpKind::launch;
    made.name = name;
    for (const Use& use : uses) {
      const bool update = use.written && is_persistent(use.tensor);
      const uint32_t mode = !use.written ? trace::kAccessRead
                            : update     ? trace::kAccessRead | trace::kAccessWrite
                                         : uint32_t{trace::kAccessWrite};
      made.accesses.push_back({use.tensor, mode, 0, 0, static_cast<uint32_t>(8 * made.accesses.size())});
    }
    plan::Vertex& added = vertex(VertexKind::op, std::move(predecessors));
    if (acquired != plan::kNone) added.acquires = {{acquired, plan_.tensors[acquired].home}};
  }
  static bool is_persistent(uint32_t tensor) { return tensor == kW || tensor == kSum; }
  void free(uint32_t tensor, bool inserted) {
    plan_.tensors[tensor].free_call = static_cast<uint32_t>(plan_.calls.size());
    call(CallKind::free, tensor).inserted = inserted;
    vertex(VertexKind::release, {}).tensor = tensor;
  }

  plan::Plan plan_;
};

// What a plan is for: trusted safety, or audited, where w's step may touch more than its operands. Then ranges of what
// is away lead to nothing, or stay mapped.
enum class For : uint8_t { trusted, straying, straying_aliased };

inline plan::Plan made_for(For what, plan::Plan plan) {
  plan.safety = what == For::trusted ? plan::Safety::trusted : plan::Safety::audited;
  if (what == For::trusted) return plan;
  uint32_t before = plan::kNone;
  for (plan::Call& call : plan.calls) {
    if (call.kind != CallKind::op) continue;
    auto& predecessors = plan.vertices[call.vertex].predecessors;
    const auto is_before = [before](const plan::Predecessor& p) { return p.vertex == before && p.distance == 0; };
    if (before != plan::kNone && std::none_of(predecessors.begin(), predecessors.end(), is_before)) {
      predecessors.push_back({before, EdgeKind::program, 0});
    }
    before = call.vertex;
    call.audited = call.name == "step" ? 0 : 7;
    for (plan::OpAccess& access : call.accesses) {
      if (!plan::writes(access)) access.mode |= trace::kAccessWrite | trace::kAccessUnchanged;
    }
  }
  for (plan::Tensor& tensor : plan.tensors) {
    tensor.aliased = what == For::straying_aliased && tensor.allocate_call != plan::kNone;
  }
  return plan;
}

class PlannedDevice;
inline PlannedDevice* running = nullptr;

// What a launch carries, and so what its repeat has to carry.
struct Parameters {
  CUdeviceptr from;
  CUdeviceptr to;
  uint64_t salt;
  uint32_t call;
  uint32_t iteration;
};

class PlannedDevice : public ::testing::Test {
 protected:
  explicit PlannedDevice(plan::Plan plan = PlanBuilder().single(), For what = For::trusted)
      : device_(8, 4096, 8 << 20, what == For::trusted ? testing::Safety::trusted : testing::Safety::strict) {
    plan = made_for(what, std::move(plan));
    running = this;
    shared_.command_log.open(1 << 20);
    shared_.context = device_.context;
    shared_.chunk_bytes = device_.chunk_bytes;
    shared_.arena = device_.memory.arena;
    shared_.addresses.open(shared_.arena, device_.chunk_bytes);
    shared_.host = &device_.memory.host;
    EXPECT_TRUE(analyzer::verify(plan).ok()) << analyzer::verify(plan).message();
    std::string why;
    const plan::Safety kind = plan.safety;
    EXPECT_TRUE(make_plan_index(std::move(plan), shared_.arena.plan, 4096, &index_, &why, kind)) << why;
    shared_.plans[0].store(&index_);
    stream_ = device_.driver.stream();
    for (const uint32_t tensor : {kW, kSum}) make_persistent(tensor);
    const std::vector<CUdeviceptr> cast = {addresses_[kW], addresses_[kSum]};
    Command command;
    command.payload = cast.data();
    command.payload_bytes = static_cast<uint32_t>(cast.size() * sizeof cast[0]);
    LogEntry* const entry = shared_.command_log.append_op(command);
    entry->kind = EntryKind::activate;
    shared_.command_log.publish(entry);
    executor_.activate(*entry);
    shared_.command_log.done(entry);
    EXPECT_TRUE(executor_.active());
  }
  ~PlannedDevice() override {
    device_.driver.run_all();
    EXPECT_EQ(device_.driver.violations, std::vector<std::string>{});
    running = nullptr;
  }

  void make_persistent(uint32_t tensor) {
    ResidentTensor& made = *device_.memory.tensors.insert(shared_.arena.ranges.base + tensor * 4 * 4096, kBytes, 2);
    made.allocation = tensor + 1;
    EXPECT_EQ(pager_.make_resident({&made}), CUDA_SUCCESS);
    addresses_[tensor] = made.base;
    for (uint64_t at = 0; at < kBytes; at += 8) device_.driver.write(made.base + at, at + tensor);
    device_.memory.touched(made, device_.work(device_.memory.lanes.lane_of(stream_, device_.context), [] {}), true);
    model_[tensor].resize(kBytes / 8);
    for (uint64_t at = 0; at < kBytes; at += 8) model_[tensor][at / 8] = at + tensor;
  }
  CUdeviceptr address(uint32_t tensor) {
    const uint32_t root = plan::root_of(index_.plan.tensors, tensor);
    return root < 2 ? addresses_[root] : index_.addresses[root];
  }

  // ---- what kernels do -------------------------------------------------------------------------------------------

  static uint64_t made(uint64_t from, uint64_t salt, uint64_t at) { return trace::hash_mix(from ^ salt, at); }
  static uint64_t summed(uint64_t sum, uint64_t used, uint64_t at) { return trace::hash_mix(sum + at, used); }

  static CUresult issue(const void* payload, CUstream stream) noexcept {
    Parameters parameters;
    std::memcpy(&parameters, payload, sizeof parameters);
    running->issued(parameters, stream);
    return CUDA_SUCCESS;
  }
  void issued(const Parameters& parameters, CUstream stream) {
    const std::string name = index_.plan.calls[parameters.call].name;
    log_.push_back(name);
    if (!device_.driver.idle())
      busy_.push_back(name + " " + std::to_string(parameters.iteration) + " " + std::to_string(parameters.call));
    device_.driver.launch(stream, [this, parameters, name] { run(parameters, name); });
  }
  void run(const Parameters& parameters, const std::string& name) {
    FakeDriver& driver = device_.driver;
    const bool repeat = name == "make" && makes_[parameters.call]++ % 2 == 1;
    for (uint64_t at = 0; at < kBytes; at += 8) {
      const uint64_t from = parameters.from == 0 ? 0 : driver.read(parameters.from + at);
      if (name == "use") {
        driver.write(parameters.to + at, summed(driver.read(parameters.to + at), from, at));
      } else if (name == "show") {
        if (at == 0) shown_.push_back(0);
        shown_.back() = trace::hash_mix(shown_.back(), from);
      } else {
        driver.write(parameters.to + at, made(from, parameters.salt, at));
      }
    }
    if (repeat && spoil_) spoil_(parameters);
    if (name == "make" && also_) also_(parameters);
  }

  // ---- what the program calls ------------------------------------------------------------------------------------

  void submit(uint32_t call, uint64_t iteration) {
    const plan::Call& planned = index_.plan.calls[call];
    if (planned.inserted) return;
    LogEntry* entry = nullptr;
    if (planned.kind == CallKind::op) {
      entry = op(call, iteration);
    } else {
      entry = shared_.command_log.append(planned.kind == CallKind::allocate ? EntryKind::allocate : EntryKind::free);
      entry->address = address(planned.tensor);
      entry->size = kBytes;
      entry->chunk_count = 2;
      entry->allocation = 100 + iteration * 10 + planned.tensor;
    }
    entry->call = call;
    entry->iteration = iteration;
    shared_.command_log.publish(entry);
  }
  LogEntry* op(uint32_t call, uint64_t iteration) {
    const plan::Call& planned = index_.plan.calls[call];
    std::vector<Access> accesses;
    Parameters parameters{0, 0, 1000 + iteration, call, static_cast<uint32_t>(iteration)};
    for (const plan::OpAccess& access : planned.accesses) {
      accesses.push_back({{access.tensor + 1, 0, 0, access.parameter_offset, access.mode}, address(access.tensor)});
      (plan::changes(access) ? parameters.to : parameters.from) = address(access.tensor);
    }
    if (planned.name == "step") parameters.from = parameters.to;
    alignas(16) unsigned char payload[64] = {};
    std::memcpy(payload, &parameters, sizeof parameters);
    Command command{};
    command.op = trace::OpKind::launch;
    command.flags = planned.name == "show" ? uint16_t{trace::kOpHostVisible} : uint16_t{0};
    command.stream = stream_;
    command.context = device_.context;
    command.kernel = 7;
    command.name = "a_kernel";
    command.accesses = accesses.data();
    command.access_count = static_cast<uint32_t>(accesses.size());
    command.issue = &PlannedDevice::issue;
    command.payload = payload;
    command.payload_bytes = sizeof payload;
    model(planned.name, parameters);
    return shared_.command_log.append_op(command);
  }
  // The same on the host, at once.
  void model(const std::string& name, const Parameters& parameters) {
    const auto of = [&](CUdeviceptr base) -> std::vector<uint64_t>& {
      for (uint32_t tensor = 0; tensor < index_.plan.tensors.size(); ++tensor) {
        const uint32_t root = plan::root_of(index_.plan.tensors, tensor);
        if (address(root) == base) return model_[root];
      }
      return model_[kAgain];  // nothing is read
    };
    std::vector<uint64_t>& to = of(parameters.to);
    std::vector<uint64_t>& from = of(parameters.from);
    to.resize(kBytes / 8);
    if (name == "show") expected_.push_back(0);
    for (uint64_t at = 0; at < kBytes; at += 8) {
      const uint64_t value = parameters.from == 0 ? 0 : from[at / 8];
      if (name == "use") {
        to[at / 8] = summed(to[at / 8], value, at);
      } else if (name == "show") {
        expected_.back() = trace::hash_mix(expected_.back(), value);
      } else {
        to[at / 8] = made(value, parameters.salt, at);
      }
    }
  }

  // The dispatcher's turns; the device goes on only when there is nothing else to do.
  void settle() {
    for (int turns = 0; turns < 100'000 && executor_.active(); ++turns) {
      if (executor_.step()) continue;
      bool moved = false;
      for (const CUstream stream : device_.driver.streams()) moved = moved || device_.driver.step(stream);
      if (!moved) return;
    }
  }
  void iterate(uint64_t iteration, uint32_t from = 0, uint32_t to = plan::kNone) {
    to = std::min<uint32_t>(to, static_cast<uint32_t>(index_.plan.calls.size()));
    for (uint32_t call = from; call < to && executor_.active(); ++call) submit(call, iteration);
    settle();
  }
  // The plan has ended: what it has not issued is performed on demand.
  void perform_rest() {
    for (uint64_t at = shared_.command_log.head(); at < shared_.command_log.tail(); ++at) {
      LogEntry* const entry = shared_.command_log.at(at);
      if (!entry->done) on_demand_.perform(*entry);
    }
    device_.driver.run_all();
  }
  bool was_busy(const std::string& what) const { return std::find(busy_.begin(), busy_.end(), what) != busy_.end(); }
  uint64_t repeats() const { return device_.memory.traffic.repeated_launches; }
  bool plan_is_given_up() const { return shared_.plan_unusable[0].load(); }
  CUresult error() const { return shared_.faults.peek(); }

  using FakeDriver = testing::FakeDriver;
  testing::SmallDevice device_;
  Common common_;
  Account account_{common_};
  Shared shared_{&common_, &account_};
  Pager pager_{&device_.memory};
  Issuer issuer_{&shared_, &device_.memory};
  OnDemandExecutor on_demand_{&shared_, &device_.memory, &pager_, &issuer_};
  PlanExecutor executor_{&shared_, &device_.memory, &pager_, &issuer_, &on_demand_.examiner};
  PlanIndex index_;
  CUstream stream_ = nullptr;
  CUdeviceptr addresses_[2] = {};
  std::vector<uint64_t> model_[7];
  std::vector<std::string> log_;   // kernels, as they were issued
  std::vector<std::string> busy_;  // those that were issued while the device had work
  std::vector<uint64_t> shown_;
  std::vector<uint64_t> expected_;
  std::map<uint32_t, int> makes_;                 // by call
  std::function<void(const Parameters&)> spoil_;  // behind each repeat
  std::function<void(const Parameters&)> also_;   // behind each launch of a "make"
};

}  // namespace reprise::replay
