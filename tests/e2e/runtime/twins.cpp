#include "tests/e2e/runtime/kernels.cuh"
#include "tests/e2e/runtime/mirror.cuh"

REPRISE_TWIN(fill);
REPRISE_TWIN(affine<float>);
REPRISE_TWIN(weigh);
REPRISE_TWIN(count);
REPRISE_TWIN(small_blocks);
REPRISE_TWIN(mirror);
