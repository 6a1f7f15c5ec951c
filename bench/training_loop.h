// A deep training loop as a task graph in JSON: forward, backward and optimizer of as many layers as it takes for the
// wished number of kernels. Used by benchmarks that need graphs of any size.
#pragma once
#include <cstdint>
#include <string>

namespace reprise::bench {

// Every layer: 5 kernels forward, 7 backward, 2 of the optimizer; weights and their states persistent, activations kept
// from forward to backward, gradients, some small tensors; most large ones of one chunk of 2 MiB. At least one layer.
std::string training_loop_json(uint32_t kernels);

}  // namespace reprise::bench
