// A fixture that launches kernels on the scripted driver, for tests of what a launch touches. Callers: tests of access.
#pragma once
#include <cuda.h>

#include "tests/support/test.h"
#include "tests/unit/preload/scripted/recording_handler.h"
#include "tests/unit/preload/scripted/scripted.h"

namespace reprise {

class Launching : public testing::Test {
 protected:
  void SetUp() override {
    scripted().reset();
    watch(kWatching);
    static const char* const kImage = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() { ret; }\n";
    ASSERT_EQ(cuModuleLoadData(&module_, kImage), CUDA_SUCCESS);
  }
  void TearDown() override {
    for (const CUdeviceptr address : allocated_) cuMemFree(address);
    cuModuleUnload(module_);
    stop_watching();
  }
  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    allocated_.push_back(address);
    return address;
  }
  void release(CUdeviceptr address) {
    std::erase(allocated_, address);
    cuMemFree(address);
  }
  // The n-th kernel of this test takes one pointer.
  void launch(CUdeviceptr operand, uint64_t kernel = 0) {
    const ScriptedParameter layout[] = {{0, 8}};
    scripted().layout(layout, 1);
    static uint64_t next = 0x5000000;
    if (first_kernel_ == 0) first_kernel_ = next += 0x10000;
    void* parameters[] = {&operand};
    const auto handle = reinterpret_cast<CUfunction>(first_kernel_ + kernel * 0x100);
    ASSERT_EQ(cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  }
  // Does the last command touch the allocation that starts there?
  bool touches(CUdeviceptr address) const {
    const auto& accesses = handler().commands.back().accesses;
    return std::any_of(accesses.begin(), accesses.end(),
                       [&](const Access& access) { return access.address - access.offset == address; });
  }
  bool opaque() const { return (handler().commands.back().command.flags & trace::kOpOpaque) != 0; }

 private:
  CUmodule module_ = nullptr;
  uint64_t first_kernel_ = 0;
  std::vector<CUdeviceptr> allocated_;
};

}  // namespace reprise
