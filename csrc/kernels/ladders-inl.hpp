// The first layer where most inputs are ladders (mlp_layout.hpp): of a ladder's bins all but one have one of two values, so
// its share of a score is a sum that all rows at the same step have in common, and one product. Likewise back: slopes are
// added up step by step, and running sums make gradients of them. Internal linkage, as all of a kernel file.
#pragma once

#include <cstdint>

#include "kernels/mlp_layout.hpp"
#include "kernels/products-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// Tables are cut into stripes of neurons, each of which lies together and stays in the first cache.
struct Ladders {
  static constexpr std::size_t lanes = packed_lanes, vectors = lanes / vector_floats;

  const MlpLayout& at;
  const std::size_t row;                // of the first layer
  Buffer<float> tables;                 // (stripes, bins of all ladders, 2, lanes): what rows at a step share, and weights
  Buffer<float> slopes;                 // the same shape: slopes of rows at a step, and these times their inputs
  Buffer<float> values, heights;        // (block rows, ladders): the input at the step; (ladders,): swing times gain
  Buffer<std::uint32_t> steps;          // (block rows, ladders): numbers of bins among those of all ladders

  Ladders(const MlpLayout& layout, std::size_t block_rows) : at(layout), row(layout.row[0]) {
    if (!at.ladders) return;
    tables = aligned<float>(2 * bins() * row);
    slopes = aligned<float>(2 * bins() * row);
    values = aligned<float>(block_rows * at.ladders);
    heights = aligned<float>(at.ladders);
    steps = aligned<std::uint32_t>(block_rows * at.ladders);
  }

  std::size_t plain() const { return at.ladder_at[0]; }
  std::size_t bins() const { return at.ladder_at[at.ladders] - plain(); }
  // The part of the tables or slopes that belongs to the neurons from j on.
  float* stripe(const Buffer<float>& of, std::size_t j) const { return of.get() + 2 * bins() * j; }

  void scale(const float* gains) {
    for (std::size_t g = 0; g < at.ladders; ++g) heights[g] = ladder_swing * gains[at.ladder_at[g]];
  }

  // Finds the steps of row i of a block: x as in the table, `fed` times gains.
  void take(const float* x, const float* fed, std::size_t i) {
    for (std::size_t g = 0; g < at.ladders; ++g) {
      const std::size_t begin = at.ladder_at[g], end = at.ladder_at[g + 1];
      std::uint32_t climbed = 0;
      for (std::size_t b = begin; b < end; ++b) climbed += x[b] == ladder_swing;
      const std::size_t step = std::min(begin + climbed, end - 1);
      steps[i * at.ladders + g] = static_cast<std::uint32_t>(step - plain());
      values[i * at.ladders + g] = fed[step];
    }
  }

  // Before a step of training: height · (Σ weights of the bins below − Σ of those above), for every bin. Neither sum is taken
  // from the other's rest: a row whose score is exactly 0, as at the kinks of a sparse start, must not be stirred by rounding.
  void begin(const float* packed) {
    for (std::size_t j = 0; at.ladders && j < row; j += lanes)
      for (std::size_t v = 0; v < lanes; v += vector_floats) {
        const float* weights = packed + at.hidden[0] + plain() * row + j + v;
        float* to = stripe(tables, j) + v;
        for (std::size_t g = 0; g < at.ladders; ++g) {
          const std::size_t first = at.ladder_at[g] - plain(), last = at.ladder_at[g + 1] - plain();
          Vector below{}, above{};
          for (std::size_t b = last; b-- > first;) {
            write(to + 2 * b * lanes, above);
            above += read(weights + b * row);
          }
          for (std::size_t b = first; b < last; ++b) {
            const Vector here = read(weights + b * row);
            write(to + 2 * b * lanes, heights[g] * (below - read(to + 2 * b * lanes)));
            write(to + (2 * b + 1) * lanes, here);
            below += here;
          }
        }
      }
  }

  // hidden ← max(scores, 0).
  void forward(const float* packed, const float* fed, std::size_t rows, float* hidden) const {
    for (std::size_t j = 0; j < row; j += lanes) {
      const float *weights = packed + at.hidden[0] + j, *bias = packed + at.bias[0] + j, *table = stripe(tables, j);
      for (std::size_t i = 0; i < rows; ++i) {
        Vector sums[vectors];
        for (std::size_t v = 0; v < vectors; ++v) sums[v] = read(bias + v * vector_floats);
        for (std::size_t p = 0; p < plain(); ++p)
          for (std::size_t v = 0; v < vectors; ++v)
            sums[v] += fed[i * at.fed_row + p] * read(weights + p * row + v * vector_floats);
        for (std::size_t g = 0; g < at.ladders; ++g) {
          const float* at_step = table + 2 * lanes * steps[i * at.ladders + g];
          const float value = values[i * at.ladders + g];
          for (std::size_t v = 0; v < vectors; ++v)
            sums[v] += read(at_step + v * vector_floats) + value * read(at_step + lanes + v * vector_floats);
        }
        for (std::size_t v = 0; v < vectors; ++v) write(hidden + i * row + j + v * vector_floats, rectified(sums[v]));
      }
    }
  }

  // Adds the slopes `back` (rows, row) of a block by step, those of the first block of a training step to nothing.
  void add(const float* back, std::size_t rows, bool first) {
    if (first) std::fill_n(slopes.get(), 2 * bins() * row, 0.0f);
    for (std::size_t j = 0; j < row; j += lanes) {
      float* sums = stripe(slopes, j);
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t g = 0; g < at.ladders; ++g) {
          float* at_step = sums + 2 * lanes * steps[i * at.ladders + g];
          const float value = values[i * at.ladders + g];
          for (std::size_t v = 0; v < lanes; v += vector_floats) {
            const Vector slope = read(back + i * row + j + v);
            write(at_step + v, read(at_step + v) + slope);
            write(at_step + lanes + v, read(at_step + lanes + v) + value * slope);
          }
        }
    }
  }

  // After the last block: the gradient by the weights of the ladders.
  void settle(float* gradient) const {
    for (std::size_t j = 0; at.ladders && j < row; j += lanes)
      for (std::size_t v = 0; v < lanes; v += vector_floats) {
        float* to = gradient + at.hidden[0] + plain() * row + j + v;
        const float* sums = stripe(slopes, j) + v;
        for (std::size_t g = 0; g < at.ladders; ++g) {
          const std::size_t first = at.ladder_at[g] - plain(), last = at.ladder_at[g + 1] - plain();
          Vector below{}, above{};
          for (std::size_t b = last; b-- > first;) {
            write(to + b * row, above);
            above += read(sums + 2 * b * lanes);
          }
          for (std::size_t b = first; b < last; ++b) {
            write(to + b * row, read(sums + (2 * b + 1) * lanes) + heights[g] * (read(to + b * row) - below));
            below += read(sums + 2 * b * lanes);
          }
        }
      }
  }
};

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
