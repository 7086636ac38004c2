// A block of two layers, with or without a gate, at the cost of the neurons that fire.
//
// Neurons are cut into pieces by their number alone, each piece sums the rows of its firing neurons for itself, and the
// pieces are added in order: the output of a row is the same for every batch around it, thread count and instruction set.
#pragma once

#include <memory>

#include "core/sparse_block/screened_layer.hpp"

namespace fewfire {

enum class SparseActivation { relu, shifted, threshold, relu2 };
enum class Gating { none, reglu, drelu };

// The second layer, neuron by neuron; no biases is null.
struct DownWeights {
  const float* rows = nullptr;
  const float* biases = nullptr;
  std::size_t width = 0, outputs = 0;

  const float* row(std::size_t neuron) const { return rows + neuron * outputs; }
};

// Rows of a layer that hold a number that is not finite: one byte each, and whether there is one.
bool mark_unbounded(const float* rows, std::size_t width, std::size_t length, std::uint8_t* marks);

class SparseBlock {
 public:
  // `screened` is the gate where there is one, else the first layer; `up` then the layer that the gate multiplies.
  SparseBlock(const LayerWeights& screened, const LayerWeights& up, const DownWeights& down, SparseActivation activation,
              float threshold, Gating gating, bool residual, std::size_t threads);

  std::size_t memory() const { return layer_->memory(); }
  void forward(const float* x, std::size_t batch, std::size_t threads, float* y, SparseWork& work) const;

 private:
  float activate(float score) const;
  // What the neuron gives; 0 with *left_out where it adds nothing to the outputs.
  float value(const NeuronPair& pair, const float* x, Upcoming& upcoming, bool& left_out) const;

  LayerWeights up_;
  DownWeights down_;
  SparseActivation activation_;
  float threshold_;
  Gating gating_;
  std::unique_ptr<ScreenedLayer> layer_;
};

// Scores of firing neurons, in order of rows and then neurons.
std::vector<NeuronPair> firing_neurons(const ScreenedLayer& layer, const float* x, std::size_t batch,
                                       std::size_t threads, SparseWork& work);

// Of the neurons with a score above 0 the `most` with the largest, of equal ones the first; in the same order. The layer
// has no thresholds: those of rows rise to the least score that is among the largest so far.
std::vector<NeuronPair> largest_neurons(const ScreenedLayer& layer, const float* x, std::size_t batch, std::size_t most,
                                        std::size_t threads, SparseWork& work);

// y = biases + Σ values[i]·(row of neurons[i]) for i from starts[q] to starts[q + 1], in this order; row q of the batch.
void add_neurons(const LayerWeights& down, const float* biases, const std::int64_t* starts, const std::int64_t* neurons,
                 const float* values, std::size_t batch, std::size_t threads, float* y);

// y = h·rows + biases, reading only rows of neurons that give something in the batch or are marked in `always`.
void sparse_down(const DownWeights& down, const std::uint8_t* always, const float* h, std::size_t batch,
                 std::size_t threads, float* y);

}  // namespace fewfire
