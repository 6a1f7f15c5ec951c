#include "tests/unit/tools/sim/kernels.cuh"
