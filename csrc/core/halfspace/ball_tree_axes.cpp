// The main axes of a tree: in which few directions points stray from the centre of their block.
#include <algorithm>
#include <cmath>

#include "core/halfspace/ball_tree.hpp"

namespace fewfire {
namespace {

// Makes the rows orthonormal (Gram–Schmidt, twice for accuracy); a row that vanishes becomes zero.
void orthonormalise(std::vector<double>& rows, std::size_t count, std::size_t dimension) {
  const auto dot = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t j = 0; j < dimension; ++j) sum += rows[a * dimension + j] * rows[b * dimension + j];
    return sum;
  };
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t again = 0; again < 2; ++again)
      for (std::size_t other = 0; other < r; ++other) {
        const double product = dot(r, other);
        for (std::size_t j = 0; j < dimension; ++j) rows[r * dimension + j] -= product * rows[other * dimension + j];
      }
    const double length = std::sqrt(dot(r, r));
    for (std::size_t j = 0; j < dimension; ++j) rows[r * dimension + j] *= length > 1e-200 ? 1 / length : 0.0;
  }
}

}  // namespace

void BallTree::find_axes(const HalfspacePoints& points) {
  const std::size_t dimension = blocks_.dimension(), blocks = blocks_.blocks();
  const std::size_t most = std::min(most_axes, dimension / 2);
  if (most == 0 || dimension > 512) return;
  // What a sample of blocks leaves when its centre is taken off, each scaled by the whole so that sums stay in range.
  std::vector<double> gaps;
  const std::size_t step = std::max<std::size_t>(blocks / 32, 1);
  double total = 0;
  for (std::size_t block = 0; block < blocks; block += step) {
    const std::size_t first = block * block_points, last = std::min(first + block_points, points.ids.size());
    std::vector<double> centre(dimension, 0.0);
    const auto row = [&](std::size_t at) { return points.rows.data() + at * dimension; };
    for (std::size_t at = first; at < last; ++at)
      for (std::size_t j = 0; j < dimension; ++j) centre[j] += row(at)[j] / static_cast<double>(last - first);
    for (std::size_t at = first; at < last; ++at)
      for (std::size_t j = 0; j < dimension; ++j) {
        gaps.push_back(row(at)[j] - centre[j]);
        total += gaps.back() * gaps.back();
      }
  }
  if (!(total > 0) || total > 1e60) return;
  // A few rounds of subspace iteration; directions need not be exact, any orthonormal ones give valid bounds.
  std::vector<double> axes(most * dimension), spread(most);
  for (std::size_t r = 0; r < most; ++r)
    for (std::size_t j = 0; j < dimension; ++j) axes[r * dimension + j] = (r + j) % most == 0 ? 1.0 : 0.01 * double(j % 7);
  for (int round = 0; round < 6; ++round) {
    orthonormalise(axes, most, dimension);
    std::vector<double> next(axes.size(), 0.0);
    std::fill(spread.begin(), spread.end(), 0.0);
    for (const double* gap = gaps.data(); gap < gaps.data() + gaps.size(); gap += dimension)
      for (std::size_t r = 0; r < most; ++r) {
        double product = 0;
        for (std::size_t j = 0; j < dimension; ++j) product += gap[j] * axes[r * dimension + j];
        for (std::size_t j = 0; j < dimension; ++j) next[r * dimension + j] += product * gap[j] / total;
        spread[r] += product * product / total;
      }
    if (round < 5) axes = std::move(next);
  }
  // With k axes a query of random direction sees √(share·k/d) + √((1 − share)(1 − k/d)) of the radius.
  double best = 0.7, share = 0;
  std::size_t count = 0;
  for (std::size_t k = 1; k <= most; ++k) {
    share = std::min(share + spread[k - 1], 1.0);
    const double part = static_cast<double>(k) / static_cast<double>(dimension);
    const double seen = std::sqrt(share * part) + std::sqrt((1 - share) * (1 - part));
    if (seen < best) best = seen, count = k;
  }
  axes.resize(count * dimension);
  axes_ = std::move(axes);
}

}  // namespace fewfire
