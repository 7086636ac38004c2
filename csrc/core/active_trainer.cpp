#include "core/active_trainer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parallel.hpp"

namespace fewfire {
namespace {

constexpr std::size_t most_pieces = 16, piece_neurons = 4096;
constexpr std::size_t most_sums = std::size_t{1} << 24;  // floats in the gradient sums of all pieces

float above(double value) {
  return std::nextafter(static_cast<float>(value * (1.0 + 1e-6)), std::numeric_limits<float>::infinity());
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
  net_.code_stride = (inputs + 63) / 64 * 64;
  net_.columns = (examples + 15) / 16 * 16;
  net_.unit = static_cast<std::uint32_t>((examples + 0xfffe) / 0xffff);
  net_.threshold = threshold;
  net_.weights.assign(width * net_.stride, 0.0f);
  copy_padded(hidden, width, inputs, net_.stride, net_.weights.data());
  net_.bias.assign(bias, bias + width);
  net_.output.assign(output, output + width);
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
  // A quarter of the spread of scores on examples in random directions; it adapts from there.
  net_.first_skin = static_cast<float>(0.25 * std::sqrt(total / sampled * largest / static_cast<double>(inputs)));
  net_.refresh_cost = 1.5f * static_cast<float>(examples) + 16.0f;  // measured for 64 inputs
  rows_ = net_.anchors;
  codes_.assign(examples * net_.code_stride, 0);
  call_.rows = rows_.data();
  call_.codes = codes_.data();
  call_.norm = above(std::sqrt(largest));
  FEWFIRE_DISPATCH(drift_codes, net_, call_, codes_.data());
  const std::size_t pieces = piece_count(shape, net_.stride);
  pieces_.resize(pieces);
  for (std::size_t p = 0; p < pieces; ++p) {
    pieces_[p].begin = width * p / pieces;
    pieces_[p].end = width * (p + 1) / pieces;
  }
  parallel_for(pieces, threads_, [&](std::size_t p) { FEWFIRE_DISPATCH(drift_start, net_, pieces_[p]); });
}

std::int64_t ActiveTrainer::place(const float* moved) {
  const std::size_t inputs = net_.inputs;
  double farthest = 0.0, largest = 0.0;
  bool same = true;
  for (std::size_t i = 0; i < net_.examples; ++i) {
    const float* row = moved + i * inputs;
    const double far = squared(row, net_.anchors.data() + i * net_.stride, inputs), size = squared(row, nullptr, inputs);
    if (!(far <= static_cast<double>(net_.reach) * net_.reach)) return static_cast<std::int64_t>(i);
    farthest = std::max(farthest, far);
    largest = std::max(largest, size);
    same = same && std::memcmp(row, rows_.data() + i * net_.stride, inputs * sizeof(float)) == 0;
  }
  if (same) return -1;
  copy_padded(moved, net_.examples, inputs, net_.stride, rows_.data());
  call_.distance = above(std::sqrt(farthest));
  call_.norm = above(std::sqrt(largest));
  FEWFIRE_DISPATCH(drift_codes, net_, call_, codes_.data());
  scored_ = false;
  return -1;
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
    for (std::size_t i = 0; i < net_.examples; ++i)
      for (std::size_t k = 0; k < net_.inputs; ++k)
        gradients[i * net_.inputs + k] += piece.gradients[i * net_.stride + k];
}

void ActiveTrainer::update(const float* slopes, float rate) {
  if (!scored_) pass(false);
  scored_ = false;
  parallel_for(pieces_.size(), threads_,
               [&](std::size_t p) { FEWFIRE_DISPATCH(drift_update, net_, pieces_[p], call_, slopes, rate); });
}

bool ActiveTrainer::missing(std::uint64_t* pair) const {
  for (const DriftPiece& piece : pieces_)
    if (FEWFIRE_DISPATCH(drift_missing, net_, piece, call_, pair)) return true;
  return false;
}

void ActiveTrainer::export_weights(float* hidden) const {
  for (std::size_t r = 0; r < net_.width; ++r)
    std::copy_n(net_.weights.data() + r * net_.stride, net_.inputs, hidden + r * net_.inputs);
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
    sum.screened += piece.counts.screened;
    sum.scored += piece.counts.scored;
    sum.summed += piece.counts.summed;
    sum.slots += piece.counts.slots;
    sum.lists += piece.counts.lists;
    sum.rows += piece.counts.rows;
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
