#include "tests/unit/tools/sim/twins/kernels.cuh"
