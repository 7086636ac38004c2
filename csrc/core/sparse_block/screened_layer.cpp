#include "core/sparse_block/screened_layer.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/weight_codes.hpp"

namespace fewfire {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// The next float above a non-negative number that is right to one part in a million.
float up(double value) {
  if (value == 0) return 0.0f;
  const double above = value * (1 + 1e-6);
  return above < 3e38 ? std::nextafter(static_cast<float>(above), infinity) : infinity;
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
    : weights_(weights), threshold_(threshold), largest_bias_(std::fabs(threshold)) {
  if (always) always_.assign(always, always + weights.width);
  if (weights.inputs > most_screened) {
    largest_norm_ = infinity;
    return;
  }
  const std::size_t neurons = groups() * group_neurons, coded = coded_inputs(weights.inputs);
  codes_.resize(neurons * coded, 128);
  for (AlignedVector<float>* column : {&scales_, &offsets_, &error_, &coded_}) column->resize(neurons, 0.0f);
  if (residual) {
    residual_codes_.resize(weights.width * coded / 2, 0x88);
    for (std::vector<float>* column : {&residual_scales_, &residual_error_, &residual_coded_})
      column->resize(weights.width, 0.0f);
  }
  std::vector<float> norms(weights.width);
  parallel_for(groups(), threads, [&](std::size_t index) {
    const std::size_t last = std::min((index + 1) * group_neurons, weights_.width);
    for (std::size_t neuron = index * group_neurons; neuron < last; ++neuron) norms[neuron] = code_neuron(neuron);
  });
  for (std::size_t neuron = 0; neuron < weights.width; ++neuron) note_sizes(neuron, norms[neuron]);
}

void ScreenedLayer::recode(const std::int64_t* neurons, std::size_t count, std::size_t threads) {
  if (weights_.inputs > most_screened) return;
  std::vector<float> norms(count);
  const std::size_t pieces = count * weights_.inputs < (std::size_t{1} << 17) ? 1 : 4 * threads;
  parallel_for(pieces, threads, [&](std::size_t piece) {
    for (std::size_t i = piece * count / pieces; i < (piece + 1) * count / pieces; ++i)
      norms[i] = code_neuron(static_cast<std::size_t>(neurons[i]));
  });
  for (std::size_t i = 0; i < count; ++i) note_sizes(static_cast<std::size_t>(neurons[i]), norms[i]);
}

// Largest so far: a row that shrinks leaves a bound that is too large, which is a bound.
void ScreenedLayer::note_sizes(std::size_t neuron, float norm) {
  if (norm < infinity) largest_norm_ = std::max(largest_norm_, norm);
  const float bias = weights_.biases ? weights_.biases[neuron] : 0.0f;
  if (std::isfinite(bias)) largest_bias_ = std::max(largest_bias_, std::fabs(bias) + std::fabs(threshold_of(neuron)));
}

float ScreenedLayer::code_neuron(std::size_t neuron) {
  const float bias = weights_.biases ? weights_.biases[neuron] : 0.0f;
  const std::size_t inputs = weights_.inputs, coded = coded_inputs(inputs);
  const bool refines = !residual_codes_.empty();
  alignas(64) std::int8_t codes[most_screened], rest[most_screened];
  float scratch[most_screened];
  const float *weights = weights_.read(neuron, scratch), threshold = threshold_of(neuron);
  const WeightCodes row = FEWFIRE_DISPATCH(code_weights, weights, inputs, codes, refines ? rest : nullptr);
  // Whatever numbers arrive where there are none, sums under flushing to zero lose no more than this.
  const double least = 8.0 * static_cast<double>(inputs + 64) * 0x1p-126;
  const double slack = rounding() * (std::fabs(static_cast<double>(bias)) + std::fabs(threshold)) + least;
  const double own = weights_.thresholds ? static_cast<double>(bias) - threshold : bias;
  offsets_[neuron] = std::nextafter(static_cast<float>(own + slack * (1 + 1e-6)), infinity);
  if (!std::isfinite(row.norm) || !std::isfinite(bias) || is_always_found(neuron)) {
    error_[neuron] = infinity;  // always open: the sum with an infinite error, or with NaN, is at most nothing
    if (refines) residual_error_[neuron] = infinity;
    return std::isfinite(row.norm) ? up(std::sqrt(row.norm)) : infinity;
  }
  std::uint8_t* group = codes_.data() + neuron / group_neurons * group_neurons * coded;
  std::fill(codes + inputs, codes + coded, std::int8_t{0});
  for (std::size_t j = 0; j < inputs; j += 4) {
    std::uint32_t word;
    std::memcpy(&word, codes + j, 4);
    word ^= 0x80808080;  // c + 128
    std::memcpy(group + group_code_at(neuron % group_neurons, j), &word, 4);
  }
  const double size = rounding() * (std::sqrt(row.norm) + std::sqrt(row.lost));
  scales_[neuron] = row.scale;
  error_[neuron] = up(std::sqrt(row.lost) + size);
  coded_[neuron] = up(std::sqrt(row.coded));
  if (refines) {
    std::uint8_t* nibbles = residual_codes_.data() + neuron * coded / 2;
    std::fill(rest + inputs, rest + coded, std::int8_t{0});
    for (std::size_t from = 0; from < coded; from += code_step)
      for (std::size_t k = 0; k < 64; ++k)
        nibbles[from / 2 + k] = static_cast<std::uint8_t>((rest[from + k] + 8) | (rest[from + 64 + k] + 8) << 4);
    residual_scales_[neuron] = row.fine;
    residual_error_[neuron] = up(std::sqrt(row.left) + size);
    residual_coded_[neuron] = up(std::sqrt(row.refined));
  }
  return up(std::sqrt(row.norm));
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
