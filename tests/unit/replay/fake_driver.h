// A driver for the replay's unit tests, in the process of the test: while a FakeDriver lives, driver() is it. It has
// real bytes, a page table, streams whose work runs only when the test or a synchronising call lets it, and events. It
// records every call, lets the n-th call of a function fail, and writes down what no driver allows or would survive.
// Any thread may call the driver; the test's own looks at its numbers are for when no other thread does.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "preload/driver/driver.h"

namespace reprise::replay::testing {

class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  // The n-th call of `function` from now on answers `result` and does nothing. 1: the next one.
  void fail(const std::string& function, int nth, CUresult result = CUDA_ERROR_OUT_OF_MEMORY) {
    faults_[function].push_back({nth, result});
  }
  void heal() { faults_.clear(); }

  // The calls since the last clear(), by name, oldest first; and how many there were of one.
  const std::vector<std::string>& calls() const { return calls_; }
  uint64_t count(const std::string& function) const;
  void clear() { calls_.clear(); }

  // What went wrong on the device: access to what is not mapped, a handle released while it is mapped, a deadlock ...
  std::vector<std::string> violations;

  // Device memory: chunks that exist, at most ever, and how many the device has.
  uint64_t bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t digests = 0;                          // launches of that kernel
  uint64_t capacity = UINT64_MAX;                // of each
  std::map<CUdevice, uint64_t> bytes_of_others;  // chunks on devices but 0, which `bytes` does not count
  std::map<CUcontext, CUdevice> devices;         // of contexts that are not of device 0
  uint64_t other_bytes = 0;                      // of other processes, and what the driver takes for itself
  // By address: the handle that is mapped there, of ranges that may be accessed.
  std::map<CUdeviceptr, CUmemGenericAllocationHandle> page_table() const;
  bool unmaps_whole_ranges = true;  // false: cuMemUnmap takes one mapping a call
  uint64_t host_bytes = 0;          // pinned
  bool runs_when_asked = false;     // true: cuEventQuery lets the event's stream get there

  // The context of the calling thread. Streams and events belong to the one in which they were made: an event can only
  // be recorded on a stream of its own, and copies go to streams of the current one.
  static inline thread_local CUcontext current = reinterpret_cast<CUcontext>(uint64_t{0xc0});

  // A stream of the current context and work on it. The work runs when the stream gets there.
  CUstream stream();
  void launch(CUstream stream, std::function<void()> work);
  // Lets the next piece of work on the stream run. False: there is none, or it waits for an event.
  bool step(CUstream stream);
  void run_all();
  bool idle() const;
  bool idle_but(CUstream stream) const;  // nothing is queued on any other
  std::vector<CUstream> streams() const;

  // May the device access this address now?
  bool mapped(CUdeviceptr address) const;
  // For work: the 8 bytes at a device address.
  uint64_t read(CUdeviceptr address);
  void write(CUdeviceptr address, uint64_t value);

 private:
  friend void fill_table(DriverTable*);
  struct Fault {
    int nth;
    CUresult result;
  };
  struct Page {
    CUmemGenericAllocationHandle handle;
    uint64_t bytes;
    bool accessible;
  };
  struct Physical {
    std::vector<unsigned char> content;
    CUdevice device = 0;
    int mapped = 0;
  };
  struct Work {
    std::function<void()> run;  // empty: waits for an event
    CUevent event = nullptr;    // waited for, or recorded when `run` is empty and `records`
    uint64_t record = 0;
    bool records = false;
  };
  struct Stream {
    std::deque<Work> queue;
    CUcontext context = nullptr;
    bool destroyed = false;
  };
  struct Event {
    CUcontext context = nullptr;
    uint64_t recorded = 0;  // number of the last record, over all events
    uint64_t complete = 0;
    std::map<uint64_t, CUstream> where;  // by record
  };

  CUresult called(const char* function);
  void violation(const std::string& text) { violations.push_back(text); }
  bool access(CUdeviceptr address, void* host, uint64_t size, bool write);
  bool blocked(const Work& work) { return !work.run && !work.records && events_[work.event].complete < work.record; }
  void run_until(CUevent event, uint64_t record);
  void run_context(CUcontext context);
  Stream* usable(CUstream stream, const char* function);

  CUresult reserve(CUdeviceptr* address, uint64_t size);
  CUdevice device() const;  // of the current context
  uint64_t& bytes_on(CUdevice device) { return device == 0 ? bytes : bytes_of_others[device]; }
  CUresult create(CUmemGenericAllocationHandle* handle, uint64_t size, CUdevice device);
  CUresult release(CUmemGenericAllocationHandle handle);
  CUresult map(CUdeviceptr address, uint64_t size, CUmemGenericAllocationHandle handle);
  CUresult unmap(CUdeviceptr address, uint64_t size);
  CUresult set_access(CUdeviceptr address, uint64_t size);
  CUresult copy(CUdeviceptr device, void* host, uint64_t size, CUstream stream, bool to_device);
  CUresult digest_cells(CUmodule module, CUdeviceptr* address, size_t* size);
  void fill(CUdeviceptr address, uint32_t value, uint64_t count);
  CUresult digest(CUdeviceptr cells, CUstream stream, void** parameters);
  CUresult tell_digest(CUdeviceptr cells, CUstream stream, void** parameters);
  CUresult host_alloc(void** memory, uint64_t size);
  CUresult event_record(CUevent event, CUstream stream);
  CUresult event_query(CUevent event);
  CUresult event_synchronize(CUevent event);
  CUresult stream_wait(CUstream stream, CUevent event);
  CUresult stream_destroy(CUstream stream);

  std::map<std::string, std::vector<Fault>> faults_;
  std::vector<std::string> calls_;
  std::recursive_mutex mutex_;
  struct DigestKernel {
    CUmodule module;
    bool tells;
  };
  std::map<CUfunction, DigestKernel> digest_kernels_;
  std::map<CUmodule, CUdeviceptr> digest_cells_;
  std::map<CUmemGenericAllocationHandle, Physical> physical_;
  std::map<CUdeviceptr, Page> pages_;
  std::map<CUstream, Stream> streams_;
  std::map<CUevent, Event> events_;
  struct HostMemory {
    std::unique_ptr<unsigned char[]> bytes;
    uint64_t size;
  };
  std::map<void*, HostMemory> host_;
  uint64_t next_ = 0x1000;
  CUdeviceptr next_range_ = uint64_t{1} << 44;
  uint64_t records_ = 0;
  DriverTable before_;
  bool ready_before_;
};

}  // namespace reprise::replay::testing
