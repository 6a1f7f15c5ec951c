// A driver-API program that does one thing whose order is easily lost: `order_program CASE [MIB]`, MIB being the size
// of each of its buffers. What it reads back, and every error code that it gets, is a line of its output.
#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

size_t bytes = 6u << 20;
CUdevice device = 0;
CUcontext context = nullptr;

void tell(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) std::printf("%s: error %d\n", what, static_cast<int>(result));
}
#define DO(call) tell((call), #call)

CUdeviceptr buffer() {
  CUdeviceptr address = 0;
  DO(cuMemAlloc(&address, bytes));
  return address;
}
void fill(CUdeviceptr address, unsigned value, CUstream stream = CU_STREAM_LEGACY) {
  DO(cuMemsetD32Async(address, value, bytes / 4, stream));
}
CUdeviceptr filled(unsigned value) {
  const CUdeviceptr address = buffer();
  fill(address, value);
  return address;
}
// First, middle and last word.
void show(const char* name, CUdeviceptr address, CUstream stream = CU_STREAM_LEGACY) {
  std::vector<unsigned> words(bytes / 4, 0xeeeeeeee);
  DO(cuMemcpyDtoHAsync(words.data(), address, bytes, stream));
  DO(cuStreamSynchronize(stream));
  std::printf("%s %u %u %u\n", name, words.front(), words[words.size() / 2], words.back());
}
CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream made = nullptr;
  DO(cuStreamCreate(&made, flags));
  return made;
}
void nap(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

unsigned* flag() {
  void* memory = nullptr;
  DO(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  std::memset(memory, 0, 4096);
  return static_cast<unsigned*>(memory);
}

// One thread sleeps in a copy that a flag lets go on; another's work, which sets the flag, goes on meanwhile.
void blocking_copy() {
  const CUdeviceptr t = filled(1), u = filled(3);
  unsigned* const go = flag();
  const CUstream a = stream(), b = stream();
  DO(cuCtxSynchronize());
  std::thread first([&] {
    DO(cuCtxSetCurrent(context));
    DO(cuStreamWaitValue32(a, reinterpret_cast<CUdeviceptr>(go), 1, CU_STREAM_WAIT_VALUE_EQ));
    show("copied", t, a);
  });
  nap(100);
  std::thread second([&] {
    DO(cuCtxSetCurrent(context));
    for (unsigned i = 0; i < 4; ++i) {
      fill(u, 10 + i, b);
      DO(cuStreamSynchronize(b));
    }
    __atomic_store_n(go, 1, __ATOMIC_SEQ_CST);
  });
  first.join();
  second.join();
  show("t", t);
  show("u", u);
}

CUgraphExec instantiated(CUgraph graph) {
  CUgraphExec made = nullptr;
  if (graph != nullptr) DO(cuGraphInstantiate(&made, graph, 0));
  return made;
}
void launch(CUgraphExec graph, CUstream on) {
  DO(cuGraphLaunch(graph, on));
  DO(cuStreamSynchronize(on));
}

// A graph needs what its nodes touch and no more; what it writes is not lost when it leaves. Its memory nodes are its
// own. An update makes it touch something else.
void graph_launches() {
  std::vector<CUdeviceptr> t;
  for (unsigned i = 0; i < 4; ++i) t.push_back(filled(100 + i));
  DO(cuCtxSynchronize());  // the next stream does not wait for the default one
  const CUstream s = stream();
  const auto captured = [&](unsigned from, unsigned to, bool temporary) {
    CUgraph graph = nullptr;
    DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUdeviceptr scratch = 0;
    if (temporary) {
      DO(cuMemAllocAsync(&scratch, 4096, s));
      DO(cuMemsetD8Async(scratch, 1, 4096, s));
    }
    DO(cuMemcpyDtoDAsync(t[to], t[from], bytes, s));
    DO(cuMemsetD32Async(t[to], 500 + to, 16, s));
    if (temporary) DO(cuMemFreeAsync(scratch, s));
    DO(cuStreamEndCapture(s, &graph));
    return graph;
  };
  CUgraph first = captured(0, 1, true), second = captured(2, 3, true), third = captured(3, 0, false);
  CUgraph fourth = captured(1, 2, false);
  CUgraphExec a = instantiated(first), b = instantiated(second), c = instantiated(third);
  for (unsigned round = 0; round < 3; ++round) {
    for (CUgraphExec graph : {a, b, c}) launch(graph, s);
    for (unsigned i = 0; i < 4; ++i) show("t", t[i]);
    fill(t[round], 900 + round);
    DO(cuCtxSynchronize());
  }
  CUgraphExecUpdateResultInfo info{};
  DO(cuGraphExecUpdate(c, fourth, &info));
  launch(c, s);
  for (unsigned i = 0; i < 4; ++i) show("t", t[i]);
}

size_t nodes_of(CUgraph graph) {
  size_t count = 0;
  if (graph != nullptr) DO(cuGraphGetNodes(graph, nullptr, &count));
  return count;
}

// While one stream captures, another's work fills the device: what the captured stream wrote has to leave. More streams
// than anybody keeps apart have used it.
void capture_eviction() {
  const CUstream s = stream(), q = stream(CU_STREAM_DEFAULT);
  const CUdeviceptr shared = filled(7);
  const CUdeviceptr a = buffer(), b = buffer(), c = buffer();
  std::vector<CUstream> readers;
  for (int i = 0; i < 6; ++i) readers.push_back(stream());
  DO(cuCtxSynchronize());
  for (const CUstream reader : readers) {
    unsigned word = 0;
    DO(cuMemcpyDtoHAsync(&word, shared, 4, reader));
  }
  fill(a, 100, s);
  CUgraph graph = nullptr;
  DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (unsigned round = 0; round < 3; ++round) {
    fill(b, 101 + round, q);
    fill(c, 201 + round, q);
    show("b", b, q);
    show("c", c, q);
  }
  fill(a, 300, s);  // of the graph
  const CUdeviceptr late = filled(9);
  show("late", late);
  DO(cuMemFree(late));
  DO(cuStreamEndCapture(s, &graph));
  std::printf("nodes %zu\n", nodes_of(graph));
  show("a", a, q);
  launch(instantiated(graph), s);
  for (const CUdeviceptr address : {a, b, c, shared}) show("end", address, q);
}

// A stream with work of its own joins a capture of another one, and leaves it.
void capture_joined() {
  const CUstream s = stream(), q = stream(), other = stream();
  CUevent fork = nullptr, join = nullptr;
  DO(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  DO(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  const CUdeviceptr a = buffer(), b = buffer(), c = buffer();
  fill(a, 1, s);
  DO(cuEventRecord(fork, other));  // its last record is the one that counts
  CUgraph graph = nullptr;
  DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (unsigned i = 0; i < 5; ++i) fill(b, 20 + i, q);
  DO(cuEventRecord(fork, s));
  DO(cuStreamWaitEvent(q, fork, 0));
  DO(cuMemsetD32Async(b, 30, 64, q));  // of the graph
  fill(c, 2, other);
  show("c", c, other);
  DO(cuEventRecord(join, q));
  DO(cuStreamWaitEvent(s, join, 0));
  DO(cuMemcpyDtoDAsync(a, b, bytes, s));
  DO(cuStreamEndCapture(s, &graph));
  std::printf("nodes %zu\n", nodes_of(graph));
  for (const CUstream used : {s, q}) DO(cuStreamSynchronize(used));
  for (const CUdeviceptr address : {a, b, c}) show("before", address, other);
  const CUgraphExec made = instantiated(graph);
  for (unsigned round = 0; round < 2; ++round) {
    fill(c, 3 + round, q);
    launch(made, s);
    DO(cuStreamSynchronize(q));  // the other streams wait for nothing of it
    fill(b, 40 + round, s);
    for (const CUdeviceptr address : {a, b, c}) show("after", address, s);
  }
}

// Events and opaque calls order streams that do not capture, though another one does; a third thread is always in a
// copy.
void capture_events() {
  const CUdeviceptr x = buffer();
  const CUdeviceptr p = filled(0), q = filled(0), busy = filled(1);
  void* memory = nullptr;
  DO(cuMemHostAlloc(&memory, bytes, 0));
  auto* const host = static_cast<unsigned*>(memory);
  const CUstream capturing = stream(), first = stream(), second = stream();
  CUevent event = nullptr;
  DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  DO(cuCtxSynchronize());
  std::atomic<bool> stop{false};
  std::atomic<bool> open{false};
  std::thread holder([&] {
    DO(cuCtxSetCurrent(context));
    DO(cuStreamBeginCapture(capturing, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    open = true;
    while (!stop) nap(1);
    CUgraph graph = nullptr;
    DO(cuStreamEndCapture(capturing, &graph));
  });
  while (!open) nap(1);
  std::thread copier([&] {
    DO(cuCtxSetCurrent(context));
    const CUstream own = stream();
    std::vector<char> bytes_read(bytes);
    while (!stop) DO(cuMemcpyDtoHAsync(bytes_read.data(), busy, bytes, own));
  });
  for (unsigned i = 1; i <= 12; ++i) {
    for (size_t k = 0; k < bytes / 4; ++k) host[k] = i;
    DO(cuMemcpyHtoDAsync(x, host, bytes, first));
    DO(cuMemcpyHtoDAsync(p, host, bytes, first));
    DO(cuEventRecord(event, first));
    DO(cuStreamWaitEvent(second, event, 0));
    DO(cuMemcpyDtoDAsync(q, p, bytes, second));
    DO(cuStreamSynchronize(second));
    DO(cuStreamSynchronize(first));
    show("q", q, second);
  }
  stop = true;
  holder.join();
  copier.join();
}

// Memory that nothing has touched yet, and memory that is not on the device now, where the driver looks at addresses.
void capture_untouched() {
  const CUstream s = stream();
  const CUdeviceptr filler = filled(5);
  const CUdeviceptr set = buffer(), copied = buffer();
  const CUdeviceptr gone = filled(6);
  CUgraph graph = nullptr;
  DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  DO(cuMemsetD32Async(set, 3, bytes / 4, s));
  DO(cuMemcpyDtoDAsync(copied, set, bytes, s));
  CUDA_MEMCPY2D plane{};
  plane.srcMemoryType = plane.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  plane.srcDevice = gone;
  plane.dstDevice = copied;
  plane.srcXInBytes = plane.dstXInBytes = 64;
  plane.srcPitch = plane.dstPitch = plane.WidthInBytes = 1024;
  plane.WidthInBytes = 512;
  plane.Height = 4;
  DO(cuMemcpy2DAsync(&plane, s));
  DO(cuStreamEndCapture(s, &graph));
  launch(instantiated(graph), s);
  show("set", set);
  show("copied", copied);
  CUgraph made = nullptr;
  CUgraphNode first = nullptr, second = nullptr;
  const CUdeviceptr fresh = buffer();
  DO(cuGraphCreate(&made, 0));
  CUDA_MEMSET_NODE_PARAMS fill_node{fresh, 0, 11, 4, bytes / 4, 1};
  DO(cuGraphAddMemsetNode(&first, made, nullptr, 0, &fill_node, context));
  CUDA_MEMCPY3D copy_node{};
  copy_node.srcMemoryType = copy_node.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy_node.srcDevice = fresh;
  copy_node.dstDevice = gone;
  copy_node.WidthInBytes = bytes;
  copy_node.Height = copy_node.Depth = 1;
  DO(cuGraphAddMemcpyNode(&second, made, &first, 1, &copy_node, context));
  const CUgraphExec executable = instantiated(made);
  launch(executable, s);
  show("fresh", fresh);
  show("gone", gone);
  const CUdeviceptr fresher = buffer();
  show("filler", filler);
  fill_node.dst = fresher;
  DO(cuGraphExecMemsetNodeSetParams(executable, first, &fill_node, context));
  const unsigned one = 1;
  const CUdeviceptr flagged = buffer();
  DO(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, flagged));
}

// Two devices in one process: the second context's work, its copies to memory of the first, and its waits.
void two_contexts() {
  CUdevice second = 0;
  CUcontext other = nullptr;
  DO(cuDeviceGet(&second, 1));
  DO(cuDevicePrimaryCtxRetain(&other, second));
  std::vector<CUdeviceptr> t;
  for (unsigned i = 0; i < 4; ++i) t.push_back(filled(100 + i));
  DO(cuCtxSynchronize());
  DO(cuCtxSetCurrent(other));
  const CUdeviceptr away = filled(55);
  const CUstream there = stream(CU_STREAM_DEFAULT);
  CUevent event = nullptr;
  DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  for (unsigned round = 0; round < 3; ++round) {
    DO(cuMemcpyPeer(t[0], context, away, other, bytes));
    DO(cuMemcpyPeer(t[1], context, away, other, bytes));
    fill(away, 60 + round);
    DO(cuMemcpyPeerAsync(t[2], context, away, other, bytes, there));
    DO(cuEventRecord(event, there));
    DO(cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0));
    DO(cuCtxSynchronize());
    DO(cuCtxSetCurrent(context));
    for (const CUdeviceptr address : t) show("t", address);
    fill(t[3], 200 + round);
    DO(cuCtxSynchronize());
    DO(cuCtxSetCurrent(other));
    DO(cuMemcpyPeer(away, other, t[3], context, bytes));
    show("away", away);
  }
}

// A copy between contexts that names no stream comes behind the work of both and before what they are given later, with
// nothing that says so.
void peer_order() {
  CUdevice second = 0;
  CUcontext other = nullptr;
  DO(cuDeviceGet(&second, 1));
  DO(cuDevicePrimaryCtxRetain(&other, second));
  const CUdeviceptr here[] = {filled(1), filled(2), filled(3)};
  const CUstream near = stream();
  DO(cuCtxSetCurrent(other));
  const CUdeviceptr away = filled(5);
  const CUstream far = stream();
  DO(cuCtxSynchronize());
  for (unsigned round = 0; round < 6; ++round) {
    const CUdeviceptr t = here[round % 3];
    DO(cuCtxSetCurrent(other));
    for (unsigned i = 0; i < 3; ++i) fill(away, 10 * round + i, far);
    DO(cuCtxSetCurrent(context));
    DO(cuMemcpyPeer(t, context, away, other, bytes));
    DO(cuCtxSetCurrent(other));
    fill(away, 1000, far);
    DO(cuCtxSetCurrent(context));
    DO(cuMemcpyDtoDAsync(here[(round + 1) % 3], t, bytes / 2, near));
    for (unsigned i = 0; i < 3; ++i) fill(t, 500 + 10 * round + i, near);
    DO(cuMemcpyPeer(away, other, t, context, bytes));
    fill(t, 2000 + round, near);
    DO(cuCtxSetCurrent(other));
    show("away", away, far);
    DO(cuCtxSetCurrent(context));
    for (const CUdeviceptr address : here) show("here", address, near);
  }
}

// The time between events of which one was never recorded, and another one stands behind work that cannot begin yet.
void event_times() {
  std::vector<CUdeviceptr> t = {filled(0), filled(1)};
  std::map<std::string, CUevent> events = {{"never", nullptr}, {"first", nullptr}, {"second", nullptr}};
  for (auto& [name, event] : events) DO(cuEventCreate(&event, CU_EVENT_DEFAULT));
  const auto time_between_all = [&] {
    for (const auto& [from, start] : events) {
      for (const auto& [to, end] : events) {
        float milliseconds = 0;
        const CUresult result = cuEventElapsedTime(&milliseconds, start, end);
        std::printf("from %s to %s: %d\n", from.c_str(), to.c_str(), static_cast<int>(result));
      }
    }
  };
  unsigned* const go = flag();
  const CUstream s = stream();
  DO(cuCtxSynchronize());
  DO(cuEventRecord(events["first"], s));
  DO(cuStreamSynchronize(s));
  DO(cuStreamWaitValue32(s, reinterpret_cast<CUdeviceptr>(go), 1, CU_STREAM_WAIT_VALUE_EQ));
  while (t.size() < 4) t.push_back(buffer());  // for which the others have to leave
  for (size_t i = t.size(); i-- > 0;) fill(t[i], 10, s);
  DO(cuEventRecord(events["second"], s));
  time_between_all();
  __atomic_store_n(go, 1, __ATOMIC_SEQ_CST);
  DO(cuStreamSynchronize(s));
  time_between_all();
}

// Calls that no hook understands, on the per-thread default stream, between those that are.
void per_thread() {
  const CUdeviceptr p = buffer();
  const CUdeviceptr q = filled(4);
  unsigned* const go = flag();
  DO(cuCtxSynchronize());
  const auto wait_value = [&](unsigned value) {
    DO(cuStreamWaitValue32(CU_STREAM_PER_THREAD, reinterpret_cast<CUdeviceptr>(go), value, CU_STREAM_WAIT_VALUE_GEQ));
  };
  const auto work = [&](unsigned first) {
    for (unsigned i = 0; i < 3; ++i) {
      fill(p, first + i, CU_STREAM_PER_THREAD);
      wait_value(first + i);
      DO(cuMemcpyDtoDAsync(q, p, bytes, CU_STREAM_PER_THREAD));
      std::thread waker([&] {
        DO(cuCtxSetCurrent(context));
        nap(20);
        show("not yet", q, stream());
        __atomic_store_n(go, first + i, __ATOMIC_SEQ_CST);
      });
      DO(cuStreamSynchronize(CU_STREAM_PER_THREAD));
      waker.join();
      show("q", q, CU_STREAM_PER_THREAD);
    }
  };
  work(10);
  for (unsigned i = 2; i < 6; ++i) {
    std::thread other([&] {
      DO(cuCtxSetCurrent(context));
      work(10 * i);
    });
    other.join();
  }
}

CUdeviceptr at_exit = 0;
CUdeviceptr evicted_at_exit = 0;

// Handlers that were registered before the first call of CUDA run after ours.
void use_memory_at_exit() {
  for (unsigned i = 0; i < 2; ++i) {
    show("kept", evicted_at_exit);
    show("last", at_exit);
    fill(at_exit, 3 + i);
  }
  DO(cuMemFree(at_exit));
  DO(cuMemFree(evicted_at_exit));
  std::printf("freed\n");
}

void exit_handler() {
  evicted_at_exit = filled(1);
  at_exit = filled(2);
  DO(cuCtxSynchronize());
}

// One life after the other: memory that is still allocated ends with its context.
void lives(CUresult (*end)(CUdevice), CUresult (*begin)()) {
  for (unsigned life = 0; life < 4; ++life) {
    std::vector<CUdeviceptr> t;
    const CUstream s = stream();
    for (unsigned i = 0; i < 4; ++i) t.push_back(filled(10 * life + i));
    DO(cuCtxSynchronize());
    for (unsigned i = 0; i < 4; ++i) {
      DO(cuMemcpyDtoDAsync(t[i], t[(i + 1) % 4], bytes / 2, s));
      DO(cuStreamSynchronize(s));
      show("t", t[i]);
    }
    if (life % 2 == 0) DO(cuMemFree(t[0]));
    DO(end(device));
    DO(begin());
  }
  show("after", filled(7));
}

void reset() {
  lives([](CUdevice of) { return cuDevicePrimaryCtxReset(of); }, [] { return cuCtxSetCurrent(context); });
}
void release() {
  lives([](CUdevice of) { return cuDevicePrimaryCtxRelease(of); },
        [] {
          const CUresult result = cuDevicePrimaryCtxRetain(&context, device);
          return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
        });
}
void destroy() {
  const auto make = [] { return cuCtxCreate(&context, nullptr, 0, device); };
  DO(make());
  lives([](CUdevice) { return cuCtxDestroy(context); }, make);
}

// A context that Reprise does not manage ends, with streams and work of its own, and another one begins.
void other_context() {
  const CUdeviceptr kept = filled(1), more = filled(2);
  DO(cuCtxSynchronize());
  for (unsigned life = 0; life < 3; ++life) {
    CUcontext second = nullptr;
    DO(cuCtxCreate(&second, nullptr, 0, 1));
    const CUdeviceptr away = filled(50 + life);
    DO(cuMemcpyPeerAsync(life % 2 == 0 ? kept : more, context, away, second, bytes, stream(CU_STREAM_DEFAULT)));
    DO(cuMemcpyPeer(life % 2 == 0 ? more : kept, context, away, second, bytes));
    DO(cuCtxSynchronize());
    DO(cuCtxDestroy(second));
    DO(cuCtxSetCurrent(context));
    show("kept", kept);
    show("more", more);
    fill(kept, 60 + life);
    show("kept", kept);
  }
}

const std::map<std::string, void (*)()> kCases = {
    {"blocking_copy", blocking_copy},
    {"capture_events", capture_events},
    {"capture_eviction", capture_eviction},
    {"capture_joined", capture_joined},
    {"capture_untouched", capture_untouched},
    {"destroy", destroy},
    {"event_times", event_times},
    {"exit_handler", exit_handler},
    {"graph_launches", graph_launches},
    {"other_context", other_context},
    {"peer_order", peer_order},
    {"per_thread", per_thread},
    {"release", release},
    {"reset", reset},
    {"two_contexts", two_contexts},
};

}  // namespace

int main(int count, char** arguments) {
  const auto found = kCases.find(count > 1 ? arguments[1] : "");
  if (found == kCases.end()) {
    for (const auto& [name, run] : kCases) std::printf("%s\n", name.c_str());
    return 2;
  }
  if (count > 2) bytes = std::strtoull(arguments[2], nullptr, 10) << 20;
  if (found->first == "exit_handler") (void)std::atexit(use_memory_at_exit);
  DO(cuInit(0));
  DO(cuDeviceGet(&device, 0));
  DO(cuDevicePrimaryCtxRetain(&context, device));
  DO(cuCtxSetCurrent(context));
  found->second();
  std::printf("end\n");
  return 0;
}
