// Host twins of this folder's kernels; cuda_host.h is included by the build.
#include "tools/device/tests/kernels.cuh"

REPRISE_TWIN(hold);
REPRISE_TWIN(add);
REPRISE_TWIN(store);
REPRISE_TWIN(read_globals);
REPRISE_TWIN(empty);
REPRISE_TWIN(wide);
