// The kernels compiled for the host: what the simulated device runs.
#include "tests/e2e/victims/table_kernels.cuh"

REPRISE_TWIN(fill);
REPRISE_TWIN(mix);
REPRISE_TWIN(put);
REPRISE_TWIN(gather);
REPRISE_TWIN(scatter);
REPRISE_TWIN(gather_deep);
REPRISE_TWIN(ncclDevKernel_sum);
REPRISE_TWIN(set);
