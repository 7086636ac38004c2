#include "kernels/halfspace_screen.hpp"

#include <cstring>

#include "kernels/halfspace_lanes.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

constexpr std::size_t vectors = block_points / lane_count;

#if defined(__AVX512VNNI__)
using Sums = __m512i;
Sums start(std::int32_t value) { return _mm512_set1_epi32(value); }
using Codes = __m512i;
using Word = __m512i;
Codes load_codes(const std::uint8_t* at) { return _mm512_loadu_si512(at); }
Word load_word(std::int32_t word) { return _mm512_set1_epi32(word); }
// Written as assembly because GCC 12 copies the sums of its intrinsic to memory and back in each step.
Sums add_products(Sums sums, Codes codes, Word query) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(codes), "v"(query));
  return sums;
}
Lanes to_real(const Sums& sums) { return {_mm512_cvtepi32_ps(sums)}; }
#else
struct Sums {
  std::int32_t v[lane_count];
};
Sums start(std::int32_t value) {
  Sums out;
  for (std::int32_t& sum : out.v) sum = value;
  return out;
}
using Codes = const std::uint8_t*;
struct Word {
  std::int8_t parts[4];
};
Codes load_codes(const std::uint8_t* at) { return at; }
Word load_word(std::int32_t word) {
  Word out;
  std::memcpy(out.parts, &word, 4);
  return out;
}
Sums add_products(Sums sums, Codes codes, const Word& query) {
  const auto& parts = query.parts;
  for (std::size_t i = 0; i < lane_count; ++i)
    sums.v[i] += codes[4 * i] * parts[0] + codes[4 * i + 1] * parts[1] + codes[4 * i + 2] * parts[2] +
                 codes[4 * i + 3] * parts[3];
  return sums;
}
Lanes to_real(const Sums& sums) {
  float values[lane_count];
  for (std::size_t i = 0; i < lane_count; ++i) values[i] = static_cast<float>(sums.v[i]);
  return load(values);
}
#endif

template <std::size_t Queries>
void screen_tile(const ScreenBlock& block, std::size_t quads, const std::int32_t* tile, const std::int32_t* bias,
                 const float* steps, const float* low, const float* high, std::uint64_t* maybe, std::uint64_t* sure) {
  // Unrolled by hand: an index known only at run time would keep the sums in memory.
  Sums sums[Queries][vectors];
#pragma GCC unroll 6
  for (std::size_t q = 0; q < Queries; ++q) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) sums[q][v] = start(bias[q]);
  }
  for (std::size_t k = 0; k < quads; ++k) {
    Codes codes[vectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) codes[v] = load_codes(block.codes + (k * vectors + v) * 4 * lane_count);
#pragma GCC unroll 6
    for (std::size_t q = 0; q < Queries; ++q) {
      const Word word = load_word(tile[k * Queries + q]);
#pragma GCC unroll 4
      for (std::size_t v = 0; v < vectors; ++v) sums[q][v] = add_products(sums[q][v], codes[v], word);
    }
  }
#pragma GCC unroll 6
  for (std::size_t q = 0; q < Queries; ++q) {
    std::uint64_t above = 0, clear = 0;
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::size_t at = v * lane_count;
      const Lanes score =
          fma(to_real(sums[q][v]) * load(block.scales + at), fill(steps[q]), load(block.offsets + at));
      above |= std::uint64_t{greater(score, fill(low[q]))} << at;
      clear |= std::uint64_t{greater(score, fill(high[q]))} << at;
    }
    maybe[q] = above, sure[q] = clear;
  }
}

}  // namespace

void screen_block(const ScreenBlock& block, std::size_t quads, const ScreenQueries& queries, const float* low,
                  const float* high, std::size_t first, std::size_t count, std::uint64_t* maybe, std::uint64_t* sure) {
  const auto tile = [&]<std::size_t Queries>() {
    screen_tile<Queries>(block, quads, queries.packed + first * quads, queries.bias + first, queries.steps + first, low,
                         high, maybe, sure);
  };
  switch (count) {
    case 6: return tile.template operator()<6>();
    case 5: return tile.template operator()<5>();
    case 4: return tile.template operator()<4>();
    case 3: return tile.template operator()<3>();
    case 2: return tile.template operator()<2>();
    case 1: return tile.template operator()<1>();
    default: return;
  }
}

}  // namespace fewfire::FEWFIRE_ISA
