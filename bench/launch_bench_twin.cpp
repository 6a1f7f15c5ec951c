// The benchmark's kernel compiled for the host: what the simulated device runs.
#include "bench/launch_bench.cu"

REPRISE_TWIN(nothing);
