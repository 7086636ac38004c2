// Plain loops: the compiler vectorises them for each instruction set.
#include "kernels/mlp.hpp"

#include <algorithm>
#include <cmath>

namespace fewfire::FEWFIRE_ISA {
namespace {

template <class T>
inline void add_and_rectify(T* __restrict hidden, const T* __restrict bias, std::size_t rows, std::size_t width) {
  for (std::size_t i = 0; i < rows; ++i) {
    T* row = hidden + i * width;
    for (std::size_t j = 0; j < width; ++j) {
      const T score = row[j] + bias[j];
      row[j] = score > 0 ? score : 0;
    }
  }
}

}  // namespace

void adamw_step(float* __restrict parameters, const float* __restrict gradient, float* __restrict mean,
                float* __restrict square, std::size_t count, AdamRule rule) {
  const float keep1 = 1 - rule.beta1, keep2 = 1 - rule.beta2, shrink = 1 - rule.decay;
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i];
    const float m = rule.beta1 * mean[i] + keep1 * g;
    const float v = rule.beta2 * square[i] + keep2 * g * g;
    mean[i] = m;
    square[i] = v;
    parameters[i] = shrink * parameters[i] - rule.rate * m / (std::sqrt(v) + rule.tiny);
  }
}

void bias_relu(float* hidden, const float* bias, std::size_t rows, std::size_t width) {
  add_and_rectify(hidden, bias, rows, width);
}

void bias_relu(double* hidden, const double* bias, std::size_t rows, std::size_t width) {
  add_and_rectify(hidden, bias, rows, width);
}

void relu_backward(float* __restrict back, const float* __restrict hidden, float* __restrict bias_gradient,
                   std::size_t rows, std::size_t width) {
  std::fill_n(bias_gradient, width, 0.0f);
  for (std::size_t i = 0; i < rows; ++i) {
    const float* active = hidden + i * width;
    float* row = back + i * width;
    for (std::size_t j = 0; j < width; ++j) {
      const float kept = active[j] > 0 ? row[j] : 0;
      row[j] = kept;
      bias_gradient[j] += kept;
    }
  }
}

void outer_relu_backward(const float* __restrict errors, const float* __restrict output,
                         const float* __restrict hidden, float* __restrict back, float* __restrict bias_gradient,
                         std::size_t rows, std::size_t width) {
  std::fill_n(bias_gradient, width, 0.0f);
  for (std::size_t i = 0; i < rows; ++i) {
    const float* active = hidden + i * width;
    const float error = errors[i];
    float* row = back + i * width;
    for (std::size_t j = 0; j < width; ++j) {
      const float kept = active[j] > 0 ? error * output[j] : 0;
      row[j] = kept;
      bias_gradient[j] += kept;
    }
  }
}

}  // namespace fewfire::FEWFIRE_ISA
