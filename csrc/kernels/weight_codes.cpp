#include "kernels/weight_codes.hpp"

#include <cmath>
#include <cstring>

namespace fewfire::FEWFIRE_ISA {
namespace {

constexpr std::size_t lanes = 8;
using Reals [[gnu::vector_size(8 * lanes)]] = double;
using Floats [[gnu::vector_size(4 * lanes)]] = float;
using Integers [[gnu::vector_size(4 * lanes)]] = std::int32_t;
using Bytes [[gnu::vector_size(lanes)]] = std::int8_t;

// The numbers from `at` on, at most eight of them, the rest 0.
inline Reals load(const float* at, std::size_t count) {
  Floats values{};
  if (count >= lanes)
    std::memcpy(&values, at, sizeof values);
  else
    std::memcpy(&values, at, count * sizeof(float));
  return __builtin_convertvector(values, Reals);
}

// Halves away from zero.
inline Integers nearest(Reals values, double most) {
  values = values < 0.0 ? values - 0.5 : values + 0.5;
  values = values > most + 0.5 ? Reals{} + (most + 0.5) : values;
  values = values < -most - 0.5 ? Reals{} - (most + 0.5) : values;
  return __builtin_convertvector(values, Integers);
}

inline void store(std::int8_t* at, Integers codes) {
  const Bytes bytes = __builtin_convertvector(codes, Bytes);
  std::memcpy(at, &bytes, sizeof bytes);
}

inline double total(Reals values) {
  return ((values[0] + values[4]) + (values[2] + values[6])) + ((values[1] + values[5]) + (values[3] + values[7]));
}

inline double largest_of(Reals values) {
  double most = 0;
  for (std::size_t i = 0; i < lanes; ++i) most = values[i] > most ? values[i] : most;
  return most;
}

}  // namespace

WeightCodes code_weights(const float* row, std::size_t inputs, std::int8_t* codes, std::int8_t* residual) {
  WeightCodes out;
  Reals most{}, squares{};
  for (std::size_t j = 0; j < inputs; j += lanes) {
    const Reals w = load(row + j, inputs - j), size = w < 0.0 ? -w : w;
    most = size > most ? size : most;
    squares += w * w;
  }
  out.norm = total(squares);
  const double largest = largest_of(most);
  const bool usual = std::isfinite(out.norm) && largest > 1e-25f && largest < 1e25f;
  if (usual) out.scale = static_cast<float>(largest) / 127.0f;
  const double scale = out.scale, inverse = usual ? 1.0 / scale : 0.0;
  if (!std::isfinite(out.norm)) row = nullptr;  // all codes are 0
  Reals coded{}, lost{};
  most = Reals{};
  for (std::size_t j = 0; j < inputs; j += lanes) {
    const Reals w = row ? load(row + j, inputs - j) : Reals{};
    const Integers code = nearest(w * inverse, 127);
    store(codes + j, code);
    const Reals value = scale * __builtin_convertvector(code, Reals), gap = w - value, size = gap < 0.0 ? -gap : gap;
    coded += value * value, lost += gap * gap;
    most = size > most ? size : most;
  }
  out.coded = total(coded), out.lost = total(lost);
  if (residual == nullptr) return out;
  if (usual) out.fine = static_cast<float>(largest_of(most) / 7);
  const double fine = out.fine, fine_inverse = fine > 0 ? 1.0 / fine : 0.0;
  Reals refined{}, left{};
  for (std::size_t j = 0; j < inputs; j += lanes) {
    const Reals w = row ? load(row + j, inputs - j) : Reals{};
    Bytes bytes;
    std::memcpy(&bytes, codes + j, sizeof bytes);
    const Reals value = scale * __builtin_convertvector(bytes, Reals);
    const Integers rest = nearest((w - value) * fine_inverse, 7);
    store(residual + j, rest);
    const Reals both = value + fine * __builtin_convertvector(rest, Reals), gap = w - both;
    refined += both * both, left += gap * gap;
  }
  out.refined = total(refined), out.left = total(left);
  return out;
}

}  // namespace fewfire::FEWFIRE_ISA
