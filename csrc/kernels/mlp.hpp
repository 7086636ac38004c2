// What a multilayer network does between its matrix products, each in one pass over its arrays.
//
// Rows are examples, columns are neurons. Reference implementations: src/fewfire/_dense/kernels.py.
#pragma once

#include <cstddef>

#include "base/cpu.hpp"

namespace fewfire {

// h ← β₁h + (1 − β₁)g;  v ← β₂v + (1 − β₂)g²;  θ ← (1 − decay)·θ − rate·h / (√v + tiny).
// The caller folds the corrections of the two means for their zero start into `rate` and `tiny`.
struct AdamRule {
  float rate, decay, beta1, beta2, tiny;
};

FEWFIRE_DECLARE(
    void adamw_step(float* parameters, const float* gradient, float* mean, float* square, std::size_t count,
                    AdamRule rule);
    // H ← max(H + bias, 0); in float64 for prediction.
    void bias_relu(float* hidden, const float* bias, std::size_t rows, std::size_t width);
    void bias_relu(double* hidden, const double* bias, std::size_t rows, std::size_t width);
    // D ← D·1[H > 0];  bias_gradient_j = Σ_i D_ij.
    void relu_backward(float* back, const float* hidden, float* bias_gradient, std::size_t rows, std::size_t width);
    // The same for D_ij = errors_i · output_j, the backward product of a network with one output.
    void outer_relu_backward(const float* errors, const float* output, const float* hidden, float* back,
                             float* bias_gradient, std::size_t rows, std::size_t width);)

}  // namespace fewfire
