// Kernel launches with tensors in and tensors out. Every result is a fresh allocation, as in the frameworks.
#pragma once
#include "device.cuh"
#include "kernels.cuh"

inline unsigned blocks_for(long threads) { return static_cast<unsigned>((threads + kBlock - 1) / kBlock); }
inline dim3 element_grid(size_t count) { return dim3(blocks_for(static_cast<long>(count) / kPerThread)); }
inline dim3 row_grid(int rows) { return dim3(blocks_for(static_cast<long>(rows) * kRowLanes)); }

inline void launch_gemm(Device& device, const float* a, const float* b, const float* bias, float* c, GemmShape shape,
                        int batches) {
  const auto tiles = [](int extent) { return static_cast<unsigned>((extent + kTile - 1) / kTile); };
  device.launch(gemm, dim3(tiles(shape.n), tiles(shape.m), static_cast<unsigned>(batches)), kGemmBlock, a, b, bias, c,
                shape);
}

inline void launch_transpose(Device& device, const float* in, float* out, TransposeShape shape, int batches) {
  const long tiles = static_cast<long>(shape.rows) / 4 * (shape.columns / 4);
  device.launch(transpose, dim3(blocks_for(tiles), static_cast<unsigned>(batches)), kBlock, in, out, shape);
}

// (rows x inner) * (inner x columns), plus a bias where there is one.
inline Tensor matmul(Device& device, const Tensor& a, const float* b, const float* bias, int rows, int inner,
                     int columns) {
  Tensor out(device, static_cast<size_t>(rows) * columns);
  launch_gemm(device, a.data(), b, bias, out.data(),
              {rows, columns, inner, inner, 1, columns, columns, 1, 0, 0, 0, 0, 0, 0}, 1);
  return out;
}

// a (rows x inner), transposed, times b (rows x columns): the gradient of a weight matrix.
inline Tensor matmul_transposed_left(Device& device, const Tensor& a, const Tensor& b, int rows, int inner,
                                     int columns) {
  Tensor out(device, static_cast<size_t>(inner) * columns);
  launch_gemm(device, a.data(), b.data(), nullptr, out.data(),
              {inner, columns, rows, 1, inner, columns, columns, 1, 0, 0, 0, 0, 0, 0}, 1);
  return out;
}

// a (rows x columns) times the transposed of weights (inner x columns): the gradient of a layer's input.
inline Tensor matmul_transposed_right(Device& device, const Tensor& a, const Tensor& weights, int rows, int inner,
                                      int columns) {
  Tensor turned(device, weights.count());
  launch_transpose(device, weights.data(), turned.data(), {inner, columns, columns, 1, 0, 0}, 1);
  return matmul(device, a, turned.data(), nullptr, rows, columns, inner);
}

// Sums over rows in two launches: chunks of 32 rows (or fewer), then the chunks.
inline int chunk_rows_of(int rows) {
  for (const int chunk : {32, 16, 8, 4, 2}) {
    if (rows % chunk == 0) return chunk;
  }
  return 1;
}
inline Tensor sum_chunks(Device& device, const Tensor& parts, int chunks, int columns) {
  Tensor out(device, static_cast<size_t>(columns));
  device.launch(column_sum, element_grid(columns + kPerThread - 1), kBlock, parts.data(), out.data(), columns, chunks);
  return out;
}
inline Tensor sum_rows(Device& device, const Tensor& in, int rows, int columns) {
  const int chunk = chunk_rows_of(rows);
  const int chunks = rows / chunk;
  Tensor parts(device, static_cast<size_t>(chunks) * columns);
  dim3 grid = element_grid(columns + kPerThread - 1);
  grid.y = static_cast<unsigned>(chunks);
  device.launch(column_sum, grid, kBlock, in.data(), parts.data(), columns, chunk);
  return sum_chunks(device, parts, chunks, columns);
}

inline Tensor sum(Device& device, const Tensor& a, const Tensor& b) {
  Tensor out(device, a.count());
  device.launch(add, element_grid(a.count()), kBlock, a.data(), b.data(), out.data(), a.size());
  return out;
}

struct Normalised {
  Tensor out, means, scales;
};
inline Normalised normalise(Device& device, const Tensor& in, const Tensor& gain, const Tensor& shift, int rows,
                            int width) {
  Normalised result{Tensor(device, in.count()), Tensor(device, static_cast<size_t>(rows)),
                    Tensor(device, static_cast<size_t>(rows))};
  device.launch(layer_norm, row_grid(rows), kBlock, in.data(), gain.data(), shift.data(), result.out.data(),
                result.means.data(), result.scales.data(), width);
  return result;
}
