// Activations of the CPU engine: their names, and in a kernel file their formulas. To add one, write it here and in
// src/fewfire/networks/_activations.py.
#pragma once

#include "base/named.hpp"

namespace fewfire {

enum class ActivationKind { relu, relu6, shifted_relu };
constexpr Named<ActivationKind> activations[] = {{"relu", ActivationKind::relu},
                                                 {"relu6", ActivationKind::relu6},
                                                 {"shifted_relu", ActivationKind::shifted_relu}};

}  // namespace fewfire

#if defined(FEWFIRE_ISA)
#include <limits>

#include "kernels/train_vectors-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

template <ActivationKind kind>
Vec activate(Vec z, float threshold) {
  if constexpr (kind == ActivationKind::relu) return maximum(z, Vec{});
  if constexpr (kind == ActivationKind::relu6) return minimum(maximum(z, Vec{}), fill(6.0f));
  return each([&](std::size_t p) { return z.part[p] > threshold ? z.part[p] : Part{}; });
}

Vec activate(ActivationKind kind, Vec z, float threshold) {
  switch (kind) {
    case ActivationKind::relu:
      return activate<ActivationKind::relu>(z, threshold);
    case ActivationKind::relu6:
      return activate<ActivationKind::relu6>(z, threshold);
    default:
      return activate<ActivationKind::shifted_relu>(z, threshold);
  }
}

constexpr float infinity = std::numeric_limits<float>::infinity();
float slope_limit(ActivationKind kind) { return kind == ActivationKind::relu6 ? 6.0f : infinity; }

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
#endif
