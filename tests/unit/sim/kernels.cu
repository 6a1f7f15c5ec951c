#include "tests/unit/sim/kernels.cuh"
