// Inputs that bring every part of the screen's bound (csrc/kernels/sparse_block.hpp) near equality: neurons that fire by
// a hair while their codes see as little of it as codes can. Prints how many fired and how many of those were missed.
//
//   weights    x along w − ŵ, what the int8 codes lose of a row
//   residual   x along what the residual codes lose as well
//   inputs     w along x − x̂, what the codes lose of an input; w itself is coded without loss
//   rounding   w and x are coded without loss, large sums cancel, and b is next to minus the float32 sum, so that
//              rounding alone decides
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/sparse_block/block.hpp"
#include "core/sparse_block/screened_layer.hpp"
#include "kernels/sparse_block.hpp"

namespace {

using namespace fewfire;

std::mt19937_64 draw(1);
long fired = 0, missed = 0;

float normal() { return std::normal_distribution<float>()(draw); }

// What is left of a row after so many integer levels either way.
std::vector<double> lost_of(const std::vector<double>& row, int levels) {
  double largest = 0;
  for (const double w : row) largest = std::max(largest, std::fabs(w));
  const double scale = static_cast<float>(largest / levels);
  std::vector<double> lost(row.size());
  for (std::size_t j = 0; j < row.size(); ++j)
    lost[j] = row[j] - scale * std::trunc(row[j] / scale + std::copysign(0.5, row[j]));
  return lost;
}

double product(const float* a, const float* b, std::size_t count) {
  double sum = 0;
  for (std::size_t j = 0; j < count; ++j) sum += static_cast<double>(a[j]) * b[j];
  return sum;
}

// Row i of the inputs is made for neuron i: it fires there, and has to be found.
void search(const std::vector<float>& weights, const std::vector<float>& biases, const std::vector<float>& rows,
            bool residual) {
  const std::size_t width = biases.size(), inputs = weights.size() / width;
  const LayerWeights layer{weights.data(), biases.data(), width, inputs};
  const ScreenedLayer screened(layer, 0.0f, residual, nullptr, 1);
  for (std::size_t i = 0; i < width; ++i) {
    const float* x = rows.data() + i * inputs;
    Upcoming nothing;
    if (!(layer.score(i, x, nothing) > 0)) continue;
    ++fired;
    SparseWork work;
    bool found = false;
    for (const NeuronPair& pair : firing_neurons(screened, x, 1, 1, work)) found |= pair.neuron == i;
    missed += !found;
  }
}

void along_what_weights_lose(std::size_t inputs, bool residual, bool refined) {
  constexpr std::size_t width = 64;
  std::vector<float> weights(width * inputs), rows(width * inputs), biases(width);
  for (float& w : weights) w = normal();
  for (std::size_t i = 0; i < width; ++i) {
    std::vector<double> lost(weights.begin() + i * inputs, weights.begin() + (i + 1) * inputs);
    lost = lost_of(lost, 127);
    if (refined) lost = lost_of(lost, 7);
    double norm = 0;
    for (const double part : lost) norm += part * part;
    for (std::size_t j = 0; j < inputs; ++j) rows[i * inputs + j] = static_cast<float>(lost[j] / std::sqrt(norm));
    const float *w = weights.data() + i * inputs, *x = rows.data() + i * inputs;
    biases[i] = static_cast<float>(3e-6 * std::sqrt(product(w, w, inputs)) - product(w, x, inputs));
  }
  search(weights, biases, rows, residual);
}

void along_what_inputs_lose(std::size_t inputs, bool residual) {
  constexpr std::size_t width = 64;
  std::vector<float> weights(width * inputs), rows(width * inputs), biases(width);
  for (std::size_t i = 0; i < width; ++i) {
    float *w = weights.data() + i * inputs, *x = rows.data() + i * inputs;
    for (std::size_t j = 0; j < inputs; ++j) x[j] = normal();
    x[0] = 100;  // steps are large for the rest
    const CodedBatch batch(x, 1, inputs);
    const CodedRow& row = batch.coded()[0];
    std::vector<double> lost(inputs);
    double largest = 0;
    for (std::size_t j = 1; j < inputs; ++j) {
      lost[j] = x[j] - static_cast<double>(row.step) * (static_cast<double>(code_parts) * row.high[j] + row.low[j]);
      largest = std::max(largest, std::fabs(lost[j]));
    }
    for (std::size_t j = 0; j < inputs; ++j) w[j] = static_cast<float>(std::round(127 * lost[j] / largest));
    const double size = std::sqrt(product(w, w, inputs) * product(x, x, inputs));
    biases[i] = static_cast<float>(1e-7 * size - product(w, x, inputs));
  }
  search(weights, biases, rows, residual);
}

void by_rounding_alone(std::size_t inputs, bool residual) {
  constexpr std::size_t width = 64;
  std::vector<float> weights(width * inputs), rows(width * inputs), biases(width);
  const auto upto = [](int most) { return static_cast<float>(std::uniform_int_distribution<int>(1, most)(draw)); };
  Upcoming nothing;
  for (std::size_t i = 0; i < width; ++i) {
    float *w = weights.data() + i * inputs, *x = rows.data() + i * inputs;
    // Half of the 64 partial sums grow upwards, half downwards.
    for (std::size_t j = 0; j < inputs; ++j) w[j] = j % 64 < 32 ? upto(127) : -upto(127), x[j] = upto(32385);
    w[0] = 127, x[0] = 32385;
    const float sum = LayerWeights{w, nullptr, 1, inputs}.score(0, x, nothing);
    biases[i] = -std::nextafter(sum, -INFINITY);
  }
  search(weights, biases, rows, residual);
}

}  // namespace

int main() {
  for (const std::size_t inputs : {130, 1024}) {
    along_what_weights_lose(inputs, false, false), along_what_weights_lose(inputs, true, false);
    along_what_weights_lose(inputs, true, true);
    for (const bool residual : {false, true})
      for (int round = 0; round < 20; ++round) {
        if (round < 2) along_what_inputs_lose(inputs, residual);
        by_rounding_alone(inputs, residual);
      }
  }
  std::printf("{\"fired\": %ld, \"missed\": %ld}\n", fired, missed);
}
