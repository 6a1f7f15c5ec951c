// The kernels compiled for the host: what the simulated device runs.
#include "tests/e2e/victims/carrying_kernels.cuh"

REPRISE_TWIN(bring);
REPRISE_TWIN(take);
