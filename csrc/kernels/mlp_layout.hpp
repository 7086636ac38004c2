// Where the parameters of a multilayer network lie when they are packed for the kernels (core/mlp_layout.hpp packs them).
//
// The matrix of a hidden layer is transposed, (below, width); its rows, those of the other matrices and all vectors are
// filled up with zeros to whole vectors; what decays comes first. Zeros stay: a neuron without weights has the score 0,
// so no gradient.
//
// Ladders are inputs that come last, group after group: how far a value has come through the bins of its column. Of each
// group the first few are ladder_swing, the rest −ladder_swing, and one is in between, all times the gain of the column.
#pragma once

#include <cstddef>

namespace fewfire {

constexpr std::size_t most_layers = 3, packed_lanes = 16;
constexpr float ladder_swing = 0.25f;

struct MlpLayout {
  std::size_t inputs, fed, depth, outputs, frequencies;  // frequencies: of a periodic embedding, 0 without one
  bool skip;
  std::size_t below[most_layers], width[most_layers];  // of each hidden layer
  std::size_t row[most_layers], fed_row;                // widths and inputs filled up
  // Where each part begins in the packed vector.
  std::size_t hidden[most_layers], output, skipped, mix, decayed;
  std::size_t bias[most_layers], offset, frequency, phase, embedding_bias, size;
  std::size_t flat_size;
  std::size_t ladders;          // groups; 0 where inputs are any numbers
  const std::size_t* ladder_at;  // (ladders + 1,): inputs where each begins, and where the last ends
};

}  // namespace fewfire
