// A driver-API program that does what a script says: the victim of this folder's tests. Usage: script_program FILE.
// Every result that reaches the host goes into the digest that it prints at the end; error codes are printed as they
// come.
//
//   alloc T BYTES [STREAM]   free T [STREAM]      with a stream: stream ordered
//   kernel STREAM NAME T...  memset STREAM T V    copy STREAM FROM TO
//   h2d STREAM T SEED pageable|pinned sync|async  d2h STREAM T pageable|pinned sync|async
//   record E STREAM          wait E STREAM        esync E      ssync STREAM      csync     poll E
//   host STREAM              inject FUNCTION NTH RESULT        info      sleep MILLISECONDS
//   put STREAM T OFFSET VALUE (cuStreamWriteValue32)   wait_value STREAM T VALUE (cuStreamWaitValue32, greater or
//   equal) ask T (what the driver says of it)   ipc T                 capture STREAM   endcapture STREAM (thrown away)
//   load (the kernels once more: what is launched behind it is of a module of its own)
//   loop N ... end           loops do not nest
//
// Streams: 0 legacy, 1 per thread, 2 and 3 blocking, 4 and 5 non-blocking.
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr const char* kKernels = R"(.version 8.0
.target sm_70
.address_size 64
.visible .entry one(.param .u64 a) { ret; }
.visible .entry two(.param .u64 a, .param .u64 b) { ret; }
.visible .entry three(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }
.visible .entry four(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) { ret; }
)";

struct Buffer {
  CUdeviceptr address = 0;
  size_t bytes = 0;
};

uint64_t digest = 0x9e3779b97f4a7c15ull;

void add_to_digest(const void* data, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) digest = (digest ^ p[i]) * 1099511628211ull;
}

void say(CUresult result, const std::string& what) {
  if (result != CUDA_SUCCESS) std::printf("%s: error %d\n", what.c_str(), static_cast<int>(result));
}

class Program {
 public:
  bool start() {
    CUdevice device = 0;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return false;
    if (cuDevicePrimaryCtxRetain(&context_, device) != CUDA_SUCCESS) return false;
    if (cuCtxSetCurrent(context_) != CUDA_SUCCESS || !load()) return false;
    streams_ = {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
    for (const unsigned flags :
         {CU_STREAM_DEFAULT, CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING}) {
      CUstream stream = nullptr;
      if (cuStreamCreate(&stream, flags) != CUDA_SUCCESS) return false;
      streams_.push_back(stream);
    }
    return true;
  }

  void perform(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    if (!(words >> verb)) return;
    if (verb == "alloc") return allocate(words);
    if (verb == "free") return release(words);
    if (verb == "kernel") return launch(words);
    if (verb == "memset" || verb == "copy") return simple(verb, words);
    if (verb == "h2d") return to_device(words);
    if (verb == "d2h") return to_host(words);
    if (verb == "put" || verb == "wait_value") return word(verb, words);
    if (verb == "host") return host_function(words);
    if (verb == "inject") return inject(words);
    if (verb == "info") return info();
    if (verb == "ask" || verb == "ipc") return ask(verb, words);
    if (verb == "capture" || verb == "endcapture") return capture(verb, words);
    if (verb == "sleep") return rest(words);
    if (verb == "load") return say(load() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE, verb);
    order(verb, words);
  }

  void end() {
    say(cuCtxSynchronize(), "end");
    for (auto& [name, buffer] : buffers_) {
      std::vector<unsigned char> bytes(buffer.bytes);
      if (buffer.address == 0 || !written_[name]) continue;
      const CUresult result = cuMemcpyDtoH(bytes.data(), buffer.address, buffer.bytes);
      say(result, "last " + name);
      if (result == CUDA_SUCCESS) add_to_digest(bytes.data(), bytes.size());
    }
    std::printf("digest %016llx\n", static_cast<unsigned long long>(digest));
  }

 private:
  bool load() {
    CUmodule module = nullptr;
    if (cuModuleLoadData(&module, kKernels) != CUDA_SUCCESS) return false;
    for (const char* name : {"one", "two", "three", "four"}) {
      if (cuModuleGetFunction(&kernels_[name], module, name) != CUDA_SUCCESS) return false;
    }
    return true;
  }

  CUstream stream(std::istringstream& words) {
    size_t index = 0;
    words >> index;
    return streams_.at(index);
  }

  CUevent& event(const std::string& name) {
    CUevent& event = events_[name];
    if (event == nullptr) say(cuEventCreate(&event, CU_EVENT_DEFAULT), "event");
    return event;
  }

  void allocate(std::istringstream& words) {
    std::string name;
    size_t bytes = 0;
    words >> name >> bytes;
    Buffer buffer{0, bytes};
    size_t index = 0;
    const CUresult result = words >> index ? cuMemAllocAsync(&buffer.address, bytes, streams_.at(index))
                                           : cuMemAlloc(&buffer.address, bytes);
    say(result, "alloc " + name);
    if (result != CUDA_SUCCESS) return;
    buffers_[name] = buffer;
    written_[name] = false;
  }

  void release(std::istringstream& words) {
    std::string name;
    words >> name;
    const auto found = buffers_.find(name);
    if (found == buffers_.end()) return;
    size_t index = 0;
    const CUdeviceptr address = found->second.address;
    say(words >> index ? cuMemFreeAsync(address, streams_.at(index)) : cuMemFree(address), "free " + name);
    buffers_.erase(found);
  }

  // What was never written has no value that two runs could agree on: it is set first.
  void define(const std::string& name, CUstream on) {
    if (written_[name]) return;
    say(cuMemsetD8Async(buffers_[name].address, 0x11, buffers_[name].bytes, on), "define");
    written_[name] = true;
  }

  void launch(std::istringstream& words) {
    const CUstream on = stream(words);
    std::string kernel;
    std::string name;
    words >> kernel;
    std::vector<CUdeviceptr> addresses;
    while (words >> name) {
      if (buffers_.count(name) == 0) return;
      define(name, on);
      addresses.push_back(buffers_[name].address);
    }
    std::vector<void*> parameters;
    parameters.reserve(addresses.size());
    for (CUdeviceptr& address : addresses) parameters.push_back(&address);
    say(cuLaunchKernel(kernels_.at(kernel), 4, 1, 1, 32, 1, 1, 0, on, parameters.data(), nullptr), "kernel " + kernel);
  }

  void simple(const std::string& verb, std::istringstream& words) {
    const CUstream on = stream(words);
    std::string first;
    words >> first;
    if (buffers_.count(first) == 0) return;
    if (verb == "memset") {
      unsigned value = 0;
      words >> value;
      say(cuMemsetD8Async(buffers_[first].address, static_cast<unsigned char>(value), buffers_[first].bytes, on), verb);
      written_[first] = true;
      return;
    }
    std::string second;
    words >> second;
    if (buffers_.count(second) == 0) return;
    define(first, on);
    define(second, on);
    const size_t bytes = std::min(buffers_[first].bytes, buffers_[second].bytes);
    say(cuMemcpyDtoDAsync(buffers_[second].address, buffers_[first].address, bytes, on), verb);
  }

  // Host memory that lives until the end: an asynchronous copy may still read it.
  unsigned char* host(size_t bytes, bool pinned) {
    if (!pinned) return static_cast<unsigned char*>(std::malloc(bytes));
    void* memory = nullptr;
    say(cuMemHostAlloc(&memory, bytes, 0), "host memory");
    return static_cast<unsigned char*>(memory);
  }

  void to_device(std::istringstream& words) {
    const CUstream on = stream(words);
    std::string name;
    std::string kind;
    std::string mode;
    unsigned seed = 0;
    words >> name >> seed >> kind >> mode;
    if (buffers_.count(name) == 0) return;
    const Buffer& buffer = buffers_[name];
    unsigned char* const memory = host(buffer.bytes, kind == "pinned");
    for (size_t i = 0; i < buffer.bytes; ++i) memory[i] = static_cast<unsigned char>(seed + i * 7);
    say(mode == "sync" ? cuMemcpyHtoD(buffer.address, memory, buffer.bytes)
                       : cuMemcpyHtoDAsync(buffer.address, memory, buffer.bytes, on),
        "h2d");
    written_[name] = true;
    // The source of a pageable copy is the program's again.
    if (kind != "pinned") std::memset(memory, 0xee, buffer.bytes);
    if (kind != "pinned") std::free(memory);
  }

  void to_host(std::istringstream& words) {
    const CUstream on = stream(words);
    std::string name;
    std::string kind;
    std::string mode;
    words >> name >> kind >> mode;
    if (buffers_.count(name) == 0) return;
    define(name, mode == "sync" ? CU_STREAM_LEGACY : on);
    const Buffer& buffer = buffers_[name];
    unsigned char* const memory = host(buffer.bytes, kind == "pinned");
    std::memset(memory, 0xdd, buffer.bytes);
    const CUresult result = mode == "sync" ? cuMemcpyDtoH(memory, buffer.address, buffer.bytes)
                                           : cuMemcpyDtoHAsync(memory, buffer.address, buffer.bytes, on);
    say(result, "d2h");
    if (mode != "sync" && kind == "pinned") say(cuStreamSynchronize(on), "d2h synchronise");
    if (result == CUDA_SUCCESS) add_to_digest(memory, buffer.bytes);
    if (kind != "pinned") std::free(memory);
  }

  void word(const std::string& verb, std::istringstream& words) {
    const CUstream on = stream(words);
    std::string name;
    uint64_t offset = 0;
    unsigned value = 0;
    words >> name;
    if (verb == "put") words >> offset;
    words >> value;
    if (buffers_.count(name) == 0) return;
    define(name, on);
    const CUdeviceptr address = buffers_[name].address + offset;
    say(verb == "put" ? cuStreamWriteValue32(on, address, value, 0)
                      : cuStreamWaitValue32(on, address, value, CU_STREAM_WAIT_VALUE_GEQ),
        verb);
  }

  void order(const std::string& verb, std::istringstream& words) {
    if (verb == "csync") return say(cuCtxSynchronize(), verb);
    if (verb == "ssync") return say(cuStreamSynchronize(stream(words)), verb);
    std::string name;
    words >> name;
    if (verb == "record") return say(cuEventRecord(event(name), stream(words)), verb);
    if (verb == "wait") return say(cuStreamWaitEvent(stream(words), event(name), 0), verb);
    if (verb == "esync") return say(cuEventSynchronize(event(name)), verb);
    if (verb == "poll") {
      while (cuEventQuery(event(name)) == CUDA_ERROR_NOT_READY) {
      }
      return;
    }
    if (verb == "edestroy") {
      say(cuEventDestroy(event(name)), verb);
      events_.erase(name);
    }
  }

  void host_function(std::istringstream& words) {
    static const auto count = [](void* data) { ++*static_cast<uint64_t*>(data); };
    const CUstream on = stream(words);
    say(cuLaunchHostFunc(on, count, &host_calls_), "host");
    say(cuStreamSynchronize(on), "host synchronise");
    add_to_digest(&host_calls_, sizeof host_calls_);
  }

  static void inject(std::istringstream& words) {
    std::string function;
    unsigned nth = 0;
    int result = 0;
    words >> function >> nth >> result;
    const char* const driver = std::getenv("REPRISE_DRIVER");
    void* const library = dlopen(driver != nullptr ? driver : "libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    auto* const call =
        library == nullptr
            ? nullptr
            : reinterpret_cast<int (*)(const char*, unsigned, int)>(dlsym(library, "repriseSimInjectFault"));
    if (call == nullptr || call(function.c_str(), nth, result) != 0) std::printf("no fault injected\n");
  }

  static void rest(std::istringstream& words) {
    unsigned milliseconds = 0;
    words >> milliseconds;
    usleep(milliseconds * 1000);
  }

  void ask(const std::string& verb, std::istringstream& words) {
    std::string name;
    words >> name;
    const Buffer& buffer = buffers_[name];
    if (verb == "ipc") {
      CUipcMemHandle handle{};
      return say(cuIpcGetMemHandle(&handle, buffer.address), "ipc");
    }
    CUdeviceptr base = 0;
    size_t bytes = 0;
    say(cuMemGetAddressRange(&base, &bytes, buffer.address + buffer.bytes - 1), "range");
    unsigned type = 0, legacy_ipc = 0;
    CUpointer_attribute kinds[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void* answers[] = {&type};
    say(cuPointerGetAttributes(1, kinds, answers, buffer.address), "attributes");
    say(cuPointerGetAttribute(&legacy_ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, buffer.address), "legacy");
    std::printf("%s: %zu from its start, type %u\n", name.c_str(), base == buffer.address ? bytes : 0, type);
  }

  void capture(const std::string& verb, std::istringstream& words) {
    const CUstream on = stream(words);
    CUgraph graph = nullptr;
    if (verb == "capture") return say(cuStreamBeginCapture(on, CU_STREAM_CAPTURE_MODE_RELAXED), verb);
    say(cuStreamEndCapture(on, &graph), verb);
    if (graph != nullptr) cuGraphDestroy(graph);
  }

  static void info() {
    size_t free_bytes = 0, total = 0;
    say(cuMemGetInfo(&free_bytes, &total), "info");
    std::fprintf(stderr, "info %zu %zu\n", free_bytes, total);
  }

  CUcontext context_ = nullptr;
  std::map<std::string, CUfunction> kernels_;
  std::vector<CUstream> streams_;
  std::map<std::string, Buffer> buffers_;
  std::map<std::string, bool> written_;
  std::map<std::string, CUevent> events_;
  uint64_t host_calls_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::ifstream script(arguments[1]);
  Program program;
  if (!script || !program.start()) {
    std::printf("no device or no script\n");
    return 3;
  }
  std::string line;
  std::vector<std::string> body;
  int times = 0;
  while (std::getline(script, line)) {
    if (line.rfind("loop ", 0) == 0) {
      times = std::atoi(line.c_str() + 5);
      body.clear();
    } else if (line == "end") {
      for (int i = 0; i < times; ++i) {
        for (const std::string& inner : body) program.perform(inner);
      }
      times = 0;
    } else if (times > 0) {
      body.push_back(line);
    } else {
      program.perform(line);
    }
  }
  program.end();
  return 0;
}
