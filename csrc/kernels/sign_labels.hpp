// Sums of ±1 labels over sets: one XOR and one popcount a word and set. Part of estimate.cpp.
#pragma once

#include <cstring>

#include "kernels/vectors.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// Columns whose sums are taken side by side: they share the loads of the prefix and hide the latency of the sums.
constexpr std::size_t sign_tile = 4;

#if defined(__AVX512VPOPCNTDQ__)

constexpr std::size_t group_words = vector_words;

// out[c] += number of set bits of prefix XOR column c, for `count` columns.
template <std::size_t count>
void add_bits(const std::uint64_t* prefix, const std::uint64_t* columns, std::size_t words, double* out) {
  __m512i sums[count];
  for (std::size_t c = 0; c < count; ++c) sums[c] = _mm512_setzero_si512();
  for (std::size_t w = 0; w < words; w += vector_words) {
    const __m512i shared = _mm512_load_si512(prefix + w);
    for (std::size_t c = 0; c < count; ++c)
      sums[c] = _mm512_add_epi64(
          sums[c], _mm512_popcnt_epi64(_mm512_xor_si512(shared, _mm512_load_si512(columns + c * words + w))));
  }
  for (std::size_t c = 0; c < count; ++c) out[c] += static_cast<double>(_mm512_reduce_add_epi64(sums[c]));
}

#else

constexpr std::size_t group_words = 8 * vector_words;

Words byte_counts(Words bits) {
  bits -= (bits >> 1) & 0x5555555555555555ull;
  bits = (bits & 0x3333333333333333ull) + ((bits >> 2) & 0x3333333333333333ull);
  return (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0Full;
}

Words word_counts(Words bits) {
  Words counts = byte_counts(bits);
  counts = (counts & 0x00FF00FF00FF00FFull) + ((counts >> 8) & 0x00FF00FF00FF00FFull);
  counts += counts >> 32;
  return (counts + (counts >> 16)) & 0xFFFFull;
}

// Three bit planes to two: a + b + c = 2·carry + sum in every bit position.
void carry_save(Words a, Words b, Words c, Words& carry, Words& sum) {
  const Words half = a ^ b;
  carry = (a & b) | (half & c);
  sum = half ^ c;
}

// Eight vectors at a time through a tree of carry-save adders, so that one vector in eight is counted bit by bit.
template <std::size_t count>
void add_bits(const std::uint64_t* prefix, const std::uint64_t* columns, std::size_t words, double* out) {
  for (std::size_t c = 0; c < count; ++c) {
    const auto* shared = reinterpret_cast<const Words*>(prefix);
    const auto* column = reinterpret_cast<const Words*>(columns + c * words);
    Words ones{}, twos{}, fours{}, eights_counted{};
    for (std::size_t v = 0; v < words / vector_words; v += 8) {
      const auto at = [&](std::size_t i) { return shared[v + i] ^ column[v + i]; };
      Words two_a, two_b, four_a, four_b, eight;
      carry_save(ones, at(0), at(1), two_a, ones);
      carry_save(ones, at(2), at(3), two_b, ones);
      carry_save(twos, two_a, two_b, four_a, twos);
      carry_save(ones, at(4), at(5), two_a, ones);
      carry_save(ones, at(6), at(7), two_b, ones);
      carry_save(twos, two_a, two_b, four_b, twos);
      carry_save(fours, four_a, four_b, eight, fours);
      eights_counted += word_counts(eight);
    }
    const Words total = 8 * eights_counted + 4 * word_counts(fours) + 2 * word_counts(twos) + word_counts(ones);
    std::uint64_t sum = 0;
    for (std::size_t lane = 0; lane < vector_words; ++lane) sum += total[lane];
    out[c] += static_cast<double>(sum);
  }
}

#endif

struct SignLabels {
  using Value = std::uint64_t;
  // Words of a block: many enough that the horizontal sums are few, few enough that the columns stay in L2.
  static std::size_t block_words(std::size_t n) {
    const std::size_t fit = (std::size_t{1} << 18) / (8 * n) / group_words * group_words;
    return std::clamp(fit, std::max<std::size_t>(group_words, 32), std::size_t{1024});
  }
  static std::size_t values(std::size_t words) { return words; }
  static std::size_t padded(std::size_t words) { return (words + group_words - 1) / group_words * group_words; }

  static void times_column(const Value* labels, const std::uint64_t* column, std::size_t words, Value* product) {
    for (std::size_t w = 0; w < words; ++w) product[w] = labels[w] ^ column[w];
  }
  static void add_row(const Value* prefix, const std::uint64_t* columns, std::size_t count, std::size_t words,
                      double* out) {
    std::size_t c = 0;
    for (; c + sign_tile <= count; c += sign_tile) add_bits<sign_tile>(prefix, columns + c * words, words, out + c);
    for (; c < count; ++c) add_bits<1>(prefix, columns + c * words, words, out + c);
  }
  // The empty set: XOR with an all-clear column.
  static void add_total(const Value* labels, std::size_t words, double* out) {
    const Buffer<std::uint64_t> clear = aligned<std::uint64_t>(words);
    std::memset(clear.get(), 0, words * sizeof(std::uint64_t));
    add_bits<1>(labels, clear.get(), words, out);
  }
};

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
