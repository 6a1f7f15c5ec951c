// The replay's digest kernels as host twinss: the simulated device loads them wherever Reprise runs on it.
#include "replay/digest/digest.cu"

REPRISE_TWIN(reprise_digest);
REPRISE_TWIN(reprise_digest_tell);
