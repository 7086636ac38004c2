// Vectors of sixteen floats, the activations' and the CPU engine's.
#pragma once

#include <cstddef>

#include "kernels/vectors-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// Sixteen floats in registers of the variant's width: wider vectors would be split into single numbers. A minibatch of 32
// is two of them.
typedef float Part __attribute__((vector_size(vector_bytes)));
constexpr std::size_t lanes = 16, batch_lanes = 32, parts = lanes * sizeof(float) / vector_bytes;
struct Vec {
  Part part[parts];
};

template <class Operation>
[[gnu::always_inline]] inline Vec each(const Operation& operation) {
  Vec out;
  for (std::size_t p = 0; p < parts; ++p) out.part[p] = operation(p);
  return out;
}
inline Vec load(const float* at) {
  return each([&](std::size_t p) { return reinterpret_cast<const Part*>(at)[p]; });
}
inline void store(float* at, Vec value) {
  for (std::size_t p = 0; p < parts; ++p) reinterpret_cast<Part*>(at)[p] = value.part[p];
}
inline Vec fill(float value) {
  return each([&](std::size_t) { return value - Part{}; });
}
inline Vec operator+(Vec a, Vec b) {
  return each([&](std::size_t p) { return a.part[p] + b.part[p]; });
}
inline Vec operator*(Vec a, Vec b) {
  return each([&](std::size_t p) { return a.part[p] * b.part[p]; });
}
inline Vec operator*(float a, Vec b) {
  return each([&](std::size_t p) { return a * b.part[p]; });
}
inline Vec& operator+=(Vec& a, Vec b) { return a = a + b; }
inline Vec maximum(Vec a, Vec b) {
  return each([&](std::size_t p) { return a.part[p] > b.part[p] ? a.part[p] : b.part[p]; });
}
inline Vec minimum(Vec a, Vec b) {
  return each([&](std::size_t p) { return a.part[p] < b.part[p] ? a.part[p] : b.part[p]; });
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
