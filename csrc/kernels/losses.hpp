// Losses of the CPU engine and of networks on tables: their names, and in a kernel file values and derivatives. To add
// one, write it here and in src/fewfire/_dense/losses.py.
#pragma once

#include "base/named.hpp"

namespace fewfire {

enum class LossKind { hinge, logistic, square, absolute };
constexpr Named<LossKind> losses[] = {{"hinge", LossKind::hinge},
                                      {"logistic", LossKind::logistic},
                                      {"square", LossKind::square},
                                      {"absolute", LossKind::absolute}};

enum class MlpLoss { logistic, cross_entropy, squared };
constexpr Named<MlpLoss> mlp_losses[] = {
    {"logistic", MlpLoss::logistic}, {"cross_entropy", MlpLoss::cross_entropy}, {"squared", MlpLoss::squared}};

}  // namespace fewfire

#if defined(FEWFIRE_ISA)
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/elementary-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

[[maybe_unused]] float loss_value(LossKind loss, float f, float y) {
  switch (loss) {
    case LossKind::hinge:
      return std::max(1.0f - y * f, 0.0f);
    case LossKind::logistic:
      return static_cast<float>(std::max(-y * f, 0.0f) + log_one_plus(exponential(-std::abs(y * f))));
    case LossKind::square:
      return (f - y) * (f - y) / 2;
    default:
      return std::abs(f - y);
  }
}

[[maybe_unused]] float loss_slope(LossKind loss, float f, float y) {
  switch (loss) {
    case LossKind::hinge:
      return y * f < 1.0f ? -y : 0.0f;
    case LossKind::logistic:
      return static_cast<float>(-y / (1.0 + exponential(y * f)));
    case LossKind::square:
      return f - y;
    default:
      return f > y ? 1.0f : f < y ? -1.0f : 0.0f;
  }
}

// The loss of outputs z (count,) at a target; z becomes its derivative.
[[maybe_unused]] float loss_of(MlpLoss loss, float* z, const float* target, std::size_t count) {
  float sum = 0;
  if (loss == MlpLoss::logistic) {
    const float decays = expf(-fabsf(z[0])), upper = 1 / (1 + decays);
    sum = (z[0] > 0 ? z[0] : 0.0f) + log1pf(decays) - target[0] * z[0];
    z[0] = (z[0] > 0 ? upper : z[0] <= 0 ? decays * upper : z[0]) - target[0];
    return sum;
  }
  if (loss == MlpLoss::squared) {
    for (std::size_t o = 0; o < count; ++o) {
      const float error = z[o] - target[o];
      z[o] = error / static_cast<float>(count);
      sum += 0.5f * error * z[o];
    }
    return sum;
  }
  float top = z[0], mass = 0, heights = 0;
  for (std::size_t o = 1; o < count; ++o) top = z[o] > top ? z[o] : top;
  for (std::size_t o = 0; o < count; ++o) mass += expf(z[o] - top);
  const float log_sum = logf(mass) + top;
  for (std::size_t o = 0; o < count; ++o) {
    heights += target[o] * (log_sum - z[o]);
    z[o] = expf(z[o] - log_sum) - target[o];
  }
  return heights;
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
#endif
