#include "tests/unit/replay/fake_driver.h"

#include <algorithm>
#include <string_view>

#include "preload/trace/signature.h"

namespace reprise::replay::testing {

namespace {

FakeDriver* fake = nullptr;

CUresult unexpected() { return CUDA_ERROR_NOT_SUPPORTED; }

}  // namespace

#define CALLED(name)                               \
  const std::lock_guard called_lock(fake->mutex_); \
  if (const CUresult refused = fake->called(name); refused != CUDA_SUCCESS) return refused

void fill_table(DriverTable* table) {
  auto* const entries = reinterpret_cast<void**>(table);
  std::fill(entries, entries + sizeof *table / sizeof *entries, reinterpret_cast<void*>(&unexpected));
  table->cuMemAddressReserve = [](CUdeviceptr* address, size_t size, size_t, CUdeviceptr, unsigned long long) {
    CALLED("cuMemAddressReserve");
    return fake->reserve(address, size);
  };
  table->cuMemCreate = [](CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
                          unsigned long long) {
    CALLED("cuMemCreate");
    return fake->create(handle, size, properties != nullptr ? properties->location.id : 0);
  };
  table->cuMemGetAllocationGranularity = [](size_t* granularity, const CUmemAllocationProp*,
                                            CUmemAllocationGranularity_flags) {
    CALLED("cuMemGetAllocationGranularity");
    *granularity = 4096;
    return CUDA_SUCCESS;
  };
  table->cuDeviceTotalMem = [](size_t* bytes, CUdevice) {
    CALLED("cuDeviceTotalMem");
    *bytes = fake->capacity;
    return CUDA_SUCCESS;
  };
  table->cuCtxGetDevice = [](CUdevice* device) {
    CALLED("cuCtxGetDevice");
    *device = fake->device();
    return CUDA_SUCCESS;
  };
  table->cuMemGetInfo = [](size_t* free, size_t* total) {
    CALLED("cuMemGetInfo");
    *free = fake->capacity - fake->bytes_on(fake->device()) - fake->other_bytes;
    *total = fake->capacity;
    return CUDA_SUCCESS;
  };
  table->cuMemRelease = [](CUmemGenericAllocationHandle handle) {
    CALLED("cuMemRelease");
    return fake->release(handle);
  };
  table->cuMemMap = [](CUdeviceptr address, size_t size, size_t, CUmemGenericAllocationHandle handle,
                       unsigned long long) {
    CALLED("cuMemMap");
    return fake->map(address, size, handle);
  };
  table->cuMemUnmap = [](CUdeviceptr address, size_t size) {
    CALLED("cuMemUnmap");
    return fake->unmap(address, size);
  };
  table->cuMemSetAccess = [](CUdeviceptr address, size_t size, const CUmemAccessDesc*, size_t) {
    CALLED("cuMemSetAccess");
    return fake->set_access(address, size);
  };
  table->cuMemcpyHtoDAsync = [](CUdeviceptr device, const void* host, size_t size, CUstream stream) {
    CALLED("cuMemcpyHtoDAsync");
    return fake->copy(device, const_cast<void*>(host), size, stream, true);
  };
  table->cuMemcpyDtoHAsync = [](void* host, CUdeviceptr device, size_t size, CUstream stream) {
    CALLED("cuMemcpyDtoHAsync");
    return fake->copy(device, host, size, stream, false);
  };
  table->cuMemHostAlloc = [](void** memory, size_t size, unsigned) {
    CALLED("cuMemHostAlloc");
    return fake->host_alloc(memory, size);
  };
  table->cuMemFreeHost = [](void* memory) {
    CALLED("cuMemFreeHost");
    const auto found = fake->host_.find(memory);
    if (found == fake->host_.end()) return CUDA_ERROR_INVALID_VALUE;
    fake->host_bytes -= found->second.size;
    fake->host_.erase(found);
    return CUDA_SUCCESS;
  };
  table->cuMemHostGetDevicePointer = [](CUdeviceptr* address, void* memory, unsigned) {
    CALLED("cuMemHostGetDevicePointer");
    *address = reinterpret_cast<CUdeviceptr>(memory);
    return CUDA_SUCCESS;
  };
  table->cuStreamCreate = [](CUstream* stream, unsigned) {
    CALLED("cuStreamCreate");
    *stream = fake->stream();
    return CUDA_SUCCESS;
  };
  table->cuStreamSynchronize = [](CUstream stream) {
    CALLED("cuStreamSynchronize");
    while (stream != CU_STREAM_PER_THREAD && fake->step(stream)) {
    }
    return CUDA_SUCCESS;
  };
  table->cuStreamQuery = [](CUstream stream) {
    CALLED("cuStreamQuery");
    return fake->streams_[stream].queue.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  table->cuStreamDestroy = [](CUstream stream) {
    CALLED("cuStreamDestroy");
    return fake->stream_destroy(stream);
  };
  table->cuStreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
    CALLED("cuStreamWaitEvent");
    return fake->stream_wait(stream, event);
  };
  table->cuEventCreate = [](CUevent* event, unsigned) {
    CALLED("cuEventCreate");
    *event = reinterpret_cast<CUevent>(fake->next_ += 0x10);
    fake->events_[*event].context = fake->current;
    return CUDA_SUCCESS;
  };
  table->cuEventDestroy = [](CUevent event) {
    CALLED("cuEventDestroy");
    return fake->events_.erase(event) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  };
  table->cuEventRecord = [](CUevent event, CUstream stream) {
    CALLED("cuEventRecord");
    return fake->event_record(event, stream);
  };
  table->cuEventQuery = [](CUevent event) {
    CALLED("cuEventQuery");
    return fake->event_query(event);
  };
  table->cuEventElapsedTime = [](float* ms, CUevent, CUevent) {
    CALLED("cuEventElapsedTime");
    *ms = 1;
    return CUDA_SUCCESS;
  };
  table->cuEventSynchronize = [](CUevent event) {
    CALLED("cuEventSynchronize");
    return fake->event_synchronize(event);
  };
  // One module, that of digests: what its kernels compute here shows every change, too.
  table->cuModuleLoadData = [](CUmodule* module, const void*) {
    CALLED("cuModuleLoadData");
    *module = reinterpret_cast<CUmodule>(fake->next_ += 0x10);
    return CUDA_SUCCESS;
  };
  table->cuModuleGetFunction = [](CUfunction* function, CUmodule module, const char* name) {
    CALLED("cuModuleGetFunction");
    *function = reinterpret_cast<CUfunction>(fake->next_ += 0x10);
    fake->digest_kernels_[*function] = {module, std::string_view(name) == "reprise_digest_tell"};
    return CUDA_SUCCESS;
  };
  table->cuModuleGetGlobal = [](CUdeviceptr* address, size_t* size, CUmodule module, const char*) {
    CALLED("cuModuleGetGlobal");
    return fake->digest_cells(module, address, size);
  };
  table->cuMemsetD32Async = [](CUdeviceptr address, unsigned value, size_t count, CUstream stream) {
    CALLED("cuMemsetD32Async");
    fake->launch(stream, [=] { fake->fill(address, value, count); });
    return CUDA_SUCCESS;
  };
  table->cuLaunchKernel = [](CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             CUstream stream, void** parameters, void**) {
    CALLED("cuLaunchKernel");
    const auto [module, tells] = fake->digest_kernels_[function];
    const CUdeviceptr cells = fake->digest_cells_[module];
    return tells ? fake->tell_digest(cells, stream, parameters) : fake->digest(cells, stream, parameters);
  };
  table->cuMemAddressFree = [](CUdeviceptr, size_t) {
    CALLED("cuMemAddressFree");
    return CUDA_SUCCESS;
  };
  table->cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode*) {
    CALLED("cuThreadExchangeStreamCaptureMode");
    return CUDA_SUCCESS;
  };
  table->cuCtxSynchronize = [] {
    CALLED("cuCtxSynchronize");
    fake->run_context(fake->current);
    return CUDA_SUCCESS;
  };
  table->cuCtxGetCurrent = [](CUcontext* context) {
    CALLED("cuCtxGetCurrent");
    *context = fake->current;
    return CUDA_SUCCESS;
  };
  table->cuCtxSetCurrent = [](CUcontext context) {
    CALLED("cuCtxSetCurrent");
    fake->current = context;
    return CUDA_SUCCESS;
  };
}

FakeDriver::FakeDriver() : before_(detail::driver_table), ready_before_(detail::driver_ready) {
  fake = this;
  current = reinterpret_cast<CUcontext>(uint64_t{0xc0});
  fill_table(&detail::driver_table);
  detail::driver_ready = true;
}

FakeDriver::~FakeDriver() {
  detail::driver_table = before_;
  detail::driver_ready = ready_before_;
  fake = nullptr;
}

CUdevice FakeDriver::device() const {
  const auto found = devices.find(current);
  return found != devices.end() ? found->second : 0;
}

CUresult FakeDriver::called(const char* function) {
  calls_.emplace_back(function);
  std::vector<Fault>& faults = faults_[function];
  CUresult result = CUDA_SUCCESS;
  for (Fault& fault : faults) {
    if (--fault.nth == 0) result = fault.result;
  }
  std::erase_if(faults, [](const Fault& fault) { return fault.nth <= 0; });
  return result;
}

uint64_t FakeDriver::count(const std::string& function) const {
  return static_cast<uint64_t>(std::count(calls_.begin(), calls_.end(), function));
}

CUresult FakeDriver::create(CUmemGenericAllocationHandle* handle, uint64_t size, CUdevice device) {
  if (bytes + size > capacity) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = next_ += 0x10;
  physical_[*handle].content.resize(size, 0xa5);
  physical_[*handle].device = device;
  bytes_on(device) += size;
  peak_bytes = std::max(peak_bytes, bytes);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::release(CUmemGenericAllocationHandle handle) {
  const auto found = physical_.find(handle);
  if (found == physical_.end()) {
    violation("a handle is released that is none");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (found->second.mapped != 0) violation("a handle is released while it is mapped");
  bytes_on(found->second.device) -= found->second.content.size();
  physical_.erase(found);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::map(CUdeviceptr address, uint64_t size, CUmemGenericAllocationHandle handle) {
  if (physical_.count(handle) == 0) violation("a handle is mapped that is none");
  auto next = pages_.lower_bound(address);
  const bool before = next != pages_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address;
  if (before || (next != pages_.end() && next->first < address + size)) {
    violation("a range is mapped that is mapped already");
    return CUDA_ERROR_ALREADY_MAPPED;
  }
  pages_[address] = {handle, size, false};
  ++physical_[handle].mapped;
  return CUDA_SUCCESS;
}

CUresult FakeDriver::unmap(CUdeviceptr address, uint64_t size) {
  std::vector<CUdeviceptr> found;
  CUdeviceptr end = address;
  for (auto page = pages_.find(address); page != pages_.end() && page->first == end && end < address + size; ++page) {
    found.push_back(page->first);
    end += page->second.bytes;
  }
  if (end != address + size) {
    violation("a range is unmapped that is not mapped as a whole");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (found.size() > 1 && !unmaps_whole_ranges) return CUDA_ERROR_INVALID_VALUE;
  for (const CUdeviceptr page : found) {
    --physical_[pages_[page].handle].mapped;
    pages_.erase(page);
  }
  return CUDA_SUCCESS;
}

CUresult FakeDriver::set_access(CUdeviceptr address, uint64_t size) {
  CUdeviceptr end = address;
  for (auto page = pages_.find(address); page != pages_.end() && page->first == end && end < address + size; ++page) {
    page->second.accessible = true;
    end += page->second.bytes;
  }
  if (end == address + size) return CUDA_SUCCESS;
  violation("access is set where nothing is mapped");
  return CUDA_ERROR_INVALID_VALUE;
}

std::map<CUdeviceptr, CUmemGenericAllocationHandle> FakeDriver::page_table() const {
  std::map<CUdeviceptr, CUmemGenericAllocationHandle> table;
  for (const auto& [address, page] : pages_) {
    if (page.accessible) table[address] = page.handle;
  }
  return table;
}

CUresult FakeDriver::reserve(CUdeviceptr* address, uint64_t size) {
  *address = next_range_;
  next_range_ += size;
  return CUDA_SUCCESS;
}

bool FakeDriver::mapped(CUdeviceptr address) const {
  auto page = pages_.upper_bound(address);
  return page != pages_.begin() && (--page)->first + page->second.bytes > address && page->second.accessible;
}

bool FakeDriver::access(CUdeviceptr address, void* host, uint64_t size, bool write) {
  auto* other = static_cast<unsigned char*>(host);
  while (size > 0) {
    auto page = pages_.upper_bound(address);
    if (page == pages_.begin() || (--page)->first + page->second.bytes <= address || !page->second.accessible) {
      violation(std::string(write ? "a write to" : "a read of") + " memory that is not mapped");
      return false;
    }
    const uint64_t offset = address - page->first;
    const uint64_t part = std::min(size, page->second.bytes - offset);
    unsigned char* const own = physical_[page->second.handle].content.data() + offset;
    std::memcpy(write ? own : other, write ? other : own, part);
    address += part;
    other += part;
    size -= part;
  }
  return true;
}

uint64_t FakeDriver::read(CUdeviceptr address) {
  uint64_t value = 0;
  access(address, &value, sizeof value, false);
  return value;
}

void FakeDriver::write(CUdeviceptr address, uint64_t value) { access(address, &value, sizeof value, true); }

CUresult FakeDriver::digest_cells(CUmodule module, CUdeviceptr* address, size_t* size) {
  *size = size_t{16} * 4096;
  CUmemGenericAllocationHandle handle = 0;
  reserve(address, *size);
  create(&handle, *size, device());
  map(*address, *size, handle);
  bytes_on(device()) -= *size;  // the module's, and no chunk
  digest_cells_[module] = *address;
  return set_access(*address, *size);
}

void FakeDriver::fill(CUdeviceptr address, uint32_t value, uint64_t count) {
  std::vector<uint32_t> words(count, value);
  access(address, words.data(), 4 * count, true);
}

CUresult FakeDriver::digest(CUdeviceptr cells, CUstream stream, void** parameters) {
  const auto from = *static_cast<CUdeviceptr*>(parameters[0]);
  const auto size = *static_cast<uint64_t*>(parameters[1]);
  const auto place = *static_cast<uint64_t*>(parameters[2]);
  const auto cell = *static_cast<uint32_t*>(parameters[3]);
  ++digests;
  launch(stream, [=, this] {
    std::vector<unsigned char> content(size);
    access(from, content.data(), size, false);
    uint64_t sums[2] = {};
    access(cells + 16 * cell, sums, sizeof sums, false);
    for (uint64_t i = 0; i < size; ++i) {
      sums[0] += trace::hash_mix(8 * place + i, content[i]);
      sums[1] += trace::hash_mix(~(8 * place + i), content[i]);
    }
    access(cells + 16 * cell, sums, sizeof sums, true);
  });
  return CUDA_SUCCESS;
}

CUresult FakeDriver::tell_digest(CUdeviceptr cells, CUstream stream, void** parameters) {
  const CUdeviceptr from = cells + CUdeviceptr{16} * *static_cast<uint32_t*>(parameters[0]);
  void* const to = reinterpret_cast<void*>(*static_cast<CUdeviceptr*>(parameters[1]));
  launch(stream, [=, this] { access(from, to, 16, false); });
  return CUDA_SUCCESS;
}

CUresult FakeDriver::host_alloc(void** memory, uint64_t size) {
  std::unique_ptr<unsigned char[]> made(new unsigned char[size]);
  *memory = made.get();
  host_[*memory] = {std::move(made), size};
  host_bytes += size;
  return CUDA_SUCCESS;
}

CUstream FakeDriver::stream() {
  const std::lock_guard lock(mutex_);
  auto* const created = reinterpret_cast<CUstream>(next_ += 0x10);
  streams_[created].context = current;
  return created;
}

FakeDriver::Stream* FakeDriver::usable(CUstream stream, const char* function) {
  const auto found = streams_.find(stream);
  if (found != streams_.end() && !found->second.destroyed) return &found->second;
  violation(std::string(function) + " on a stream that is none");
  return nullptr;
}

void FakeDriver::launch(CUstream stream, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  Stream* const queue = usable(stream, "a launch");
  if (queue != nullptr) queue->queue.push_back({std::move(work)});
}

CUresult FakeDriver::copy(CUdeviceptr device, void* host, uint64_t size, CUstream stream, bool to_device) {
  Stream* const queue = usable(stream, "a copy");
  if (queue == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (queue->context != current) violation("a copy on a stream of another context");
  queue->queue.push_back({[this, device, host, size, to_device] { access(device, host, size, to_device); }});
  return CUDA_SUCCESS;
}

CUresult FakeDriver::event_record(CUevent event, CUstream stream) {
  Stream* const queue = usable(stream, "cuEventRecord");
  if (queue == nullptr || events_.count(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (queue->context != events_[event].context) return CUDA_ERROR_INVALID_HANDLE;
  const uint64_t record = ++records_;
  events_[event].recorded = record;
  events_[event].where[record] = stream;
  queue->queue.push_back({{}, event, record, true});
  return CUDA_SUCCESS;
}

CUresult FakeDriver::event_query(CUevent event) {
  if (events_.count(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (runs_when_asked) run_until(event, events_[event].recorded);
  return events_[event].complete >= events_[event].recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult FakeDriver::event_synchronize(CUevent event) {
  if (events_.count(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  run_until(event, events_[event].recorded);
  return CUDA_SUCCESS;
}

CUresult FakeDriver::stream_wait(CUstream stream, CUevent event) {
  Stream* const queue = usable(stream, "cuStreamWaitEvent");
  if (queue == nullptr || events_.count(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  queue->queue.push_back({{}, event, events_[event].recorded, false});
  return CUDA_SUCCESS;
}

CUresult FakeDriver::stream_destroy(CUstream stream) {
  Stream* const queue = usable(stream, "cuStreamDestroy");
  if (queue == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  queue->destroyed = true;  // what is queued still runs
  return CUDA_SUCCESS;
}

bool FakeDriver::step(CUstream stream) {
  std::deque<Work>& queue = streams_[stream].queue;
  if (queue.empty() || blocked(queue.front())) return false;
  const Work work = std::move(queue.front());
  queue.pop_front();
  if (work.run) work.run();
  if (work.records) events_[work.event].complete = std::max(events_[work.event].complete, work.record);
  return true;
}

// Only what the event needs: the rest of the device lags behind as far as it may.
void FakeDriver::run_until(CUevent event, uint64_t record) {
  while (events_[event].complete < record) {
    const CUstream stream = events_[event].where[record];
    if (step(stream)) continue;
    const std::deque<Work>& queue = streams_[stream].queue;
    if (queue.empty()) return violation("a deadlock");
    run_until(queue.front().event, queue.front().record);
  }
}

void FakeDriver::run_context(CUcontext context) {
  for (auto& [stream, queue] : streams_) {
    while (queue.context == context && !queue.queue.empty()) {
      const Work& first = queue.queue.front();
      if (!step(stream)) run_until(first.event, first.record);
    }
  }
}

void FakeDriver::run_all() {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& [stream, queue] : streams_) {
      while (step(stream)) moved = true;
    }
  }
  if (!idle()) violation("a deadlock");
}

bool FakeDriver::idle() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& stream) { return stream.second.queue.empty(); });
}

bool FakeDriver::idle_but(CUstream stream) const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [stream](const auto& each) { return each.first == stream || each.second.queue.empty(); });
}

std::vector<CUstream> FakeDriver::streams() const {
  std::vector<CUstream> all;
  for (const auto& [stream, queue] : streams_) all.push_back(stream);
  return all;
}

}  // namespace reprise::replay::testing
