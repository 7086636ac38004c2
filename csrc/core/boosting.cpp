#include "core/boosting.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/growing.hpp"

namespace fewfire {
namespace {

constexpr double least_gain = 1e-7, least_curvature = 1e-3, least_chance = 1e-12;

BinSums operator-(const BinSums& a, const BinSums& b) {
  return {a.slope - b.slope, a.curvature_and_rows - b.curvature_and_rows};
}

// The power of two that is 2^-bits times the least one above all numbers.
double unit_of(const double* numbers, std::size_t count, int bits) {
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(numbers[i]));
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::ldexp(1.0, exponent - bits);
}

// Chances of the classes that outputs (count,) stand for.
void chances_of(const double* z, std::size_t count, double* chances) {
  const double top = *std::max_element(z, z + count);
  double mass = 0;
  for (std::size_t o = 0; o < count; ++o) mass += chances[o] = std::exp(z[o] - top);
  for (std::size_t o = 0; o < count; ++o) chances[o] /= mass;
}

double loss_at(MlpLoss loss, const double* z, const float* target, std::size_t count) {
  if (loss == MlpLoss::logistic)
    return std::max(z[0], 0.0) + std::log1p(std::exp(-std::fabs(z[0]))) - target[0] * z[0];
  double sum = 0;
  if (loss == MlpLoss::squared) {
    for (std::size_t o = 0; o < count; ++o) sum += (z[o] - target[o]) * (z[o] - target[o]);
    return sum / static_cast<double>(count);
  }
  const double top = *std::max_element(z, z + count);
  for (std::size_t o = 0; o < count; ++o) sum += std::exp(z[o] - top);
  double heights = std::log(sum) + top;
  for (std::size_t o = 0; o < count; ++o) heights -= target[o] * z[o];
  return heights;
}

}  // namespace

Booster::Booster(BinnedTable table, std::vector<std::size_t> bins, const float* target, std::size_t outputs,
                 const float* weight, MlpLoss loss, std::vector<std::int32_t> rows, std::vector<std::int32_t> held,
                 BoostingRule rule)
    : table_(table), bins_(std::move(bins)), offsets_(table.columns + 1), target_(target), weight_(weight),
      outputs_(outputs), loss_(loss), rows_(std::move(rows)), held_(std::move(held)),
      beside_(std::max(rows_.size(), held_.size())), rule_(rule), baseline_(outputs), slopes_(rows_.size() * outputs),
      curvatures_(rows_.size() * outputs), parts_(table.rows), chosen_parts_(rows_.size()), bin_sums_(rule.leaves) {
  std::partial_sum(bins_.begin(), bins_.end(), offsets_.begin() + 1);
  double mass = 0;
  for (const std::int32_t row : rows_) {
    mass += weight_[row];
    for (std::size_t o = 0; o < outputs_; ++o) baseline_[o] += weight_[row] * target_[row * outputs_ + o];
  }
  for (double& mean : baseline_) {
    mean /= mass;
    if (loss_ == MlpLoss::cross_entropy) mean = std::log(std::max(mean, least_chance));
    if (loss_ == MlpLoss::logistic) mean = std::log(std::max(mean, least_chance) / std::max(1 - mean, least_chance));
  }
  for (std::size_t row = 0; row < table_.rows; ++row) said_.insert(said_.end(), baseline_.begin(), baseline_.end());
  held_said_ = said_;
}

void Booster::advance(std::size_t rounds, double* losses) {
  for (std::size_t round = 0; round < rounds; ++round) {
    differentiate();
    for (std::size_t o = 0; o < outputs_; ++o) {
      round_parts(o);
      grow(o);
    }
    double sum = 0;
    for (const std::int32_t row : held_)
      sum += weight_[row] * loss_at(loss_, &held_said_[row * outputs_], target_ + row * outputs_, outputs_);
    losses[round] = sum;
  }
}

// Slopes and curvatures of the loss by every output, at the outputs before the round.
void Booster::differentiate() {
  std::vector<double> chances(outputs_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const double* z = &said_[rows_[i] * outputs_];
    const float *target = target_ + rows_[i] * outputs_, weight = weight_[rows_[i]];
    if (loss_ == MlpLoss::logistic) chances[0] = 1 / (1 + std::exp(-z[0]));
    if (loss_ == MlpLoss::cross_entropy) chances_of(z, outputs_, chances.data());
    for (std::size_t o = 0; o < outputs_; ++o) {
      const bool squared = loss_ == MlpLoss::squared;
      slopes_[o * rows_.size() + i] = ((squared ? z[o] : chances[o]) - target[o]) * weight;
      curvatures_[o * rows_.size() + i] = (squared ? 1 : chances[o] * (1 - chances[o])) * weight;
    }
  }
}

// Sums over all rows fit: slopes into 51 bits, curvatures and numbers of rows together into 62.
void Booster::round_parts(std::size_t output) {
  const std::size_t rows = rows_.size();
  const double *slopes = &slopes_[output * rows], *curvatures = &curvatures_[output * rows];
  const int length = std::bit_width(rows);
  units_ = {unit_of(slopes, rows, std::min(30, 51 - length)),
            unit_of(curvatures, rows, std::min({30, 51 - length, 62 - 2 * length})), length};
  for (std::size_t i = 0; i < rows; ++i) {
    const auto curvature = static_cast<std::int64_t>(std::nearbyint(curvatures[i] / units_.curvature));
    parts_[rows_[i]] = {static_cast<std::int64_t>(std::nearbyint(slopes[i] / units_.slope)), (curvature << units_.shift) + 1};
  }
}

void Booster::grow(std::size_t output) {
  order_ = rows_;
  held_order_ = held_;
  leaves_.assign(1, Leaf{0, order_.size(), 0, held_order_.size(), {}, 0, -1, false, 0, {}});
  for (const std::int32_t row : rows_) {
    leaves_[0].sums.slope += parts_[row].slope;
    leaves_[0].sums.curvature_and_rows += parts_[row].curvature_and_rows;
  }
  if (splittable(leaves_[0])) {
    sum_bins(leaves_[0]);
    find_split(leaves_[0]);
  }
  const std::size_t first = forks_.size();
  while (leaves_.size() < rule_.leaves) {
    const auto best = std::max_element(leaves_.begin(), leaves_.end(), [](const Leaf& a, const Leaf& b) {
      return a.split.at.gain < b.split.at.gain;
    });
    if (best->split.at.gain <= 0) break;
    divide(static_cast<std::size_t>(best - leaves_.begin()));
  }
  roots_.push_back(forks_.size() == first ? ~static_cast<std::int32_t>(values_.size()) : static_cast<std::int32_t>(first));
  ends_.push_back(static_cast<std::int32_t>(forks_.size()));
  for (const Leaf& leaf : leaves_) {
    const double slope = static_cast<double>(leaf.sums.slope) * units_.slope;
    const double value = -rule_.learning_rate * slope / (curvature_of(leaf.sums) + rule_.l2);
    if (leaf.fork >= 0) forks_[leaf.fork].children[leaf.right] = ~static_cast<std::int32_t>(values_.size());
    values_.push_back(static_cast<float>(value));
    for (std::size_t i = leaf.begin; i < leaf.end; ++i) said_[order_[i] * outputs_ + output] += values_.back();
    for (std::size_t i = leaf.held_begin; i < leaf.held_end; ++i)
      held_said_[held_order_[i] * outputs_ + output] += values_.back();
  }
}

double Booster::rows_of(const BinSums& sums) const {
  return static_cast<double>(sums.curvature_and_rows & ((std::int64_t{1} << units_.shift) - 1));
}

double Booster::curvature_of(const BinSums& sums) const {
  return static_cast<double>(sums.curvature_and_rows >> units_.shift) * units_.curvature;
}

bool Booster::splittable(const Leaf& leaf) const {
  return rows_of(leaf.sums) >= 2 * static_cast<double>(rule_.least_rows) && curvature_of(leaf.sums) >= least_curvature;
}

void Booster::sum_bins(const Leaf& leaf) {
  const std::size_t count = leaf.end - leaf.begin;
  const std::int32_t* rows = order_.data() + leaf.begin;
  for (std::size_t i = 0; i < count; ++i) chosen_parts_[i] = parts_[rows[i]];
  auto& sums = bin_sums_[leaf.sums_at];
  sums.assign(offsets_.back(), BinSums{});
  FEWFIRE_DISPATCH(add_to_bins, table_, rows, chosen_parts_.data(), count, offsets_.data(), sums.data());
}

// The columns of the smallest random numbers are tried, in their order in the table.
void Booster::find_split(Leaf& leaf) {
  const std::size_t columns = table_.columns;
  const auto tried = static_cast<std::size_t>(std::ceil(rule_.share * static_cast<double>(columns)));
  std::vector<std::uint64_t> draws(columns);
  const std::uint64_t here = mixed(mixed(rule_.seed + roots_.size()) + leaf.number);
  for (std::size_t c = 0; c < columns; ++c) draws[c] = mixed(here + c);
  std::vector<std::uint64_t> sorted = draws;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(tried - 1), sorted.end());
  const BinRule rule{static_cast<std::int64_t>(rule_.least_rows), least_curvature, rule_.l2};
  const BinSums* sums = bin_sums_[leaf.sums_at].data();
  leaf.split = Split{};
  leaf.split.at.gain = least_gain;
  for (std::size_t c = 0; c < columns; ++c)
    if (draws[c] <= sorted[tried - 1] &&
        FEWFIRE_DISPATCH(better_split, sums + offsets_[c], bins_[c], leaf.sums, units_, rule, leaf.split.at))
      leaf.split.column = c;
  if (leaf.split.at.gain <= least_gain) leaf.split.at.gain = 0;
}

// Splits a leaf in two: the left child takes its place, the right one comes last.
void Booster::divide(std::size_t number) {
  const Leaf parent = leaves_[number];
  const BinSplit& split = parent.split.at;
  const std::uint8_t* bins = table_.bins + parent.split.column * table_.rows;
  const std::size_t last = bins_[parent.split.column] - 1;
  const auto goes_left = [=, up_to = split.bin, missing_left = split.missing_left](std::int32_t row) {
    const std::size_t bin = bins[row];
    return (bin <= up_to) | ((bin == last) & missing_left);
  };
  const std::size_t middle = divided(order_, parent.begin, parent.end, beside_.data(), goes_left);
  const std::size_t held_middle = divided(held_order_, parent.held_begin, parent.held_end, beside_.data(), goes_left);
  const auto fork = static_cast<std::int32_t>(forks_.size());
  if (parent.fork >= 0) forks_[parent.fork].children[parent.right] = fork;
  const auto column = static_cast<std::int32_t>(2 * parent.split.column + split.missing_left);
  forks_.push_back({column, static_cast<float>(split.bin), {0, 0}});
  const std::uint64_t next = 2 * leaves_.size();
  const BinSums of_right = parent.sums - split.left;
  Leaf left{parent.begin, middle, parent.held_begin, held_middle, split.left, parent.sums_at, fork, false, next - 1, {}};
  Leaf right{middle, parent.end, held_middle, parent.held_end, of_right, leaves_.size(), fork, true, next, {}};
  if (leaves_.size() + 1 < rule_.leaves && (splittable(left) || splittable(right))) {
    Leaf& fewer = middle - parent.begin <= parent.end - middle ? left : right;
    Leaf& more = &fewer == &left ? right : left;
    if (&fewer == &left) std::swap(left.sums_at, right.sums_at);  // the larger child works on the parent's sums
    sum_bins(fewer);
    auto &larger = bin_sums_[more.sums_at], &smaller = bin_sums_[fewer.sums_at];
    for (std::size_t b = 0; b < larger.size(); ++b) larger[b] = larger[b] - smaller[b];
    for (Leaf* child : {&left, &right})
      if (splittable(*child)) find_split(*child);
  }
  leaves_[number] = left;
  leaves_.push_back(right);
}

}  // namespace fewfire
