// The plan: one iteration of a program as a MemGraph with placement, for one budget. The analyzer makes it, `reprise
// plan` writes it, the replay loads and enforces it. Plain data with a binary form (checksummed) and a text form
// (tests, dump). This library knows neither cuda.h nor the analyzer.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "preload/trace/format.h"
#include "preload/trace/status.h"

namespace reprise::plan {

inline constexpr uint32_t kPlanVersion = 11;
inline constexpr uint32_t kNone = 0xffffffff;

// What a run promises about memory that kernels reach unseen (README). strict: what leaves the device is always copied,
// because such a kernel may have written it. trusted: what no call is known to have written is dropped. audited:
// trusted, where only kernels run that `reprise audit` has seen to touch nothing unseen, or whose code proves it
// (0076); strict elsewhere. proven: the same, where code proves it.
enum class Safety : uint8_t { strict, audited, trusted, proven };
// What a plan may do depends on what is known of each kernel.
inline bool is_by_kernel(Safety safety) { return safety == Safety::audited || safety == Safety::proven; }
inline constexpr Safety kDefaultSafety = Safety::proven;
const char* name_of(Safety safety);
// False: there is none of that name.
bool read_safety(const char* name, Safety* safety);

// Beside trace::AccessMode bits, in graphs and plans: from iteration to iteration the access goes to another part of
// its tensor, as where batches are slices of a data set. The plan treats it as an access to the whole tensor.
inline constexpr uint32_t kAccessMoves = 8;

// Beside trace::OpFlags. Of launches: their code proves Call::audited and which operands they leave alone.
inline constexpr uint16_t kCallProven = 1u << 13;
// ... In plans for iterations whose sizes vary. Of all calls: a tensor may be smaller, and an op's signature is its
// structure (preload/trace/signature.h).
inline constexpr uint16_t kCallAnySize = 1u << 14;
// For launches: the plan uses no fact about the kernel, so any kernel may take its place.
inline constexpr uint16_t kCallAnyKernel = 1u << 15;

// An allocation instance of the iteration: persistent ones are alive at its start and its end, transient ones are
// allocated and freed in between.
struct Tensor {
  uint64_t size = 0;                 // bytes, as the program asked
  uint64_t recorded_allocation = 0;  // trace id of the instance in the recorded iteration
  uint32_t chunk_count = 0;          // 0: small, lives in a slab and is always resident
  uint32_t allocate_call = kNone;    // index into calls; kNone: persistent
  uint32_t free_call = kNone;        // index into calls; kNone: persistent
  uint32_t home = kNone;             // index into placements; kNone for small tensors and those never touched
  uint64_t slab_offset = 0;          // small transient tensors: offset in the plan's slab region
  bool resident_at_start = false;    // persistent, chunked: on the device, at its home, when the iteration starts
  bool clean_at_start = false;       // and its host copy is valid, too: the plan may drop it without an offload
  uint32_t device = 0;
  uint32_t recompute_of = kNone;  // made by a recompute: the tensor that held the same bytes before, at this address
  uint32_t part_of = kNone;       // of a split tensor: the first of its parts, itself for that one
  uint64_t part_offset = 0;       // and where in the allocation this part begins
  // For audited safety: its range stays mapped while its bytes are away, onto chunks that others have then. Whenever it
  // may be away, no op of the program runs that may touch more than its operands.
  bool aliased = false;
};

// The tensor whose first life this one goes on with after a recompute; itself where it has only one.
inline uint32_t root_of(const std::vector<Tensor>& tensors, uint32_t tensor) {
  while (tensors[tensor].recompute_of != kNone) tensor = tensors[tensor].recompute_of;
  return tensor;
}

// Which physical chunks back a tensor, in address order. Chunk ids are 0 .. chunk_count-1 of the plan.
struct Placement {
  std::vector<uint32_t> chunks = {};
};

// free_handover and allocate_handover: of a tensor that one iteration allocates and hands over to the next one, which
// frees it ("the loss until it is assigned again"). It stands among the persistent tensors: free_handover gives its
// bytes up, allocate_handover, later in the iteration and of the same size, takes its place and its address.
//
// late_free: the program's free of a tensor whose bytes, or address, the plan needs longer, for a recompute. It has no
// vertex, and nothing is freed: each life of the tensor ends with an inserted free, the last one later. It names the
// life that has begun last by then, which may have ended.
enum class CallKind : uint8_t { allocate = 1, free, op, free_handover, allocate_handover, late_free };

struct OpAccess {
  uint32_t tensor = kNone;
  uint32_t mode = 0;  // trace::AccessMode bits, kAccessMoves
  uint64_t offset = 0;
  uint64_t size = 0;  // 0: up to the end
  uint32_t parameter_offset = trace::kNoParameter;
};

inline bool moves(const OpAccess& access) { return (access.mode & kAccessMoves) != 0; }

// What an access means for the order of ops: one that writes conflicts with all others.
inline bool reads(const OpAccess& access) { return (access.mode & trace::kAccessRead) != 0; }
inline bool writes(const OpAccess& access) { return (access.mode & trace::kAccessWrite) != 0; }
// And for copies: are they out of date behind it? A write that kernel facts say leaves the bytes alone does not change
// them; that is evidence, so what is given up for it is guarded (Vertex::clean).
inline bool changes(const OpAccess& access) { return writes(access) && (access.mode & trace::kAccessUnchanged) == 0; }

// One call of the recorded iteration, in program order: what the matcher compares. Allocations that Reprise never moves
// (pinned host memory, managed memory, module globals) appear neither as tensors nor as calls nor as accesses.
struct Call {
  CallKind kind = CallKind::op;
  trace::OpKind op = trace::OpKind::other;
  trace::Origin origin = trace::Origin::alloc;  // of allocate and free
  bool pure = false;                            // of op: what it writes depends on what it reads alone, bit for bit
  uint16_t flags = 0;                           // trace::OpFlags, kCallProven, kCallAnySize, kCallAnyKernel
  // Not the program's: of allocate and free, where the plan begins and ends the life of a tensor on its own; of op, a
  // recompute. What is left without inserted calls are all calls of the program, in its order.
  bool inserted = false;
  uint32_t recompute_of = kNone;  // of a recompute: the call (an index) whose op runs here again
  uint32_t tensor = kNone;        // of all but ops
  uint64_t signature = 0;  // op_signature, allocate_signature or free_signature; 0 of inserted ones but recomputes
  uint32_t stream = 0;
  uint32_t vertex = kNone;  // of op and free
  std::vector<OpAccess> accesses = {};
  std::string name = {};     // kernel or call, for people
  uint64_t duration_ns = 0;  // as recorded
  uint32_t device = 0;       // of op: where it runs; of a copy between devices: where it comes from
  uint32_t waited = 0;       // the program makes this call after it has waited for the first `waited` calls to complete
  // The kernel's identity, if this launch touches nothing but its operands: `reprise audit` has seen it in this shape
  // or, with kCallProven, the kernel's code proves it. Otherwise 0.
  uint64_t audited = 0;
  // With kCallProven: words of the parameters, by their offset, that have to be 0, for the proof holds for such
  // launches.
  std::vector<uint32_t> null_words = {};
};

// Does what compares `again`, an operand of a recompute of `first`, show by itself that the recompute leaves it alone?
// So it is with what was dropped and made again: `first` had run when its digest was taken (decision 0035).
bool shows_itself(const std::vector<Tensor>& tensors, const Call& first, const OpAccess& again);

// Does the op touch nothing but its accesses? Copies and memsets do, and host functions reach no memory of ours.
bool touches_only_operands(const Call& call);
// Is it an op that may touch more?
bool may_stray(const Call& call);

enum class VertexKind : uint8_t {
  op = 1,   // a call of the program
  release,  // the program's free of a transient tensor: done when the program has called it; nothing runs
  offload,  // device to host copy of a tensor
  reload,   // host to device copy of a tensor
};

enum class EdgeKind : uint8_t {
  data = 1,  // the successor reads or overwrites what the predecessor wrote or read (same tensor)
  memory,    // the successor takes a chunk (or slab bytes) that the predecessor used or freed
  program,   // the program's own order (opaque ops)
};

struct Predecessor {
  uint32_t vertex = kNone;
  EdgeKind kind = EdgeKind::data;
  uint8_t distance = 0;  // 0: of the same iteration; 1: of the one before
};

// "From this vertex on the tensor occupies these chunks": a reload, or the op that touches a transient tensor first.
// Where the range is mapped to other chunks at that time (a remap, or the way back home), it must be mapped again
// first.
struct Acquire {
  uint32_t tensor = kNone;
  uint32_t placement = kNone;  // differs from the tensor's home only where a remap is planned
};

struct Vertex {
  VertexKind kind = VertexKind::op;
  uint32_t call = kNone;    // of op and release
  uint32_t tensor = kNone;  // of release, offload and reload
  // Of an offload: as far as kernel facts say the host has these bytes already. The replay compares hashes, and copies
  // only where they differ or there is no copy to compare with. Behind it the host copy is valid, as behind any
  // offload.
  bool clean = false;
  // From the iteration's start, by the planner's simulation; of a release, when the program has called free and what
  // uses the tensor is done.
  uint64_t predicted_start_ns = 0;
  uint64_t predicted_end_ns = 0;
  std::vector<Predecessor> predecessors = {};
  std::vector<Acquire> acquires = {};
};

// What its predicted times rest on: rates of the link in bytes per second, and what a copy takes besides.
struct PlannedLink {
  std::string machine;  // as `--machine` names it; empty: that of the recording
  bool assumed = true;  // nobody has measured or given its rates
  uint64_t h2d_bytes_per_s = 0;
  uint64_t d2h_bytes_per_s = 0;
  uint64_t latency_ns = 0;
  uint64_t remap_ns_per_chunk = 0;
  bool operator==(const PlannedLink&) const = default;
};

struct Plan {
  std::string program;          // command line, for people
  uint64_t program_hash = 0;    // identity of the executable that was recorded ("program.hash" of the trace)
  uint64_t iteration_hash = 0;  // over the calls' signatures
  std::string policy;
  Safety safety = Safety::strict;  // of the runs that it was made for
  PlannedLink link;                // likewise
  uint64_t chunk_bytes = 0;        // bytes of a chunk
  uint64_t budget_bytes = 0;       // the budget that was asked for
  uint64_t reserved_bytes = 0;     // of it: slabs, and what the program holds around Reprise
  uint32_t chunk_count = 0;  // chunks that the plan uses; chunk_count * chunk_bytes + reserved_bytes <= budget_bytes
  // Several devices: how many of the chunks each one has, the first one's first; budget, reserve and slab are then
  // those of each. Empty: one device has them all. Plans for several devices are for simulation: nothing enforces them.
  std::vector<uint32_t> device_chunks = {};
  uint64_t slab_bytes = 0;     // size of the region for small transient tensors
  uint64_t peak_bytes = 0;     // of the device without Reprise, which percentages are of
  uint64_t minimum_bytes = 0;  // smallest budget for which a plan exists (largest working set and what is reserved)
  uint64_t compute_ns = 0;     // of an iteration for which nothing has to move: the same in plans for all budgets
  uint64_t predicted_ns = 0;   // of one iteration under this plan
  uint64_t offload_bytes = 0;  // per iteration, without clean offloads
  uint64_t reload_bytes = 0;
  uint32_t remap_count = 0;     // acquires that find the range mapped to other chunks: VMM calls in steady state
  std::vector<Tensor> tensors;  // persistent ones first, in order of allocation
  std::vector<Placement> placements;
  std::vector<Call> calls;
  std::vector<Vertex> vertices;
  std::vector<uint32_t> order;  // all vertices by dispatch priority: a topological order of the distance-0 edges
};

// Is it for iterations of other sizes, too? Then its tensors have the largest ones that they may have.
bool sizes_vary(const Plan& plan);

// Does it recompute ops?
bool recomputes(const Plan& plan);

// Does it reorder the program, so that an op or a free waits, directly or not, for one that the program calls later?
// Such plans are for simulation, too.
bool reorders(const Plan& plan);

// Does it split tensors, whose parts then move on their own? Such plans are for simulation, too.
bool has_split_tensors(const Plan& plan);

inline uint32_t device_count(const Plan& plan) {
  return plan.device_chunks.empty() ? 1 : static_cast<uint32_t>(plan.device_chunks.size());
}

// Does a tensor leave without a copy where no call is known to have written it? Such plans are for trusted safety.
bool drops_what_is_only_read(const Plan& plan);

// Do all its ops touch nothing but their accesses? Then audited safety is as good as trusted.
bool all_audited(const Plan& plan);

// Binary form. write_plan replaces the file atomically. read_plan refuses what fails the checksum, the version or
// check_structure().
Status write_plan(const Plan& plan, const std::string& path);
Result<Plan> read_plan(const std::string& path);
std::string serialize(const Plan& plan);
Result<Plan> deserialize(const std::string& bytes);

// Every index is in range, order is a permutation and topological, sizes add up. Cheap; not the verifier.
Status check_structure(const Plan& plan);

// One line per tensor, call, vertex; stable, so that tests can compare it.
std::string to_text(const Plan& plan);

}  // namespace reprise::plan
