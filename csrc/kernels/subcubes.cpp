#include "kernels/subcubes.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace fewfire::FEWFIRE_ISA {
namespace {

// The lowest four bits of an index are transformed where a coefficient is written or read (only few of a table's
// entries are coefficients), so the passes over the table handle whole runs of 16 doubles.
constexpr std::size_t low = 16;
constexpr std::size_t buffered = 512;  // sample indices computed ahead of their lookups

using Row = std::array<double, low>;

// signs[a][b] = χ_a(b), the 16 × 16 Walsh–Hadamard matrix.
constexpr std::array<Row, low> walsh_rows() {
  std::array<Row, low> rows{};
  for (unsigned a = 0; a < low; ++a)
    for (unsigned b = 0; b < low; ++b) rows[a][b] = std::popcount(a & b) % 2 ? -1.0 : 1.0;
  return rows;
}
alignas(64) constexpr std::array<Row, low> signs = walsh_rows();

// Transform along all bits of the index but the lowest four.
void transform_high_bits(double* table, std::size_t size) {
  std::size_t step = low;
  for (; 4 * step <= size; step *= 4)
    for (std::size_t i = 0; i < size; i += 4 * step)
      for (std::size_t j = i; j < i + step; ++j) {
        const double a = table[j] + table[j + step], b = table[j] - table[j + step];
        const double c = table[j + 2 * step] + table[j + 3 * step], d = table[j + 2 * step] - table[j + 3 * step];
        table[j] = a + c;
        table[j + step] = b + d;
        table[j + 2 * step] = a - c;
        table[j + 3 * step] = b - d;
      }
  if (step < size)
    for (std::size_t j = 0; j < step; ++j) {
      const double a = table[j], b = table[j + step];
      table[j] = a + b;
      table[j + step] = a - b;
    }
}

// Table indices of samples begin … begin + count − 1. Subcubes of two or three groups are the common ones.
void sample_indices(const Subcubes& cover, std::size_t subcube, std::size_t begin, std::size_t count,
                    std::uint32_t* index) {
  const std::int32_t* groups = cover.groups + subcube * cover.arity;
  const auto pattern = [&](std::size_t k) { return cover.patterns + std::size_t(groups[k]) * cover.samples + begin; };
  const std::uint8_t* first = pattern(0);
  std::int32_t shift = cover.group_bits[groups[0]];
  std::size_t k = 1;
  if (cover.arity == 2) {
    const std::uint8_t* second = pattern(k++);
    for (std::size_t i = 0; i < count; ++i) index[i] = first[i] | std::uint32_t{second[i]} << shift;
  } else if (cover.arity == 3) {
    const std::uint8_t *second = pattern(k++), *third = pattern(k++);
    const std::int32_t further = shift + cover.group_bits[groups[1]];
    for (std::size_t i = 0; i < count; ++i)
      index[i] = first[i] | std::uint32_t{second[i]} << shift | std::uint32_t{third[i]} << further;
  } else {
    std::copy_n(first, count, index);
  }
  for (; k < cover.arity; shift += cover.group_bits[groups[k++]]) {
    const std::uint8_t* next = pattern(k);
    for (std::size_t i = 0; i < count; ++i) index[i] |= std::uint32_t{next[i]} << shift;
  }
}

// values[j] += table[index[j]]. Scalar on purpose: two loads a cycle beat the gather instructions.
__attribute__((noinline, optimize("no-tree-vectorize"))) void add_entries(const double* table,
                                                                          const std::uint32_t* index,
                                                                          std::size_t count, double* values) {
  for (std::size_t j = 0; j < count; ++j) values[j] += table[index[j]];
}

}  // namespace

std::size_t subcube_table(const Subcubes& cover, std::size_t subcube) {
  std::int32_t bits = 0;
  for (std::size_t k = 0; k < cover.arity; ++k) bits += cover.group_bits[cover.groups[subcube * cover.arity + k]];
  return std::max(low, std::size_t{1} << bits);
}

void subcube_values(const Subcubes& cover, std::size_t subcube, std::size_t begin, std::size_t end,
                    const double* coefficients, double* values, double* table) {
  const std::size_t size = subcube_table(cover, subcube);
  std::fill_n(table, size, 0.0);
  bool any = false;
  for (std::int64_t s = cover.starts[subcube]; s < cover.starts[subcube + 1]; ++s) {
    const double coefficient = coefficients[cover.monomials[s]];
    if (coefficient == 0.0) continue;
    any = true;
    double* row = table + cover.places[s] / low * low;
    const Row& sign = signs[cover.places[s] % low];
    for (std::size_t j = 0; j < low; ++j) row[j] += coefficient * sign[j];
  }
  if (!any) return;
  transform_high_bits(table, size);
  std::uint32_t index[buffered];
  for (std::size_t i = begin; i < end; i += buffered) {
    const std::size_t count = std::min(buffered, end - i);
    sample_indices(cover, subcube, i, count, index);
    add_entries(table, index, count, values + i);
  }
}

void subcube_sums(const Subcubes& cover, std::size_t subcube, const double* weights, double* sums, double* table) {
  const std::size_t size = subcube_table(cover, subcube);
  std::fill_n(table, size, 0.0);
  std::uint32_t index[buffered];
  for (std::size_t i = 0; i < cover.samples; i += buffered) {
    const std::size_t count = std::min(buffered, cover.samples - i);
    sample_indices(cover, subcube, i, count, index);
    for (std::size_t j = 0; j < count; ++j) table[index[j]] += weights[i + j];
  }
  transform_high_bits(table, size);
  for (std::int64_t s = cover.starts[subcube]; s < cover.starts[subcube + 1]; ++s) {
    const double* row = table + cover.places[s] / low * low;
    const Row& sign = signs[cover.places[s] % low];
    double part[8] = {};
    for (std::size_t j = 0; j < low; ++j) part[j % 8] += row[j] * sign[j];
    sums[cover.monomials[s]] =
        ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  }
}

}  // namespace fewfire::FEWFIRE_ISA
