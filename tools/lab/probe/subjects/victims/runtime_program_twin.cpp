// The kernel of runtime_program.cu as a host twin of the simulated device.
#include "tools/lab/probe/subjects/victims/add_one.cuh"

REPRISE_TWIN(add_one);
