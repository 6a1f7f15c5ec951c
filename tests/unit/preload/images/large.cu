// A structure so large that its size needs another form in the image than smaller ones.
struct Huge {
  float* lists[770];
  int numbers[3000];
};

extern "C" __global__ void large(Huge huge, float* out, int index) { out[index] = huge.lists[huge.numbers[index]][0]; }
