// Periodic embeddings of the inputs of a network: v_ij = bias_j + Σ_k mix_jk · cos(2π·frequency_jk·x_ij + phase_jk).
//
// Rows are examples, j counts inputs, k frequencies. Reference implementations: src/fewfire/_dense/kernels.py.
#pragma once

#include <cstddef>

#include "base/cpu.hpp"

namespace fewfire {

// A row of `fed` begins `fed_row` numbers after the one before it, at least 2·inputs; one of `back` `back_row`.
struct PeriodicSizes {
  std::size_t rows, inputs, frequencies, fed_row, back_row;
};

// Arrays (inputs, frequencies), and `bias` (inputs,).
template <class T>
struct PeriodicParameters {
  const T *mix, *frequency, *phase, *bias;
};
struct PeriodicGradients {
  float *mix, *frequency, *phase, *bias;
};

FEWFIRE_DECLARE(
    // fed (rows, 2·inputs) = [x, v]; cosines and sines (rows, inputs, frequencies) are kept for the gradients.
    void periodic_values(const float* x, PeriodicParameters<float> parameters, float* fed, float* cosines,
                         float* sines, PeriodicSizes sizes);
    // The same in float64 for prediction, where nothing is kept.
    void periodic_outputs(const double* x, PeriodicParameters<double> parameters, double* fed, PeriodicSizes sizes);
    // Gradients of a loss whose derivative by v is back (rows, inputs): sums over rows that begin with 0 and may be
    // added to block by block, then the factors that all rows share.
    void periodic_sums(const float* x, const float* back, const float* cosines, const float* sines,
                       PeriodicGradients gradients, PeriodicSizes sizes);
    void periodic_factors(PeriodicParameters<float> parameters, PeriodicGradients gradients, PeriodicSizes sizes);)

}  // namespace fewfire
