// Codes of one row of weights, as kernels/sparse_block.hpp reads them: w ≈ scale·c with integers |c_j| ≤ 127, and what
// that leaves, w − scale·c ≈ fine·r with |r_j| ≤ 7.
//
// Sums are of doubles, eight side by side and then folded in halves, so they have the same bits on every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

// Squares of norms: right to a part in 10⁹, rounded to no side.
struct WeightCodes {
  double norm = 0;                 // ‖w‖², not finite where w is not: then nothing else is known
  float scale = 0, fine = 0;       // 0 where the row is coded as zero
  double coded = 0, lost = 0;      // ‖scale·c‖², ‖w − scale·c‖²
  double refined = 0, left = 0;    // ‖scale·c + fine·r‖², ‖w − scale·c − fine·r‖²
};

FEWFIRE_DECLARE(
    // Codes c into `codes` and, unless it is null, r into `residual`; both have room for `inputs` filled up to a multiple
    // of eight, and those beyond are 0. Rows whose largest weight is outside (10⁻²⁵, 10²⁵) are coded as zero.
    WeightCodes code_weights(const float* row, std::size_t inputs, std::int8_t* codes, std::int8_t* residual);)

}  // namespace fewfire
