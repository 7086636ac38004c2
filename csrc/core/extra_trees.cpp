#include "core/extra_trees.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/growing.hpp"

namespace fewfire {

ExtraTrees::ExtraTrees(ExtraTreesTable table, std::vector<std::int32_t> rows, std::size_t least_rows, std::size_t tried)
    : table_(table), rows_(std::move(rows)), order_(rows_.size()), beside_(rows_.size()),
      numbers_(table.parts * (rows_.size() + split_lanes)), values_(rows_.size() + split_lanes), least_rows_(least_rows),
      tried_(tried), words_((table.columns + 63) / 64), keys_(table.columns), draws_(table.columns),
      listed_(table.columns), splits_(table.columns), split_sums_(table.columns * 2 * (1 + table.parts)),
      left_sums_(1 + table.parts) {}

void ExtraTrees::grow(std::uint64_t seed) {
  seed_ = mixed(seed);
  order_ = rows_;
  nodes_.assign(1, {0, order_.size(), -1, false});
  constant_.assign(words_, 0);
  node_sums_.assign(1 + table_.parts, 0);
  node_sums_[0] = static_cast<std::int64_t>(order_.size());
  for (std::size_t part = 0; part < table_.parts; ++part)
    for (const std::int32_t row : rows_) node_sums_[1 + part] += table_.numbers[part * table_.rows + row];
  const std::size_t width = 1 + table_.parts, first = forks_.size();
  const auto leaf = [&] { return ~static_cast<std::int32_t>(leaf_sums_.size() / width); };
  for (std::size_t number = 0; number < nodes_.size(); ++number) {
    const Node node = nodes_[number];
    Choice choice{0, -1, 0, false};
    if (node.end - node.begin >= 2 * least_rows_ && !alike(node)) choice = choose(number);
    const std::int32_t here = choice.column < 0 ? leaf() : static_cast<std::int32_t>(forks_.size());
    if (node.fork >= 0) forks_[node.fork].children[node.right] = here;
    if (number == 0) roots_.push_back(choice.column < 0 ? here : static_cast<std::int32_t>(first));
    if (choice.column < 0)
      leaf_sums_.insert(leaf_sums_.end(), &node_sums_[number * width], &node_sums_[number * width] + width);
    else
      divide(number, choice);
  }
}

bool ExtraTrees::alike(const Node& node) const {
  const float* of_first = table_.target + order_[node.begin] * table_.outputs;
  for (std::size_t i = node.begin + 1; i < node.end; ++i)
    if (!std::equal(of_first, of_first + table_.outputs, table_.target + order_[i] * table_.outputs)) return false;
  return true;
}

void ExtraTrees::gather(const Node& node) {
  const std::size_t rows = node.end - node.begin, stride = rows + split_lanes;
  for (std::size_t part = 0; part < table_.parts; ++part) {
    const std::int32_t* of = table_.numbers + part * table_.rows;
    std::int32_t* to = numbers_.data() + part * stride;
    for (std::size_t i = 0; i < rows; ++i) to[i] = of[order_[node.begin + i]];
    std::fill_n(to + rows, split_lanes, 0);
  }
}

// The columns of the smallest keys are tried, in their order in the table; if all are constant, others by their keys.
ExtraTrees::Choice ExtraTrees::choose(std::size_t number) {
  const std::size_t columns = table_.columns;
  const std::uint64_t here = mixed(seed_ + number);
  for (std::size_t c = 0; c < columns; ++c) keys_[c] = mixed(here + c);
  sorted_ = keys_;
  std::nth_element(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(tried_ - 1), sorted_.end());
  const std::uint64_t last = sorted_[tried_ - 1];
  const auto varies = [&](std::size_t c) { return !(constant_[number * words_ + c / 64] >> (c % 64) & 1); };
  listed_.clear();
  for (std::size_t c = 0; c < columns; ++c)
    if (keys_[c] <= last && varies(c)) listed_.push_back(static_cast<std::int32_t>(c));
  const Node node = nodes_[number];
  Choice best{-std::numeric_limits<double>::infinity(), -1, 0, false};
  gather(node);
  try_listed(node, number, best);
  const auto constant = [](const RandomSplit& split) { return split.constant; };
  if (!std::all_of(splits_.begin(), splits_.begin() + static_cast<std::ptrdiff_t>(listed_.size()), constant)) return best;
  std::vector<std::int32_t> others;
  for (std::size_t c = 0; c < columns; ++c)
    if (keys_[c] > last && varies(c)) others.push_back(static_cast<std::int32_t>(c));
  std::sort(others.begin(), others.end(), [&](std::int32_t a, std::int32_t b) { return keys_[a] < keys_[b]; });
  for (const std::int32_t other : others) {
    listed_.assign(1, other);
    try_listed(node, number, best);
    if (!splits_[0].constant) break;
  }
  return best;
}

void ExtraTrees::try_listed(const Node& node, std::size_t number, Choice& best) {
  const std::size_t width = 1 + table_.parts, rows = node.end - node.begin;
  for (std::size_t i = 0; i < listed_.size(); ++i) draws_[i] = mixed(keys_[listed_[i]]);
  const NodeRows of{order_.data() + node.begin, rows, numbers_.data(), table_.parts, rows + split_lanes};
  FEWFIRE_DISPATCH(try_columns, table_.values, table_.rows, of, listed_.data(), draws_.data(), listed_.size(),
                   values_.data(), splits_.data(), split_sums_.data());
  const std::int64_t* all = &node_sums_[number * width];
  const auto weigh = [&](const std::int64_t* left, std::int32_t column, float threshold, bool missing_left) {
    const double found = score(left, all);
    if (!(found > best.score)) return;
    best = {found, column, threshold, missing_left};
    std::copy_n(left, width, left_sums_.begin());
  };
  for (std::size_t i = 0; i < listed_.size(); ++i) {
    const std::int32_t column = listed_[i];
    const RandomSplit& split = splits_[i];
    const std::int64_t* left = &split_sums_[i * 2 * width];
    if (split.constant) {
      constant_[number * words_ + static_cast<std::size_t>(column) / 64] |= std::uint64_t{1} << (column % 64);
    } else if (split.missing == 0) {
      weigh(left, column, split.threshold, 2 * left[0] > all[0]);  // unseen missing values go with the more
    } else {
      weigh(left, column, split.threshold, split.missing_left);
      weigh(left + width, column, std::numeric_limits<float>::infinity(), false);
    }
  }
}

// The sum over both sides and all targets of (sum of a target)² / weight: the larger, the less the squared error.
double ExtraTrees::score(const std::int64_t* left, const std::int64_t* all) const {
  constexpr double none = -std::numeric_limits<double>::infinity();
  const auto least = static_cast<std::int64_t>(least_rows_);
  if (left[0] < least || all[0] - left[0] < least) return none;
  const std::size_t first = table_.weighted ? 1 : 0;  // the sum of weights, or the number of rows
  const auto of_left = static_cast<double>(left[first]), of_right = static_cast<double>(all[first] - left[first]);
  if (!(of_left > 0) || !(of_right > 0)) return none;
  double sum = 0;
  for (std::size_t part = 1 + first; part <= table_.parts; ++part) {
    const auto a = static_cast<double>(left[part]), b = static_cast<double>(all[part] - left[part]);
    sum += a * a / of_left + b * b / of_right;
  }
  return sum;
}

void ExtraTrees::divide(std::size_t number, const Choice& choice) {
  const Node node = nodes_[number];
  const float* column = table_.values + static_cast<std::size_t>(choice.column) * table_.rows;
  const std::size_t middle = divided(order_, node.begin, node.end, beside_.data(), [=](std::int32_t row) {
    const float value = column[row];
    return (value <= choice.threshold) | ((value != value) & choice.missing_left);
  });
  const auto fork = static_cast<std::int32_t>(forks_.size());
  forks_.push_back({2 * choice.column + choice.missing_left, choice.threshold, {0, 0}});
  nodes_.push_back({node.begin, middle, fork, false});
  nodes_.push_back({middle, node.end, fork, true});
  const std::size_t width = 1 + table_.parts;
  node_sums_.insert(node_sums_.end(), left_sums_.begin(), left_sums_.end());
  for (std::size_t part = 0; part < width; ++part)
    node_sums_.push_back(node_sums_[number * width + part] - left_sums_[part]);
  for (std::size_t word = 0; word < 2 * words_; ++word) constant_.push_back(constant_[number * words_ + word % words_]);
}

}  // namespace fewfire
