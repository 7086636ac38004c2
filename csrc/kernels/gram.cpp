#include "kernels/gram.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

constexpr std::size_t largest_degree = 32;

// The index of a set of the given size in the order of the moments: the sets of smaller size come first, then those
// of its size that are lexicographically smaller, which number C(n, size) − 1 − Σ_j C(n − 1 − member_j, size − j).
std::int64_t moment_index(const MomentTable& table, const std::int64_t* members, std::size_t size) {
  const std::size_t width = 2 * table.degree + 1;
  const std::int64_t* choose_from_n = table.binomials + table.n * width;
  std::int64_t index = -1;
  for (std::size_t k = 0; k <= size; ++k) index += choose_from_n[k];
  for (std::size_t j = 0; j < size; ++j)
    index -= table.binomials[(table.n - 1 - static_cast<std::size_t>(members[j])) * width + size - j];
  return index;
}

// The members of exactly one of two ascending lists (length `degree`, padded with −1); returns how many.
std::size_t symmetric_difference(const std::int64_t* a, const std::int64_t* b, std::size_t degree, std::int64_t* out) {
  std::size_t i = 0, j = 0, count = 0;
  while (true) {
    const bool left = i < degree && a[i] >= 0, right = j < degree && b[j] >= 0;
    if (left && right && a[i] == b[j]) {
      ++i, ++j;
    } else if (left && (!right || a[i] < b[j])) {
      out[count++] = a[i++];
    } else if (right) {
      out[count++] = b[j++];
    } else {
      return count;
    }
  }
}

}  // namespace

void gram_row(const MomentTable& table, std::size_t set, double* row) {
  const std::int64_t* own = table.sets + set * table.degree;
  const double own_moment = table.moments[set];
  std::int64_t members[2 * largest_degree];
  for (std::size_t other = 1; other <= set; ++other) {
    const std::size_t size = symmetric_difference(own, table.sets + other * table.degree, table.degree, members);
    // Integers up to samples², so exact until the division for up to 9·10⁷ samples.
    const double together = table.moments[moment_index(table, members, size)];
    row[other - 1] = (table.samples * together - own_moment * table.moments[other]) / table.samples;
  }
}

}  // namespace fewfire::FEWFIRE_ISA
