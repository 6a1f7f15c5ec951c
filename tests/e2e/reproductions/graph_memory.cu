// graph_memory [WARM [INSIDE [KEEP [STEPS]]]]: a warm-up allocates WARM tensors of 4 MiB (8) and frees them; then a
// step that allocates INSIDE of them (8) is captured, and launched beside KEEP (4) others that are alive throughout.
#include "tests/e2e/reproductions/runtime_program.h"

namespace {

constexpr size_t kTensor = 4 << 20;
constexpr size_t kFloats = kTensor / sizeof(float);

float* allocated(cudaStream_t stream) {
  float* tensor = nullptr;
  CHECK(cudaMallocAsync(&tensor, kTensor, stream));
  return tensor;
}

float* filled(cudaStream_t stream, unsigned seed) {
  float* const tensor = allocated(stream);
  LAUNCH(fill<<<blocks(kFloats), 256, 0, stream>>>(tensor, kFloats, seed));
  return tensor;
}

void step(size_t count, const float* x, float* y, cudaStream_t stream) {
  std::vector<float*> own(count);
  for (size_t i = 0; i < count; ++i) {
    own[i] = allocated(stream);
    LAUNCH(mix<<<blocks(kFloats), 256, 0, stream>>>(own[i], i == 0 ? x : own[i - 1], y, kFloats));
  }
  LAUNCH(mix<<<blocks(kFloats), 256, 0, stream>>>(y, own[0], own[count - 1], kFloats));
  for (float* tensor : own) CHECK(cudaFreeAsync(tensor, stream));
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i, size_t otherwise) {
    return argc > i ? std::strtoul(argv[i], nullptr, 10) : otherwise;
  };
  const size_t warm = number(1, 8), inside = number(2, 8), keep = number(3, 4), steps = number(4, 8);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  float* const x = filled(stream, 1);
  float* const y = filled(stream, 2);
  step(warm, x, y, stream);
  CHECK(cudaStreamSynchronize(stream));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  step(inside, x, y, stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  std::vector<float*> kept;
  for (unsigned i = 0; i < keep; ++i) kept.push_back(filled(stream, 5 + i));
  std::vector<float> values(kFloats);
  for (size_t t = 0; t < steps; ++t) {
    CHECK(cudaGraphLaunch(executable, stream));
    for (size_t i = 0; i < keep; ++i) {
      LAUNCH(axpy<<<blocks(kFloats), 256, 0, stream>>>(kept[i], y, 0.5f, kFloats));
    }
    CHECK(cudaMemcpyAsync(x, kept[0], kTensor, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaMemcpyAsync(values.data(), y, kTensor, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::printf("%zu %016llx\n", t, static_cast<unsigned long long>(hash(values)));
  }
}
