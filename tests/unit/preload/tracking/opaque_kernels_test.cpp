// Names of kernels, as the libraries' own builds have them.
#include "preload/tracking/opaque_kernels.h"

#include "tests/support/test.h"

namespace reprise {
namespace {

TEST(OpaqueKernels, CollectiveLibrariesAreKnownByName) {
  for (const char* name :
       {"_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE", "ncclDevKernel_Generic",
        "_Z39ncclKernel_AllReduce_RING_LL_Sum_floatP11ncclDevCommmP8ncclWork", "_Z36ncclSymkDevKernel_AllGather_LL",
        "nvshmemi_init_array_kernel", "_Z29nvshmemi_barrier_kernel_blocki", "_ZN7deep_ep9intranode8dispatchILi8EEEvPi",
        "_ZN8mscclpp9allreduceEv"}) {
    EXPECT_TRUE(opaque_by_name(name)) << name;
  }
}

TEST(OpaqueKernels, OthersAreNot) {
  for (const char* name :
       {"", "k_fill", "_Z6k_fillPfmj", "_Z12my_ncclKernelPf", "_Z10preNvshmemv", "_Z8use_nccli", "my_nvshmem_like"}) {
    EXPECT_FALSE(opaque_by_name(name)) << name;
  }
}

}  // namespace
}  // namespace reprise
