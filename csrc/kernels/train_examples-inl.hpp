// Part of train.cpp: which examples a step sees, and how they are laid out for the scores and the update.
#pragma once

#include "kernels/philox.hpp"
#include "kernels/train_scores-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// Loading: `count` rows into columns[j][e] and, where given, rows[e][j]; lanes past `count` are zero.

void load_row(const TrainingRun& run, const Examples& from, std::size_t row, float* out) {
  if (from.dense) {
    std::memcpy(out, from.dense + row * run.inputs, run.inputs * sizeof(float));
    return;
  }
  const std::uint64_t* bits = from.bits + row * from.words;
#if defined(__AVX512F__)
  const __m512 plus = _mm512_set1_ps(1.0f), minus = _mm512_set1_ps(-1.0f);
  for (std::size_t j = 0; j < run.inputs; j += lanes) {
    const auto negative = static_cast<__mmask16>(bits[j / 64] >> (j % 64));
    const std::size_t left = run.inputs - j;
    const auto valid = static_cast<__mmask16>(left >= lanes ? 0xFFFF : (1u << left) - 1);
    _mm512_store_ps(out + j, _mm512_maskz_mov_ps(valid, _mm512_mask_blend_ps(negative, plus, minus)));
  }
#else
  for (std::size_t j = 0; j < run.inputs; ++j) out[j] = 1.0f - 2.0f * static_cast<float>(bits[j / 64] >> (j % 64) & 1);
#endif
}

void transpose(const TrainingRun& run, const float* rows, float* columns) {
  const std::size_t stride = run.stride();
#if defined(__AVX512F__)
  // A gather of one coordinate from sixteen rows beats element-wise copies; indices fit since stride ≤ 2^20.
  const __m512i index = _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                           _mm512_set1_epi32(static_cast<int>(stride)));
  for (std::size_t j = 0; j < run.inputs; ++j) {
    _mm512_store_ps(columns + batch_lanes * j, _mm512_i32gather_ps(index, rows + j, 4));
    _mm512_store_ps(columns + batch_lanes * j + lanes, _mm512_i32gather_ps(index, rows + lanes * stride + j, 4));
  }
#else
  for (std::size_t e = 0; e < batch_lanes; ++e)
    for (std::size_t j = 0; j < run.inputs; ++j) columns[batch_lanes * j + e] = rows[e * stride + j];
#endif
}

// Bits: column j of 32 sign rows is one 32-bit word, found by transposing 32 x 32 blocks. Four columns at a time are then
// laid out as score_tile_of_signs reads them: with AVX-512 as the numbers 0 to 15 of the signed sum that each example
// needs; with AVX2 as the numbers 0 to 7 of that sum up to the sign of the last column, and that sign; elsewhere as ±1.
void columns_from_bits(const TrainingRun& run, const Examples& from, const std::uint64_t* chosen, std::size_t count,
                       float* columns) {
  for (std::size_t j = 0; j < run.inputs; j += 32) {
    std::uint32_t block[32] = {};
    for (std::size_t e = 0; e < count; ++e)
      block[e] = static_cast<std::uint32_t>(from.bits[chosen[e] * from.words + j / 64] >> (j % 64));
    std::uint32_t mask = 0x0000FFFFu;
    for (int width = 16; width != 0; width >>= 1, mask ^= mask << width)
      for (int row = 0; row < 32; row = ((row | width) + 1) & ~width) {
        const std::uint32_t swap = ((block[row] >> width) ^ block[row | width]) & mask;
        block[row] ^= swap << width;
        block[row | width] ^= swap;
      }
    const std::size_t end = std::min<std::size_t>(32, run.inputs - j);
    for (std::size_t c = 0; c < end; c += 4) {  // columns past the end are zero bits before zero weights
#if defined(__AVX512F__)
      for (unsigned half = 0; half < 2; ++half) {
        __m512i index = _mm512_setzero_si512();
        for (unsigned bit = 0; bit < 4; ++bit) {
          const auto negative = static_cast<__mmask16>(block[c + bit] >> (16 * half));
          index = _mm512_mask_add_epi32(index, negative, index, _mm512_set1_epi32(1 << bit));
        }
        _mm512_store_si512(columns + batch_lanes * ((j + c) / 4) + lanes * half, index);
      }
#elif defined(__AVX2__)
      float* out = columns + 2 * batch_lanes * ((j + c) / 4);
      const std::uint32_t last = block[c + 3];
      const std::uint32_t bits[3] = {block[c] ^ last, block[c + 1] ^ last, block[c + 2] ^ last};
      for (unsigned e = 0; e < batch_lanes; ++e) {
        out[e] = std::bit_cast<float>((bits[0] >> e & 1) | (bits[1] >> e & 1) << 1 | (bits[2] >> e & 1) << 2);
        out[batch_lanes + e] = 1.0f - 2.0f * static_cast<float>(last >> e & 1);
      }
#else
      for (std::size_t bit = 0; bit < 4; ++bit)
        for (std::size_t e = 0; e < batch_lanes; ++e)
          columns[batch_lanes * (j + c + bit) + e] = 1.0f - 2.0f * static_cast<float>(block[c + bit] >> e & 1);
#endif
    }
  }
}

void load_batch(TrainingRun& run, const Examples& from, const std::uint64_t* chosen, std::size_t count,
                float* columns, float* rows, float* labels) {
  const std::size_t stride = run.stride();
  for (std::size_t e = 0; e < count; ++e) {
    load_row(run, from, chosen[e], rows + e * stride);
    labels[e] = from.labels[chosen[e]];
  }
  if (count < batch_lanes) {
    std::fill(rows + count * stride, rows + batch_lanes * stride, 0.0f);
    std::fill(labels + count, labels + batch_lanes, 0.0f);
  }
  run.signs = from.bits;
  if (from.bits)  // lanes past `count` hold +1 there: harmless, their loss gradient is zero
    columns_from_bits(run, from, chosen, count, columns);
  else
    transpose(run, rows, columns);
}

// Choosing: the law of src/fewfire/engines/_run.py.

void choose(TrainingRun& run, std::size_t count, std::uint64_t* chosen) {
  const std::size_t rows = run.train.rows;
  if (run.sampling == Sampling::online) {
    for (std::size_t e = 0; e < count; ++e) chosen[e] = run.position - run.origin + e;
  } else if (run.sampling == Sampling::replacement) {
    std::uint32_t words[batch_lanes];
    philox_words(run.key, run.batch_stream, run.position / 4, run.position % 4, count, words);
    for (std::size_t e = 0; e < count; ++e) chosen[e] = std::uint64_t{words[e]} * rows >> 32;
  } else {
    for (std::size_t e = 0; e < count; ++e) {
      const std::uint64_t epoch = (run.position + e) / rows;
      if (epoch != run.order_epoch) {
        std::vector<std::uint32_t> words(rows);
        philox_words(run.key, run.epoch_stream, epoch * rows / 4, epoch * rows % 4, rows, words.data());
        run.order.resize(rows);
        for (std::size_t i = 0; i < rows; ++i) run.order[i] = std::uint64_t{words[i]} << 32 | i;
        std::sort(run.order.begin(), run.order.end());  // word, then index: the stable order
        run.order_epoch = epoch;
      }
      chosen[e] = run.order[(run.position + e) % rows] & 0xFFFFFFFFu;
    }
  }
  run.position += count;
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
