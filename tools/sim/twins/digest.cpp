// The replay's digest kernel as a host twin: the simulated device loads it wherever Reprise runs on it.
#include "replay/digest/digest.cu"

REPRISE_TWIN(reprise_digest);
