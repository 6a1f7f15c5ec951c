// The kernels compiled for the host: what the simulated device runs.
#include "tests/e2e/reproductions/kernels.cuh"

REPRISE_TWIN(fill);
REPRISE_TWIN(axpy);
REPRISE_TWIN(mix);
REPRISE_TWIN(mix3);
REPRISE_TWIN(put);
REPRISE_TWIN(gather);
REPRISE_TWIN(scatter);
REPRISE_TWIN(gather_list);
REPRISE_TWIN(add_biased);
REPRISE_TWIN(add_split);
REPRISE_TWIN(add_packed);
