// Learned waves of every input of a network: v_ij = bias_j + Σ_k mix_jk · cos(2π·frequency_jk·x_ij + phase_jk).
//
// Rows are examples, j counts inputs, k waves. src/fewfire/learners/sparse_init/_passes.py holds the twins.
#pragma once

#include <cstddef>

#include "base/cpu.hpp"

namespace fewfire {

struct WaveSizes {
  std::size_t rows, inputs, waves;
};

// Arrays (inputs, waves), and `bias` (inputs,).
struct WaveParameters {
  const float *mix, *frequency, *phase, *bias;
};
struct WaveGradients {
  float *mix, *frequency, *phase, *bias;
};

FEWFIRE_DECLARE(
    // fed (rows, 2·inputs) = [x, v]; cosines and sines (rows, inputs, waves) are kept for the gradients.
    void wave_values(const float* x, WaveParameters waves, float* fed, float* cosines, float* sines, WaveSizes sizes);
    // Gradients of a loss whose derivative by v is back (rows, inputs).
    void wave_gradients(const float* x, const float* back, const float* cosines, const float* sines,
                        WaveParameters waves, WaveGradients gradients, WaveSizes sizes);)

}  // namespace fewfire
