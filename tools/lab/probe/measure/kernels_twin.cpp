// The probe's kernels as host twins, so that what they check and move is real on the simulated device, too.
#include "tools/lab/probe/measure/kernels.cu"

REPRISE_TWIN(probe_empty);
REPRISE_TWIN(probe_large_parameters);
REPRISE_TWIN(probe_aligned_parameter);
REPRISE_TWIN(probe_fill);
REPRISE_TWIN(probe_check);
REPRISE_TWIN(probe_fill_early);
REPRISE_TWIN(probe_check_early);
REPRISE_TWIN(probe_stream);
REPRISE_TWIN(probe_read);
REPRISE_TWIN(probe_compute);
REPRISE_TWIN(probe_spin);
REPRISE_TWIN(probe_write);
REPRISE_TWIN(probe_layer_norm);
