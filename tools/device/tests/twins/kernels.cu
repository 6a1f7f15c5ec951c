#include "tools/device/tests/twins/kernels.cuh"
