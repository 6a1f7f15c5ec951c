#include "tools/device/tests/kernels.cuh"
