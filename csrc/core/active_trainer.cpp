#include "core/active_trainer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/parallel.hpp"

namespace fewfire {
namespace {

constexpr std::size_t most_pieces = 16, piece_neurons = 4096;
constexpr std::size_t most_sums = std::size_t{1} << 24;  // floats in the gradient sums of all pieces

constexpr double round_up = 1.0 + 1e-9;                  // more than the rounding of a norm

float above(double value) {
  return std::nextafter(static_cast<float>(value * (1.0 + 1e-6)), std::numeric_limits<float>::infinity());
}
float below(double value) {
  return std::nextafter(static_cast<float>(value), -std::numeric_limits<float>::infinity());
}

// Σ_k (x_k − y_k)², y = 0 unless given.
double squared(const float* x, const float* y, std::size_t count) {
  double sums[8] = {};
  for (std::size_t k = 0; k < count; ++k) {
    const double change = static_cast<double>(x[k]) - (y == nullptr ? 0.0f : y[k]);
    sums[k % 8] += change * change;
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// Σ_k x_k y_k.
double product(const float* x, const float* y, std::size_t count) {
  double sums[8] = {};
  for (std::size_t k = 0; k < count; ++k) sums[k % 8] += static_cast<double>(x[k]) * y[k];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

void copy_padded(const float* from, std::size_t rows, std::size_t inputs, std::size_t stride, float* to) {
  for (std::size_t i = 0; i < rows; ++i) std::copy_n(from + i * inputs, inputs, to + i * stride);
}

std::size_t piece_count(const ActiveTrainer::Shape& shape, std::size_t stride) {
  const std::size_t memory = std::max<std::size_t>(2, most_sums / (shape.examples * stride));
  return std::clamp<std::size_t>(shape.width / piece_neurons, 1, std::min(most_pieces, memory));
}

}  // namespace

ActiveTrainer::ActiveTrainer(Shape shape, const float* hidden, const float* bias, const float* output, float threshold,
                             const float* anchors, double reach, double slack, std::size_t threads)
    : shape_(shape), threads_(threads) {
  const std::size_t width = shape.width, inputs = shape.inputs, examples = shape.examples;
  net_.width = width;
  net_.inputs = inputs;
  net_.examples = examples;
  net_.stride = (inputs + 15) / 16 * 16;
  net_.columns = (examples + 15) / 16 * 16;
  net_.threshold = threshold;
  deal(bias);
  net_.weights.resize(width * net_.stride);
  net_.bias.resize(width);
  net_.output.resize(width);
  for (std::size_t r = 0; r < width; ++r) {
    std::copy_n(hidden + order_[r] * inputs, inputs, net_.weights.data() + r * net_.stride);
    net_.bias[r] = bias[order_[r]];
    net_.output[r] = output[order_[r]];
  }
  net_.anchors.assign(examples * net_.stride, 0.0f);
  copy_padded(anchors, examples, inputs, net_.stride, net_.anchors.data());
  net_.transposed.assign(inputs * net_.columns, 0.0f);
  double largest = 0.0, total = 0.0;
  for (std::size_t i = 0; i < examples; ++i) {
    for (std::size_t k = 0; k < inputs; ++k) net_.transposed[k * net_.columns + i] = anchors[i * inputs + k];
    largest = std::max(largest, squared(anchors + i * inputs, nullptr, inputs));
  }
  for (std::size_t r = 0; r < width; r += 1 + width / 1000) total += squared(hidden + r * inputs, nullptr, inputs);
  const auto sampled = static_cast<double>((width + width / 1000) / (1 + width / 1000));
  net_.reach = above(reach + slack);
  net_.norm_limit = above(std::sqrt(largest) + reach + slack);
  // A score sums at most inputs + 2 rounded terms; the anchors' and the moved one, and the bounds themselves.
  net_.rounding = static_cast<float>(inputs + 40) * 0x1p-22f;
  // A tenth of the spread of scores on examples in random directions; it adapts from there.
  net_.first_skin = static_cast<float>(0.1 * std::sqrt(total / sampled * largest / static_cast<double>(inputs)));
  rows_ = net_.anchors;
  call_.rows = rows_.data();
  parallel_for(pieces_.size(), threads_, [&](std::size_t p) { FEWFIRE_DISPATCH(drift_start, net_, pieces_[p]); });
}

void ActiveTrainer::deal(const float* bias) {
  // A few hundred classes of bias, counted, are as good as an order and take a tenth of the time.
  constexpr std::size_t classes = 512;
  const auto [low, high] = std::minmax_element(bias, bias + shape_.width);
  const double scale = *high > *low ? (classes - 1) / (static_cast<double>(*high) - *low) : 0.0;
  const auto class_of = [&](std::size_t r) {
    return static_cast<std::size_t>((static_cast<double>(*high) - bias[r]) * scale);
  };
  std::uint32_t starts[classes + 1] = {};
  for (std::size_t r = 0; r < shape_.width; ++r) ++starts[class_of(r) + 1];
  std::partial_sum(starts, starts + classes + 1, starts);
  std::vector<std::uint32_t> sorted(shape_.width);
  for (std::size_t r = 0; r < shape_.width; ++r) sorted[starts[class_of(r)]++] = static_cast<std::uint32_t>(r);
  pieces_.resize(piece_count(shape_, net_.stride));
  order_.reserve(shape_.width);
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    pieces_[p].begin = order_.size();
    for (std::size_t rank = p; rank < sorted.size(); rank += pieces_.size()) order_.push_back(sorted[rank]);
    pieces_[p].end = order_.size();
  }
}

std::int64_t ActiveTrainer::place(const float* moved) {
  const std::size_t inputs = net_.inputs;
  double farthest = 0.0;
  bool same = true;
  for (std::size_t i = 0; i < net_.examples; ++i) {
    const float* row = moved + i * inputs;
    const double far = squared(row, net_.anchors.data() + i * net_.stride, inputs);
    if (!(far <= static_cast<double>(net_.reach) * net_.reach)) return static_cast<std::int64_t>(i);
    farthest = std::max(farthest, far);
    same = same && std::memcmp(row, rows_.data() + i * net_.stride, inputs * sizeof(float)) == 0;
  }
  if (same) return -1;
  copy_padded(moved, net_.examples, inputs, net_.stride, rows_.data());
  call_.site = farthest > 0.0 ? find_site(std::sqrt(farthest) * round_up) : 0;
  scored_ = false;
  return -1;
}

std::size_t ActiveTrainer::find_site(double farthest) {
  std::size_t nearest = 0;
  double distance = farthest;
  for (std::size_t site = 1; site < net_.sites; ++site) {
    double longest = 0.0;
    for (std::size_t i = 0; i < net_.examples; ++i)
      longest = std::max(longest, squared(rows_.data() + i * net_.stride, sites_[site].rows.data() + i * net_.stride,
                                          net_.inputs));
    const double far = std::sqrt(longest) * round_up;
    if (site > 1 && !(far < distance)) continue;
    nearest = site;
    distance = far;
  }
  std::size_t site = nearest;
  if (nearest == 0 || (distance > 0.75 * net_.reach && net_.sites < most_sites)) {
    site = net_.sites++;
    if (farthest < distance) nearest = 0, distance = farthest;
    sites_[site].base = sites_[nearest].base;
    for (DriftPiece& piece : pieces_) piece.alarms[site] = piece.alarms[nearest];
  }
  Site& here = sites_[site];
  if (here.rows.empty() || distance > 0.2 * net_.reach) {
    here.rows = rows_;
    here.base += distance;
    here.farthest = farthest;
    distance = 0.0;
  }
  if (here.base > 4.0 * net_.reach) {  // before alarms of 16 bits become coarse, all go off
    here.base = 0.0;
    for (DriftPiece& piece : pieces_) {
      for (std::uint16_t& alarm : piece.alarms[site].pairs) alarm &= 0x8000;
      for (float& alarm : piece.alarms[site].neurons) alarm = std::copysign(0.0f, alarm);
    }
  }
  net_.reading[site] = above(here.base + distance);
  net_.start[site] = below(here.base - distance);
  net_.anchor_start[site] = below(here.base - here.farthest);
  return site;
}

void ActiveTrainer::pass(bool gradients) {
  scored_ = false;
  parallel_for(pieces_.size(), threads_,
               [&](std::size_t p) { FEWFIRE_DISPATCH(drift_pass, net_, pieces_[p], call_, gradients); });
  scored_ = true;
}

void ActiveTrainer::evaluate(double* values, float* gradients) {
  pass(gradients != nullptr);
  std::fill_n(values, net_.examples, 0.0);
  for (const DriftPiece& piece : pieces_)
    for (std::size_t i = 0; i < net_.examples; ++i) values[i] += piece.values[i];
  if (gradients == nullptr) return;
  std::fill_n(gradients, net_.examples * net_.inputs, 0.0f);
  for (const DriftPiece& piece : pieces_)
    for (std::size_t i = 0; i < net_.examples; ++i) {
      const float* part = piece.gradients.data() + i * net_.stride;
      for (std::size_t k = 0; k < net_.inputs; ++k) gradients[i * net_.inputs + k] += part[k];
    }
  for (std::size_t i = 0; i < net_.examples; ++i)
    values[i] += product(gradients + i * net_.inputs, rows_.data() + i * net_.stride, net_.inputs);
}

void ActiveTrainer::update(const float* slopes, float rate) {
  if (!scored_) pass(false);
  scored_ = false;
  parallel_for(pieces_.size(), threads_,
               [&](std::size_t p) { FEWFIRE_DISPATCH(drift_update, net_, pieces_[p], call_, slopes, rate); });
}

bool ActiveTrainer::missing(std::uint64_t* pair) const {
  for (const DriftPiece& piece : pieces_)
    if (FEWFIRE_DISPATCH(drift_missing, net_, piece, call_, pair)) {
      pair[0] = order_[pair[0]];
      return true;
    }
  return false;
}

void ActiveTrainer::export_weights(float* hidden) const {
  for (std::size_t r = 0; r < net_.width; ++r)
    std::copy_n(net_.weights.data() + r * net_.stride, net_.inputs, hidden + order_[r] * net_.inputs);
}

void ActiveTrainer::export_fired(std::int64_t* fired) const {
  std::fill_n(fired, net_.examples, 0);
  for (const DriftPiece& piece : pieces_)
    for (std::size_t k = 0; k < piece.last_active(); ++k) ++fired[piece.active[k]];
}

std::uint64_t ActiveTrainer::last_active() const {
  std::uint64_t sum = 0;
  for (const DriftPiece& piece : pieces_) sum += piece.last_active();
  return sum;
}

DriftCounts ActiveTrainer::counts() const {
  DriftCounts sum;
  for (const DriftPiece& piece : pieces_) {
    sum.active += piece.counts.active;
    sum.touched += piece.counts.touched;
    sum.scored += piece.counts.scored;
    sum.summed += piece.counts.summed;
    sum.slots += piece.counts.slots;
    sum.lists += piece.counts.lists;
    sum.updated += piece.counts.updated;
    sum.refreshed += piece.counts.refreshed;
  }
  return sum;
}

std::size_t ActiveTrainer::listed() const {
  std::size_t entries = 0;
  for (const DriftPiece& piece : pieces_)
    for (const DriftSlot& slot : piece.slots) entries += slot.length;
  return entries;
}

}  // namespace fewfire
