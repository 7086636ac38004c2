// Polynomials of degree ≤ d on samples of ±1, without the matrix (samples × monomials).
//
// The n coordinates are split into groups, and a subcube is a union of a few groups, few enough that the 2^t values
// of a function of its t coordinates fit in cache. The subcubes together hold every monomial of degree ≤ d, each
// assigned to one of them. On one subcube
//   coefficients -> values:  Walsh–Hadamard transform of the coefficients, then one table lookup per sample;
//   weights -> sums:         one histogram update per sample, then the same transform.
// So a sample costs one memory access per subcube instead of one multiply-add per monomial.
//
// Bits: −1 is a set bit. A group's pattern holds its coordinates from the lowest bit up; a subcube's index holds the
// patterns of its groups from the lowest bits up; the place of a monomial is the index with the bits of its members.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

struct Subcubes {
  const std::uint8_t* patterns;   // groups × samples
  std::size_t samples;
  const std::int32_t* group_bits; // coordinates in each group, at most 8
  const std::int32_t* groups;     // subcubes × arity: the groups of each subcube
  std::size_t arity;
  const std::int64_t* starts;     // subcubes + 1: where each one's monomials begin
  const std::int64_t* monomials;  // index of the monomial in the caller's order
  const std::uint32_t* places;    // its place in the table of its subcube
};

FEWFIRE_DECLARE(
    // How many doubles the table of one subcube takes.
    std::size_t subcube_table(const Subcubes& cover, std::size_t subcube);
    // values[i] += Σ coefficients[S] χ_S(x_i) over the monomials S of one subcube, samples begin ≤ i < end.
    void subcube_values(const Subcubes& cover, std::size_t subcube, std::size_t begin, std::size_t end,
                        const double* coefficients, double* values, double* table);
    // sums[S] = Σ_i weights[i] χ_S(x_i) over all samples, for the monomials S of one subcube.
    void subcube_sums(const Subcubes& cover, std::size_t subcube, const double* weights, double* sums,
                      double* table);)

}  // namespace fewfire
