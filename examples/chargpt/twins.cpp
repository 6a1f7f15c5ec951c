// The trainer's kernels compiled for the host: what the simulated device runs.
#include "examples/chargpt/kernels.cuh"

REPRISE_TWIN(gemm);
REPRISE_TWIN(transpose);
REPRISE_TWIN(layer_norm);
REPRISE_TWIN(layer_norm_backward);
REPRISE_TWIN(layer_norm_weights_backward);
REPRISE_TWIN(causal_softmax);
REPRISE_TWIN(causal_softmax_backward);
REPRISE_TWIN(cross_entropy);
REPRISE_TWIN(cross_entropy_backward);
REPRISE_TWIN(mean);
REPRISE_TWIN(column_sum);
REPRISE_TWIN(add);
REPRISE_TWIN(gelu);
REPRISE_TWIN(gelu_backward);
REPRISE_TWIN(embed);
REPRISE_TWIN(embed_backward_tokens);
REPRISE_TWIN(embed_backward_positions);
REPRISE_TWIN(adamw);
