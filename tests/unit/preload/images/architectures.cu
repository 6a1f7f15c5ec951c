// A kernel that tells which architecture it was compiled for: by the size of its parameter.
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 10
#endif
struct Tag {
  char bytes[__CUDA_ARCH__ / 10];
};

extern "C" __global__ void tagged(Tag) {}
