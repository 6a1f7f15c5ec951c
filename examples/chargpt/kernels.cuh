// Every kernel of the trainer. FP32, no atomics: reductions have one fixed order. Widths are multiples of 16 and row
// counts multiples of 16, which the options guarantee.
#pragma once

constexpr int kBlock = 128;    // threads of every kernel but gemm
constexpr int kRowLanes = 8;   // neighbouring threads that share a row
constexpr int kPerThread = 8;  // elements, or columns, that one thread handles
constexpr unsigned kFullWarp = 0xffffffffu;

__device__ inline int global_thread() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// Sum and maximum over the threads that share a row; all get the result.
__device__ inline float row_sum(float value) {
  for (int distance = kRowLanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(kFullWarp, value, distance);
  return value;
}
__device__ inline float row_max(float value) {
  for (int distance = kRowLanes / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kFullWarp, value, distance));
  }
  return value;
}

// ---- matrix product -------------------------------------------------------------------------------------------------

constexpr int kTile = 64;     // rows and columns of the output that a block computes
constexpr int kDepth = 32;    // of the inner dimension at a time
constexpr int kTileRows = 4;  // of the output that a thread computes ...
constexpr int kTileColumns = 16;
constexpr int kGemmBlock = (kTile / kTileRows) * (kTile / kTileColumns);

// Strides in elements. Element (i, j) of batch (outer, inner) of a stands at i * a_row + j * a_column + outer * a_outer
// + inner * a_inner; b and c have columns of stride 1.
struct GemmShape {
  int m, n, k;
  int a_row, a_column, b_row, c_row;
  int inner_batches;
  int a_outer, a_inner, b_outer, b_inner, c_outer, c_inner;
};

// Two rows at a time: the 2 x 16 sums stay in registers through the inner dimension.
__device__ inline void multiply_rows(float (&sum0)[kTileColumns], float (&sum1)[kTileColumns],
                                     const float (&a)[kDepth][kTile], const float (&b)[kDepth][kTile], int row,
                                     int column) {
  float part0[kTileColumns];
  float part1[kTileColumns];
#pragma unroll
  for (int j = 0; j < kTileColumns; ++j) part0[j] = sum0[j];
#pragma unroll
  for (int j = 0; j < kTileColumns; ++j) part1[j] = sum1[j];
  for (int k = 0; k < kDepth; ++k) {
    const float x = a[k][row];
    const float y = a[k][row + 1];
#pragma unroll
    for (int j = 0; j < kTileColumns; ++j) part0[j] += x * b[k][column + j];
#pragma unroll
    for (int j = 0; j < kTileColumns; ++j) part1[j] += y * b[k][column + j];
  }
#pragma unroll
  for (int j = 0; j < kTileColumns; ++j) sum0[j] = part0[j];
#pragma unroll
  for (int j = 0; j < kTileColumns; ++j) sum1[j] = part1[j];
}

// Loads a block's next tile of a (m x k, kept with k first) and of b; zeros beyond the edges.
__device__ inline void load_tiles(float (&a_tile)[kDepth][kTile], float (&b_tile)[kDepth][kTile], const float* a,
                                  const float* b, const GemmShape& shape, int m0, int n0, int k0) {
  constexpr int kPerRow = kGemmBlock / kDepth;  // threads that share a row of the tile
  constexpr int kWidth = kTile / kPerRow;
  const int thread = static_cast<int>(threadIdx.x);
  const int depth = thread / kPerRow;
  const int first = thread % kPerRow * kWidth;
  const bool inside = k0 + depth < shape.k;
  for (int j = 0; j < kWidth; ++j) {
    const int n = n0 + first + j;
    b_tile[depth][first + j] = inside && n < shape.n ? b[(k0 + depth) * shape.b_row + n] : 0.0f;
  }
  if (shape.a_row == 1) {
    for (int i = 0; i < kWidth; ++i) {
      const int m = m0 + first + i;
      a_tile[depth][first + i] = inside && m < shape.m ? a[m + (k0 + depth) * shape.a_column] : 0.0f;
    }
  } else {
    const int m = m0 + thread;
    for (int k = 0; k < kDepth; ++k) {
      a_tile[k][thread] = m < shape.m && k0 + k < shape.k ? a[m * shape.a_row + (k0 + k) * shape.a_column] : 0.0f;
    }
  }
}

// c = a * b, plus `bias` to every row where there is one.
__global__ void __launch_bounds__(kGemmBlock)
    gemm(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
         float* __restrict__ c, GemmShape shape) {
  static_assert(kGemmBlock == kTile, "load_tiles gives every thread a row of a");
  __shared__ float a_tile[kDepth][kTile];
  __shared__ float b_tile[kDepth][kTile];
  const int outer = static_cast<int>(blockIdx.z) / shape.inner_batches;
  const int inner = static_cast<int>(blockIdx.z) % shape.inner_batches;
  a += outer * shape.a_outer + inner * shape.a_inner;
  b += outer * shape.b_outer + inner * shape.b_inner;
  c += outer * shape.c_outer + inner * shape.c_inner;
  const int m0 = static_cast<int>(blockIdx.y) * kTile;
  const int n0 = static_cast<int>(blockIdx.x) * kTile;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / (kTile / kTileColumns) * kTileRows;
  const int column = thread % (kTile / kTileColumns) * kTileColumns;
  const bool inside = m0 + row < shape.m && n0 + column < shape.n;
  float sum[kTileRows][kTileColumns] = {};
  for (int k0 = 0; k0 < shape.k; k0 += kDepth) {
    load_tiles(a_tile, b_tile, a, b, shape, m0, n0, k0);
    __syncthreads();
    if (inside) {
      for (int i = 0; i < kTileRows; i += 2) multiply_rows(sum[i], sum[i + 1], a_tile, b_tile, row + i, column);
    }
    __syncthreads();
  }
  if (!inside) return;
  for (int i = 0; i < kTileRows; ++i) {
    float* out = c + (m0 + row + i) * shape.c_row + n0 + column;
    for (int j = 0; j < kTileColumns; ++j) out[j] = bias == nullptr ? sum[i][j] : sum[i][j] + bias[n0 + column + j];
  }
}

// Strides in elements, as in GemmShape; the output of a batch is dense.
struct TransposeShape {
  int rows, columns;
  int in_row;
  int inner_batches;
  int in_outer, in_inner;
};

// out[batch][j][i] = in[batch][i][j], 4 x 4 elements a thread.
__global__ void transpose(const float* __restrict__ in, float* __restrict__ out, TransposeShape shape) {
  const int outer = static_cast<int>(blockIdx.y) / shape.inner_batches;
  const int inner = static_cast<int>(blockIdx.y) % shape.inner_batches;
  in += outer * shape.in_outer + inner * shape.in_inner;
  out += static_cast<int>(blockIdx.y) * shape.rows * shape.columns;
  const int tiles = shape.columns / 4;
  const int row = global_thread() / tiles * 4;
  const int column = global_thread() % tiles * 4;
  if (row >= shape.rows) return;
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 4; ++i) out[(column + j) * shape.rows + row + i] = in[(row + i) * shape.in_row + column + j];
  }
}

// ---- rows: layer norm, softmax, cross entropy; kRowLanes threads a row ----------------------------------------------

__global__ void layer_norm(const float* __restrict__ in, const float* __restrict__ gain,
                           const float* __restrict__ shift, float* __restrict__ out, float* __restrict__ means,
                           float* __restrict__ scales, int width) {
  const int row = global_thread() / kRowLanes;
  const int part = width / kRowLanes;
  const int first = global_thread() % kRowLanes * part;
  in += row * width;
  out += row * width;
  float sum = 0.0f;
  for (int i = first; i < first + part; ++i) sum += in[i];
  const float mean = row_sum(sum) / static_cast<float>(width);
  float squares = 0.0f;
  for (int i = first; i < first + part; ++i) squares += (in[i] - mean) * (in[i] - mean);
  const float scale = 1.0f / sqrtf(row_sum(squares) / static_cast<float>(width) + 1e-5f);
  for (int i = first; i < first + part; ++i) out[i] = (in[i] - mean) * scale * gain[i] + shift[i];
  if (first == 0) {
    means[row] = mean;
    scales[row] = scale;
  }
}

__global__ void layer_norm_backward(const float* __restrict__ out_gradient, const float* __restrict__ in,
                                    const float* __restrict__ gain, const float* __restrict__ means,
                                    const float* __restrict__ scales, float* __restrict__ in_gradient, int width) {
  const int row = global_thread() / kRowLanes;
  const int part = width / kRowLanes;
  const int first = global_thread() % kRowLanes * part;
  in += row * width;
  out_gradient += row * width;
  in_gradient += row * width;
  const float mean = means[row];
  const float scale = scales[row];
  float sum = 0.0f;
  float weighted = 0.0f;
  for (int i = first; i < first + part; ++i) {
    const float gradient = out_gradient[i] * gain[i];
    sum += gradient;
    weighted += gradient * (in[i] - mean) * scale;
  }
  sum = row_sum(sum) / static_cast<float>(width);
  weighted = row_sum(weighted) / static_cast<float>(width);
  for (int i = first; i < first + part; ++i) {
    in_gradient[i] = scale * (out_gradient[i] * gain[i] - sum - (in[i] - mean) * scale * weighted);
  }
}

// One partial sum of the gradients of gain and shift for each chunk of rows.
__global__ void layer_norm_weights_backward(const float* __restrict__ out_gradient, const float* __restrict__ in,
                                            const float* __restrict__ means, const float* __restrict__ scales,
                                            float* __restrict__ gain_parts, float* __restrict__ shift_parts, int width,
                                            int chunk_rows) {
  const int column = global_thread() * kPerThread;
  if (column >= width) return;
  float gain_sum[kPerThread] = {};
  float shift_sum[kPerThread] = {};
  const int chunk = static_cast<int>(blockIdx.y);
  for (int row = chunk * chunk_rows; row < (chunk + 1) * chunk_rows; ++row) {
    for (int i = 0; i < kPerThread; ++i) {
      const float gradient = out_gradient[row * width + column + i];
      gain_sum[i] += gradient * (in[row * width + column + i] - means[row]) * scales[row];
      shift_sum[i] += gradient;
    }
  }
  for (int i = 0; i < kPerThread; ++i) {
    gain_parts[chunk * width + column + i] = gain_sum[i];
    shift_parts[chunk * width + column + i] = shift_sum[i];
  }
}

// Row t of each square sees the columns up to t.
__global__ void causal_softmax(const float* __restrict__ scores, float* __restrict__ probabilities, int context,
                               float scale) {
  const int row = global_thread() / kRowLanes;
  const int last = row % context;
  scores += row * context;
  probabilities += row * context;
  const int lane = global_thread() % kRowLanes;
  float largest = -INFINITY;
  for (int i = lane; i <= last; i += kRowLanes) largest = fmaxf(largest, scores[i] * scale);
  largest = row_max(largest);
  float sum = 0.0f;
  for (int i = lane; i <= last; i += kRowLanes) {
    const float value = expf(scores[i] * scale - largest);
    probabilities[i] = value;
    sum += value;
  }
  const float factor = 1.0f / row_sum(sum);
  for (int i = lane; i < context; i += kRowLanes) probabilities[i] = i <= last ? probabilities[i] * factor : 0.0f;
}

__global__ void causal_softmax_backward(const float* __restrict__ probabilities, const float* __restrict__ out_gradient,
                                        float* __restrict__ in_gradient, int context, float scale) {
  const int row = global_thread() / kRowLanes;
  const int last = row % context;
  probabilities += row * context;
  out_gradient += row * context;
  in_gradient += row * context;
  const int lane = global_thread() % kRowLanes;
  float sum = 0.0f;
  for (int i = lane; i <= last; i += kRowLanes) sum += probabilities[i] * out_gradient[i];
  sum = row_sum(sum);
  for (int i = lane; i < context; i += kRowLanes) {
    in_gradient[i] = i <= last ? probabilities[i] * (out_gradient[i] - sum) * scale : 0.0f;
  }
}

// Loss of each row, and the logarithm of its sum of exponentials for the backward pass.
__global__ void cross_entropy(const float* __restrict__ logits, const int* __restrict__ targets,
                              float* __restrict__ losses, float* __restrict__ log_sums, int classes) {
  const int row = global_thread() / kRowLanes;
  const int lane = global_thread() % kRowLanes;
  logits += row * classes;
  float largest = -INFINITY;
  for (int i = lane; i < classes; i += kRowLanes) largest = fmaxf(largest, logits[i]);
  largest = row_max(largest);
  float sum = 0.0f;
  for (int i = lane; i < classes; i += kRowLanes) sum += expf(logits[i] - largest);
  const float log_sum = logf(row_sum(sum)) + largest;
  if (lane != 0) return;
  losses[row] = log_sum - logits[targets[row]];
  log_sums[row] = log_sum;
}

__global__ void cross_entropy_backward(const float* __restrict__ logits, const int* __restrict__ targets,
                                       const float* __restrict__ log_sums, float* __restrict__ gradient, int rows,
                                       int classes) {
  const int row = global_thread() / kRowLanes;
  const int part = classes / kRowLanes;
  const int first = global_thread() % kRowLanes * part;
  if (row >= rows) return;
  for (int i = first; i < first + part; ++i) {
    const float probability = expf(logits[row * classes + i] - log_sums[row]);
    gradient[row * classes + i] = (probability - (i == targets[row] ? 1.0f : 0.0f)) / static_cast<float>(rows);
  }
}

// One warp.
__global__ void mean(const float* __restrict__ values, float* __restrict__ out, int count) {
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 32) sum += values[i];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(kFullWarp, sum, distance);
  if (threadIdx.x == 0) *out = sum / static_cast<float>(count);
}

// ---- columns and elements -------------------------------------------------------------------------------------------

// One sum of each column for each chunk of rows.
__global__ void column_sum(const float* __restrict__ in, float* __restrict__ out, int width, int chunk_rows) {
  const int column = global_thread() * kPerThread;
  if (column >= width) return;
  float sum[kPerThread] = {};
  const int chunk = static_cast<int>(blockIdx.y);
  for (int row = chunk * chunk_rows; row < (chunk + 1) * chunk_rows; ++row) {
    for (int i = 0; i < kPerThread; ++i) sum[i] += in[row * width + column + i];
  }
  for (int i = 0; i < kPerThread; ++i) out[chunk * width + column + i] = sum[i];
}

__global__ void add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int count) {
  const int first = global_thread() * kPerThread;
  if (first >= count) return;
  for (int i = first; i < first + kPerThread; ++i) out[i] = a[i] + b[i];
}

__device__ inline float gelu_inner(float x) { return 0.7978845608f * (x + 0.044715f * x * x * x); }

__global__ void gelu(const float* __restrict__ in, float* __restrict__ out, int count) {
  const int first = global_thread() * kPerThread;
  if (first >= count) return;
  for (int i = first; i < first + kPerThread; ++i) out[i] = 0.5f * in[i] * (1.0f + tanhf(gelu_inner(in[i])));
}

__global__ void gelu_backward(const float* __restrict__ in, const float* __restrict__ out_gradient,
                              float* __restrict__ in_gradient, int count) {
  const int first = global_thread() * kPerThread;
  if (first >= count) return;
  for (int i = first; i < first + kPerThread; ++i) {
    const float x = in[i];
    const float t = tanhf(gelu_inner(x));
    const float slope = 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
    in_gradient[i] = out_gradient[i] * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * slope);
  }
}

__global__ void embed(const int* __restrict__ tokens, const float* __restrict__ token_table,
                      const float* __restrict__ position_table, float* __restrict__ out, int rows, int context,
                      int width) {
  const int first = global_thread() * kPerThread;
  const int row = first / width;
  if (row >= rows) return;
  const int column = first % width;
  const float* token = token_table + tokens[row] * width + column;
  const float* position = position_table + row % context * width + column;
  for (int i = 0; i < kPerThread; ++i) out[first + i] = token[i] + position[i];
}

// Each thread owns columns of one token and looks for that token in all rows.
__global__ void embed_backward_tokens(const int* __restrict__ tokens, const float* __restrict__ out_gradient,
                                      float* __restrict__ table_gradient, int rows, int width, int classes) {
  const int first = global_thread() * kPerThread;
  const int token = first / width;
  if (token >= classes) return;
  const int column = first % width;
  float sum[kPerThread] = {};
  for (int row = 0; row < rows; ++row) {
    if (tokens[row] != token) continue;
    for (int i = 0; i < kPerThread; ++i) sum[i] += out_gradient[row * width + column + i];
  }
  for (int i = 0; i < kPerThread; ++i) table_gradient[first + i] = sum[i];
}

__global__ void embed_backward_positions(const float* __restrict__ out_gradient, float* __restrict__ table_gradient,
                                         int rows, int context, int width) {
  const int first = global_thread() * kPerThread;
  const int position = first / width;
  if (position >= context) return;
  float sum[kPerThread] = {};
  for (int row = position; row < rows; row += context) {
    for (int i = 0; i < kPerThread; ++i) sum[i] += out_gradient[row * width + first % width + i];
  }
  for (int i = 0; i < kPerThread; ++i) table_gradient[first + i] = sum[i];
}

struct AdamWStep {
  float rate, decay;
  float first_correction, second_correction;  // 1 / (1 - beta^step)
};

__global__ void adamw(float* __restrict__ weights, const float* __restrict__ gradient, float* __restrict__ first_moment,
                      float* __restrict__ second_moment, int count, AdamWStep step) {
  constexpr float kBeta1 = 0.9f;
  constexpr float kBeta2 = 0.99f;
  const int first = global_thread() * kPerThread;
  if (first >= count) return;
  for (int i = first; i < first + kPerThread; ++i) {
    const float g = gradient[i];
    const float m = kBeta1 * first_moment[i] + (1.0f - kBeta1) * g;
    const float v = kBeta2 * second_moment[i] + (1.0f - kBeta2) * g * g;
    first_moment[i] = m;
    second_moment[i] = v;
    const float update = m * step.first_correction / (sqrtf(v * step.second_correction) + 1e-8f);
    weights[i] -= step.rate * (update + step.decay * weights[i]);
  }
}
