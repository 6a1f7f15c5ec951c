// The kernels compiled for the host: what the simulated device runs.
#include "tests/e2e/hidden/kernels.cuh"

REPRISE_TWIN(put);
REPRISE_TWIN(put_range);
REPRISE_TWIN(copy_table);
REPRISE_TWIN(fill_hidden);
REPRISE_TWIN(gather);
REPRISE_TWIN(scatter);
REPRISE_TWIN(digest_hidden);
REPRISE_TWIN(count_up);
REPRISE_TWIN(mix2);
REPRISE_TWIN(mix3);
