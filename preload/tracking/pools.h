// Which stream-ordered pools of the program are of ordinary memory of one device, which Reprise can make in the
// driver's place: the devices' default pools, and those that the program made without wishing for more. What is of the
// host, managed, for other processes or limited in size is the driver's own. Callers: hooks of allocations and of
// pools.
#pragma once
#include <cuda.h>

namespace reprise {

// After the driver has made, before it ends a pool of the program's.
void insert_pool(CUmemoryPool pool, const CUmemPoolProps& properties) noexcept;
void forget_pool(CUmemoryPool pool) noexcept;

// Is the pool of ordinary memory of this device?
bool is_plain_pool(CUmemoryPool pool, CUdevice device) noexcept;
// Of any device? Then *device.
bool device_of_plain_pool(CUmemoryPool pool, CUdevice* device) noexcept;

// Whose memory one of the program's pools is of that is not plain: a device's, or the host's (-1). `otherwise`: it is
// not known.
CUdevice place_of_pool(CUmemoryPool pool, CUdevice otherwise) noexcept;

}  // namespace reprise
