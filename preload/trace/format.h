// The byte layout of a trace: what the recorder writes in the victim process and every other room reads.
// Little endian, every record a multiple of 8 bytes. docs/FORMAT.md draws the file; change both and kTraceVersion.
#pragma once
#include <cstdint>

namespace reprise::trace {

inline constexpr char kFileMagic[8] = {'R', 'P', 'T', 'R', 'A', 'C', 'E', '\n'};
inline constexpr uint32_t kTraceVersion = 1;
inline constexpr uint32_t kChunkMagic = 0x4b435052;    // "RPCK"
inline constexpr uint32_t kMaxChunkBytes = 16u << 20;  // raw_bytes of a chunk; a reader refuses more

// At offset 0 of the file.
struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t stopped_by;  // errno of the write that failed and ended the recording, else 0; set in place, at the end
};

// A chunk is readable alone: a crash loses at most the chunk being written. The payload is a zstd frame of records.
struct ChunkHeader {
  uint32_t magic;
  uint32_t raw_bytes;         // after decompression
  uint32_t compressed_bytes;  // that follow this header
  uint32_t reserved;
  uint64_t checksum;  // hash_bytes() of the compressed payload
};

enum class RecordKind : uint16_t {
  info = 1,   // key=value lines: program, arguments, driver, device, granularity, ...
  function,   // a kernel: name and parameter layout
  call_site,  // a call stack, as text
  stream,     // a stream of the program
  allocate,
  free,
  op,        // work on a stream: launch, copy, memset, ...
  order,     // event record, event wait, synchronisations
  activity,  // when an op ran on the device
  mark,      // a range name of NVTX or of reprise_mark()
  end,       // the recording ended as intended
  gap,       // records of a thread that were dropped
  kernel,    // which kernel a function is, in all programs
};

enum class OpKind : uint16_t {
  launch = 1,
  copy_host_to_device,
  copy_device_to_host,
  copy_device_to_device,
  copy_host_to_host,
  copy_peer,
  memset,
  graph_launch,
  host_function,
  other,  // forwarded work whose accesses are known but whose kind has no name here
};

enum class OrderKind : uint16_t {
  event_record = 1,
  event_wait,  // a stream waits for an event
  event_synchronize,
  event_query,
  stream_synchronize,
  stream_query,
  context_synchronize,
};

enum class Origin : uint16_t {
  alloc = 1,  // cuMemAlloc
  pitched,    // cuMemAllocPitch
  async,      // cuMemAllocAsync
  pool,       // cuMemAllocFromPoolAsync
  managed,    // cuMemAllocManaged: not moved by Reprise
  host,       // pinned host memory: known, never moved
  global,     // a module's __device__ variable: known, never moved
};

// kAccessUnchanged stands beside kAccessWrite, in graphs and plans, never in a trace: it counts as a write for the
// order of ops, because nothing proves the opposite, but kernel facts say that it leaves the bytes as they are.
enum AccessMode : uint32_t { kAccessRead = 1, kAccessWrite = 2, kAccessUnchanged = 4 };

enum OpFlags : uint16_t {
  kOpSynchronous = 1,  // the call returns only when the work is complete
  kOpHostVisible = 2,  // writes memory that the host can read
  kOpOpaque = 4,       // what it touches is not fully known: a barrier for the planner
  kOpFailed = 8,       // the driver refused it
  kOpDeclared = 16,    // a launch within a call of a library whose arguments say all that it touches (0078)
};

struct RecordHeader {
  RecordKind kind;
  uint16_t flags;
  uint32_t bytes;     // of the whole record, a multiple of 8
  uint64_t sequence;  // position in the program's order of calls over all threads
};

struct InfoRecord {
  RecordHeader header;
  uint32_t text_bytes;
  uint32_t reserved;
  // char text[text_bytes]
};

struct ParameterLayout {
  uint32_t offset;
  uint32_t bytes;
};

struct FunctionRecord {
  RecordHeader header;
  uint32_t function;  // id, from 1; 0 means none
  uint32_t parameter_count;
  uint32_t parameter_known;  // 1 when the layout below is that of the driver
  uint32_t name_bytes;
  // ParameterLayout parameters[parameter_count]; char name[name_bytes]
};

// Only of functions whose image was seen.
struct KernelRecord {
  RecordHeader header;
  uint32_t function;
  uint32_t reserved;
  uint64_t identity;  // hash of its code and parameters
};

struct CallSiteRecord {
  RecordHeader header;
  uint32_t call_site;  // id, from 1
  uint32_t text_bytes;
  // char text[text_bytes]: one frame a line, innermost first
};

struct StreamRecord {
  RecordHeader header;
  uint32_t stream;   // id; 0 is the legacy default stream, 1 the per-thread one
  uint32_t created;  // 1 created, 0 destroyed
  uint32_t non_blocking;
  int32_t priority;
};

struct AllocateRecord {
  RecordHeader header;  // flags: LifeFlags
  uint64_t allocation;  // id, from 1, never used again
  uint64_t address;
  uint64_t size;     // bytes as asked for
  uint64_t time_ns;  // CLOCK_MONOTONIC
  Origin origin;
  uint16_t device;
  uint32_t stream;
  uint32_t call_site;
  uint32_t reserved;
};

struct FreeRecord {
  RecordHeader header;  // flags: LifeFlags
  uint64_t allocation;
  uint64_t time_ns;
  Origin origin;
  uint16_t reserved;
  uint32_t stream;
};

struct AccessRecord {
  uint64_t allocation;
  uint64_t offset;            // of the pointer from the allocation's start
  uint64_t size;              // bytes touched from there; 0: unknown, so up to the allocation's end
  uint32_t parameter_offset;  // where in the parameter bytes the pointer stood; kNoParameter otherwise
  uint32_t mode;              // AccessMode bits
};
inline constexpr uint32_t kNoParameter = 0xffffffff;
// An operand that the library's call names and no parameter does has this plus its number in the call.
inline constexpr uint32_t kDeclaredParameter = 0x80000000;

constexpr bool is_in_parameters(uint32_t parameter_offset) { return parameter_offset < kDeclaredParameter; }

struct OpRecord {
  RecordHeader header;  // flags: OpFlags
  uint64_t time_ns;     // when the program called, CLOCK_MONOTONIC
  uint64_t signature;   // op_signature() of signature.h
  uint64_t size;        // bytes copied or set; 0 for launches
  OpKind op;
  uint16_t device;
  uint32_t thread;
  uint32_t stream;
  uint32_t function;
  uint32_t call_site;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  uint32_t access_count;
  uint32_t parameter_bytes;
  // AccessRecord accesses[access_count]; uint8_t parameters[parameter_bytes] (padded to 8)
};

struct OrderRecord {
  RecordHeader header;
  uint64_t time_ns;
  uint64_t event;  // id, 0 where there is none
  OrderKind order;
  uint16_t reserved;
  uint32_t stream;
};

struct ActivityRecord {
  RecordHeader header;  // sequence: that of the op
  uint64_t start_ns;    // device time, one clock per trace
  uint64_t end_ns;
};

struct MarkRecord {
  RecordHeader header;
  uint64_t time_ns;
  uint32_t text_bytes;
  uint32_t depth;  // > 0 push, 0 pop or point
  // char text[text_bytes]
};

struct EndRecord {
  RecordHeader header;
  uint64_t dropped_records;  // lost because a buffer was full; 0 in a good trace
  uint64_t op_count;
};

// A full buffer that was not emptied in time: `records` of one thread are missing. Or the recording paused on purpose,
// while a plan was followed: then `records` is 0, and allocations and frees with the same sequence (kCaughtUp) bring
// what is alive up to date.
struct GapRecord {
  RecordHeader header;      // sequence: that of the first call that was kept again; flags: GapFlags
  uint64_t after_sequence;  // of the last call before; 0: none was kept
  uint64_t records;
};

enum GapFlags : uint16_t {
  // Of a pause: whole iterations of plans went on meanwhile, and as much is alive at the same addresses as before.
  kGapSeam = 1,
};

enum LifeFlags : uint16_t {
  kCaughtUp = 1,  // of allocations and frees: a plan had the call, while the recording paused
};

static_assert(sizeof(ChunkHeader) == 24 && sizeof(RecordHeader) == 16);
static_assert(sizeof(OpRecord) % 8 == 0 && sizeof(AccessRecord) == 32 && sizeof(AllocateRecord) % 8 == 0);
static_assert(sizeof(FreeRecord) % 8 == 0 && sizeof(OrderRecord) % 8 == 0 && sizeof(StreamRecord) % 8 == 0);

}  // namespace reprise::trace
