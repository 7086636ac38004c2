#include "kernels/mlp_training.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/ladders-inl.hpp"
#include "kernels/mlp.hpp"
#include "kernels/periodic.hpp"
#include "kernels/products-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

constexpr std::size_t ahead = 8;  // rows that are prefetched before they are needed
constexpr std::size_t block_rows = 96;  // of a batch: what a block needs in between fits into the second cache

// The layers' values for one block of rows.
struct Layers {
  const MlpLayout& at;
  Buffer<float> x, fed, hidden[most_layers], cosines, sines, values;
  Ladders ladders;

  explicit Layers(const MlpLayout& layout)
      : at(layout),
        fed(aligned<float>(block_rows * layout.fed_row)),
        values(aligned<float>(block_rows * layout.outputs)),
        ladders(layout, block_rows) {
    std::fill_n(fed.get(), block_rows * at.fed_row, 0.0f);
    for (std::size_t l = 0; l < at.depth; ++l) hidden[l] = aligned<float>(block_rows * at.row[l]);
    if (!at.frequencies) return;
    x = aligned<float>(block_rows * at.inputs);
    cosines = aligned<float>(block_rows * at.inputs * at.frequencies);
    sines = aligned<float>(block_rows * at.inputs * at.frequencies);
  }

  PeriodicSizes waves(std::size_t rows, std::size_t back_row = 0) const {
    return {rows, at.inputs, at.frequencies, at.fed_row, back_row};
  }

  PeriodicParameters<float> embedding(const float* packed) const {
    return {packed + at.mix, packed + at.frequency, packed + at.phase, packed + at.embedding_bias};
  }

  // Prefetches a row of the table: the hardware cannot predict a random order of rows.
  void fetch(const float* row) const {
    for (std::size_t j = 0; j < at.inputs; j += 16) __builtin_prefetch(row + j);
  }

  // Fills in the inputs of `count` rows from number `start` on.
  void take(const MlpRows& rows, std::size_t start, std::size_t count) {
    float* to = at.frequencies ? x.get() : fed.get();
    const std::size_t to_row = at.frequencies ? at.inputs : at.fed_row;
    for (std::size_t i = 0; i < count; ++i) {
      const float* row = rows.x + static_cast<std::size_t>(rows.chosen[start + i]) * at.inputs;
      if (start + i + ahead < rows.rows) fetch(rows.x + static_cast<std::size_t>(rows.chosen[start + i + ahead]) * at.inputs);
      for (std::size_t j = 0; j < at.inputs; ++j) to[i * to_row + j] = row[j] * rows.gains[j];
      if (at.ladders) ladders.take(row, to + i * to_row, i);
    }
  }

  // From the inputs to `values`, all layers kept.
  void forward(const float* packed, std::size_t rows) {
    if (at.frequencies)
      periodic_values(x.get(), embedding(packed), fed.get(), cosines.get(), sines.get(), waves(rows));
    const float* below = fed.get();
    std::size_t below_row = at.fed_row;
    std::size_t l = 0;
    if (at.ladders) {
      ladders.forward(packed, fed.get(), rows, hidden[0].get());
      below = hidden[0].get();
      below_row = at.row[l++];
    }
    for (; l < at.depth; ++l) {
      product<Start::rectified>(rows, at.row[l], at.below[l], {below, below_row, 1}, packed + at.hidden[l],
                                   at.row[l], hidden[l].get(), at.row[l], packed + at.bias[l]);
      below = hidden[l].get();
      below_row = at.row[l];
    }
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t o = 0; o < at.outputs; ++o) {
        float value = packed[at.offset + o] + inner(below + i * below_row, packed + at.output + o * below_row, below_row);
        if (at.skip) value += inner(fed.get() + i * at.fed_row, packed + at.skipped + o * at.fed_row, at.fed_row);
        values[i * at.outputs + o] = value;
      }
  }

};

// D ← D where H > 0, else 0; sums_j += Σ_i D_ij.
void back_through_relu(float* __restrict back, const float* __restrict hidden, float* __restrict sums,
                       std::size_t rows, std::size_t row) {
  for (std::size_t j = 0; j < row; j += vector_floats) {
    Vector sum = read(sums + j);
    for (std::size_t i = 0; i < rows; ++i) {
      const Vector kept = read(hidden + i * row + j) > 0 ? read(back + i * row + j) : Vector{};
      write(back + i * row + j, kept);
      sum += kept;
    }
    write(sums + j, sum);
  }
}

// The gradient of one step, added up block by block.
struct Gradient {
  const MlpLayout& at;
  const std::size_t beside_row;  // of the slopes by what an embedding shows, filled up
  Buffer<float> sums, back[most_layers], upright[most_layers], slopes;

  explicit Gradient(const MlpLayout& layout)
      : at(layout),
        beside_row((layout.inputs + packed_lanes - 1) / packed_lanes * packed_lanes),
        sums(aligned<float>(layout.size)) {
    std::fill_n(sums.get(), at.size, 0.0f);
    for (std::size_t l = 0; l < at.depth; ++l) {
      back[l] = aligned<float>(block_rows * at.row[l]);
      if (l) upright[l] = zeros(at.width[l] * at.row[l - 1]);
    }
    if (!at.frequencies) return;
    upright[0] = zeros(at.width[0] * beside_row);
    slopes = aligned<float>(block_rows * beside_row);
  }

  static Buffer<float> zeros(std::size_t count) {
    Buffer<float> buffer = aligned<float>(count);
    std::fill_n(buffer.get(), count, 0.0f);
    return buffer;
  }

  PeriodicGradients waves() {
    float* g = sums.get();
    return {g + at.mix, g + at.frequency, g + at.phase, g + at.embedding_bias};
  }

  // Before a step: the matrices as (width, below), in which products go back.
  void begin(const float* packed) {
    std::fill_n(sums.get() + at.mix, at.size - at.mix, 0.0f);  // the rest is overwritten by the first block
    for (std::size_t l = 1; l < at.depth; ++l)
      transpose(packed + at.hidden[l], at.row[l], at.below[l], at.width[l], upright[l].get(), at.row[l - 1]);
    if (at.frequencies)
      transpose(packed + at.hidden[0] + at.inputs * at.row[0], at.row[0], at.inputs, at.width[0], upright[0].get(),
                beside_row);
  }

  // `errors` (rows, outputs): derivatives of the loss by the outputs.
  template <Start start>
  void add(const float* packed, Layers& layers, const float* errors, std::size_t rows) {
    float* g = sums.get();
    const std::size_t outputs = at.outputs, last = at.depth - 1;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t o = 0; o < outputs; ++o) g[at.offset + o] += errors[i * outputs + o];
    if (at.skip)
      product<start>(outputs, at.fed_row, rows, {errors, 1, outputs}, layers.fed.get(), at.fed_row,
                            g + at.skipped, at.fed_row);
    product<start>(outputs, at.row[last], rows, {errors, 1, outputs}, layers.hidden[last].get(), at.row[last],
                          g + at.output, at.row[last]);
    product<Start::zero>(rows, at.row[last], outputs, {errors, outputs, 1}, packed + at.output, at.row[last],
                                back[last].get(), at.row[last]);
    for (std::size_t l = last;; --l) {
      back_through_relu(back[l].get(), layers.hidden[l].get(), g + at.bias[l], rows, at.row[l]);
      const Strided below =
          l ? Strided{layers.hidden[l - 1].get(), 1, at.row[l - 1]} : Strided{layers.fed.get(), 1, at.fed_row};
      const std::size_t dense = l == 0 && at.ladders ? at.ladder_at[0] : at.below[l];
      product<start>(dense, at.row[l], rows, below, back[l].get(), at.row[l], g + at.hidden[l], at.row[l]);
      if (!l) break;
      product<Start::zero>(rows, at.row[l - 1], at.width[l], {back[l].get(), at.row[l], 1}, upright[l].get(),
                                  at.row[l - 1], back[l - 1].get(), at.row[l - 1]);
    }
    if (at.frequencies) add_waves(packed, layers, errors, rows);
    if (at.ladders) layers.ladders.add(back[0].get(), rows, start == Start::zero);
  }

  void add_waves(const float* packed, const Layers& layers, const float* errors, std::size_t rows) {
    product<Start::zero>(rows, beside_row, at.width[0], {back[0].get(), at.row[0], 1}, upright[0].get(),
                                beside_row, slopes.get(), beside_row);
    if (at.skip)
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t o = 0; o < at.outputs; ++o) {
          const float* beside = packed + at.skipped + o * at.fed_row + at.inputs;
          for (std::size_t j = 0; j < at.inputs; ++j)
            slopes[i * beside_row + j] += errors[i * at.outputs + o] * beside[j];
        }
    periodic_sums(layers.x.get(), slopes.get(), layers.cosines.get(), layers.sines.get(), waves(),
                  layers.waves(rows, beside_row));
  }
};

}  // namespace

double mlp_epoch(const MlpLayout& layout, float* packed, MlpRows rows, MlpTargets targets, MlpDescent descent,
                 std::size_t batch) {
  Layers layers(layout);
  Gradient gradient(layout);
  layers.ladders.scale(rows.gains);
  double total = 0;
  for (std::size_t start = 0; start < rows.rows; start += batch) {
    const std::size_t size = std::min(batch, rows.rows - start);
    gradient.begin(packed);
    layers.ladders.begin(packed);
    for (std::size_t block = 0; block < size; block += block_rows) {
      const std::size_t count = std::min(block_rows, size - block);
      layers.take(rows, start + block, count);
      layers.forward(packed, count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto row = static_cast<std::size_t>(rows.chosen[start + block + i]);
        float* errors = layers.values.get() + i * layout.outputs;
        const float weight = targets.weight[row];
        total += weight * loss_of(targets.loss, errors, targets.target + row * layout.outputs, layout.outputs);
        for (std::size_t o = 0; o < layout.outputs; ++o) errors[o] *= weight / static_cast<float>(size);
      }
      if (block)
        gradient.add<Start::added>(packed, layers, layers.values.get(), count);
      else
        gradient.add<Start::zero>(packed, layers, layers.values.get(), count);
    }
    layers.ladders.settle(gradient.sums.get());
    if (layout.frequencies) periodic_factors(layers.embedding(packed), gradient.waves(), layers.waves(0));
    descend(layout, packed, gradient.sums.get(), descent, ++descent.steps);
  }
  return total;
}

void mlp_outputs(const MlpLayout& layout, const float* packed, std::size_t networks, MlpRows rows, double* out) {
  Layers layers(layout);
  layers.ladders.scale(rows.gains);
  std::fill_n(out, rows.rows * layout.outputs, 0.0);
  for (std::size_t n = 0; n < networks; ++n, packed += layout.size) {
    layers.ladders.begin(packed);
    for (std::size_t start = 0; start < rows.rows; start += block_rows) {
      const std::size_t count = std::min(block_rows, rows.rows - start);
      layers.take(rows, start, count);
      layers.forward(packed, count);
      double* to = out + start * layout.outputs;
      for (std::size_t e = 0; e < count * layout.outputs; ++e) to[e] += layers.values[e];
    }
  }
  for (std::size_t e = 0; e < rows.rows * layout.outputs; ++e) out[e] /= static_cast<double>(networks);
}

}  // namespace fewfire::FEWFIRE_ISA
