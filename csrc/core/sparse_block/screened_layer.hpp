// A layer whose firing neurons are found by codes (kernels/sparse_block.hpp has the bound and its proof). The weights
// stay where they are; codes, scales and bounds are all that is kept beside them. Nothing changes after building.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/aligned.hpp"
#include "kernels/sparse_block.hpp"

namespace fewfire {

// What a call has cost.
struct SparseWork {
  std::uint64_t screened = 0;  // pairs of a row and a neuron that the codes were asked about
  std::uint64_t open = 0;      // that they left open
  std::uint64_t scored = 0;    // that the residual codes left open as well: scored in float32
  std::uint64_t firing = 0;
  std::uint64_t multiply_adds = 0, bytes = 0;  // bytes of codes and weights, once per row of weights and batch

  void add(const SparseWork& other);
};

// A neuron and a row of the batch, with the score of the one for the other.
struct NeuronPair {
  std::uint32_t neuron, row;
  float score;
};

// How many neurons there are in the pairs of one group.
inline std::size_t distinct(const std::vector<NeuronPair>& pairs) {
  std::uint64_t seen = 0;
  for (const NeuronPair& pair : pairs) seen |= std::uint64_t{1} << pair.neuron % group_neurons;
  return static_cast<std::size_t>(std::popcount(seen));
}

// Weights of a layer, row by row, as the caller keeps them; no biases is null.
struct LayerWeights {
  const float* rows = nullptr;
  const float* biases = nullptr;
  std::size_t width = 0, inputs = 0;

  const float* row(std::size_t neuron) const { return rows + neuron * inputs; }
  float score(std::size_t neuron, const float* x) const {
    return FEWFIRE_DISPATCH(neuron_score, row(neuron), x, inputs, biases ? biases[neuron] : 0.0f);
  }
};

// Asks for a row of numbers that will be read soon; of long ones the beginning, the rest being seen to by the processor.
inline void expect_row(const float* row, std::size_t length, std::size_t most = 4096) {
  const std::size_t last = std::min(length, most);
  for (std::size_t j = 0; j < last; j += 16) __builtin_prefetch(row + j, 0, 3);
}

// A batch of inputs and their codes.
class CodedBatch {
 public:
  CodedBatch(const float* rows, std::size_t count, std::size_t inputs, bool two_parts);
  const float* row(std::size_t q) const { return rows_ + q * inputs_; }
  const std::vector<CodedRow>& coded() const { return coded_; }
  std::size_t count() const { return count_; }

 private:
  const float* rows_;
  std::size_t count_, inputs_;
  AlignedVector<std::int8_t> codes_;
  std::vector<CodedRow> coded_;
};

class ScreenedLayer {
 public:
  // `always`: neurons that are to be found whatever their score is (one byte each), or null.
  ScreenedLayer(const LayerWeights& weights, float threshold, bool residual, const std::uint8_t* always,
                std::size_t threads);

  const LayerWeights& weights() const { return weights_; }
  std::size_t groups() const { return (weights_.width + group_neurons - 1) / group_neurons; }
  std::size_t memory() const;
  bool fires(float score) const { return !(score <= threshold_); }
  bool is_always_found(std::size_t neuron) const { return !always_.empty() && always_[neuron]; }
  // Whether a row may be judged by its codes: it is finite, and no sum of products with it can overflow.
  bool is_judged(const CodedRow& row) const {
    return weights_.inputs <= most_screened && row.norm * largest_norm_ + largest_bias_ < 1e37f;
  }
  CodedBatch code(const float* rows, std::size_t count) const;

  // Calls found(pairs) for the neurons of groups [first, last) that fire or are always found, group by group:
  // rows of the batch in order, neurons in order within each. expect(neuron) is called as soon as one is known.
  template <class Expect, class Found>
  void find(std::size_t first, std::size_t last, const CodedBatch& batch, const Expect& expect, const Found& found,
            SparseWork& work) const;

 private:
  void code_neuron(std::size_t neuron);
  NeuronGroup group(std::size_t index) const;
  ResidualRow residual(std::size_t neuron) const {
    const std::size_t coded = coded_inputs(weights_.inputs);
    return {residual_codes_.data() + neuron * coded / 2, residual_scales_[neuron], residual_error_[neuron],
            residual_coded_[neuron]};
  }
  double rounding() const;

  LayerWeights weights_;
  float threshold_, largest_norm_ = 0, largest_bias_ = 0;
  std::vector<std::uint8_t> always_;
  AlignedVector<std::uint8_t> codes_, residual_codes_;
  AlignedVector<float> scales_, offsets_, error_, coded_, norms_;
  std::vector<float> residual_scales_, residual_error_, residual_coded_;
};

template <class Expect, class Found>
void ScreenedLayer::find(std::size_t first, std::size_t last, const CodedBatch& batch, const Expect& expect,
                         const Found& found, SparseWork& work) const {
  const std::size_t inputs = weights_.inputs, coded = coded_inputs(inputs), count = batch.count();
  std::vector<std::uint64_t> open(count);
  std::vector<float> approximate(count * group_neurons);
  std::vector<NeuronPair> refining, scoring, firing;
  std::vector<bool> judged(count);
  for (std::size_t q = 0; q < count; ++q) judged[q] = is_judged(batch.coded()[q]);
  const bool any_judged = std::find(judged.begin(), judged.end(), true) != judged.end();
  const bool refines = !residual_codes_.empty();
  const auto expect_score = [&](const NeuronPair& pair, std::size_t waiting) {
    expect_row(weights_.row(pair.neuron), inputs, waiting < 32 ? 4096 : 128);
    scoring.push_back(pair);
  };
  // Each turn hands on what the turn before found, so that what is read next has been asked for a turn ago.
  for (std::size_t turn = first; turn < last + 3; ++turn) {
    if (!firing.empty()) found(firing);
    firing.clear();
    for (NeuronPair& pair : scoring) {
      pair.score = weights_.score(pair.neuron, batch.row(pair.row));
      const bool fires_here = fires(pair.score);
      work.firing += fires_here;
      if (!fires_here && judged[pair.row] && !is_always_found(pair.neuron)) continue;
      expect(pair.neuron);
      firing.push_back(pair);
    }
    work.scored += scoring.size();
    work.bytes += distinct(scoring) * inputs * sizeof(float);
    scoring.clear();
    for (const NeuronPair& pair : refining)
      if (!judged[pair.row] || FEWFIRE_DISPATCH(stays_open, residual(pair.neuron), coded, batch.coded()[pair.row],
                                                pair.score, threshold_))
        expect_score(pair, scoring.size());
    refining.clear();
    if (turn >= last) continue;
    if (any_judged)
      FEWFIRE_DISPATCH(screen_group, group(turn), coded, batch.coded().data(), count, threshold_, open.data(),
                       approximate.data());
    const std::size_t from = turn * group_neurons, here = std::min(group_neurons, weights_.width - from);
    const std::uint64_t present = here == group_neurons ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
    for (std::size_t q = 0; q < count; ++q) {
      std::uint64_t left = (judged[q] ? open[q] : ~std::uint64_t{0}) & present;
      work.open += static_cast<std::uint64_t>(std::popcount(left));
      for (; left; left &= left - 1) {
        const std::size_t i = static_cast<std::size_t>(std::countr_zero(left));
        const NeuronPair pair{static_cast<std::uint32_t>(from + i), static_cast<std::uint32_t>(q),
                              approximate[q * group_neurons + i]};
        if (!refines) {
          expect_score(pair, scoring.size());
        } else {
          const std::uint8_t* codes = residual_codes_.data() + pair.neuron * coded / 2;
          for (std::size_t j = 0; j < coded / 2; j += 64) __builtin_prefetch(codes + j, 0, 2);
          refining.push_back(pair);
        }
      }
    }
    work.screened += here * count;
    work.bytes += any_judged ? here * coded : 0;
    work.bytes += refines ? distinct(refining) * coded / 2 : 0;
  }
}

}  // namespace fewfire
