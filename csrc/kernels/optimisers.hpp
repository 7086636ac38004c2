// Optimisers of networks on tables: their names, the arrays they keep, and in a kernel file their steps. To add one, write
// it here and in src/fewfire/_dense/optimisers.py.
#pragma once

#include <cstddef>

#include "base/named.hpp"
#include "kernels/mlp.hpp"
#include "kernels/mlp_layout.hpp"

namespace fewfire {

enum class OptimiserKind { adamw, sgd };
constexpr Named<OptimiserKind> optimisers[] = {{"AdamW", OptimiserKind::adamw}, {"SGD", OptimiserKind::sgd}};
constexpr std::size_t states_of(OptimiserKind kind) { return kind == OptimiserKind::adamw ? 2 : 1; }

// AdamW: `first` and `second` are the means of the gradient and of its square; SGD: `first` is the velocity, and beta1
// the momentum.
struct MlpDescent {
  OptimiserKind kind;
  double learning_rate, decay, beta1, beta2;
  std::size_t steps;  // so far
  float *first, *second;
};

}  // namespace fewfire

#if defined(FEWFIRE_ISA)
#include <cmath>

namespace fewfire::FEWFIRE_ISA {
namespace {

// Moves the parameters along the gradient; `steps` counts this one.
[[maybe_unused]] void descend(const MlpLayout& at, float* packed, const float* gradient, const MlpDescent& by, std::size_t steps) {
  const std::size_t rest = at.size - at.decayed;
  const double shrink = by.learning_rate * by.decay;
  if (by.kind == OptimiserKind::adamw) {
    // Both means start at 0; dividing them by 1 − βᵗ corrects that, here inside rate and tiny.
    const double since = static_cast<double>(steps), of_square = sqrt(1 - pow(by.beta2, since));
    AdamRule rule{static_cast<float>(by.learning_rate * of_square / (1 - pow(by.beta1, since))),
                  static_cast<float>(shrink), static_cast<float>(by.beta1), static_cast<float>(by.beta2),
                  static_cast<float>(1e-8 * of_square)};
    adamw_step(packed, gradient, by.first, by.second, at.decayed, rule);
    rule.decay = 0;
    adamw_step(packed + at.decayed, gradient + at.decayed, by.first + at.decayed, by.second + at.decayed, rest, rule);
    return;
  }
  const float rate = static_cast<float>(by.learning_rate), momentum = static_cast<float>(by.beta1);
  const float kept = static_cast<float>(1 - shrink);
  for (std::size_t e = 0; e < at.size; ++e) {
    by.first[e] = momentum * by.first[e] - rate * gradient[e];
    packed[e] = (e < at.decayed ? kept * packed[e] : packed[e]) + by.first[e];
  }
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
#endif
