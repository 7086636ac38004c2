#include "kernels/bits.hpp"

#include <algorithm>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace fewfire::FEWFIRE_ISA {
namespace {

// 64 signs -> one word of their sign bits; clears `valid` when one of them is neither +1 nor −1.
std::uint64_t pack_word(const std::int8_t* signs, bool& valid) {
#if defined(__AVX512BW__)
  const __m512i v = _mm512_loadu_si512(signs);
  valid &= _mm512_cmpeq_epi8_mask(_mm512_abs_epi8(v), _mm512_set1_epi8(1)) == ~std::uint64_t{0};
  return _mm512_movepi8_mask(v);
#elif defined(__AVX2__)
  const __m256i lo = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(signs));
  const __m256i hi = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(signs + 32));
  const __m256i one = _mm256_set1_epi8(1);
  valid &= _mm256_movemask_epi8(_mm256_and_si256(_mm256_cmpeq_epi8(_mm256_abs_epi8(lo), one),
                                                 _mm256_cmpeq_epi8(_mm256_abs_epi8(hi), one))) == -1;
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(lo)) |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(hi))) << 32;
#else
  std::uint64_t word = 0;
  for (int j = 0; j < 64; ++j) {
    valid &= signs[j] == 1 || signs[j] == -1;
    word |= static_cast<std::uint64_t>(signs[j] < 0) << j;
  }
  return word;
#endif
}

std::uint64_t pack_tail(const std::int8_t* signs, std::size_t count, bool& valid) {
  std::int8_t padded[64];
  std::memset(padded, 1, sizeof padded);
  std::memcpy(padded, signs, count);
  return pack_word(padded, valid);
}

// In-place transpose of a 64 x 64 bit matrix: halves are swapped recursively.
void transpose64(std::uint64_t (&block)[64]) {
  std::uint64_t mask = 0x00000000FFFFFFFFull;
  for (int width = 32; width != 0; width >>= 1, mask ^= mask << width)
    for (int row = 0; row < 64; row = ((row | width) + 1) & ~width) {
      const std::uint64_t swap = ((block[row] >> width) ^ block[row | width]) & mask;
      block[row] ^= swap << width;
      block[row | width] ^= swap;
    }
}

}  // namespace

bool pack_rows(const std::int8_t* signs, std::size_t rows, std::size_t columns, std::size_t stride,
               std::uint64_t* words) {
  bool valid = true;
  const std::size_t full = columns / 64, rest = columns % 64;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::int8_t* row = signs + i * stride;
    for (std::size_t w = 0; w < full; ++w) *words++ = pack_word(row + 64 * w, valid);
    if (rest) *words++ = pack_tail(row + 64 * full, rest, valid);
  }
  return valid;
}

bool pack_columns(const std::int8_t* signs, std::size_t rows, std::size_t columns, std::size_t stride,
                  std::uint64_t* words) {
  bool valid = true;
  const std::size_t words_per_column = (rows + 63) / 64;
  for (std::size_t i = 0; i < rows; i += 64) {
    const std::size_t height = std::min<std::size_t>(64, rows - i);
    for (std::size_t j = 0; j < columns; j += 64) {
      const std::size_t width = std::min<std::size_t>(64, columns - j);
      std::uint64_t block[64] = {};
      for (std::size_t r = 0; r < height; ++r) {
        const std::int8_t* at = signs + (i + r) * stride + j;
        block[r] = width == 64 ? pack_word(at, valid) : pack_tail(at, width, valid);
      }
      transpose64(block);
      for (std::size_t c = 0; c < width; ++c) words[(j + c) * words_per_column + i / 64] = block[c];
    }
  }
  return valid;
}

void unpack_rows(const std::uint64_t* words, std::size_t rows, std::size_t columns, std::int8_t* signs) {
  const std::size_t words_per_row = (columns + 63) / 64;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      const std::uint64_t bit = words[i * words_per_row + j / 64] >> (j % 64) & 1;
      *signs++ = static_cast<std::int8_t>(1 - 2 * static_cast<int>(bit));
    }
}

}  // namespace fewfire::FEWFIRE_ISA
