#include "core/boosting.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/mixed.hpp"

namespace fewfire {
namespace {

constexpr double least_gain = 1e-7, least_curvature = 1e-3, least_chance = 1e-12;

BinSums operator+(const BinSums& a, const BinSums& b) {
  return {a.slope + b.slope, a.curvature + b.curvature, a.rows + b.rows, 0};
}

BinSums operator-(const BinSums& a, const BinSums& b) {
  return {a.slope - b.slope, a.curvature - b.curvature, a.rows - b.rows, 0};
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
      outputs_(outputs), loss_(loss), rows_(std::move(rows)), held_(std::move(held)), order_(rows_.size()),
      places_(rows_.size()), beside_(rows_.size()), gathered_(rows_.size()), rule_(rule), baseline_(outputs),
      parts_(rows_.size() * outputs), chosen_parts_(rows_.size()), bin_sums_(rule.leaves) {
  std::partial_sum(bins_.begin(), bins_.end(), offsets_.begin() + 1);
  std::iota(places_.begin(), places_.end(), 0);
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
  for (auto [numbers, said] : {std::pair{rows_.size(), &said_}, {held_.size(), &held_said_}})
    for (std::size_t i = 0; i < numbers; ++i) said->insert(said->end(), baseline_.begin(), baseline_.end());
}

void Booster::advance(std::size_t rounds, double* losses) {
  for (std::size_t round = 0; round < rounds; ++round) {
    differentiate();
    for (std::size_t o = 0; o < outputs_; ++o) {
      grow(o);
      walk_held(o);
    }
    double sum = 0;
    for (std::size_t i = 0; i < held_.size(); ++i)
      sum += weight_[held_[i]] * loss_at(loss_, &held_said_[i * outputs_], target_ + held_[i] * outputs_, outputs_);
    losses[round] = sum;
  }
}

// Slopes and curvatures of the loss by every output, at the outputs before the round.
void Booster::differentiate() {
  std::vector<double> chances(outputs_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const double* z = &said_[i * outputs_];
    const float *target = target_ + rows_[i] * outputs_, weight = weight_[rows_[i]];
    if (loss_ == MlpLoss::logistic) chances[0] = 1 / (1 + std::exp(-z[0]));
    if (loss_ == MlpLoss::cross_entropy) chances_of(z, outputs_, chances.data());
    for (std::size_t o = 0; o < outputs_; ++o) {
      const bool squared = loss_ == MlpLoss::squared;
      const double slope = (squared ? z[o] : chances[o]) - target[o];
      const double curvature = squared ? 1 : chances[o] * (1 - chances[o]);
      parts_[o * rows_.size() + i] = {static_cast<float>(slope) * weight, static_cast<float>(curvature) * weight, 1, 0};
    }
  }
}

void Booster::grow(std::size_t output) {
  const RowSums* parts = &parts_[output * rows_.size()];
  order_ = places_;
  leaves_.assign(1, Leaf{0, order_.size(), {}, 0, -1, false, 0, {}});
  for (std::size_t i = 0; i < order_.size(); ++i)
    leaves_[0].sums = leaves_[0].sums + BinSums{parts[i].slope, parts[i].curvature, 1, 0};
  if (splittable(leaves_[0])) {
    sum_bins(leaves_[0], parts);
    find_split(leaves_[0]);
  }
  const std::size_t first = forks_.size();
  while (leaves_.size() < rule_.leaves) {
    const auto best = std::max_element(leaves_.begin(), leaves_.end(), [](const Leaf& a, const Leaf& b) {
      return a.split.gain < b.split.gain;
    });
    if (best->split.gain <= 0) break;
    divide(static_cast<std::size_t>(best - leaves_.begin()), parts);
  }
  roots_.push_back(forks_.size() == first ? ~static_cast<std::int32_t>(values_.size()) : static_cast<std::int32_t>(first));
  ends_.push_back(static_cast<std::int32_t>(forks_.size()));
  for (const Leaf& leaf : leaves_) {
    const double value = -rule_.learning_rate * leaf.sums.slope / (leaf.sums.curvature + rule_.l2);
    if (leaf.fork >= 0) forks_[leaf.fork].children[leaf.right] = ~static_cast<std::int32_t>(values_.size());
    values_.push_back(static_cast<float>(value));
    for (std::size_t i = leaf.begin; i < leaf.end; ++i) said_[order_[i] * outputs_ + output] += values_.back();
  }
}

bool Booster::splittable(const Leaf& leaf) const {
  return leaf.sums.rows >= 2 * static_cast<double>(rule_.least_rows) && leaf.sums.curvature >= least_curvature;
}

void Booster::sum_bins(const Leaf& leaf, const RowSums* parts) {
  const std::size_t count = leaf.end - leaf.begin;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t place = order_[leaf.begin + i];
    gathered_[i] = rows_[place];
    chosen_parts_[i] = parts[place];
  }
  auto& sums = bin_sums_[leaf.sums_at];
  sums.assign(offsets_.back(), BinSums{});
  FEWFIRE_DISPATCH(add_to_bins, table_, gathered_.data(), chosen_parts_.data(), count, offsets_.data(), sums.data());
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
  leaf.split = Split{};
  leaf.split.gain = least_gain;
  for (std::size_t c = 0; c < columns; ++c)
    if (draws[c] <= sorted[tried - 1]) try_column(leaf, c);
  if (leaf.split.gain <= least_gain) leaf.split.gain = 0;
}

void Booster::try_column(Leaf& leaf, std::size_t column) const {
  const BinSums* sums = bin_sums_[leaf.sums_at].data() + offsets_[column];
  const std::size_t known = bins_[column] - 1;
  const BinSums missing = sums[known];
  const double l2 = rule_.l2, least_rows = static_cast<double>(rule_.least_rows);
  const double before = leaf.sums.slope * leaf.sums.slope / (leaf.sums.curvature + l2);
  const auto weigh = [&](const BinSums& left, std::size_t bin, bool missing_left) {
    const BinSums right = leaf.sums - left;
    if (left.rows < least_rows || right.rows < least_rows) return;
    if (left.curvature < least_curvature || right.curvature < least_curvature) return;
    const double of_left = left.curvature + l2, of_right = right.curvature + l2;
    const double gain =
        (left.slope * left.slope * of_right + right.slope * right.slope * of_left) / (of_left * of_right) - before;
    if (gain > leaf.split.gain) leaf.split = {gain, column, bin, missing_left, left};
  };
  BinSums left{};
  for (std::size_t bin = 0; bin < known; ++bin) {
    if (sums[bin].rows == 0) continue;
    left = left + sums[bin];
    if (missing.rows == 0) {
      weigh(left, bin, 2 * left.rows > leaf.sums.rows);  // unseen missing values go with the more
    } else {
      weigh(left, bin, false);
      weigh(left + missing, bin, true);
    }
  }
}

// Splits a leaf in two: the left child takes its place, the right one comes last.
void Booster::divide(std::size_t number, const RowSums* parts) {
  const Leaf parent = leaves_[number];
  const Split& split = parent.split;
  const std::uint8_t* bins = table_.bins + split.column * table_.rows;
  const std::size_t last = bins_[split.column] - 1;
  std::size_t middle = parent.begin, others = 0;
  for (std::size_t i = parent.begin; i < parent.end; ++i) {
    const std::size_t bin = bins[rows_[order_[i]]];
    const bool left = bin == last ? split.missing_left : bin <= split.bin;
    (left ? order_[middle] : beside_[others]) = order_[i];
    middle += left;
    others += !left;
  }
  std::copy_n(beside_.begin(), others, order_.begin() + static_cast<std::ptrdiff_t>(middle));
  const auto fork = static_cast<std::int32_t>(forks_.size());
  if (parent.fork >= 0) forks_[parent.fork].children[parent.right] = fork;
  const auto column = static_cast<std::int32_t>(2 * split.column + split.missing_left);
  forks_.push_back({column, static_cast<float>(split.bin), {0, 0}});
  const std::uint64_t next = 2 * leaves_.size();
  Leaf left{parent.begin, middle, split.left, parent.sums_at, fork, false, next - 1, {}};
  Leaf right{middle, parent.end, parent.sums - split.left, leaves_.size(), fork, true, next, {}};
  if (leaves_.size() + 1 < rule_.leaves && (splittable(left) || splittable(right))) {
    Leaf& fewer = middle - parent.begin <= parent.end - middle ? left : right;
    Leaf& more = &fewer == &left ? right : left;
    if (&fewer == &left) std::swap(left.sums_at, right.sums_at);  // the larger child works on the parent's sums
    sum_bins(fewer, parts);
    auto &larger = bin_sums_[more.sums_at], &smaller = bin_sums_[fewer.sums_at];
    for (std::size_t b = 0; b < larger.size(); ++b) larger[b] = larger[b] - smaller[b];
    for (Leaf* child : {&left, &right})
      if (splittable(*child)) find_split(*child);
  }
  leaves_[number] = left;
  leaves_.push_back(right);
}

// Adds what the newest tree says of the held-out rows.
void Booster::walk_held(std::size_t output) {
  for (std::size_t i = 0; i < held_.size(); ++i) {
    std::int32_t at = roots_.back();
    while (at >= 0) {
      const TreeFork& fork = forks_[at];
      const auto column = static_cast<std::size_t>(fork.column >> 1);
      const std::size_t bin = table_.bins[column * table_.rows + held_[i]];
      const bool left = bin == bins_[column] - 1 ? fork.column & 1 : static_cast<float>(bin) <= fork.threshold;
      at = fork.children[!left];
    }
    held_said_[i * outputs_ + output] += values_[~at];
  }
}

}  // namespace fewfire
