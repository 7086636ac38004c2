// Matrix products of a few hundred rows and columns, for networks whose layers stay in cache: nothing is packed, and
// every element is summed in one order, whatever rows stand around it. Internal linkage, as all of a kernel file.
//
// C (m, n) = A (m, k) · B (k, n): a tile of C stays in registers while k runs; B and C are read along their rows, a
// vector at a time, and A one number at a time, so A may just as well be transposed (by its two strides).
#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/vectors-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

using Vector [[gnu::vector_size(vector_bytes)]] = float;
constexpr std::size_t vector_floats = vector_bytes / sizeof(float);

// Rows and vectors of a tile of C: with what is read of A and B they fill the registers.
#if defined(__AVX512F__)
constexpr int tile_rows = 6, tile_vectors = 4;
#else
constexpr int tile_rows = 6, tile_vectors = 2;
#endif

inline Vector read(const float* at) {
  Vector values;
  std::memcpy(&values, at, sizeof values);
  return values;
}
inline void write(float* at, Vector values) {
  std::memcpy(at, &values, sizeof values);
}
inline Vector rectified(Vector a) {
  return a > 0 ? a : Vector{};
}

// Where an element (i, l) of A is: data[i·row + l·column].
struct Strided {
  const float* data;
  std::size_t row, column;
};

enum class Start { zero, added, rectified };  // C = AB;  C += AB;  C = max(AB + bias, 0), bias one number per column

template <int Rows, int Vectors, Start start>
inline void tile(std::size_t k, Strided a, const float* __restrict b, std::size_t b_row, float* __restrict c,
                 std::size_t c_row, const float* __restrict bias) {
  constexpr std::size_t lanes = vector_floats;
  Vector sums[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      if constexpr (start == Start::zero) sums[i][v] = Vector{};
      if constexpr (start == Start::added) sums[i][v] = read(c + i * c_row + v * lanes);
      if constexpr (start == Start::rectified) sums[i][v] = read(bias + v * lanes);
    }
  for (std::size_t l = 0; l < k; ++l) {
    Vector row[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) row[v] = read(b + l * b_row + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const float factor = a.data[i * a.row + l * a.column];
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) sums[i][v] += factor * row[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      write(c + i * c_row + v * lanes, start == Start::rectified ? rectified(sums[i][v]) : sums[i][v]);
}

template <int Vectors, Start start>
inline void columns_of(std::size_t m, std::size_t k, Strided a, const float* b, std::size_t b_row, float* c,
                       std::size_t c_row, const float* bias) {
  std::size_t i = 0;
  for (; i + tile_rows <= m; i += tile_rows)
    tile<tile_rows, Vectors, start>(k, {a.data + i * a.row, a.row, a.column}, b, b_row, c + i * c_row, c_row, bias);
  for (; i + 2 <= m; i += 2)
    tile<2, Vectors, start>(k, {a.data + i * a.row, a.row, a.column}, b, b_row, c + i * c_row, c_row, bias);
  for (; i < m; ++i)
    tile<1, Vectors, start>(k, {a.data + i * a.row, a.row, a.column}, b, b_row, c + i * c_row, c_row, bias);
}

// n must be a multiple of the lanes.
template <Start start>
inline void product(std::size_t m, std::size_t n, std::size_t k, Strided a, const float* b, std::size_t b_row, float* c,
                    std::size_t c_row, const float* bias = nullptr) {
  constexpr std::size_t lanes = vector_floats, wide = tile_vectors * lanes;
  std::size_t j = 0;
  const auto at = [&](std::size_t column) { return bias ? bias + column : nullptr; };
  for (; j + wide <= n; j += wide) columns_of<tile_vectors, start>(m, k, a, b + j, b_row, c + j, c_row, at(j));
  for (; j < n; j += lanes) columns_of<1, start>(m, k, a, b + j, b_row, c + j, c_row, at(j));
}

// Σ a_l·b_l; count must be a multiple of the lanes.
inline float inner(const float* a, const float* b, std::size_t count) {
  Vector sums{};
  for (std::size_t l = 0; l < count; l += vector_floats) sums += read(a + l) * read(b + l);
  float sum = 0;
  for (std::size_t lane = 0; lane < vector_floats; ++lane) sum += sums[lane];
  return sum;
}

// to (columns, rows) = from (rows, columns) transposed, in squares that stay in cache.
inline void transpose(const float* from, std::size_t from_row, std::size_t rows, std::size_t columns, float* to,
                      std::size_t to_row) {
  constexpr std::size_t side = 16;
  for (std::size_t i = 0; i < rows; i += side)
    for (std::size_t j = 0; j < columns; j += side) {
      const std::size_t i_end = std::min(rows, i + side), j_end = std::min(columns, j + side);
      for (std::size_t column = j; column < j_end; ++column)
        for (std::size_t row = i; row < i_end; ++row) to[column * to_row + row] = from[row * from_row + column];
    }
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
