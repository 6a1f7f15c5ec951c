// The kernels compiled for the host: what the simulated device runs.
#include "tests/e2e/victims/facts_kernels.cuh"

REPRISE_TWIN(scale);
REPRISE_TWIN(accumulate);
REPRISE_TWIN(first_half);
REPRISE_TWIN(clear);
REPRISE_TWIN(shift);
REPRISE_TWIN(gather);
REPRISE_TWIN(step);
REPRISE_TWIN(count);
REPRISE_TWIN(add_in_place);
REPRISE_TWIN(by_table);
REPRISE_TWIN(split);
REPRISE_TWIN(waits);
