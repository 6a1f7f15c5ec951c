// The kernel compiled for the host: what the simulated device runs.
#include "examples/vector_add/kernels.cuh"

REPRISE_TWIN(vector_add);
