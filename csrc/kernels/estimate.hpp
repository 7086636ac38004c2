// Empirical Fourier coefficients Σ_i y_i χ_S(x_i) of all sets S of one size, from bit-packed columns.
//
// Sets of one size are ordered lexicographically; `first` and `last` are ranks in that order. Sets that share all
// members but the last are neighbours, so the labels times χ of the shared part (the prefix) are formed once, and
// each set costs one XOR and one popcount per word (±1 labels) or one masked addition per vector (real labels).
// Reference implementation: src/fewfire/fourier/_estimate.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

// n bit columns of `words` words each; bits past the last sample are clear.
struct BitColumns {
  const std::uint64_t* data;
  std::size_t n, words;
};

FEWFIRE_DECLARE(
    // out[r − first] = Σ_i y_i χ_S(x_i), S of rank r, labels as bits (set: −1). Integers, so exact.
    void estimate_signs(BitColumns columns, const std::uint64_t* labels, std::size_t samples, std::size_t size,
                        std::uint64_t first, std::uint64_t last, double* out);
    // The same for real labels, summed in blocks of 1024 samples, eight partial sums per block, on every variant.
    void estimate_reals(BitColumns columns, const double* labels, std::size_t samples, std::size_t size,
                        std::uint64_t first, std::uint64_t last, double* out);)

}  // namespace fewfire
