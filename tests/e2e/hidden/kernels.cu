// What hidden_program loads as a cubin.
#include "tests/e2e/hidden/kernels.cuh"
