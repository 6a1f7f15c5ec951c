// What the simulated device offers beyond the driver API, exported by its libcuda.so.1. tools/device defines it.
// Callers: tests, and in the shim the simulated activity source, the defragmenter, the enforcer and the measurement of
// mapping, which look it up by name, so nothing links it. Real drivers have none of these symbols.
#pragma once
#include <cstdint>

#pragma GCC visibility push(default)
extern "C" {

// Counters since the process started. All bytes are those of device memory as this device accounts for them.
struct RepriseSimMemoryStats {
  uint64_t used_bytes;  // now: cuMemAlloc and pools, cuMemCreate, module images' globals, context overhead
  uint64_t peak_bytes;
  uint64_t create_calls;      // cuMemCreate
  uint64_t release_calls;     // cuMemRelease
  uint64_t map_calls;         // cuMemMap
  uint64_t unmap_calls;       // cuMemUnmap
  uint64_t set_access_calls;  // cuMemSetAccess
};
struct RepriseSimWorkStats {
  uint64_t launches;
  uint64_t copies;
  uint64_t copied_bytes_h2d;
  uint64_t copied_bytes_d2h;
  uint64_t compute_busy_ns;         // time with at least one kernel running
  uint64_t copy_busy_ns;            // time with at least one copy engine running
  uint64_t overlap_busy_ns;         // time with both
  uint64_t unsupported_calls;       // calls that are not implemented: CUDA_ERROR_NOT_SUPPORTED
  uint64_t parameter_bytes;         // of launches without a twin
  uint64_t hashed_parameter_bytes;  // those of them that entered the launches' hashes
};
// With the modelled clock (REPRISE_SIM_MEMORY_RATE, REPRISE_SIM_KERNEL_TIMES), of kernels, copies and memsets.
struct RepriseSimClockStats {
  uint64_t modelled_ns;      // what they take
  uint64_t host_ns;          // what the host's processors took for them
  uint64_t late_operations;  // those that the host had not done by their modelled end
  uint64_t late_ns;          // ... and the most that one was late
  uint64_t lost_ns;          // of all devices: what was never caught up; 0: times did not depend on the host's load
};
struct RepriseSimStats : RepriseSimMemoryStats, RepriseSimWorkStats, RepriseSimClockStats {};

void repriseSimGetStats(int device, RepriseSimStats* stats);
void repriseSimResetPeak(int device);

// Fails the nth next call of the named driver function (1: the next one) with `result`. "launch-execution" makes the
// nth next kernel fail asynchronously.
int repriseSimInjectFault(const char* function, unsigned nth, int result);

// The first access that ended a context with CUDA_ERROR_ILLEGAL_ADDRESS: its address and the kernel's name ("": a
// copy), cut to `capacity`. 0: there was none.
int repriseSimLastFault(uint64_t* address, char* kernel, unsigned capacity);

// The program's own allocations, for the dataflow-hash executor: the shim replaces cuMemAlloc by mapped chunks, so the
// device cannot know a tensor's extent. Without the shim cuMemAlloc itself records extents. `call` is the position of
// the program's call in its order of calls, from 1 on; 0: there is no such order, the shim performs each call at once.
void repriseSimAllocated(uint64_t address, uint64_t bytes, uint64_t call);
void repriseSimFreed(uint64_t address, uint64_t call);
// What the calling thread asks of the driver from now on is the program's call at this position, made earlier: its
// launches mean the allocations that were live then. kRepriseSimMoves: it only moves the program's bytes, and writes
// nothing that the program would. 0: what it looks like.
inline constexpr uint64_t kRepriseSimMoves = ~uint64_t{0};
void repriseSimPerform(uint64_t call);

// So many chunks can be mapped: each may be a mapping of the kernel's, of which a process may have as many as
// /proc/sys/vm/max_map_count says, the program's own among them. A GPU's driver knows no such limit.
unsigned long long repriseSimMostMappings(void);

// The calling thread's time, which its work is issued at: CLOCK_MONOTONIC. With the modelled clock a thread that is
// late is behind that, and calls are shorter until it has caught up: by this time they take what they take on a GPU.
uint64_t repriseSimHostTime(void);

// Activity records. `id` is that of the calling thread's innermost push.
typedef struct RepriseSimActivity {
  uint64_t id;
  uint64_t start_ns;  // CLOCK_MONOTONIC
  uint64_t end_ns;
  uint32_t engine;  // 0 compute, 1 host-to-device, 2 device-to-host, 3 device-to-device, 4 memset
  uint32_t stream;
} RepriseSimActivity;
void repriseSimActivityEnable(int enabled);
void repriseSimActivityPush(uint64_t id);
void repriseSimActivityPop(void);
// Moves up to `capacity` completed records into `records`, returns how many.
unsigned repriseSimActivityRead(RepriseSimActivity* records, unsigned capacity);

}  // extern "C"
#pragma GCC visibility pop
