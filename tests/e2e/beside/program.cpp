// A driver-API program with a random but repeating iteration on two devices, whose memory is of every kind that a
// program can have: what Reprise serves, what the driver serves on a second device, managed memory, a pool of a kind of
// its own, mapped handles, pinned host memory. Each is freed as early as its own rules allow. It prints a hash of what
// it reads back behind each iteration and of all that is left at the end. Knows nothing of Reprise.
//
// beside_program CUBIN SEED ITERATIONS [--devices 1|2] [--ops N] [--max-kib N] [--kinds MASK] [--serial]
#include <algorithm>
#include <random>

#include "tests/e2e/support/driver_program.h"

namespace {

enum Kind : unsigned { plain, async, managed, own_pool, mapped, pinned, kKinds };

struct Options : program::RandomOptions {
  int devices = 2;
  int ops = 50;
  int max_kib = 256;
  int kinds = (1 << kKinds) - 1;
  bool serial = false;  // synchronise before each operation: the order that all others must be equal to
};

struct Tensor {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  Kind kind = plain;
  int device = 0;
  int last_stream = -1;  // of the last work on it
  CUmemGenericAllocationHandle handle = 0;
};

struct Stream {
  CUstream stream;
  int device;
};

class Program {
 public:
  explicit Program(const Options& options) : options_(options) {
    program::leave = std::exit;
    CHECK(cuInit(0));
    for (int device = 0; device < options.devices; ++device) add_device(device);
    enter(0);
    std::mt19937_64 random(options.seed);
    for (int i = 0; i < 10; ++i) {
      persistent_.push_back(allocate(random));
      fill(persistent_.back(), 17u + static_cast<unsigned>(i), any_stream(random, persistent_.back().device));
    }
  }

  void run() {
    for (int i = 0; i < options_.iterations; ++i) {
      iterate(static_cast<unsigned>(i));
      program::print("iteration " + std::to_string(i), read(persistent_[0]));
    }
    uint64_t total = 0;
    for (Tensor& tensor : persistent_) total = total * 1099511628211ull + read(tensor);
    program::print("final", total);
  }

 private:
  struct Device {
    CUcontext context;
    CUmemoryPool pool;
    CUfunction mix2, mix3;
  };

  void add_device(int device) {
    Device made{};
    CHECK(cuDevicePrimaryCtxRetain(&made.context, device));
    CHECK(cuCtxSetCurrent(made.context));
    const CUmodule module = program::load(options_.cubin);
    made.mix2 = program::function(module, "mix2");
    made.mix3 = program::function(module, "mix3");
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;  // for other processes: the driver serves it
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    CHECK(cuMemPoolCreate(&made.pool, &properties));
    devices_.push_back(made);
    for (const CUstream stream : program::streams(3)) streams_.push_back({stream, device});
  }

  void enter(int device) { CHECK(cuCtxSetCurrent(devices_[static_cast<size_t>(device)].context)); }
  CUstream stream(int index) const { return streams_[static_cast<size_t>(index)].stream; }
  int device_of(int index) const { return streams_[static_cast<size_t>(index)].device; }

  int any_stream(std::mt19937_64& random, int device) { return device * 3 + static_cast<int>(random() % 3); }

  Tensor allocate(std::mt19937_64& random) {
    Tensor tensor;
    do {
      tensor.kind = static_cast<Kind>(random() % kKinds);
    } while ((options_.kinds >> tensor.kind & 1) == 0);
    tensor.device = static_cast<int>(random() % static_cast<unsigned>(options_.devices));
    tensor.bytes = (1 + random() % static_cast<uint64_t>(options_.max_kib)) * 1024;
    const int on = any_stream(random, tensor.device);
    enter(tensor.device);
    switch (tensor.kind) {
      case async:
        CHECK(cuMemAllocAsync(&tensor.address, tensor.bytes, stream(on)));
        tensor.last_stream = on;
        break;
      case own_pool:
        CHECK(cuMemAllocFromPoolAsync(&tensor.address, tensor.bytes, devices_[static_cast<size_t>(tensor.device)].pool,
                                      stream(on)));
        tensor.last_stream = on;
        break;
      case managed:
        CHECK(cuMemAllocManaged(&tensor.address, tensor.bytes, CU_MEM_ATTACH_GLOBAL));
        break;
      case mapped:
        map(&tensor);
        break;
      case pinned: {
        void* memory = nullptr;
        CHECK(cuMemHostAlloc(&memory, tensor.bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
        tensor.address = reinterpret_cast<CUdeviceptr>(memory);
        break;
      }
      default:
        CHECK(cuMemAlloc(&tensor.address, tensor.bytes));
        break;
    }
    return tensor;
  }

  void map(Tensor* tensor) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {tensor->device}};
    size_t granularity = 0;
    CHECK(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    tensor->bytes = (tensor->bytes + granularity - 1) / granularity * granularity;
    CHECK(cuMemCreate(&tensor->handle, tensor->bytes, &properties, 0));
    CHECK(cuMemAddressReserve(&tensor->address, tensor->bytes, 0, 0, 0));
    CHECK(cuMemMap(tensor->address, tensor->bytes, 0, tensor->handle, 0));
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CHECK(cuMemSetAccess(tensor->address, tensor->bytes, &access, 1));
  }

  // As early as the documentation allows: cuMemFree and cuMemFreeHost wait themselves, cuMemFreeAsync is ordered on its
  // stream, a mapping is the program's to keep until its work is done.
  void free(Tensor& tensor) {
    const int last = tensor.last_stream >= 0 ? tensor.last_stream : tensor.device * 3;
    enter(device_of(last));
    // They wait for the work of the memory's own device.
    if (device_of(last) != tensor.device) CHECK(cuStreamSynchronize(stream(last)));
    if (tensor.kind != async && tensor.kind != own_pool) enter(tensor.device);
    switch (tensor.kind) {
      case async:
      case own_pool:
        CHECK(cuMemFreeAsync(tensor.address, stream(last)));
        break;
      case mapped:
        enter(device_of(last));
        CHECK(cuStreamSynchronize(stream(last)));
        CHECK(cuMemUnmap(tensor.address, tensor.bytes));
        CHECK(cuMemRelease(tensor.handle));
        CHECK(cuMemAddressFree(tensor.address, tensor.bytes));
        break;
      case pinned:
        CHECK(cuMemFreeHost(reinterpret_cast<void*>(tensor.address)));
        break;
      default:
        CHECK(cuMemFree(tensor.address));
        break;
    }
  }

  // Orders stream `to` after the last work on the tensor, as a correct program must.
  void use(Tensor& tensor, int to) {
    if (options_.serial) {
      for (const Device& device : devices_) {
        CHECK(cuCtxSetCurrent(device.context));
        CHECK(cuCtxSynchronize());
      }
    }
    if (tensor.last_stream >= 0 && tensor.last_stream != to) {
      CUevent event = nullptr;
      enter(device_of(tensor.last_stream));
      CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
      CHECK(cuEventRecord(event, stream(tensor.last_stream)));
      enter(device_of(to));
      CHECK(cuStreamWaitEvent(stream(to), event, 0));
      CHECK(cuEventDestroy(event));
    }
    enter(device_of(to));
    tensor.last_stream = to;
  }

  void fill(Tensor& tensor, unsigned value, int on) {
    use(tensor, on);
    CHECK(cuMemsetD32Async(tensor.address, value, tensor.bytes / 4, stream(on)));
  }

  void copy(Tensor& to, Tensor& from, int on) {
    if (to.address == from.address) return;
    use(from, on);
    use(to, on);
    const size_t bytes = std::min(from.bytes, to.bytes) / 8 * 4;
    if (from.device != to.device && from.kind <= async && to.kind <= async) {
      CHECK(cuMemcpyPeerAsync(to.address, devices_[static_cast<size_t>(to.device)].context, from.address,
                              devices_[static_cast<size_t>(from.device)].context, bytes, stream(on)));
    } else {
      CHECK(cuMemcpyAsync(to.address, from.address, bytes, stream(on)));
    }
  }

  // Kernels of a device touch its own memory.
  void mix(std::mt19937_64& random, std::vector<Tensor>& transient, unsigned salt) {
    Tensor& first = any(random, transient);
    const int on = any_stream(random, first.device);
    std::vector<Tensor*> others;
    for (int i = 0; i < 2; ++i) {
      Tensor& other = any(random, transient);
      const bool fresh = other.address != first.address && (others.empty() || others[0]->address != other.address);
      if (fresh && other.device == first.device) others.push_back(&other);
    }
    if (others.empty()) return fill(first, salt, on);
    size_t bytes = first.bytes;
    use(first, on);
    for (Tensor* other : others) {
      use(*other, on);
      bytes = std::min(bytes, other->bytes);
    }
    unsigned words = static_cast<unsigned>(bytes / 4);
    const Device& device = devices_[static_cast<size_t>(first.device)];
    void* two[] = {&first.address, &others[0]->address, &salt, &words};
    void* three[] = {&first.address, &others[0]->address, &others.back()->address, &salt, &words};
    CHECK(cuLaunchKernel(others.size() == 1 ? device.mix2 : device.mix3, (words + 255) / 256, 1, 1, 256, 1, 1, 0,
                         stream(on), others.size() == 1 ? two : three, nullptr));
  }

  Tensor& any(std::mt19937_64& random, std::vector<Tensor>& transient) {
    const uint64_t index = random() % (persistent_.size() + transient.size());
    return index < persistent_.size() ? persistent_[index] : transient[index - persistent_.size()];
  }

  // The same calls in every iteration; `salt`, a parameter, differs.
  void iterate(unsigned salt) {
    std::mt19937_64 random(options_.seed * 31 + 1);
    std::vector<Tensor> transient;
    for (int i = 0; i < options_.ops; ++i) {
      const unsigned what = random() % 8;
      if (what < 2) {
        transient.push_back(allocate(random));
        fill(transient.back(), salt * 7 + static_cast<unsigned>(i), any_stream(random, transient.back().device));
      } else if (what == 2 && !transient.empty()) {
        const size_t victim = random() % transient.size();
        free(transient[victim]);
        transient.erase(transient.begin() + static_cast<std::ptrdiff_t>(victim));
      } else if (what == 3) {
        Tensor& to = any(random, transient);
        Tensor& from = any(random, transient);
        copy(to, from, any_stream(random, from.device));
      } else {
        mix(random, transient, salt + static_cast<unsigned>(i));
      }
    }
    for (Tensor& tensor : transient) free(tensor);
  }

  uint64_t read(Tensor& tensor) {
    const int on = tensor.device * 3;
    use(tensor, on);
    CHECK(cuStreamSynchronize(stream(on)));
    std::vector<uint32_t> content(tensor.bytes / 4);
    CHECK(cuMemcpy(reinterpret_cast<CUdeviceptr>(content.data()), tensor.address, tensor.bytes));
    return program::hash_of(content);
  }

  Options options_;
  std::vector<Device> devices_;
  std::vector<Stream> streams_;
  std::vector<Tensor> persistent_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  program::parse(argc, argv, &options,
                 {{"--devices", &options.devices},
                  {"--ops", &options.ops},
                  {"--max-kib", &options.max_kib},
                  {"--kinds", &options.kinds}},
                 {{"--serial", &options.serial}});
  Program program(options);
  program.run();
  return 0;
}
