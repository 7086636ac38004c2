// Whole epochs of one multilayer network, and its outputs: forward, backward and optimiser without leaving C++.
//
// Rows are taken from a table as they stand there: which, by their numbers, and each input multiplied by a gain. They
// pass in blocks that stay in cache from the first layer to the gradient. The reference is in src/fewfire/_dense:
// forward.py (Backprop), losses.py (TABLE_LOSSES) and optimisers.py (Descent.step).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"
#include "kernels/losses.hpp"
#include "kernels/mlp_layout.hpp"
#include "kernels/optimisers.hpp"

namespace fewfire {

// x (any number of rows, inputs), of which `chosen` (rows,) are taken; gains (inputs,).
struct MlpRows {
  const float *x, *gains;
  const std::int64_t* chosen;
  std::size_t rows;
};

// Of the same rows of the table.
struct MlpTargets {
  const float* target;  // (any number of rows, outputs)
  const float* weight;
  MlpLoss loss;
};

FEWFIRE_DECLARE(
    // One pass over the rows in their order, `batch` per step; returns the sum of the weighted losses before each step.
    double mlp_epoch(const MlpLayout& layout, float* packed, MlpRows rows, MlpTargets targets, MlpDescent descent,
                     std::size_t batch);
    // out (rows, outputs): the mean over networks whose packed parameters lie one after another. The outputs of a row
    // have the same bits whatever rows stand around it.
    void mlp_outputs(const MlpLayout& layout, const float* packed, std::size_t networks, MlpRows rows, double* out);)

}  // namespace fewfire
