// Rows of numbers as int8 codes times a scale, with norms that bound what was lost, rounded upwards.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace fewfire {

struct Quantised {
  float scale = 0;  // row ≈ scale·codes
  float coded = 0;  // ‖scale·codes‖
  float lost = 0;   // ‖row − scale·codes‖
  float norm = 0;   // ‖row‖
  std::int32_t sum = 0;
};

// Calls put(j, code) for every coordinate. Rows outside [1e-30, 1e30] are coded as zero (all of it is lost), so that no
// product of the screen leaves the range in which float32 rounds relatively.
template <class Put>
Quantised quantise(const float* row, std::size_t dimension, const Put& put) {
  float largest = 0;
  for (std::size_t j = 0; j < dimension; ++j) largest = std::max(largest, std::fabs(row[j]));
  Quantised out;
  if (largest > 127e-30f && largest < 1e30f) out.scale = largest / 127.0f;
  const double inverse = out.scale > 0 ? 1.0 / out.scale : 0.0;
  double coded = 0, lost = 0, norm = 0;
  for (std::size_t j = 0; j < dimension; ++j) {
    const int code = std::clamp(static_cast<int>(std::lrint(row[j] * inverse)), -127, 127);
    put(j, static_cast<std::int8_t>(code));
    const double value = static_cast<double>(out.scale) * code, error = row[j] - value;
    coded += value * value, lost += error * error, norm += static_cast<double>(row[j]) * row[j];
    out.sum += code;
  }
  // Double sums are right to 2^-53 a term; one part in a million covers them and the rounding to float.
  const auto up = [](double square) {
    const double root = std::sqrt(square) * (1 + 1e-6);
    return root < 3e38 ? static_cast<float>(root) : std::numeric_limits<float>::infinity();
  };
  out.coded = up(coded), out.lost = up(lost), out.norm = up(norm);
  return out;
}

}  // namespace fewfire
