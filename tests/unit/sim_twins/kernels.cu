#include "tests/unit/sim_twins/kernels.cuh"
