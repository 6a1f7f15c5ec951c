// The device's memory: what becomes of a call that makes some, gives some back or asks how much there is. The other
// half of a Handler; hooks of allocations, modules, graphs and memory information call it, on any thread. Every
// function returns what the program shall see.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "preload/calls/command.h"
#include "preload/driver/beside.h"
#include "preload/driver/taken.h"

namespace reprise {

class MemoryHandler {
 public:
  virtual CUresult allocate(const AllocateCall& call, CUdeviceptr* address) noexcept = 0;
  virtual CUresult release(const FreeCall& call) noexcept = 0;

  // Is it an address of memory that the handler makes itself, in the driver's place?
  virtual bool makes(CUdeviceptr address) const noexcept {
    (void)address;
    return false;
  }

  // Before the program ends a context: nothing of ours is left in it, and its allocations are gone: `freed` is called
  // for each that the handler has made.
  virtual CUresult context_end(CUcontext context, void (*freed)(CUdeviceptr) noexcept) noexcept {
    (void)context;
    (void)freed;
    return CUDA_SUCCESS;
  }
  // The program has allowed work on `peer` to reach memory of `device`. An error: it cannot reach what the handler
  // makes.
  virtual CUresult peer_allowed(CUdevice device, CUdevice peer) noexcept {
    (void)device;
    (void)peer;
    return CUDA_SUCCESS;
  }

  // What the program is told of the device instead of the driver's figures, in bytes. false: those stand.
  virtual bool told_memory(CUdevice device, uint64_t* free_bytes, uint64_t* total_bytes) noexcept {
    (void)device;
    (void)free_bytes;
    (void)total_bytes;
    return false;
  }
  virtual CUresult memory_info(size_t* free_bytes, size_t* total_bytes) noexcept = 0;
  virtual CUresult total_memory(size_t* bytes, CUdevice device) noexcept = 0;

  // The driver has refused the program device memory that is not ours to make. true: so much of ours has been given
  // back, and it may be asked again.
  virtual bool make_headroom(uint64_t bytes) noexcept {
    (void)bytes;
    return false;
  }

  // The same for a call that needs memory of an unknown size: code, limits, graphs. `refusal` counts how often the
  // driver has refused this call, from 0 on; each time more is given back. false: there is no more to give.
  virtual bool make_more_headroom(int refusal) noexcept {
    (void)refusal;
    return false;
  }

  // Around a call by which the program makes device memory that is not ours to make, or gives some back (cuMemCreate,
  // arrays, ...): it counts towards the budget, and ours makes room for it first. An error: the budget cannot hold it;
  // the call must not be made, and the program gets the error. after_beside() comes behind each other answer.
  virtual CUresult before_beside(BesideCall* call) noexcept {
    (void)call;
    return CUDA_SUCCESS;
  }
  virtual void after_beside(const BesideCall& call, CUresult result) noexcept {
    (void)call;
    (void)result;
  }

  // Graphs that allocate: the driver may hold more or less for them now. `instantiated`: so many nodes that do are in a
  // graph that can be launched from now on; 0: some were destroyed.
  virtual void graph_memory(uint32_t instantiated) noexcept { (void)instantiated; }

  // Around a call of this thread by which the driver may take device memory for itself (a module is loaded, a graph
  // instantiated): counts as the program's. `before`: what before_taking() answered.
  struct BeforeTaking {
    BeforeCall look = {};  // nothing is free: nothing is to be counted
    uint64_t submitted = 0;
  };
  virtual BeforeTaking before_taking() noexcept { return {}; }
  virtual void after_taking(const BeforeTaking& before) noexcept { (void)before; }

 protected:
  ~MemoryHandler() = default;
};

}  // namespace reprise
