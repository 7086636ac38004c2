// Sums of real labels over sets: one masked addition a vector and set. Part of estimate.cpp.
#pragma once

#include <cstring>

#include "kernels/vectors.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// Columns whose sums are taken side by side.
constexpr std::size_t real_tile = 4;

// Eight partial sums whatever the vector width, so that every variant adds in the same order.
constexpr std::size_t lanes = 8;

double fold(const double (&sums)[lanes]) {
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

double total(const double* values, std::size_t count) {
  double sums[lanes] = {};
  for (std::size_t i = 0; i < count; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += values[i + lane];
  return fold(sums);
}

#if !defined(__AVX512F__)
constexpr std::size_t width = vector_bytes / sizeof(double);

// All bits of every lane whose bit of the index is set. A constant: nothing of this variant may run before it is chosen.
struct LaneMasks {
  alignas(vector_bytes) std::uint64_t lanes_of[1u << width][width];
  constexpr LaneMasks() : lanes_of{} {
    for (std::size_t index = 0; index < 1u << width; ++index)
      for (std::size_t lane = 0; lane < width; ++lane) lanes_of[index][lane] = index >> lane & 1 ? ~std::uint64_t{0} : 0;
  }
};
constexpr LaneMasks lane_masks;
#endif

// sums[c] = Σ over the set bits of column c of the signed labels.
template <std::size_t count>
void masked_sums(const double* prefix, const std::uint64_t* columns, std::size_t words, double* sums) {
#if defined(__AVX512F__)
  __m512d partial[count];
  for (std::size_t c = 0; c < count; ++c) partial[c] = _mm512_setzero_pd();
  // Byte t of a column holds the bits of samples 8t … 8t + 7 and is itself the mask of their vector.
  const auto* masks = reinterpret_cast<const unsigned char*>(columns);
  for (std::size_t t = 0; t < 8 * words; ++t) {
    const __m512d shared = _mm512_load_pd(prefix + lanes * t);
    for (std::size_t c = 0; c < count; ++c) {
      const __mmask8 mask = _cvtu32_mask8(masks[8 * c * words + t]);
      partial[c] = _mm512_mask_add_pd(partial[c], mask, partial[c], shared);
    }
  }
  for (std::size_t c = 0; c < count; ++c) {
    double lane_sums[lanes];
    _mm512_storeu_pd(lane_sums, partial[c]);
    sums[c] = fold(lane_sums);
  }
#else
  constexpr std::size_t parts = lanes / width;
  Reals partial[count][parts] = {};
  for (std::size_t w = 0; w < words; ++w)
    for (std::size_t byte = 0; byte < 8; ++byte) {
      const auto* shared = reinterpret_cast<const Words*>(prefix + 64 * w + lanes * byte);
      for (std::size_t c = 0; c < count; ++c) {
        const std::uint64_t bits = columns[c * words + w] >> (8 * byte);
        for (std::size_t p = 0; p < parts; ++p) {
          // A clear bit adds +0.0, which changes no partial sum: they start at +0.0.
          const auto& mask = lane_masks.lanes_of[bits >> (p * width) & ((1u << width) - 1)];
          partial[c][p] += reinterpret_cast<Reals>(*reinterpret_cast<const Words*>(mask) & shared[p]);
        }
      }
    }
  for (std::size_t c = 0; c < count; ++c) {
    double lane_sums[lanes];
    std::memcpy(lane_sums, partial[c], sizeof lane_sums);
    sums[c] = fold(lane_sums);
  }
#endif
}

struct RealLabels {
  using Value = double;
  static std::size_t block_words(std::size_t) { return 16; }
  static std::size_t values(std::size_t words) { return 64 * words; }
  static std::size_t padded(std::size_t words) { return words; }

  static void times_column(const Value* labels, const std::uint64_t* column, std::size_t words, Value* product) {
    for (std::size_t w = 0; w < words; ++w)
      for (std::size_t i = 0; i < 64; ++i) {
        const std::uint64_t sign = (column[w] >> i) << 63;
        std::uint64_t bits;
        std::memcpy(&bits, labels + 64 * w + i, sizeof bits);
        bits ^= sign;
        std::memcpy(product + 64 * w + i, &bits, sizeof bits);
      }
  }
  // Σ ±z = Σ z − 2 Σ over the set bits.
  static void add_row(const Value* prefix, const std::uint64_t* columns, std::size_t count, std::size_t words,
                      double* out) {
    const double all = total(prefix, values(words));
    double sums[real_tile];
    std::size_t c = 0;
    for (; c + real_tile <= count; c += real_tile) {
      masked_sums<real_tile>(prefix, columns + c * words, words, sums);
      for (std::size_t t = 0; t < real_tile; ++t) out[c + t] += all - 2.0 * sums[t];
    }
    for (; c < count; ++c) {
      masked_sums<1>(prefix, columns + c * words, words, sums);
      out[c] += all - 2.0 * sums[0];
    }
  }
  static void add_total(const Value* labels, std::size_t words, double* out) { *out += total(labels, values(words)); }
};

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
