// The kernels compiled for the host: what the simulated device runs.
#include "tests/e2e/victims/inference_kernels.cuh"

REPRISE_TWIN(layer);
REPRISE_TWIN(add_to);
REPRISE_TWIN(look_at);
