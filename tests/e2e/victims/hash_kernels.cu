// Kernels for the random victim. They have no host twin, so the simulated device replaces each argument tensor by a
// hash of all of them: every byte and every order counts. On a real GPU they mix their arguments element by element.
extern "C" __global__ void mix2(unsigned* a, unsigned* b, unsigned salt, unsigned words) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < words) {
    const unsigned x = a[i], y = b[i];
    a[i] = (x ^ (y * 2654435761u)) + salt;
    b[i] = (y ^ (x * 2246822519u)) - salt;
  }
}

extern "C" __global__ void mix3(unsigned* a, unsigned* b, unsigned* c, unsigned salt, unsigned words) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < words) {
    const unsigned x = a[i], y = b[i], z = c[i];
    a[i] = x * 3u + y + salt;
    b[i] = y * 5u + z + salt;
    c[i] = z * 7u + x + salt;
  }
}

// Pointers inside a by-value struct, as frameworks pass them.
struct Bundle {
  unsigned salt;
  unsigned* tensors[4];
  unsigned words;
};
extern "C" __global__ void mix_bundle(Bundle bundle) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < bundle.words) {
    unsigned sum = bundle.salt;
    for (int k = 0; k < 4; ++k) sum = sum * 31u + bundle.tensors[k][i];
    for (int k = 0; k < 4; ++k) bundle.tensors[k][i] = sum + static_cast<unsigned>(k);
  }
}

// For the layered victim: each of these may be of another nature (REPRISE_SIM_KERNELS). The output comes first.
#define LAYER_KERNEL(name, step)                                                                            \
  extern "C" __global__ void name(unsigned* out, unsigned* a, unsigned* b, unsigned salt, unsigned words) { \
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                               \
    if (i < words) out[i] = a[i] * step + (b[i] ^ salt);                                                    \
  }
LAYER_KERNEL(layer0, 3u)
LAYER_KERNEL(layer1, 5u)
LAYER_KERNEL(layer2, 7u)
LAYER_KERNEL(layer3, 9u)
LAYER_KERNEL(layer4, 11u)
LAYER_KERNEL(layer5, 13u)
LAYER_KERNEL(layer6, 15u)
LAYER_KERNEL(layer7, 17u)
