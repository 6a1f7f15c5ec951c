// Host twins of this folder's kernels; cuda_host.h is included by the build.
#include "tools/device/tests/twins/kernels.cuh"

REPRISE_TWIN_DYNAMIC_SHARED(float, partial);
REPRISE_TWIN(nested::scale<float>);
REPRISE_TWIN(ranks);
REPRISE_TWIN(sum_block);
REPRISE_TWIN(reverse_some);
REPRISE_TWIN(shuffles);
REPRISE_TWIN(divided);
REPRISE_TWIN(ended_lanes);
REPRISE_TWIN(count_up);
REPRISE_TWIN(fault_after_barrier);
REPRISE_TWIN(nothing);
