// Memory of all kinds: pools, pinned, managed; copies of rectangles; what the driver says about pointers.
#include "tools/device/tests/driver.h"

namespace reprise::sim_test {
namespace {

class Memory : public DriverTest {
 protected:
  template <typename T>
  T attribute(CUdeviceptr pointer, CUpointer_attribute which) {
    T value{};
    EXPECT_CU(CU(cuPointerGetAttribute)(&value, which, pointer));
    return value;
  }
};

TEST_F(Memory, AStreamReusesWhatItFreed) {
  CUstream stream = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  Gate gate;
  int* flag = gate.flag();
  ASSERT_CU(launch("hold", {&flag}, stream));
  CUdeviceptr first = 0, second = 0;
  ASSERT_CU(CU(cuMemAllocAsync)(&first, 4096, stream));
  ASSERT_CU(CU(cuMemFreeAsync)(first, stream));
  ASSERT_CU(CU(cuMemAllocAsync)(&second, 4096, stream));
  EXPECT_EQ(first, second);
  CUstream other = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(CU(cuMemFreeAsync)(second, stream));
  CUdeviceptr third = 0;
  ASSERT_CU(CU(cuMemAllocAsync)(&third, 4096, other));
  EXPECT_NE(second, third);
}

// cuMemPoolCreate in cuda.h: pools of host memory, of a node's, and managed ones; none of the current thread's node.
TEST_F(Memory, PoolsOnTheHostAndManagedOnes) {
  CUmemPoolProps properties = {};
  CUmemoryPool pool = nullptr;
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0};
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuMemPoolCreate)(&pool, &properties));
  properties.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuMemPoolCreate)(&pool, &properties));
  properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
  size_t free_before = 0, free_after = 0, total = 0;
  for (const CUmemLocationType type : {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA}) {
    properties.location = {type, 0};
    ASSERT_CU(CU(cuMemPoolCreate)(&pool, &properties));
    ASSERT_CU(CU(cuMemGetInfo)(&free_before, &total));
    CUdeviceptr memory = 0;
    ASSERT_CU(CU(cuMemAllocFromPoolAsync)(&memory, 1u << 20, pool, nullptr));
    ASSERT_CU(CU(cuStreamSynchronize)(nullptr));
    EXPECT_EQ(static_cast<unsigned>(CU_MEMORYTYPE_HOST), attribute<unsigned>(memory, CU_POINTER_ATTRIBUTE_MEMORY_TYPE));
    std::memset(reinterpret_cast<void*>(memory), 1, 1u << 20);
    ASSERT_CU(CU(cuMemGetInfo)(&free_after, &total));
    EXPECT_EQ(free_before, free_after);
    ASSERT_CU(CU(cuMemFreeAsync)(memory, nullptr));
    ASSERT_CU(CU(cuStreamSynchronize)(nullptr));
    ASSERT_CU(CU(cuMemPoolDestroy)(pool));
  }
  properties.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
  properties.location = {CU_MEM_LOCATION_TYPE_NONE, 0};
  ASSERT_CU(CU(cuMemPoolCreate)(&pool, &properties));
  CUdeviceptr memory = 0;
  ASSERT_CU(CU(cuMemAllocFromPoolAsync)(&memory, 1u << 20, pool, nullptr));
  EXPECT_EQ(1u, attribute<unsigned>(memory, CU_POINTER_ATTRIBUTE_IS_MANAGED));
  ASSERT_CU(CU(cuMemFreeAsync)(memory, nullptr));
  ASSERT_CU(CU(cuMemPoolDestroy)(pool));
}

TEST_F(Memory, PoolsKeepWhatTheThresholdAllows) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  CUmemoryPool pool = nullptr;
  ASSERT_CU(CU(cuMemPoolCreate)(&pool, &properties));
  const auto reserved = [&] {
    cuuint64_t bytes = 0;
    EXPECT_CU(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes));
    return bytes;
  };
  cuuint64_t all = ~0ull;
  ASSERT_CU(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  CUdeviceptr memory = 0;
  ASSERT_CU(CU(cuMemAllocFromPoolAsync)(&memory, 8u << 20, pool, nullptr));
  EXPECT_EQ(pool, attribute<CUmemoryPool>(memory, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE));
  ASSERT_CU(CU(cuMemFreeAsync)(memory, nullptr));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_GE(reserved(), 8u << 20);
  ASSERT_CU(CU(cuMemPoolTrimTo)(pool, 0));
  EXPECT_EQ(0u, reserved());
  cuuint64_t none = 0;
  ASSERT_CU(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none));
  ASSERT_CU(CU(cuMemAllocFromPoolAsync)(&memory, 8u << 20, pool, nullptr));
  ASSERT_CU(CU(cuMemFreeAsync)(memory, nullptr));
  ASSERT_CU(CU(cuStreamSynchronize)(nullptr));
  EXPECT_EQ(0u, reserved());
  ASSERT_CU(CU(cuMemPoolDestroy)(pool));
}

TEST_F(Memory, RectanglesKeepTheirPitch) {
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  ASSERT_CU(CU(cuMemAllocPitch)(&memory, &pitch, 100, 8, 4));
  EXPECT_GE(pitch, 100u);
  std::vector<unsigned char> in(100 * 8);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = in.data();
  copy.srcPitch = 100;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = memory;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 100;
  copy.Height = 8;
  ASSERT_CU(CU(cuMemcpy2D)(&copy));
  std::vector<unsigned char> out(20 * 3, 0);
  CUDA_MEMCPY2D back = {};
  back.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  back.srcDevice = memory;
  back.srcPitch = pitch;
  back.srcXInBytes = 10;
  back.srcY = 2;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = out.data();
  back.dstPitch = 20;
  back.WidthInBytes = 20;
  back.Height = 3;
  ASSERT_CU(CU(cuMemcpy2DUnaligned)(&back));
  for (size_t y = 0; y < 3; ++y) {
    for (size_t x = 0; x < 20; ++x) EXPECT_EQ(in[(y + 2) * 100 + x + 10], out[y * 20 + x]);
  }
}

TEST_F(Memory, BoxesKeepTheirPlanes) {
  const CUdeviceptr memory = allocate(4 * 4 * 4);
  std::vector<unsigned char> in(64);
  for (size_t i = 0; i < 64; ++i) in[i] = static_cast<unsigned char>(i);
  ASSERT_CU(CU(cuMemcpyHtoD)(memory, in.data(), 64));
  std::vector<unsigned char> out(8, 0);
  CUDA_MEMCPY3D box = {};
  box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = memory;
  box.srcPitch = 4;
  box.srcHeight = 4;
  box.srcXInBytes = box.srcY = box.srcZ = 1;
  box.dstMemoryType = CU_MEMORYTYPE_HOST;
  box.dstHost = out.data();
  box.dstPitch = 2;
  box.dstHeight = 2;
  box.WidthInBytes = box.Height = box.Depth = 2;
  ASSERT_CU(CU(cuMemcpy3D)(&box));
  EXPECT_EQ((std::vector<unsigned char>{21, 22, 25, 26, 37, 38, 41, 42}), out);
}

TEST_F(Memory, MemsetsOfAllWidths) {
  const CUdeviceptr memory = ints(8, 0);
  ASSERT_CU(CU(cuMemsetD32)(memory, 0x01020304, 2));
  ASSERT_CU(CU(cuMemsetD16)(memory + 8, 0x0506, 4));
  ASSERT_CU(CU(cuMemsetD8)(memory + 16, 7, 4));
  ASSERT_CU(CU(cuMemsetD2D8)(memory + 20, 4, 9, 1, 3));
  EXPECT_EQ((std::vector<int>{0x01020304, 0x01020304, 0x05060506, 0x05060506, 0x07070707, 9, 9, 9}),
            read_ints(memory, 8));
}

TEST_F(Memory, BatchesCopyAll) {
  CUstream stream = nullptr;
  ASSERT_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr from = ints(4, 3), to = ints(4, 0);
  CUdeviceptr sources[2] = {from, from + 8};
  CUdeviceptr destinations[2] = {to + 8, to};
  size_t sizes[2] = {8, 4};
  CUmemcpyAttributes attributes = {};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t first = 0;
  ASSERT_CU(CU(cuMemcpyBatchAsync)(destinations, sources, sizes, 2, &attributes, &first, 1, stream));
  ASSERT_CU(CU(cuStreamSynchronize)(stream));
  EXPECT_EQ((std::vector<int>{3, 0, 3, 3}), read_ints(to, 4));
}

TEST_F(Memory, WhatPointersAre) {
  const CUdeviceptr memory = allocate(1000);
  EXPECT_EQ(CU_MEMORYTYPE_DEVICE, attribute<CUmemorytype>(memory, CU_POINTER_ATTRIBUTE_MEMORY_TYPE));
  EXPECT_EQ(context_, attribute<CUcontext>(memory + 10, CU_POINTER_ATTRIBUTE_CONTEXT));
  EXPECT_EQ(memory, attribute<CUdeviceptr>(memory + 10, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR));
  EXPECT_EQ(1000u, attribute<size_t>(memory, CU_POINTER_ATTRIBUTE_RANGE_SIZE));
  void* pinned = nullptr;
  ASSERT_CU(CU(cuMemHostAlloc)(&pinned, 64, CU_MEMHOSTALLOC_PORTABLE));
  const auto host = reinterpret_cast<CUdeviceptr>(pinned);
  EXPECT_EQ(CU_MEMORYTYPE_HOST, attribute<CUmemorytype>(host, CU_POINTER_ATTRIBUTE_MEMORY_TYPE));
  EXPECT_EQ(pinned, attribute<void*>(host, CU_POINTER_ATTRIBUTE_HOST_POINTER));
  CUdeviceptr managed = 0;
  ASSERT_CU(CU(cuMemAllocManaged)(&managed, 64, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(1u, attribute<unsigned>(managed, CU_POINTER_ATTRIBUTE_IS_MANAGED));
  *reinterpret_cast<int*>(managed) = 4;
  ASSERT_CU(add(managed, 1, 1));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_EQ(5, *reinterpret_cast<int*>(managed));
  int plain = 0;
  CUmemorytype type = CU_MEMORYTYPE_DEVICE;
  const auto unknown = reinterpret_cast<CUdeviceptr>(&plain);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, unknown));
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void* data[] = {&type};
  EXPECT_CU(CU(cuPointerGetAttributes)(1, which, data, unknown));
  EXPECT_EQ(0, static_cast<int>(type));
}

TEST_F(Memory, RegisteredMemoryIsPinned) {
  void* memory = std::aligned_alloc(4096, 8192);
  ASSERT_NE(nullptr, memory);
  std::memset(memory, 0, 8192);
  ASSERT_CU(CU(cuMemHostRegister)(memory, 8192, CU_MEMHOSTREGISTER_PORTABLE));
  EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CU(cuMemHostRegister)(memory, 8192, 0));
  CUdeviceptr device = 0;
  ASSERT_CU(CU(cuMemHostGetDevicePointer)(&device, memory, 0));
  ASSERT_CU(add(device, 3, 2));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_EQ(3, static_cast<int*>(memory)[1]);
  EXPECT_CU(CU(cuMemHostUnregister)(memory));
  EXPECT_EQ(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, CU(cuMemHostUnregister)(memory));
  std::free(memory);
}

TEST_F(Memory, AllocationsAreAlignedAndApart) {
  std::vector<CUdeviceptr> blocks;
  for (size_t bytes : {1u, 511u, 512u, 513u, 100'000u, 3u << 20, 1u << 20}) blocks.push_back(allocate(bytes));
  for (const CUdeviceptr block : blocks) EXPECT_EQ(0u, block % 256);
  std::vector<CUdeviceptr> sorted = blocks;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted.end(), std::unique(sorted.begin(), sorted.end()));
  for (const CUdeviceptr block : blocks) EXPECT_CU(CU(cuMemFree)(block));
}

}  // namespace
}  // namespace reprise::sim_test
