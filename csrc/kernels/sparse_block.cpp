#include "kernels/sparse_block.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/lanes-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

constexpr std::size_t vectors = group_neurons / lane_count;

// Sixteen sums of products of codes. At most `tile_rows` rows are taken together, and with so many of them `tile_vectors`
// vectors of neurons: as many as keep their sums in registers. `code_offset` is what codes have too much when multiplied.
#if defined(__AVX512VNNI__)
constexpr std::size_t tile_rows = 3;
constexpr std::size_t tile_vectors(std::size_t) { return 4; }
constexpr std::int32_t code_offset = 128;
using Sums = __m512i;
using Codes = __m512i;
using Word = __m512i;
inline Sums start(std::int32_t value) { return _mm512_set1_epi32(value); }
inline Codes load_codes(const std::uint8_t* at) { return _mm512_load_si512(at); }
inline Word load_word(const std::int8_t* at) {
  std::int32_t word;
  std::memcpy(&word, at, 4);
  return _mm512_set1_epi32(word);
}
// Written as assembly because GCC 12 copies the sums of its intrinsic to memory and back in each step.
inline Sums add_products(Sums sums, Codes codes, Word word) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(codes), "v"(word));
  return sums;
}
inline Lanes to_real(const Sums& sums) { return {_mm512_cvtepi32_ps(sums)}; }
#elif defined(__AVX2__)
constexpr std::size_t tile_rows = 2;
constexpr std::size_t tile_vectors(std::size_t rows) { return 2 / rows; }
constexpr std::int32_t code_offset = 0;
struct Sums {
  __m256i low, high;
};
struct Codes {
  __m256i low, high;
};
using Word = __m256i;
inline Sums start(std::int32_t value) { return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)}; }
inline Codes load_codes(const std::uint8_t* at) {
  const __m256i shift = _mm256_set1_epi8(-128);
  return {_mm256_xor_si256(_mm256_load_si256(reinterpret_cast<const __m256i*>(at)), shift),
          _mm256_xor_si256(_mm256_load_si256(reinterpret_cast<const __m256i*>(at + 32)), shift)};
}
inline Word load_word(const std::int8_t* at) {
  std::int32_t word;
  std::memcpy(&word, at, 4);
  return _mm256_set1_epi32(word);
}
// Sums of two products |c|·(±x), at most 2·127·127, do not saturate 16 bits; this is why no part of a code is −128.
inline __m256i add_products(__m256i sums, __m256i codes, __m256i word) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(word, codes));
  return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline Sums add_products(const Sums& sums, const Codes& codes, Word word) {
  return {add_products(sums.low, codes.low, word), add_products(sums.high, codes.high, word)};
}
inline Lanes to_real(const Sums& sums) { return {_mm256_cvtepi32_ps(sums.low), _mm256_cvtepi32_ps(sums.high)}; }
#else
constexpr std::size_t tile_rows = 3;
constexpr std::size_t tile_vectors(std::size_t) { return 1; }
constexpr std::int32_t code_offset = 128;
struct Sums {
  std::int32_t v[lane_count];
};
using Codes = const std::uint8_t*;
using Word = const std::int8_t*;
inline Sums start(std::int32_t value) {
  Sums out;
  for (std::int32_t& sum : out.v) sum = value;
  return out;
}
inline Codes load_codes(const std::uint8_t* at) { return at; }
inline Word load_word(const std::int8_t* at) { return at; }
inline Sums add_products(Sums sums, Codes codes, Word word) {
  for (std::size_t i = 0; i < lane_count; ++i)
    sums.v[i] += codes[4 * i] * word[0] + codes[4 * i + 1] * word[1] + codes[4 * i + 2] * word[2] +
                 codes[4 * i + 3] * word[3];
  return sums;
}
inline Lanes to_real(const Sums& sums) {
  float values[lane_count];
  for (std::size_t i = 0; i < lane_count; ++i) values[i] = static_cast<float>(sums.v[i]);
  return load(values);
}
#endif

// How many bytes ahead codes are prefetched, where they are read once and the kernel is bound by memory.
constexpr std::size_t ahead = 4096;

// Prefetches memory that will be read soon, some cache lines in each step.
class Asking {
 public:
  Asking(const WantedBytes* wanted, std::size_t count, std::size_t steps) : at_(wanted), end_(wanted + count) {
    std::size_t lines = 0;
    for (const WantedBytes* one = wanted; one < end_; ++one) lines += one->bytes / 64 + 1;
    per_step_ = (lines + steps - 1) / steps;
  }
  void step() {
    for (std::size_t n = 0; n < per_step_ && at_ < end_; ++n) {
      __builtin_prefetch(at_->at + done_, 0, 2);
      done_ += 64;
      if (done_ >= at_->bytes) ++at_, done_ = 0;
    }
  }

 private:
  const WantedBytes *at_, *end_;
  std::size_t done_ = 0, per_step_;
};

template <std::size_t Rows>
void screen_vectors(const NeuronGroup& group, std::size_t first, std::size_t quads, const CodedRow* rows,
                    const float* thresholds, Asking& asking, std::uint64_t* open, float* approximate) {
  constexpr std::size_t together = tile_vectors(Rows);
  // Unrolled by hand: an index known only at run time would keep the sums in memory.
  Sums highs[Rows][together], lows[Rows][together];
#pragma GCC unroll 3
  for (std::size_t q = 0; q < Rows; ++q) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < together; ++v) {
      highs[q][v] = start(-code_offset * rows[q].high_sum);
      lows[q][v] = start(-code_offset * rows[q].low_sum);
    }
  }
  for (std::size_t k = 0; k < quads; ++k) {
    const std::uint8_t* at = group.codes + (k * vectors + first) * 4 * lane_count;
    asking.step();
    Codes codes[together];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < together; ++v) {
      if constexpr (Rows == 1) __builtin_prefetch(at + ahead + v * 4 * lane_count);
      codes[v] = load_codes(at + v * 4 * lane_count);
    }
#pragma GCC unroll 3
    for (std::size_t q = 0; q < Rows; ++q) {
      const Word high = load_word(rows[q].high + 4 * k), low = load_word(rows[q].low + 4 * k);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < together; ++v) highs[q][v] = add_products(highs[q][v], codes[v], high);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < together; ++v) lows[q][v] = add_products(lows[q][v], codes[v], low);
    }
  }
#pragma GCC unroll 3
  for (std::size_t q = 0; q < Rows; ++q) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < together; ++v) {
      const std::size_t at = (first + v) * lane_count;
      const Lanes product = fma(to_real(highs[q][v]), fill(code_parts), to_real(lows[q][v]));
      // The step first: no product but the last may leave the range in which numbers round relatively.
      const Lanes score = fma(product * fill(rows[q].step), load(group.scales + at), load(group.offsets + at));
      store(approximate + q * group_neurons + at, score);
      const Lanes error = fma(load(group.error + at), fill(rows[q].norm), load(group.coded + at) * fill(rows[q].lost));
      open[q] |= std::uint64_t{not_at_most(score + error, fill(thresholds[q]))} << at;
    }
  }
}

template <std::size_t Rows>
void screen_tile(const NeuronGroup& group, std::size_t quads, const CodedRow* rows, const float* thresholds,
                 Asking& asking, std::uint64_t* open, float* approximate) {
  for (std::size_t q = 0; q < Rows; ++q) open[q] = 0;
  for (std::size_t first = 0; first < vectors; first += tile_vectors(Rows))
    screen_vectors<Rows>(group, first, quads, rows, thresholds, asking, open, approximate);
}

}  // namespace

void code_row(const float* row, std::size_t inputs, std::int8_t* high, std::int8_t* low, CodedRow& coded) {
  const std::size_t padded = coded_inputs(inputs);
  float largest_of[lane_count] = {}, squares_of[lane_count] = {};
  const auto look = [&](const float* at, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const float size = std::fabs(at[i]);
      largest_of[i] = size > largest_of[i] ? size : largest_of[i];
      squares_of[i] += at[i] * at[i];
    }
  };
  std::size_t j = 0;
  for (; j + lane_count <= inputs; j += lane_count) look(row + j, lane_count);
  look(row + j, inputs - j);
  float largest = 0, squares = 0;
  for (std::size_t i = 0; i < lane_count; ++i) {
    largest = largest_of[i] > largest ? largest_of[i] : largest;
    squares += squares_of[i];
  }
  const float root = std::sqrt(static_cast<float>(inputs));
  coded.high = high, coded.low = low, coded.high_sum = 0, coded.low_sum = 0;
  // Sums of at most 2^15 squares in 16 parts are right to 2^-11; beyond 1e18 they may overflow, below 1e-14 vanish.
  const bool usual = squares < 1e36f && largest > 1e-14f;
  constexpr float levels = code_parts * 127.0f;
  coded.step = usual ? largest / levels : 0.0f;
  const float inverse = usual ? levels / largest : 0.0f;
  coded.norm = !(squares < 1e36f) ? std::numeric_limits<float>::infinity()
               : usual            ? 1.001f * std::sqrt(squares)
                                  : 1.001f * root * largest;
  float gaps_of[lane_count] = {};
  std::int32_t high_sum = 0, low_sum = 0;
  const auto code = [&](std::size_t from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const float scaled = row[from + i] * inverse;
      const float whole = (scaled + 0x1.8p23f) - 0x1.8p23f;  // to the nearest integer
      const float gap = scaled - whole;
      gaps_of[i] += gap * gap;
      const std::int32_t value = static_cast<std::int32_t>(whole);
      const std::int32_t above = static_cast<std::int32_t>((whole / code_parts + 0x1.8p23f) - 0x1.8p23f);
      const std::int32_t rest = value - static_cast<std::int32_t>(code_parts) * above;
      high[from + i] = static_cast<std::int8_t>(above), low[from + i] = static_cast<std::int8_t>(rest);
      high_sum += above, low_sum += rest;
    }
  };
  if (usual) {
    for (j = 0; j + lane_count <= inputs; j += lane_count) code(j, lane_count);
    code(j, inputs - j);
    j = inputs;
  } else {
    j = 0;
  }
  for (; j < padded; ++j) high[j] = low[j] = 0;
  coded.high_sum = high_sum, coded.low_sum = low_sum;
  float gaps = 0;
  for (const float part : gaps_of) gaps += part;
  // `scaled` and `step` are right to 2^-22 each, which is less than 0.02 of a unit at 32385 of them.
  coded.lost = usual ? coded.step * (1.001f * std::sqrt(gaps) + 0.02f * root) : coded.norm;
}

void screen_group(const NeuronGroup& group, std::size_t coded, const CodedRow* rows, std::size_t count,
                  const float* thresholds, const WantedBytes* wanted, std::size_t wanted_count, std::uint64_t* open,
                  float* approximate) {
  const std::size_t quads = coded / 4;
  Asking asking(wanted, wanted_count, quads);
  for (; count >= tile_rows; count -= tile_rows) {
    screen_tile<tile_rows>(group, quads, rows, thresholds, asking, open, approximate);
    rows += tile_rows, thresholds += tile_rows, open += tile_rows, approximate += tile_rows * group_neurons;
  }
  if constexpr (tile_rows > 2)
    if (count == 2) return screen_tile<2>(group, quads, rows, thresholds, asking, open, approximate);
  if (count == 1) screen_tile<1>(group, quads, rows, thresholds, asking, open, approximate);
}

bool stays_open(const ResidualRow& residual, std::size_t coded, const CodedRow& row, float approximate,
                float threshold) {
  std::int32_t high = -8 * row.high_sum, low = -8 * row.low_sum;
#if defined(__AVX512VNNI__)
  __m512i highs[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()}, lows[2] = {highs[0], highs[0]};
  const __m512i nibble = _mm512_set1_epi8(15);
  for (std::size_t j = 0; j < coded; j += code_step) {
    const __m512i both = _mm512_load_si512(residual.codes + j / 2);
    const __m512i first = _mm512_and_si512(both, nibble);
    const __m512i second = _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble);
    highs[0] = add_products(highs[0], first, _mm512_load_si512(row.high + j));
    highs[1] = add_products(highs[1], second, _mm512_load_si512(row.high + j + 64));
    lows[0] = add_products(lows[0], first, _mm512_load_si512(row.low + j));
    lows[1] = add_products(lows[1], second, _mm512_load_si512(row.low + j + 64));
  }
  high += _mm512_reduce_add_epi32(_mm512_add_epi32(highs[0], highs[1]));
  low += _mm512_reduce_add_epi32(_mm512_add_epi32(lows[0], lows[1]));
#elif defined(__AVX2__)
  const __m256i nibble = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
  const auto wide = [](const void* at) { return _mm256_load_si256(static_cast<const __m256i*>(at)); };
  __m256i highs = _mm256_setzero_si256(), lows = highs;
  for (std::size_t j = 0; j < coded; j += code_step)
    for (std::size_t half = 0; half < 64; half += 32) {
      const __m256i both = wide(residual.codes + j / 2 + half);
      const __m256i first = _mm256_and_si256(both, nibble);
      const __m256i second = _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble);
      const auto products = [&](const std::int8_t* part) {
        const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(first, wide(part + j + half)),
                                               _mm256_maddubs_epi16(second, wide(part + j + 64 + half)));
        return _mm256_madd_epi16(pairs, ones);
      };
      highs = _mm256_add_epi32(highs, products(row.high));
      lows = _mm256_add_epi32(lows, products(row.low));
    }
  std::int32_t parts[16];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts), highs);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts + 8), lows);
  for (std::size_t i = 0; i < 8; ++i) high += parts[i], low += parts[8 + i];
#else
  for (std::size_t j = 0; j < coded; j += code_step) {
    const auto add = [&](const std::int8_t* part) {
      std::int32_t sum = 0;
      for (std::size_t i = 0; i < 64; ++i) {
        const int both = residual.codes[j / 2 + i];
        sum += (both & 15) * part[j + i] + (both >> 4) * part[j + 64 + i];
      }
      return sum;
    };
    high += add(row.high);
    low += add(row.low);
  }
#endif
  const float product = static_cast<float>(high) * code_parts + static_cast<float>(low);
  const float score = approximate + product * row.step * residual.scale;
  const float bound = score + (residual.error * row.norm + residual.coded * row.lost);
  return !(bound <= threshold);
}

float neuron_score(const float* weights, const float* row, std::size_t inputs, float bias, const char* upcoming) {
  constexpr std::size_t chains = 4;
  Lanes sums[chains] = {fill(0.0f), fill(0.0f), fill(0.0f), fill(0.0f)};
  std::size_t j = 0;
  for (; j + chains * lane_count <= inputs; j += chains * lane_count)
#pragma GCC unroll 4
    for (std::size_t c = 0; c < chains; ++c) {
      const std::size_t at = j + c * lane_count;
      __builtin_prefetch(upcoming + 4 * at, 0, 2);
      sums[c] = fma(load(weights + at), load(row + at), sums[c]);
    }
  for (std::size_t c = 0; j < inputs; ++c) {
    const std::size_t here = inputs - j < lane_count ? inputs - j : lane_count;
    sums[c] = here == lane_count ? fma(load(weights + j), load(row + j), sums[c])
                                 : fma(load_part(weights + j, here), load_part(row + j, here), sums[c]);
    j += here;
  }
  return total((sums[0] + sums[1]) + (sums[2] + sums[3])) + bias;
}

void widen(const std::uint16_t* words, std::size_t count, bool brain, float* out) {
  if (brain) {
    for (std::size_t j = 0; j < count; ++j) out[j] = std::bit_cast<float>(static_cast<std::uint32_t>(words[j]) << 16);
    return;
  }
  // Of float16: with an exponent of 0 so many parts of 2^24, with one of 31 no number; else the exponent is another.
  for (std::size_t j = 0; j < count; ++j) {
    const std::uint32_t word = words[j], size = word & 0x7fff;
    const std::uint32_t usual = (size << 13) + (size < 0x7c00 ? 112u << 23 : 224u << 23);
    const auto small = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(size)) * 0x1p-24f);
    out[j] = std::bit_cast<float>((size < 0x400 ? small : usual) | (word & 0x8000) << 16);
  }
}

void add_rows(float* sums, const float* const* rows, const float* factors, std::size_t count, std::size_t length,
              const char* upcoming) {
  constexpr std::size_t chunk = 8;  // vectors kept in registers while the rows pass
  std::size_t k = 0;
  for (; k + chunk * lane_count <= length; k += chunk * lane_count) {
    Lanes here[chunk];
#pragma GCC unroll 8
    for (std::size_t c = 0; c < chunk; ++c) here[c] = load(sums + k + c * lane_count);
    for (std::size_t r = 0; r < count; ++r) {
      const float* row = rows[r] + k;
      const Lanes factor = fill(factors[r]);
#pragma GCC unroll 8
      for (std::size_t c = 0; c < chunk; ++c) {
        __builtin_prefetch(upcoming, 0, 2);
        upcoming += 64;
        here[c] = fma(factor, load(row + c * lane_count), here[c]);
      }
    }
#pragma GCC unroll 8
    for (std::size_t c = 0; c < chunk; ++c) store(sums + k + c * lane_count, here[c]);
  }
  for (; k < length; ++k)
    for (std::size_t r = 0; r < count; ++r) sums[k] = std::fmaf(factors[r], rows[r][k], sums[k]);
}

}  // namespace fewfire::FEWFIRE_ISA
