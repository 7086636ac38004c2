#include "core/mlp_layout.hpp"

#include <algorithm>

namespace fewfire {
namespace {

std::size_t filled(std::size_t count) { return (count + packed_lanes - 1) / packed_lanes * packed_lanes; }

// Calls visit(flat place, packed place, rows, columns, packed row, transposed) for each part in the order of the flat
// vector; a transposed part is (columns, rows) when packed.
template <class Visit>
void each_part(const MlpLayout& at, const Visit& visit) {
  std::size_t flat = 0;
  const auto part = [&](std::size_t packed, std::size_t rows, std::size_t columns, std::size_t row, bool transposed) {
    visit(flat, packed, rows, columns, row, transposed);
    flat += rows * columns;
  };
  const std::size_t waves = at.inputs * at.frequencies;
  for (std::size_t l = 0; l < at.depth; ++l) part(at.hidden[l], at.width[l], at.below[l], at.row[l], true);
  part(at.output, at.outputs, at.width[at.depth - 1], at.row[at.depth - 1], false);
  if (at.skip) part(at.skipped, at.outputs, at.fed, at.fed_row, false);
  if (waves) part(at.mix, 1, waves, waves, false);
  for (std::size_t l = 0; l < at.depth; ++l) part(at.bias[l], 1, at.width[l], at.row[l], false);
  part(at.offset, 1, at.outputs, at.outputs, false);
  if (waves) {
    part(at.frequency, 1, waves, waves, false);
    part(at.phase, 1, waves, waves, false);
    part(at.embedding_bias, 1, at.inputs, at.inputs, false);
  }
}

}  // namespace

MlpLayout layout_of(std::size_t inputs, const std::size_t* widths, std::size_t depth, std::size_t outputs, bool skip,
                    std::size_t frequencies) {
  MlpLayout at{};
  at.inputs = inputs;
  at.fed = frequencies ? 2 * inputs : inputs;
  at.fed_row = filled(at.fed);
  at.depth = depth;
  at.outputs = outputs;
  at.frequencies = frequencies;
  at.skip = skip;
  std::size_t next = 0;
  const auto place = [&](std::size_t count) {
    const std::size_t here = next;
    next += filled(count);
    return here;
  };
  const std::size_t waves = inputs * frequencies;
  for (std::size_t l = 0; l < depth; ++l) {
    at.below[l] = l ? widths[l - 1] : at.fed;
    at.width[l] = widths[l];
    at.row[l] = filled(widths[l]);
    at.hidden[l] = place(at.below[l] * at.row[l]);
  }
  at.output = place(outputs * at.row[depth - 1]);
  at.skipped = place(skip ? outputs * at.fed_row : 0);
  at.mix = place(waves);
  at.decayed = next;
  for (std::size_t l = 0; l < depth; ++l) at.bias[l] = place(widths[l]);
  at.offset = place(outputs);
  at.frequency = place(waves);
  at.phase = place(waves);
  at.embedding_bias = place(frequencies ? inputs : 0);
  at.size = next;
  each_part(at, [&](std::size_t flat, std::size_t, std::size_t rows, std::size_t columns, std::size_t, bool) {
    at.flat_size = flat + rows * columns;
  });
  return at;
}

void pack(const MlpLayout& layout, const float* flat, float* packed) {
  std::fill_n(packed, layout.size, 0.0f);
  each_part(layout, [&](std::size_t from, std::size_t to, std::size_t rows, std::size_t columns, std::size_t row,
                        bool transposed) {
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        packed[to + (transposed ? j * row + i : i * row + j)] = flat[from + i * columns + j];
  });
}

void unpack(const MlpLayout& layout, const float* packed, float* flat) {
  each_part(layout, [&](std::size_t to, std::size_t from, std::size_t rows, std::size_t columns, std::size_t row,
                        bool transposed) {
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        flat[to + i * columns + j] = packed[from + (transposed ? j * row + i : i * row + j)];
  });
}

}  // namespace fewfire
