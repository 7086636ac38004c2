// Cosines and sines come from polynomials, so that the compiler vectorises the loops for each instruction set.
#include "kernels/periodic.hpp"

#include <algorithm>

namespace fewfire::FEWFIRE_ISA {
namespace {

constexpr float pi = 3.14159265358979f;
constexpr std::size_t lanes = 8;

struct Turn {
  float cosine, sine;
};

// Of an angle in turns: first the part beyond whole turns, in [−½, ½]; then sine and cosine of half of its angle by
// their series, which at π/2 are short of 1e-7; then those of the whole angle by doubling.
inline Turn turn(float turns) {
  constexpr float whole = 12582912.0f;  // 1.5·2²³: adding it rounds to an integer
  float part = turns - ((turns + whole) - whole);
  part = part > -0.5f ? part : -0.5f;  // beyond 2²² turns nothing is left of the angle; stay finite
  part = part < 0.5f ? part : 0.5f;
  const float z = pi * part, w = z * z;
  const float s =
      z * (1 + w * (-1.0f / 6 + w * (1.0f / 120 + w * (-1.0f / 5040 + w * (1.0f / 362880 - w * (1.0f / 39916800))))));
  const float c = 1 + w * (-0.5f + w * (1.0f / 24 + w * (-1.0f / 720 + w * (1.0f / 40320 +
                  w * (-1.0f / 3628800 + w * (1.0f / 479001600))))));
  return {1 - 2 * s * s, 2 * s * c};
}

// The cosine alone, in float64: the sine of half the angle, whose series at π/2 is short of 1e-17, then by doubling.
inline double cosine(double turns) {
  constexpr double half_turn = 3.14159265358979323846, whole = 6755399441055744.0;  // 1.5·2⁵²
  double part = turns - ((turns + whole) - whole);
  part = part > -0.5 ? part : -0.5;
  part = part < 0.5 ? part : 0.5;
  const double z = half_turn * part, w = z * z;
  double s = 1.0 / 51090942171709440000.0;
  s = -1.0 / 121645100408832000.0 + w * s;
  s = 1.0 / 355687428096000.0 + w * s;
  s = -1.0 / 1307674368000.0 + w * s;
  s = 1.0 / 6227020800.0 + w * s;
  s = -1.0 / 39916800.0 + w * s;
  s = 1.0 / 362880.0 + w * s;
  s = -1.0 / 5040.0 + w * s;
  s = 1.0 / 120.0 + w * s;
  s = -1.0 / 6.0 + w * s;
  s = z * (1 + w * s);
  return 1 - 2 * s * s;
}

// Σ_k a_k·b_k in lanes, which the compiler may not do by itself.
inline float dot(const float* a, const float* b, std::size_t count) {
  float sums[lanes] = {};
  std::size_t k = 0;
  for (; k + lanes <= count; k += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[k + lane] * b[k + lane];
  float sum = 0;
  for (; k < count; ++k) sum += a[k] * b[k];
  for (const float part : sums) sum += part;
  return sum;
}

}  // namespace

void periodic_values(const float* __restrict x, PeriodicParameters<float> parameters, float* __restrict fed,
                     float* __restrict cosines, float* __restrict sines, PeriodicSizes sizes) {
  const std::size_t rows = sizes.rows, inputs = sizes.inputs, count = sizes.frequencies;
  for (std::size_t i = 0; i < rows; ++i) {
    float* row = fed + i * sizes.fed_row;
    std::copy_n(x + i * inputs, inputs, row);
    for (std::size_t j = 0; j < inputs; ++j) {
      const float value = x[i * inputs + j];
      const float *frequency = parameters.frequency + j * count, *phase = parameters.phase + j * count;
      float *c = cosines + (i * inputs + j) * count, *s = sines + (i * inputs + j) * count;
      for (std::size_t k = 0; k < count; ++k) {
        const Turn at = turn(frequency[k] * value + phase[k] * (0.5f / pi));
        c[k] = at.cosine;
        s[k] = at.sine;
      }
      row[inputs + j] = parameters.bias[j] + dot(parameters.mix + j * count, c, count);
    }
  }
}

void periodic_outputs(const double* __restrict x, PeriodicParameters<double> parameters, double* __restrict fed,
                      PeriodicSizes sizes) {
  constexpr double per_turn = 0.15915494309189533577;  // 1/(2π)
  const std::size_t rows = sizes.rows, inputs = sizes.inputs, count = sizes.frequencies;
  for (std::size_t i = 0; i < rows; ++i) {
    double* row = fed + i * sizes.fed_row;
    std::copy_n(x + i * inputs, inputs, row);
    for (std::size_t j = 0; j < inputs; ++j) {
      const double value = x[i * inputs + j];
      const double *mix = parameters.mix + j * count, *frequency = parameters.frequency + j * count,
                   *phase = parameters.phase + j * count;
      double sums[lanes] = {}, sum = parameters.bias[j];
      std::size_t k = 0;
      for (; k + lanes <= count; k += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane)
          sums[lane] += mix[k + lane] * cosine(frequency[k + lane] * value + phase[k + lane] * per_turn);
      for (; k < count; ++k) sum += mix[k] * cosine(frequency[k] * value + phase[k] * per_turn);
      for (const double part : sums) sum += part;
      row[inputs + j] = sum;
    }
  }
}

void periodic_sums(const float* __restrict x, const float* __restrict back, const float* __restrict cosines,
                   const float* __restrict sines, PeriodicGradients gradients, PeriodicSizes sizes) {
  const std::size_t rows = sizes.rows, inputs = sizes.inputs, count = sizes.frequencies;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < inputs; ++j) {
      const float slope = back[i * sizes.back_row + j], stretched = slope * x[i * inputs + j];
      const float *c = cosines + (i * inputs + j) * count, *s = sines + (i * inputs + j) * count;
      float* __restrict mix = gradients.mix + j * count;
      float* __restrict frequency = gradients.frequency + j * count;
      float* __restrict phase = gradients.phase + j * count;
      gradients.bias[j] += slope;
      for (std::size_t k = 0; k < count; ++k) {
        mix[k] += slope * c[k];
        phase[k] += slope * s[k];
        frequency[k] += stretched * s[k];
      }
    }
}

void periodic_factors(PeriodicParameters<float> parameters, PeriodicGradients gradients, PeriodicSizes sizes) {
  for (std::size_t e = 0; e < sizes.inputs * sizes.frequencies; ++e) {
    gradients.phase[e] *= -parameters.mix[e];
    gradients.frequency[e] *= -2 * pi * parameters.mix[e];
  }
}

}  // namespace fewfire::FEWFIRE_ISA
