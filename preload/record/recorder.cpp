#include "preload/record/recorder.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>

#include "preload/record/callsite.h"
#include "preload/record/command_line.h"
#include "preload/trace/identity.h"

extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
}

namespace reprise {
namespace {

constexpr uint32_t kMaxTextBytes = 64 * 1024;
constexpr uint64_t kNoCall = uint64_t{1} << 63;  // ids of what else asks for device times (Stopwatch::kPlanBit)

uint32_t padded(size_t bytes) noexcept { return static_cast<uint32_t>((bytes + 7) & ~size_t{7}); }

uint32_t bounded_length(const char* text) noexcept {
  return text == nullptr ? 0 : static_cast<uint32_t>(::strnlen(text, kMaxTextBytes));
}

// A record of type T with `tail_bytes` behind it, header filled, or nullptr. The padding at its end is zero.
template <typename T>
T* begin_record(trace::Writer* writer, trace::RecordKind kind, uint64_t sequence, size_t tail_bytes = 0) noexcept {
  if (tail_bytes > trace::Writer::kMaxRecordBytes) tail_bytes = trace::Writer::kMaxRecordBytes;  // reserve refuses it
  const uint32_t bytes = padded(sizeof(T) + tail_bytes);
  auto* record = static_cast<T*>(writer->reserve(bytes));
  if (record == nullptr) return nullptr;
  if (tail_bytes > 0) std::memset(reinterpret_cast<char*>(record) + bytes - 8, 0, 8);
  record->header = {kind, 0, bytes, sequence};
  return record;
}

uint32_t thread_id() noexcept {
  __attribute__((tls_model("initial-exec"))) static constinit thread_local uint32_t id = 0;
  if (id == 0) id = static_cast<uint32_t>(::syscall(SYS_gettid));
  return id;
}

// A program that polls asks the same question thousands of times: only the first of a run is recorded. Per thread; any
// other call of the thread ends the run.
struct LastQuery {
  trace::OrderKind kind;
  uint32_t stream;
  uint64_t event;
};
__attribute__((tls_model("initial-exec"))) constinit thread_local LastQuery last_query{};

bool same_query_again(trace::OrderKind kind, uint32_t stream, uint64_t event) noexcept {
  LastQuery& last = last_query;
  if (kind != trace::OrderKind::event_query && kind != trace::OrderKind::stream_query) {
    last.kind = kind;
    return false;
  }
  if (last.kind == kind && last.stream == stream && last.event == event) return true;
  last = {kind, stream, event};
  return false;
}

// Is this code part of the program's own file (a test), not of a preloaded library?
bool in_main_program() noexcept {
  const uint64_t headers = ::getauxval(AT_PHDR);
  const auto start = reinterpret_cast<uint64_t>(__ehdr_start);
  return headers - start < 4096;
}

void record_program(Recorder* recorder) noexcept {
  char text[4096];
  read_command_line(text, sizeof(text));
  recorder->info("program", text);
  const ssize_t size = ::readlink("/proc/self/exe", text, sizeof(text) - 1);
  if (size > 0) {
    text[size] = '\0';
    recorder->info("program.path", text);
  }
  trace::format_identity(trace::program_identity("/proc/self/exe"), text);
  recorder->info("program.hash", text);
  recorder->info("process.id", static_cast<uint64_t>(::getpid()));
  timespec wall{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  recorder->info("time.unix_s", static_cast<uint64_t>(wall.tv_sec));
  recorder->info("time.start_ns", recorder->started_ns());
}

}  // namespace

Recorder* Recorder::open(const char* path, const char** why, bool call_sites) noexcept {
  auto* recorder = new (std::nothrow) Recorder;
  if (recorder == nullptr) {
    if (why != nullptr) *why = "no memory to record";
    return nullptr;
  }
  recorder->writer_ = trace::Writer::open(path, why);
  if (recorder->writer_ == nullptr) {
    delete recorder;
    return nullptr;
  }
  if (call_sites) recorder->call_sites_ = CallSites::create(!in_main_program());
  if (recorder->call_sites_ != nullptr) {
    const auto work = [](void* self) noexcept {
      auto* mine = static_cast<Recorder*>(self);
      return mine->call_sites_->write_new(*mine->writer_, Recorder::now_ns() + trace::Writer::kSliceMs * 1'000'000ull);
    };
    recorder->writer_->set_background_work(work, recorder);
    recorder->info("recorder.unwinder", recorder->call_sites_->unwinder());
  }
  record_program(recorder);
  return recorder;
}

uint64_t Recorder::now_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

void Recorder::info(const char* key, const char* value) noexcept {
  const uint32_t key_bytes = bounded_length(key);
  const uint32_t value_bytes = bounded_length(value);
  const uint32_t text_bytes = key_bytes + 1 + value_bytes;
  auto* record = begin_record<trace::InfoRecord>(writer_, trace::RecordKind::info, 0, text_bytes);
  if (record == nullptr) return;
  record->text_bytes = text_bytes;
  record->reserved = 0;
  char* text = reinterpret_cast<char*>(record + 1);
  std::memcpy(text, key, key_bytes);
  text[key_bytes] = '=';
  if (value_bytes > 0) std::memcpy(text + key_bytes + 1, value, value_bytes);
  writer_->commit();
}

void Recorder::info(const char* key, uint64_t value) noexcept {
  char text[24];
  std::snprintf(text, sizeof(text), "%lu", value);
  info(key, text);
}

void Recorder::function(uint32_t id, const char* name, const trace::ParameterLayout* layout, uint32_t count, bool known,
                        uint64_t identity) noexcept {
  const uint32_t name_bytes = bounded_length(name);
  const size_t layout_bytes = count * sizeof(trace::ParameterLayout);
  auto* record =
      begin_record<trace::FunctionRecord>(writer_, trace::RecordKind::function, 0, layout_bytes + name_bytes);
  if (record == nullptr) return;
  record->function = id;
  record->parameter_count = count;
  record->parameter_known = known ? 1 : 0;
  record->name_bytes = name_bytes;
  char* tail = reinterpret_cast<char*>(record + 1);
  if (layout_bytes > 0) std::memcpy(tail, layout, layout_bytes);
  if (name_bytes > 0) std::memcpy(tail + layout_bytes, name, name_bytes);
  writer_->commit();
  if (identity == 0) return;
  auto* kernel = begin_record<trace::KernelRecord>(writer_, trace::RecordKind::kernel, 0);
  if (kernel == nullptr) return;
  kernel->function = id;
  kernel->reserved = 0;
  kernel->identity = identity;
  writer_->commit();
}

void Recorder::stream(uint32_t id, bool created, bool non_blocking, int priority, uint64_t sequence) noexcept {
  auto* record = begin_record<trace::StreamRecord>(writer_, trace::RecordKind::stream, sequence);
  if (record == nullptr) return;
  record->stream = id;
  record->created = created ? 1 : 0;
  record->non_blocking = non_blocking ? 1 : 0;
  record->priority = priority;
  writer_->commit();
}

void Recorder::allocated(uint64_t id, const AllocateCall& call, CUdeviceptr address, uint64_t sequence,
                         uint32_t call_site, uint16_t flags) noexcept {
  if (paused()) return;
  last_query.kind = {};
  const uint64_t time = now_ns();
  auto* record = begin_record<trace::AllocateRecord>(writer_, trace::RecordKind::allocate, sequence);
  if (record == nullptr) return;
  record->header.flags = flags;
  record->allocation = id;
  record->address = address;
  record->size = call.size;
  record->time_ns = time;
  record->origin = call.origin;
  record->device = static_cast<uint16_t>(call.device);
  record->stream = call.stream_id;
  record->call_site = call_site;
  record->reserved = 0;
  writer_->commit();
}

void Recorder::freed(const FreeCall& call, uint64_t sequence, uint16_t flags) noexcept {
  if (paused()) return;
  last_query.kind = {};
  const uint64_t time = now_ns();
  auto* record = begin_record<trace::FreeRecord>(writer_, trace::RecordKind::free, sequence);
  if (record == nullptr) return;
  record->header.flags = flags;
  record->allocation = call.allocation;
  record->time_ns = time;
  record->origin = call.origin;
  record->reserved = 0;
  record->stream = call.stream_id;
  writer_->commit();
}

void Recorder::op(const Command& command, CUresult result, uint64_t called_ns) noexcept {
  if (paused()) return;
  last_query.kind = {};
  const uint64_t time = called_ns != 0 ? called_ns : now_ns();
  const size_t access_bytes = command.access_count * sizeof(trace::AccessRecord);
  auto* record = begin_record<trace::OpRecord>(writer_, trace::RecordKind::op, command.sequence,
                                               access_bytes + command.parameter_bytes);
  if (record == nullptr) return;
  const uint16_t failed = result == CUDA_SUCCESS ? uint16_t{0} : uint16_t{trace::kOpFailed};
  record->header.flags = static_cast<uint16_t>(command.flags | failed);
  record->time_ns = time;
  record->signature = command.signature;
  record->size = command.size;
  record->op = command.op;
  record->device = static_cast<uint16_t>(command.device);
  record->thread = thread_id();
  record->stream = command.stream_id;
  record->function = command.function;
  record->call_site = command.call_site;
  std::memcpy(record->grid, command.grid, sizeof(record->grid));
  std::memcpy(record->block, command.block, sizeof(record->block));
  record->shared_bytes = command.shared_bytes;
  record->access_count = command.access_count;
  record->parameter_bytes = command.parameter_bytes;
  auto* access = reinterpret_cast<trace::AccessRecord*>(record + 1);
  for (uint32_t i = 0; i < command.access_count; ++i) *access++ = command.accesses[i];
  if (command.parameter_bytes > 0) std::memcpy(access, command.parameters, command.parameter_bytes);
  writer_->commit();
}

void Recorder::order(trace::OrderKind kind, uint32_t stream_id, uint64_t event, uint64_t sequence) noexcept {
  if (paused()) return;
  if (same_query_again(kind, stream_id, event)) return;
  const uint64_t time = now_ns();
  auto* record = begin_record<trace::OrderRecord>(writer_, trace::RecordKind::order, sequence);
  if (record == nullptr) return;
  record->time_ns = time;
  record->event = event;
  record->order = kind;
  record->reserved = 0;
  record->stream = stream_id;
  writer_->commit();
}

void Recorder::mark(const char* text, uint32_t depth, uint64_t sequence) noexcept {
  if (paused()) return;
  last_query.kind = {};
  const uint64_t time = now_ns();
  const uint32_t text_bytes = bounded_length(text);
  auto* record = begin_record<trace::MarkRecord>(writer_, trace::RecordKind::mark, sequence, text_bytes);
  if (record == nullptr) return;
  record->time_ns = time;
  record->text_bytes = text_bytes;
  record->depth = depth;
  if (text_bytes > 0) std::memcpy(record + 1, text, text_bytes);
  writer_->commit();
}

__attribute__((noinline)) uint32_t Recorder::call_site(uint64_t key) noexcept {
  return call_sites_ != nullptr ? call_sites_->id(key, __builtin_frame_address(0)) : 0;
}

void Recorder::activity(uint64_t sequence, uint64_t start_ns, uint64_t end_ns) noexcept {
  if (paused()) return;
  auto* record = begin_record<trace::ActivityRecord>(writer_, trace::RecordKind::activity, sequence);
  if (record == nullptr) return;
  record->start_ns = start_ns;
  record->end_ns = end_ns;
  writer_->commit();
}

void Recorder::resume(uint64_t after, uint64_t sequence, bool seam) noexcept {
  if (auto* record = begin_record<trace::GapRecord>(writer_, trace::RecordKind::gap, 0); record != nullptr) {
    record->header.sequence = sequence;
    record->header.flags = seam ? uint16_t{trace::kGapSeam} : uint16_t{0};
    record->after_sequence = after;
    record->records = 0;
    writer_->commit();
  }
  paused_.store(false, std::memory_order_relaxed);
}

void Recorder::collect(ActivitySource& source) noexcept {
  const auto record = [](void* self, uint64_t id, uint64_t start_ns, uint64_t end_ns) noexcept {
    if ((id & kNoCall) != 0) return;
    static_cast<Recorder*>(self)->activity(id, start_ns, end_ns);
  };
  source.collect(record, this);
}

bool Recorder::flush(uint32_t timeout_ms) noexcept { return writer_->flush(timeout_ms); }
void Recorder::finish() noexcept { writer_->close(); }
void Recorder::abandon() noexcept { writer_->abandon(); }

}  // namespace reprise
