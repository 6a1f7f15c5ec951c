// Device allocations as managed memory (CUDA Unified Memory), for tools/lab/gpu-compare only: what a program gets whose
// author had written cudaMallocManaged. Preloaded; needs no CUDA headers:
//
//   cc -shared -fPIC -O2 -o managed.so tools/lab/managed.c -ldl && LD_PRELOAD=./managed.so python3 train.py
//
// MANAGED_PREFETCH=1: with hints, given once to each allocation, when it is made: its preferred place is the device,
// and it is prefetched there. Frees in a stream's order wait for the stream, as managed memory has no such frees.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

typedef struct {
  int type, id;
} Location;  // cudaMemLocation, CUmemLocation
typedef unsigned long long Address;

enum { kGlobal = 1, kPreferredLocation = 3, kOnDevice = 1 };

static void* find(const char* name, const char* const* libraries) {
  for (; *libraries; ++libraries) {
    void* library = dlopen(*libraries, RTLD_LAZY | RTLD_NOLOAD);
    void* found = library ? dlsym(library, name) : NULL;
    if (found) return found;
  }
  abort();  // the program has called into this library, so it is there
}
static void* runtime(const char* name) {
  static const char* const kNames[] = {"libcudart.so.13", "libcudart.so.12", NULL};
  return find(name, kNames);
}
static void* driver(const char* name) {
  static const char* const kNames[] = {"libcuda.so.1", NULL};
  return find(name, kNames);
}

static void hint(Address address, size_t bytes) {
  const char* wanted = getenv("MANAGED_PREFETCH");
  if (!wanted || wanted[0] != '1' || !bytes) return;
  int (*device_of)(int*) = driver("cuCtxGetDevice");
  int (*advise)(Address, size_t, int, Location) = driver("cuMemAdvise_v2");
  int (*prefetch)(Address, size_t, Location, unsigned, void*) = driver("cuMemPrefetchAsync_v2");
  Location place = {kOnDevice, 0};
  if (device_of(&place.id) || advise(address, bytes, kPreferredLocation, place)) return;
  prefetch(address, bytes, place, 0, NULL);
}

int cudaMalloc(void** pointer, size_t bytes) {
  int (*allocate)(void**, size_t, unsigned) = runtime("cudaMallocManaged");
  const int status = allocate(pointer, bytes, kGlobal);
  if (!status) hint((Address)*pointer, bytes);
  return status;
}
int cudaMallocAsync(void** pointer, size_t bytes, void* stream) {
  (void)stream;
  return cudaMalloc(pointer, bytes);
}
int cudaFreeAsync(void* pointer, void* stream) {
  int (*wait)(void*) = runtime("cudaStreamSynchronize");
  int (*release)(void*) = runtime("cudaFree");
  const int status = wait(stream);
  return status ? status : release(pointer);
}

int cuMemAlloc_v2(Address* address, size_t bytes) {
  int (*allocate)(Address*, size_t, unsigned) = driver("cuMemAllocManaged");
  const int status = allocate(address, bytes, kGlobal);
  if (!status) hint(*address, bytes);
  return status;
}
int cuMemAllocAsync(Address* address, size_t bytes, void* stream) {
  (void)stream;
  return cuMemAlloc_v2(address, bytes);
}
int cuMemFreeAsync(Address address, void* stream) {
  int (*wait)(void*) = driver("cuStreamSynchronize");
  int (*release)(Address) = driver("cuMemFree_v2");
  const int status = wait(stream);
  return status ? status : release(address);
}
