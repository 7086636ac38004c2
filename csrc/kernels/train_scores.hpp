// Scores of the hidden neurons on 32 examples, several neurons side by side, and the outputs they add up to.
#pragma once

#include "kernels/train_math.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

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

// The outputs of the network on 32 examples, summed tile by tile, and how many neurons fired on them.
struct Outputs {
  Vec left, right;
  std::uint32_t valid;  // lanes that hold an example
  std::uint64_t fired = 0;

  Outputs(const TrainingRun& run, std::size_t count)
      : left(fill(static_cast<float>(run.offset))), right(left), valid(count == batch_lanes ? ~0u : (1u << count) - 1) {}

  void add(const TrainingRun& run, std::size_t first, std::size_t tiles, const float* z) {
    for (std::size_t u = 0; u < tiles; ++u, z += batch_lanes) {
      left += run.output[first + u] * activate(run.activation, load(z), run.threshold);
      right += run.output[first + u] * activate(run.activation, load(z + lanes), run.threshold);
      fired += static_cast<std::uint64_t>(std::popcount(between(z, run.threshold, infinity) & valid));
    }
  }

  void write(float* values) const {
    store(values, left);
    store(values + lanes, right);
  }
};

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
