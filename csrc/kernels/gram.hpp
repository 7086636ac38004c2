// The Gram matrix of monomials from moments: χ_S χ_T = χ_{S△T}, so Σ_i χ_S(x_i) χ_T(x_i) = M[S△T], the moment of the
// symmetric difference, and the samples are not needed again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

struct MomentTable {
  const double* moments;  // Σ_i χ_U(x_i) for |U| ≤ 2·degree, by size, then lexicographically
  std::size_t n, degree;
  const std::int64_t* binomials;  // (n + 1) × (2·degree + 1): C(x, k) at [x][k]
  const std::int64_t* sets;       // monomials × degree: members ascending, padded with −1; row 0 is the empty set
  double samples;
};

FEWFIRE_DECLARE(
    // row[T − 1] = M[S△T] − M[S] M[T] / samples for the non-empty sets T = 1 … S: one row of the lower triangle.
    void gram_row(const MomentTable& table, std::size_t set, double* row);)

}  // namespace fewfire
