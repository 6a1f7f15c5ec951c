#include "tests/support/trace_bytes.h"

namespace reprise::trace::test {
namespace {

OpRecord op_record(OpKind kind, uint64_t time_ns, uint64_t size, uint32_t access_count, uint32_t parameter_bytes) {
  OpRecord record{};
  record.time_ns = time_ns;
  record.signature = hash_mix(static_cast<uint64_t>(kind), size);
  record.size = size;
  record.op = kind;
  record.thread = 4711;
  record.stream = 2;
  record.call_site = 1;
  record.access_count = access_count;
  record.parameter_bytes = parameter_bytes;
  return record;
}

void describe_program(TraceBytes& trace) {
  trace.info("program=./saxpy --size 1024").info("driver=13000");
  FunctionRecord function{};
  const std::string name = "_Z5saxpyIfEviT_PKS0_PS0_";
  function.function = 1;
  function.parameter_count = 4;
  function.parameter_known = 1;
  function.name_bytes = static_cast<uint32_t>(name.size());
  const ParameterLayout layout[4] = {{0, 4}, {4, 4}, {8, 8}, {16, 8}};
  trace.add(RecordKind::function, 0, function, bytes_of(layout) + name);
  CallSiteRecord site{};
  const std::string frames = "main+0x1b (saxpy)\n__libc_start_main+0x85 (libc.so.6)";
  site.call_site = 1;
  site.text_bytes = static_cast<uint32_t>(frames.size());
  trace.add(RecordKind::call_site, 0, site, frames);
  StreamRecord stream{};
  stream.stream = 2;
  stream.created = 1;
  stream.non_blocking = 1;
  stream.priority = -1;
  trace.add(RecordKind::stream, 1, stream);
}

void run_kernel(TraceBytes& trace) {
  OpRecord launch = op_record(OpKind::launch, 1'020'500, 0, 2, 24);
  launch.function = 1;
  const uint32_t grid[3] = {4, 1, 1};
  const uint32_t block[3] = {256, 1, 1};
  std::memcpy(launch.grid, grid, sizeof(grid));
  std::memcpy(launch.block, block, sizeof(block));
  const AccessRecord accesses[2] = {{1, 0, 0, 8, kAccessRead}, {2, 64, 0, 16, kAccessRead | kAccessWrite}};
  trace.add(RecordKind::op, 5, launch, bytes_of(accesses) + std::string(24, '\x11'));
  ActivityRecord activity{};
  activity.start_ns = 1'030'000;
  activity.end_ns = 1'033'000;
  trace.add(RecordKind::activity, 5, activity);
}

}  // namespace

TraceBytes sample_trace() {
  TraceBytes trace;
  describe_program(trace);
  for (uint64_t id = 1; id <= 2; ++id) {
    AllocateRecord allocate{};
    allocate.allocation = id;
    allocate.address = 0x7f0000000000 + id * 0x10000;
    allocate.size = 4096;
    allocate.time_ns = 1'000'000 + id * 1000;
    allocate.origin = id == 1 ? Origin::alloc : Origin::async;
    allocate.stream = id == 1 ? 0 : 2;
    trace.add(RecordKind::allocate, 1 + id, allocate);
  }
  trace.end_chunk();
  const AccessRecord written{1, 0, 4096, kNoParameter, kAccessWrite};
  trace.add(RecordKind::op, 4, op_record(OpKind::copy_host_to_device, 1'010'000, 4096, 1, 0), bytes_of(written));
  MarkRecord mark{};
  mark.time_ns = 1'020'000;
  mark.text_bytes = 5;
  mark.depth = 1;
  trace.add(RecordKind::mark, 5, mark, "step\n");
  run_kernel(trace);
  OrderRecord order{};
  order.time_ns = 1'040'000;
  order.event = 9;
  order.order = OrderKind::event_record;
  order.stream = 2;
  trace.add(RecordKind::order, 6, order);
  trace.end_chunk();
  const AccessRecord read{2, 0, 4096, kNoParameter, kAccessRead};
  OpRecord copy = op_record(OpKind::copy_device_to_host, 1'050'000, 4096, 1, 0);
  copy.header.flags = kOpSynchronous | kOpHostVisible;
  trace.add(RecordKind::op, 7, copy, bytes_of(read));
  FreeRecord release{};
  release.allocation = 1;
  release.time_ns = 1'060'000;
  release.origin = Origin::alloc;
  trace.add(RecordKind::free, 8, release);
  EndRecord end{};
  end.op_count = 3;
  trace.add(RecordKind::end, UINT64_MAX, end).end_chunk();
  return trace;
}

std::string records_of(const std::string& file) {
  std::string records;
  for (size_t at = sizeof(FileHeader); at < file.size();) {
    ChunkHeader header;
    std::memcpy(&header, file.data() + at, sizeof(header));
    std::string raw(header.raw_bytes, '\0');
    if (ZSTD_decompress(raw.data(), raw.size(), file.data() + at + sizeof(header), header.compressed_bytes) !=
        raw.size()) {
      return {};
    }
    records += raw;
    at += sizeof(header) + header.compressed_bytes;
  }
  return records;
}

}  // namespace reprise::trace::test
