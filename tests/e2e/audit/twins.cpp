// The kernels compiled for the host: what the simulated device runs.
#include "tests/e2e/audit/kernels.cuh"

REPRISE_TWIN(mix);
REPRISE_TWIN(update);
REPRISE_TWIN(follow);
REPRISE_TWIN(later);
REPRISE_TWIN(make_table);
REPRISE_TWIN(by_table);
REPRISE_TWIN(touch);
