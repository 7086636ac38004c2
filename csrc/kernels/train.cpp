#include "kernels/train.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/philox.hpp"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace fewfire::FEWFIRE_ISA {
namespace {

// Sixteen floats; the compiler splits them for narrower instruction sets. A minibatch of 32 is two of them.
typedef float Vec __attribute__((vector_size(64)));
constexpr std::size_t lanes = 16, batch_lanes = 32;

// Neurons scored side by side: as many as keep their accumulators in registers.
#if defined(__AVX512F__)
constexpr std::size_t tile = 8;
#elif defined(__AVX2__)
constexpr std::size_t tile = 3;
#else
constexpr std::size_t tile = 2;
#endif

Vec load(const float* at) { return *reinterpret_cast<const Vec*>(at); }
void store(float* at, Vec value) { *reinterpret_cast<Vec*>(at) = value; }
Vec fill(float value) { return value - Vec{}; }
Vec maximum(Vec a, Vec b) { return a > b ? a : b; }
Vec minimum(Vec a, Vec b) { return a < b ? a : b; }

// Pairwise, so that sixteen additions do not wait for each other.
float sum(Vec v) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps(reinterpret_cast<__m512>(v));
#else
  float parts[lanes];
  std::memcpy(parts, &v, sizeof parts);
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  return parts[0];
#endif
}

// The sum of those of 32 values whose bit is set.
float masked_sum(const float* values, std::uint32_t mask) {
#if defined(__AVX512F__)
  const __m512 first = _mm512_maskz_load_ps(static_cast<__mmask16>(mask), values);
  const __m512 second = _mm512_maskz_load_ps(static_cast<__mmask16>(mask >> 16), values + 16);
  return _mm512_reduce_add_ps(_mm512_add_ps(first, second));
#else
  float total = 0;
  for (; mask; mask &= mask - 1) total += values[std::countr_zero(mask)];
  return total;
#endif
}

// Bit e is set iff low < z[e] < high, for 32 values.
std::uint32_t between(const float* z, float low, float high) {
#if defined(__AVX512F__)
  const __m512 a = _mm512_load_ps(z), b = _mm512_load_ps(z + 16), l = _mm512_set1_ps(low), h = _mm512_set1_ps(high);
  const std::uint32_t first = _mm512_cmp_ps_mask(a, l, _CMP_GT_OQ) & _mm512_cmp_ps_mask(a, h, _CMP_LT_OQ);
  const std::uint32_t second = _mm512_cmp_ps_mask(b, l, _CMP_GT_OQ) & _mm512_cmp_ps_mask(b, h, _CMP_LT_OQ);
  return first | second << 16;
#else
  std::uint32_t mask = 0;
  for (std::size_t e = 0; e < batch_lanes; ++e) mask |= static_cast<std::uint32_t>(z[e] > low && z[e] < high) << e;
  return mask;
#endif
}

template <ActivationKind kind>
Vec activate(Vec z, float threshold) {
  if constexpr (kind == ActivationKind::relu) return maximum(z, Vec{});
  if constexpr (kind == ActivationKind::relu6) return minimum(maximum(z, Vec{}), fill(6.0f));
  return z > fill(threshold) ? z : Vec{};
}

Vec activate(ActivationKind kind, Vec z, float threshold) {
  switch (kind) {
    case ActivationKind::relu:
      return activate<ActivationKind::relu>(z, threshold);
    case ActivationKind::relu6:
      return activate<ActivationKind::relu6>(z, threshold);
    default:
      return activate<ActivationKind::shifted>(z, threshold);
  }
}

constexpr float infinity = std::numeric_limits<float>::infinity();
float slope_limit(ActivationKind kind) { return kind == ActivationKind::relu6 ? 6.0f : infinity; }

float loss_value(LossKind loss, float f, float y) {
  switch (loss) {
    case LossKind::hinge:
      return std::max(1.0f - y * f, 0.0f);
    case LossKind::logistic:
      return y * f > 0 ? std::log1p(std::exp(-y * f)) : -y * f + std::log1p(std::exp(y * f));
    case LossKind::square:
      return (f - y) * (f - y) / 2;
    default:
      return std::abs(f - y);
  }
}

float loss_slope(LossKind loss, float f, float y) {
  switch (loss) {
    case LossKind::hinge:
      return y * f < 1.0f ? -y : 0.0f;
    case LossKind::logistic:
      return -y / (1.0f + std::exp(y * f));
    case LossKind::square:
      return f - y;
    default:
      return f > y ? 1.0f : f < y ? -1.0f : 0.0f;
  }
}

// ---- Loading examples: `count` rows into columns[j][e] and, where wanted, rows[e][j]; lanes past `count` are zero.

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

// Bits: column j of 32 sign rows is one 32-bit word, found by transposing 32 x 32 blocks. With AVX-512 the columns are
// then read four at a time, as the numbers 0 to 15 that choose one of the sixteen signed sums of four weights (see
// score_tile_of_signs); elsewhere they are widened to ±1.
#if defined(__AVX512F__)
constexpr bool signs_are_indices = true;
#else
constexpr bool signs_are_indices = false;
#endif

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
#if defined(__AVX512F__)
    for (std::size_t c = 0; c < end; c += 4)
      for (unsigned half = 0; half < 2; ++half) {
        __m512i index = _mm512_setzero_si512();
        for (unsigned bit = 0; bit < 4; ++bit) {  // columns past the end are zero bits before zero weights
          const auto negative = static_cast<__mmask16>(block[c + bit] >> (16 * half));
          index = _mm512_mask_add_epi32(index, negative, index, _mm512_set1_epi32(1 << bit));
        }
        _mm512_store_si512(columns + batch_lanes * ((j + c) / 4) + lanes * half, index);
      }
#else
    for (std::size_t c = 0; c < end; ++c)
      for (std::size_t e = 0; e < batch_lanes; ++e)
        columns[batch_lanes * (j + c) + e] = 1.0f - 2.0f * static_cast<float>(block[c] >> e & 1);
#endif
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
  run.signs = signs_are_indices && from.bits;
  if (from.bits)  // lanes past `count` hold +1 there: harmless, their loss gradient is zero
    columns_from_bits(run, from, chosen, count, columns);
  else
    transpose(run, rows, columns);
}

// ---- Choosing examples: the law of src/fewfire/engines/_batches.py.

void choose(TrainingRun& run, std::size_t count, std::uint64_t* chosen) {
  const std::size_t rows = run.train.rows;
  if (run.sampling == Sampling::sequential) {
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

// ---- Scoring.

// z = c·sum + b, for two vectors of sums a neuron.
template <std::size_t count>
void store_scores(const TrainingRun& run, std::size_t first, const Vec (&left)[count], const Vec (&right)[count], float* z) {
  const float scale = static_cast<float>(run.scale);
  for (std::size_t u = 0; u < count; ++u) {
    store(z + batch_lanes * u, scale * left[u] + run.bias[first + u]);
    store(z + batch_lanes * u + lanes, scale * right[u] + run.bias[first + u]);
  }
}

// z = c·⟨v, x⟩ + b for `count` neurons from `first` on, on the 32 examples of `columns`.
template <std::size_t count>
void score_tile(const TrainingRun& run, std::size_t first, const float* columns, float* z) {
  const std::size_t stride = run.stride();
  const float* weights = run.weights.data() + first * stride;
  Vec left[count] = {}, right[count] = {};
  for (std::size_t j = 0; j < run.inputs; ++j) {
    const Vec x0 = load(columns + batch_lanes * j), x1 = load(columns + batch_lanes * j + lanes);
    for (std::size_t u = 0; u < count; ++u) {
      const float w = weights[u * stride + j];
      left[u] += w * x0;
      right[u] += w * x1;
    }
  }
  store_scores(run, first, left, right, z);
}

#if defined(__AVX512F__)
// The same for signs, at half the multiply-adds: the sixteen sums ±w₀ ±w₁ ±w₂ ±w₃ of four weights fill one register, and
// a permutation looks up the one each of 16 examples needs. Weights past the last input are zero.
template <std::size_t count>
void score_tile_of_signs(const TrainingRun& run, std::size_t first, const float* columns, float* z) {
  const std::size_t stride = run.stride(), groups = (run.inputs + 3) / 4;
  const float* weights = run.weights.data() + first * stride;
  Vec sign[4], left[count] = {}, right[count] = {};
  for (unsigned bit = 0; bit < 4; ++bit)
    for (unsigned lane = 0; lane < lanes; ++lane) sign[bit][lane] = lane >> bit & 1 ? -1.0f : 1.0f;
  for (std::size_t g = 0; g < groups; ++g) {
    const __m512i x0 = _mm512_load_si512(columns + batch_lanes * g);
    const __m512i x1 = _mm512_load_si512(columns + batch_lanes * g + lanes);
    for (std::size_t u = 0; u < count; ++u) {
      const float* w = weights + u * stride + 4 * g;
      const Vec table = (w[0] * sign[0] + w[1] * sign[1]) + (w[2] * sign[2] + w[3] * sign[3]);
      left[u] += reinterpret_cast<Vec>(_mm512_permutexvar_ps(x0, reinterpret_cast<__m512>(table)));
      right[u] += reinterpret_cast<Vec>(_mm512_permutexvar_ps(x1, reinterpret_cast<__m512>(table)));
    }
  }
  store_scores(run, first, left, right, z);
}
#endif

template <std::size_t count>
void score(const TrainingRun& run, std::size_t first, const float* columns, float* z) {
#if defined(__AVX512F__)
  if (run.signs) return score_tile_of_signs<count>(run, first, columns, z);
#endif
  score_tile<count>(run, first, columns, z);
}

template <class Before, class After>
void for_tiles(const TrainingRun& run, const float* columns, float* scores, bool keep, Before before, After after) {
  std::size_t i = 0;
  for (; i + tile <= run.width; i += tile) {
    float* z = keep ? scores + batch_lanes * i : scores;
    before(i, tile);
    score<tile>(run, i, columns, z);
    after(i, tile, z);
  }
  for (; i < run.width; ++i) {
    float* z = keep ? scores + batch_lanes * i : scores;
    before(i, 1);
    score<1>(run, i, columns, z);
    after(i, 1, z);
  }
}

// ---- Updating one neuron from the examples of one chunk.

// out[j] += Σ_{e in active} coefficient[e]·rows[e][j].
void add_rows(std::size_t stride, const float* rows, std::uint32_t active, const float* coefficient, float* out) {
  std::uint32_t ids[batch_lanes];
  std::size_t count = 0;
  for (; active; active &= active - 1) ids[count++] = static_cast<std::uint32_t>(std::countr_zero(active));
  std::size_t j = 0;
  for (; j + 4 * lanes <= stride; j += 4 * lanes) {
    Vec a = load(out + j), b = load(out + j + lanes), c = load(out + j + 2 * lanes), d = load(out + j + 3 * lanes);
    for (std::size_t q = 0; q < count; ++q) {
      const float* row = rows + ids[q] * stride + j;
      const float factor = coefficient[ids[q]];
      a += factor * load(row);
      b += factor * load(row + lanes);
      c += factor * load(row + 2 * lanes);
      d += factor * load(row + 3 * lanes);
    }
    store(out + j, a);
    store(out + j + lanes, b);
    store(out + j + 2 * lanes, c);
    store(out + j + 3 * lanes, d);
  }
  for (; j < stride; j += lanes) {
    Vec a = load(out + j);
    for (std::size_t q = 0; q < count; ++q) a += coefficient[ids[q]] * load(rows + ids[q] * stride + j);
    store(out + j, a);
  }
}

template <class T>
T truncated(T slope, T level) {
  return std::abs(slope) > level ? slope : T{0};
}

// Applies the pending update of the last step to neuron i.
void apply_pending(TrainingRun& run, std::size_t i, std::uint32_t live) {
  const float* z = run.scores.data() + batch_lanes * i;
  const float* rows = run.rows[run.current ^ 1].data();
  const std::size_t stride = run.stride();
  float du = 0, db = 0;
  if (live) {
    const Vec g0 = load(run.slopes), g1 = load(run.slopes + lanes);
    const Vec h0 = activate(run.activation, load(z), run.threshold);
    const Vec h1 = activate(run.activation, load(z + lanes), run.threshold);
    du = sum(g0 * h0 + g1 * h1);
    const std::uint32_t active = between(z, run.threshold, slope_limit(run.activation)) & live;
    const float u = run.output[i];
    if (active && u != 0.0f) {
      db = u * masked_sum(run.slopes, active);
      alignas(64) float coefficient[batch_lanes];
      const bool truncates = run.pending_truncation[0] > 0;
      const float factor = truncates ? u : static_cast<float>(-run.pending_rate[0] / run.scale) * u;
      store(coefficient, factor * g0);
      store(coefficient + lanes, factor * g1);
      float* weights = run.weights.data() + i * stride;
      if (truncates) {
        float* slope = run.gradient.data();
        std::fill(slope, slope + stride, 0.0f);
        add_rows(stride, rows, active, coefficient, slope);
        for (std::size_t j = 0; j < stride; ++j)
          weights[j] -= static_cast<float>(run.pending_rate[0] / run.scale) *
                        truncated(slope[j], static_cast<float>(run.pending_truncation[0]));
      } else if (factor != 0.0f) {
        add_rows(stride, rows, active, coefficient, weights);
      }
    }
  }
  const auto step = [&](int layer, float value, float slope) {
    return static_cast<float>(run.pending_keep[layer]) * value -
           static_cast<float>(run.pending_rate[layer]) *
               truncated(slope, static_cast<float>(run.pending_truncation[layer]));
  };
  run.bias[i] = step(1, run.bias[i], db);
  run.output[i] = step(2, run.output[i], du);
}

// c ← keep·c; V is touched only when c leaves a comfortable range.
void shrink(TrainingRun& run, double keep) {
  run.scale *= keep;
  if (std::abs(run.scale) > 1e-3 && std::abs(run.scale) < 1e3) return;
  const float factor = static_cast<float>(run.scale);
  for (float& w : run.weights) w *= factor;
  run.scale = 1.0;
}

std::uint32_t live_lanes(const float* slopes) {
  std::uint32_t live = 0;
  for (std::size_t e = 0; e < batch_lanes; ++e) live |= static_cast<std::uint32_t>(slopes[e] != 0.0f) << e;
  return live;
}

void flush(TrainingRun& run) {
  if (!run.pending) return;
  const std::uint32_t live = live_lanes(run.slopes);
  for (std::size_t i = 0; i < run.width; ++i) apply_pending(run, i, live);
  run.pending = false;
}

// Turns outputs into loss gradients divided by the batch size; false when an output is not finite.
bool find_slopes(const TrainingRun& run, const float* outputs, const float* labels, std::size_t count, double batch,
                 float* slopes) {
  for (std::size_t e = 0; e < count; ++e) {
    if (!std::isfinite(outputs[e])) return false;
    slopes[e] = static_cast<float>(loss_slope(run.loss, outputs[e], labels[e]) / batch);
  }
  std::fill(slopes + count, slopes + batch_lanes, 0.0f);
  return true;
}

void set_rates(TrainingRun& run) {
  const PhaseTable& phase = run.phases[run.phase];
  const std::size_t row = phase.varies ? 4 * run.step_in_phase : 0;
  for (std::size_t layer = 0; layer < 4; ++layer) {
    run.pending_rate[layer] = phase.rate[row + layer];
    run.pending_keep[layer] = phase.keep[row + layer];
    run.pending_truncation[layer] = phase.truncation[row + layer];
  }
}

void update_offset(TrainingRun& run, double slope) {
  run.offset = run.pending_keep[3] * run.offset - run.pending_rate[3] * truncated(slope, run.pending_truncation[3]);
}

// One step on at most 32 examples; the update of the hidden neurons is left pending.
bool small_step(TrainingRun& run, std::size_t count) {
  std::uint64_t chosen[batch_lanes];
  alignas(64) float labels[batch_lanes], outputs[batch_lanes];
  choose(run, count, chosen);
  load_batch(run, run.train, chosen, count, run.columns.data(), run.rows[run.current].data(), labels);
  const std::uint32_t live = run.pending ? live_lanes(run.slopes) : 0;
  const std::uint32_t valid = count == batch_lanes ? ~0u : (1u << count) - 1;
  Vec f0 = fill(static_cast<float>(run.offset)), f1 = f0;
  std::uint64_t fired = 0;
  const bool pending = run.pending;
  for_tiles(
      run, run.columns.data(), run.scores.data(), true,
      [&](std::size_t first, std::size_t tiles) {
        if (pending)
          for (std::size_t u = 0; u < tiles; ++u) apply_pending(run, first + u, live);
      },
      [&](std::size_t first, std::size_t tiles, const float* z) {
        for (std::size_t u = 0; u < tiles; ++u, z += batch_lanes) {
          f0 += run.output[first + u] * activate(run.activation, load(z), run.threshold);
          f1 += run.output[first + u] * activate(run.activation, load(z + lanes), run.threshold);
          fired += static_cast<std::uint64_t>(std::popcount(between(z, run.threshold, infinity) & valid));
        }
      });
  store(outputs, f0);
  store(outputs + lanes, f1);
  run.pending = false;
  set_rates(run);
  if (!find_slopes(run, outputs, labels, count, static_cast<double>(count), run.slopes)) return false;
  double total = 0;
  for (float slope : run.slopes) total += slope;
  update_offset(run, total);
  shrink(run, run.pending_keep[0]);
  run.pending = true;
  run.current ^= 1;
  run.examples_seen += count;
  run.active_pairs += fired;
  run.multiply_adds += std::uint64_t{count} * run.width * (run.inputs + 1);
  return true;
}

// One step on any number of examples: chunks of 32, their gradients summed, then one update.
bool large_step(TrainingRun& run, std::size_t batch) {
  flush(run);
  const std::size_t stride = run.stride(), cells = run.width * stride;
  run.gradient.assign(cells + 2 * run.width, 0.0f);
  float *slope_w = run.gradient.data(), *slope_b = slope_w + cells, *slope_u = slope_b + run.width;
  const bool whole = run.phases[run.phase].batch == 0;
  double slope_o = 0;
  std::uint64_t fired = 0;
  for (std::size_t done = 0; done < batch; done += batch_lanes) {
    const std::size_t count = std::min(batch_lanes, batch - done);
    const std::uint32_t valid = count == batch_lanes ? ~0u : (1u << count) - 1;
    std::uint64_t chosen[batch_lanes];
    alignas(64) float labels[batch_lanes], outputs[batch_lanes], slopes[batch_lanes];
    if (whole)
      for (std::size_t e = 0; e < count; ++e) chosen[e] = done + e;
    else
      choose(run, count, chosen);
    float* rows = run.rows[run.current].data();
    load_batch(run, run.train, chosen, count, run.columns.data(), rows, labels);
    Vec f0 = fill(static_cast<float>(run.offset)), f1 = f0;
    for_tiles(
        run, run.columns.data(), run.scores.data(), true, [](std::size_t, std::size_t) {},
        [&](std::size_t first, std::size_t tiles, const float* z) {
          for (std::size_t u = 0; u < tiles; ++u, z += batch_lanes) {
            f0 += run.output[first + u] * activate(run.activation, load(z), run.threshold);
            f1 += run.output[first + u] * activate(run.activation, load(z + lanes), run.threshold);
            fired += static_cast<std::uint64_t>(std::popcount(between(z, run.threshold, infinity) & valid));
          }
        });
    store(outputs, f0);
    store(outputs + lanes, f1);
    if (!find_slopes(run, outputs, labels, count, static_cast<double>(batch), slopes)) {
      set_rates(run);
      return false;
    }
    const std::uint32_t live = live_lanes(slopes);
    for (float slope : slopes) slope_o += slope;
    if (!live) continue;
    const Vec g0 = load(slopes), g1 = load(slopes + lanes);
    for (std::size_t i = 0; i < run.width; ++i) {
      const float* z = run.scores.data() + batch_lanes * i;
      slope_u[i] += sum(g0 * activate(run.activation, load(z), run.threshold) +
                        g1 * activate(run.activation, load(z + lanes), run.threshold));
      const std::uint32_t active = between(z, run.threshold, slope_limit(run.activation)) & live;
      if (!active) continue;
      slope_b[i] += masked_sum(slopes, active);
      add_rows(stride, rows, active, slopes, slope_w + i * stride);
    }
  }
  set_rates(run);
  shrink(run, run.pending_keep[0]);
  const double factor = run.pending_rate[0] / run.scale;
  for (std::size_t i = 0; i < run.width; ++i) {
    const double u = run.output[i];
    float* weights = run.weights.data() + i * stride;
    const float* slope = slope_w + i * stride;
    if (run.pending_truncation[0] > 0)
      for (std::size_t j = 0; j < stride; ++j)
        weights[j] -= static_cast<float>(factor * truncated(u * slope[j], run.pending_truncation[0]));
    else
      for (std::size_t j = 0; j < stride; ++j) weights[j] -= static_cast<float>(factor * u) * slope[j];
    run.bias[i] = static_cast<float>(run.pending_keep[1] * run.bias[i] -
                                     run.pending_rate[1] * truncated(u * slope_b[i], run.pending_truncation[1]));
    run.output[i] = static_cast<float>(run.pending_keep[2] * u -
                                       run.pending_rate[2] * truncated<double>(slope_u[i], run.pending_truncation[2]));
  }
  update_offset(run, slope_o);
  run.examples_seen += batch;
  run.active_pairs += fired;
  run.multiply_adds += std::uint64_t{batch} * run.width * (run.inputs + 1);
  return true;
}

// ---- Measuring.

struct Measured {
  double loss = NAN, error = NAN, active = NAN;
};

Measured measure(TrainingRun& run, const Examples& data) {
  if (data.rows == 0) return {};
  double loss = 0, error = 0;
  std::uint64_t fired = 0;
  alignas(64) float labels[batch_lanes], outputs[batch_lanes], z_tile[tile * batch_lanes];
  for (std::size_t done = 0; done < data.rows; done += batch_lanes) {
    const std::size_t count = std::min(batch_lanes, data.rows - done);
    const std::uint32_t valid = count == batch_lanes ? ~0u : (1u << count) - 1;
    std::uint64_t chosen[batch_lanes];
    for (std::size_t e = 0; e < count; ++e) chosen[e] = done + e;
    if (data.bits) {
      run.signs = signs_are_indices;
      columns_from_bits(run, data, chosen, count, run.columns.data());
      std::copy(data.labels + done, data.labels + done + count, labels);
    } else {
      load_batch(run, data, chosen, count, run.columns.data(), run.rows[run.current].data(), labels);
    }
    Vec f0 = fill(static_cast<float>(run.offset)), f1 = f0;
    for_tiles(
        run, run.columns.data(), z_tile, false, [](std::size_t, std::size_t) {},
        [&](std::size_t first, std::size_t tiles, const float* z) {
          for (std::size_t u = 0; u < tiles; ++u, z += batch_lanes) {
            f0 += run.output[first + u] * activate(run.activation, load(z), run.threshold);
            f1 += run.output[first + u] * activate(run.activation, load(z + lanes), run.threshold);
            fired += static_cast<std::uint64_t>(std::popcount(between(z, run.threshold, infinity) & valid));
          }
        });
    store(outputs, f0);
    store(outputs + lanes, f1);
    for (std::size_t e = 0; e < count; ++e) {
      loss += loss_value(run.loss, outputs[e], labels[e]);
      const double miss = static_cast<double>(outputs[e]) - labels[e];
      error += run.boolean_labels ? (outputs[e] * labels[e] <= 0 ? 1.0 : 0.0) : miss * miss;
    }
  }
  const double rows = static_cast<double>(data.rows);
  return {loss / rows, error / rows, static_cast<double>(fired) / (rows * static_cast<double>(run.width))};
}

double norm(const AlignedVector<float>& values) {
  double squares = 0;
  for (float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

void record(TrainingRun& run) {
  flush(run);
  const Measured train = run.sampling == Sampling::sequential ? Measured{} : measure(run, run.train);
  const Measured test = measure(run, run.test);
  run.records.push_back({static_cast<double>(run.step), train.loss, train.error, test.error,
                         std::abs(run.scale) * norm(run.weights), norm(run.output), train.active});
  ++run.next_checkpoint;
  if (test.error <= run.stop_error) run.stopped = Stop::test_error;
}

}  // namespace

void prepare(TrainingRun& run) {
  const std::size_t stride = run.stride();
  run.columns.assign(batch_lanes * std::max<std::size_t>(run.inputs, 4), 0.0f);
  for (auto& rows : run.rows) rows.assign(batch_lanes * stride, 0.0f);
  run.scores.assign(batch_lanes * run.width, 0.0f);
  run.gradient.assign(stride, 0.0f);
  std::fill(std::begin(run.slopes), std::end(run.slopes), 0.0f);
  record(run);
}

std::size_t advance(TrainingRun& run, std::size_t steps) {
  std::size_t done = 0;
  while (done < steps && run.stopped == Stop::running) {
    const PhaseTable& phase = run.phases[run.phase];
    const std::size_t batch = phase.batch ? phase.batch : run.train.rows;
    if (run.sampling == Sampling::sequential && run.position + batch > run.origin + run.train.rows) break;
    const bool finite = batch <= batch_lanes && phase.batch ? small_step(run, batch) : large_step(run, batch);
    if (!finite) {
      run.stopped = Stop::diverged;
      run.diverged_step = run.step + 1;
      run.diverged_rate = *std::max_element(run.pending_rate, run.pending_rate + 4);
      break;
    }
    ++done;
    ++run.step;
    if (++run.step_in_phase == phase.steps) {
      run.step_in_phase = 0;
      ++run.phase;
    }
    if (run.step == run.checkpoints[run.next_checkpoint]) record(run);
    if (run.phase == run.phases.size() && run.stopped == Stop::running) run.stopped = Stop::steps;
  }
  return done;
}

void export_weights(TrainingRun& run, float* hidden) {
  flush(run);
  const std::size_t stride = run.stride();
  const float scale = static_cast<float>(run.scale);
  for (std::size_t i = 0; i < run.width; ++i)
    for (std::size_t j = 0; j < run.inputs; ++j) hidden[i * run.inputs + j] = scale * run.weights[i * stride + j];
}

}  // namespace fewfire::FEWFIRE_ISA
