// The two loops of the Walsh–Hadamard transform. A butterfly of level l replaces values i and i + 2^l (bit l of i
// clear) by their sum and difference; the transform of 2^n values is all butterflies of levels 0 … n − 1.
//
// Every value goes through the levels in ascending order on every variant and for every blocking, so all of them
// round alike and give the bits of the plain loop. Both kernels multiply what they store last by `scale`.
// Reference implementation: src/fewfire/fourier/_walsh.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

// Levels of one pass over far-apart rows: eight rows at distance 2^l share a cache set of eight ways, sixteen do not.
constexpr unsigned walsh_pass_levels = 3;

#define FEWFIRE_WALSH(T)                                                                                            \
  /* All levels of 2^levels values, depth first, so that every cache is used as deep as it goes; `from` may be `to`. */ \
  void walsh_block(const T* from, T* to, unsigned levels, T scale);                                                 \
  /* Levels low … low + levels − 1 (at most walsh_pass_levels) of columns first … last − 1: 2^levels rows at distance \
     2^low, walked side by side. */                                                                                 \
  void walsh_pass(T* data, unsigned low, unsigned levels, std::size_t first, std::size_t last, T scale);

FEWFIRE_DECLARE(FEWFIRE_WALSH(double) FEWFIRE_WALSH(float) FEWFIRE_WALSH(std::int32_t))

#undef FEWFIRE_WALSH

}  // namespace fewfire
