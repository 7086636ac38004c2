#include "core/sparse_block/screened_layer.hpp"

#include <cmath>
#include <limits>

namespace fewfire {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// The next float above a non-negative number that is right to one part in a million.
float up(double value) {
  if (value == 0) return 0.0f;
  const double above = value * (1 + 1e-6);
  return above < 3e38 ? std::nextafter(static_cast<float>(above), infinity) : infinity;
}

int nearest(double value, int most) {
  return static_cast<int>(std::clamp(value < 0 ? value - 0.5 : value + 0.5, -most - 0.5, most + 0.5));
}

}  // namespace

void SparseWork::add(const SparseWork& other) {
  screened += other.screened, open += other.open, scored += other.scored, firing += other.firing;
  multiply_adds += other.multiply_adds, bytes += other.bytes;
}

CodedBatch::CodedBatch(const float* rows, std::size_t count, std::size_t inputs)
    : rows_(rows), count_(count), inputs_(inputs), coded_(count) {
  const std::size_t coded = coded_inputs(inputs);
  codes_.resize(count * 2 * coded);
  for (std::size_t q = 0; q < count; ++q) {
    std::int8_t* high = codes_.data() + q * 2 * coded;
    FEWFIRE_DISPATCH(code_row, rows + q * inputs, inputs, high, high + coded, coded_[q]);
  }
}

// Of the score and of the bound: so many roundings, by at most 2^-24 of ‖w‖·‖x‖ + |b| each. Two parts of a code may
// together be twice as long as what they stand for; a tenth covers products of such errors.
double ScreenedLayer::rounding() const {
  return 2.2 * (static_cast<double>(weights_.inputs) / 64 + 40) * 0x1p-24;
}

ScreenedLayer::ScreenedLayer(const LayerWeights& weights, float threshold, bool residual, const std::uint8_t* always,
                             std::size_t threads)
    : weights_(weights), threshold_(threshold) {
  if (always) always_.assign(always, always + weights.width);
  if (weights.inputs > most_screened) {
    largest_norm_ = infinity;
    return;
  }
  const std::size_t neurons = groups() * group_neurons, coded = coded_inputs(weights.inputs);
  codes_.resize(neurons * coded, 128);
  for (AlignedVector<float>* column : {&scales_, &offsets_, &error_, &coded_, &norms_}) column->resize(neurons, 0.0f);
  if (residual) {
    residual_codes_.resize(weights.width * coded / 2, 0x88);
    for (std::vector<float>* column : {&residual_scales_, &residual_error_, &residual_coded_})
      column->resize(weights.width, 0.0f);
  }
  parallel_for(groups(), threads, [&](std::size_t index) {
    const std::size_t last = std::min((index + 1) * group_neurons, weights_.width);
    for (std::size_t neuron = index * group_neurons; neuron < last; ++neuron) code_neuron(neuron);
  });
  for (std::size_t neuron = 0; neuron < weights.width; ++neuron) {
    if (norms_[neuron] < infinity) largest_norm_ = std::max(largest_norm_, norms_[neuron]);
    if (weights.biases && std::isfinite(weights.biases[neuron]))
      largest_bias_ = std::max(largest_bias_, std::fabs(weights.biases[neuron]));
  }
  largest_bias_ += std::fabs(threshold);
  norms_ = {};
}

void ScreenedLayer::code_neuron(std::size_t neuron) {
  const float* row = weights_.row(neuron);
  const float bias = weights_.biases ? weights_.biases[neuron] : 0.0f;
  const std::size_t inputs = weights_.inputs, coded = coded_inputs(inputs);
  float largest = 0;
  double norm = 0;
  for (std::size_t j = 0; j < inputs; ++j) {
    largest = std::max(largest, std::fabs(row[j]));
    norm += static_cast<double>(row[j]) * row[j];
  }
  norms_[neuron] = up(std::sqrt(norm));
  // Whatever numbers arrive where there are none, sums under flushing to zero lose no more than this.
  const double least = 8.0 * static_cast<double>(inputs + 64) * 0x1p-126;
  const double slack = rounding() * (std::fabs(static_cast<double>(bias)) + std::fabs(threshold_)) + least;
  offsets_[neuron] = std::nextafter(static_cast<float>(bias + slack * (1 + 1e-6)), infinity);
  if (!std::isfinite(norm) || !std::isfinite(bias) || is_always_found(neuron)) {
    error_[neuron] = infinity;  // always open: the sum with an infinite error, or with NaN, is at most nothing
    if (!residual_codes_.empty()) residual_error_[neuron] = infinity;
    if (!std::isfinite(norm)) norms_[neuron] = infinity;
    return;
  }
  // Rows outside this range are coded as zero: all of them is lost, and no product leaves the range of float32.
  const bool usual = largest > 1e-25f && largest < 1e25f;
  const float scale = usual ? largest / 127.0f : 0.0f;
  const double inverse = usual ? 1.0 / scale : 0.0;
  std::uint8_t* codes = codes_.data() + neuron / group_neurons * group_neurons * coded;
  double lost = 0, length = 0, largest_gap = 0;
  for (std::size_t j = 0; j < inputs; ++j) {
    const int code = nearest(row[j] * inverse, 127);
    codes[group_code_at(neuron % group_neurons, j)] = static_cast<std::uint8_t>(code + 128);
    const double value = static_cast<double>(scale) * code, gap = row[j] - value;
    lost += gap * gap, length += value * value, largest_gap = std::max(largest_gap, std::fabs(gap));
  }
  const double size = rounding() * (std::sqrt(norm) + std::sqrt(lost));
  scales_[neuron] = scale;
  error_[neuron] = up(std::sqrt(lost) + size);
  coded_[neuron] = up(std::sqrt(length));
  if (residual_codes_.empty()) return;
  std::uint8_t* nibbles = residual_codes_.data() + neuron * coded / 2;
  const float fine = usual ? static_cast<float>(largest_gap / 7) : 0.0f;
  const double fine_inverse = fine > 0 ? 1.0 / fine : 0.0;
  double left = 0;
  length = 0;
  for (std::size_t j = 0; j < inputs; ++j) {
    const int code = codes[group_code_at(neuron % group_neurons, j)] - 128;
    const double value = static_cast<double>(scale) * code, gap = row[j] - value;
    const int rest = nearest(gap * fine_inverse, 7);
    std::uint8_t& byte = nibbles[j / code_step * 64 + j % 64];
    byte = static_cast<std::uint8_t>(j % code_step < 64 ? (byte & 0xf0) | (rest + 8) : (byte & 0x0f) | (rest + 8) << 4);
    const double both = value + static_cast<double>(fine) * rest, error = row[j] - both;
    left += error * error, length += both * both;
  }
  residual_scales_[neuron] = fine;
  residual_error_[neuron] = up(std::sqrt(left) + size);
  residual_coded_[neuron] = up(std::sqrt(length));
}

NeuronGroup ScreenedLayer::group(std::size_t index) const {
  const std::size_t at = index * group_neurons;
  return {codes_.data() + at * coded_inputs(weights_.inputs), scales_.data() + at, offsets_.data() + at,
          error_.data() + at, coded_.data() + at};
}

std::size_t ScreenedLayer::memory() const {
  const std::size_t floats = scales_.capacity() + offsets_.capacity() + error_.capacity() + coded_.capacity() +
                             residual_scales_.capacity() + residual_error_.capacity() + residual_coded_.capacity();
  return codes_.capacity() + residual_codes_.capacity() + always_.capacity() + floats * sizeof(float);
}

}  // namespace fewfire
