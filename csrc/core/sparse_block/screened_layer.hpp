// A layer whose firing neurons are found by codes (kernels/sparse_block.hpp has the bound and its proof). The weights
// stay where they are; codes, scales and bounds are all that is kept besides them. Nothing changes after building.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "base/aligned.hpp"
#include "base/parallel.hpp"
#include "kernels/sparse_block.hpp"

namespace fewfire {

// What a call has cost.
struct SparseWork {
  std::uint64_t screened = 0;  // pairs of a row and a neuron that were screened by codes
  std::uint64_t open = 0;      // that the codes left open
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

// What is read after codes that are on their way, and what is read after weights that are.
class Upcoming {
 public:
  // Of a row that is one of many the beginning: the rest would be gone from the cache when it is read.
  void want(const void* row, std::size_t bytes) {
    wanted_.push_back({static_cast<const char*>(row), total_ < most ? bytes : std::min<std::size_t>(bytes, 512)});
    total_ += bytes;
  }
  const std::vector<WantedBytes>& wanted() const { return wanted_; }
  void clear() { wanted_.clear(), total_ = 0; }

  void set_codes(const std::uint8_t* codes, std::size_t bytes) {
    codes_ = reinterpret_cast<const char*>(codes), end_ = codes_ + bytes;
  }
  // Room for a row of weights that is stored in half precision.
  float* scratch(std::size_t length) { return scratch_.resize(std::max(scratch_.size(), length)), scratch_.data(); }
  // The next so many bytes of codes.
  const char* codes(std::size_t bytes) {
    const char* at = codes_;
    codes_ += std::min(bytes, static_cast<std::size_t>(end_ - codes_));
    return at;
  }

 private:
  static constexpr std::size_t most = std::size_t{1} << 19;
  std::vector<WantedBytes> wanted_;
  std::vector<float> scratch_;
  std::size_t total_ = 0;
  static constexpr char nothing[64] = {};
  const char *codes_ = nothing, *end_ = nothing;
};

// What numbers of weights are stored as; all of them are exact in float32, in which they are computed with.
enum class Stored { single, half, brain };

// Weights of a layer, row by row, as the caller keeps them; no biases is null. With thresholds each neuron has its own,
// which takes the place of the layer's.
struct LayerWeights {
  const void* rows = nullptr;
  const float* biases = nullptr;
  std::size_t width = 0, inputs = 0;
  const float* thresholds = nullptr;
  Stored stored = Stored::single;

  std::size_t row_bytes() const { return inputs * (stored == Stored::single ? sizeof(float) : 2); }
  const char* row(std::size_t neuron) const { return static_cast<const char*>(rows) + neuron * row_bytes(); }
  // A row as floats: where it stands, or a copy in `scratch`.
  const float* read(std::size_t neuron, float* scratch) const {
    if (stored == Stored::single) return reinterpret_cast<const float*>(row(neuron));
    const auto* const words = reinterpret_cast<const std::uint16_t*>(row(neuron));
    FEWFIRE_DISPATCH(widen, words, inputs, stored == Stored::brain, scratch);
    return scratch;
  }
  float score(std::size_t neuron, const float* x, Upcoming& upcoming) const {
    const float* weights = read(neuron, stored == Stored::single ? nullptr : upcoming.scratch(inputs));
    return FEWFIRE_DISPATCH(neuron_score, weights, x, inputs, biases ? biases[neuron] : 0.0f,
                            upcoming.codes(row_bytes()));
  }
};

// A batch of inputs and their codes.
class CodedBatch {
 public:
  CodedBatch(const float* rows, std::size_t count, std::size_t inputs);
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

  // Computes the codes of changed rows anew; no search may run meanwhile.
  void recode(const std::int64_t* neurons, std::size_t count, std::size_t threads);

  const LayerWeights& weights() const { return weights_; }
  std::size_t groups() const { return (weights_.width + group_neurons - 1) / group_neurons; }
  std::size_t memory() const;
  float threshold() const { return threshold_; }
  bool fires(std::size_t neuron, float score, float threshold) const {
    return !(score <= (weights_.thresholds ? weights_.thresholds[neuron] : threshold));
  }
  bool is_always_found(std::size_t neuron) const { return !always_.empty() && always_[neuron]; }
  // Whether a row may be screened by its codes: it is finite, and no sum of products with it can overflow.
  bool is_judged(const CodedRow& row) const {
    return weights_.inputs <= most_screened && row.norm * largest_norm_ + largest_bias_ < 1e37f;
  }
  CodedBatch code(const float* rows, std::size_t count) const { return CodedBatch(rows, count, weights_.inputs); }

  template <class Expect, class Found, class Above>
  class Search;

 private:
  // The norm of the row, infinite where it is not finite.
  float code_neuron(std::size_t neuron);
  void note_sizes(std::size_t neuron, float norm);
  NeuronGroup group(std::size_t index) const;
  ResidualRow residual(std::size_t neuron) const {
    const std::size_t coded = coded_inputs(weights_.inputs);
    return {residual_codes_.data() + neuron * coded / 2, residual_scales_[neuron], residual_error_[neuron],
            residual_coded_[neuron]};
  }
  double rounding() const;
  // What a neuron's score is compared with, besides the threshold of a row: its own threshold, or the layer's.
  float threshold_of(std::size_t neuron) const { return weights_.thresholds ? weights_.thresholds[neuron] : threshold_; }

  LayerWeights weights_;
  float threshold_, largest_norm_ = 0, largest_bias_ = 0;
  std::vector<std::uint8_t> always_;
  AlignedVector<std::uint8_t> codes_, residual_codes_;
  AlignedVector<float> scales_, offsets_, error_, coded_;
  std::vector<float> residual_scales_, residual_error_, residual_coded_;
};

// Finds, group by group, the neurons that fire or are always found, and calls found(pairs, upcoming) for those of a group: rows of
// the batch in order, neurons in order within each. expect(neuron, upcoming) adds what `found` will read of a neuron.
// above(q) is the threshold of row q where neurons have none of their own; it may rise while the search goes on.
//
// A visit hands on what the visit before left, so that whatever is read was prefetched a visit ago, and memory is kept
// busy with codes meanwhile: open → (residual codes →) scored → found.
template <class Expect, class Found, class Above>
class ScreenedLayer::Search {
 public:
  Search(const ScreenedLayer& layer, const CodedBatch& batch, const Expect& expect, const Found& found,
         const Above& above)
      : layer_(layer), batch_(batch), expect_(expect), found_(found), above_(above), open_(batch.count()),
        judged_(batch.count()), approximate_(batch.count() * group_neurons), thresholds_(batch.count()) {
    for (std::size_t q = 0; q < batch.count(); ++q) any_judged_ |= judged_[q] = layer.is_judged(batch.coded()[q]);
  }

  void visit(std::size_t group) {
    if (any_judged_) upcoming_.set_codes(layer_.group(group).codes, group_neurons * coded_inputs(layer_.weights_.inputs));
    hand_on();
    screen(group);
    upcoming_.clear();
  }
  // After the last visit: what is still under way.
  void finish() {
    for (int stage = 0; stage < 4; ++stage) {
      hand_on();
      for (const WantedBytes& row : upcoming_.wanted())
        for (std::size_t k = 0; k < row.bytes; k += 64) __builtin_prefetch(row.at + k, 0, 2);
      upcoming_.clear();
    }
  }
  const SparseWork& work() const { return work_; }

 private:
  // Whether this is the first pair of its neuron; notes it in `seen`.
  static bool first_of(const NeuronPair& pair, std::uint64_t& seen) {
    const std::uint64_t bit = std::uint64_t{1} << pair.neuron % group_neurons;
    return !(std::exchange(seen, seen | bit) & bit);
  }

  void hand_on() {
    const LayerWeights& weights = layer_.weights_;
    const std::size_t coded = coded_inputs(weights.inputs);
    const bool refines = !layer_.residual_codes_.empty();
    std::uint64_t found_neurons = 0, scored_neurons = 0, refined_neurons = 0;
    if (!firing_.empty()) found_(firing_, upcoming_);
    firing_.clear();
    for (NeuronPair& pair : scoring_) {
      pair.score = weights.score(pair.neuron, batch_.row(pair.row), upcoming_);
      const bool fires = layer_.fires(pair.neuron, pair.score, above_(pair.row));
      work_.firing += fires;
      if (!fires && judged_[pair.row] && !layer_.is_always_found(pair.neuron)) continue;
      if (first_of(pair, found_neurons)) expect_(pair.neuron, upcoming_);
      firing_.push_back(pair);
    }
    work_.scored += scoring_.size();
    work_.bytes += distinct(scoring_) * weights.row_bytes();
    scoring_.clear();
    const auto score_next = [&](const NeuronPair& pair) {
      if (first_of(pair, scored_neurons)) upcoming_.want(weights.row(pair.neuron), weights.row_bytes());
      scoring_.push_back(pair);
    };
    for (const NeuronPair& pair : refining_)
      if (!judged_[pair.row] || FEWFIRE_DISPATCH(stays_open, layer_.residual(pair.neuron), coded,
                                                 batch_.coded()[pair.row], pair.score, thresholds_[pair.row]))
        score_next(pair);
    work_.bytes += refines ? distinct(refining_) * coded / 2 : 0;
    refining_.clear();
    for (const NeuronPair& pair : opened_) {
      if (!refines) {
        score_next(pair);
      } else {
        if (first_of(pair, refined_neurons))
          upcoming_.want(layer_.residual_codes_.data() + pair.neuron * coded / 2, coded / 2);
        refining_.push_back(pair);
      }
    }
    opened_.clear();
  }

  void screen(std::size_t group) {
    const std::size_t coded = coded_inputs(layer_.weights_.inputs), from = group * group_neurons;
    const std::size_t here = std::min(group_neurons, layer_.weights_.width - from), count = batch_.count();
    // Where neurons have thresholds of their own, these are in what is screened.
    for (std::size_t q = 0; q < count; ++q) thresholds_[q] = layer_.weights_.thresholds ? 0.0f : above_(q);
    if (any_judged_)
      FEWFIRE_DISPATCH(screen_group, layer_.group(group), coded, batch_.coded().data(), count, thresholds_.data(),
                       upcoming_.wanted().data(), upcoming_.wanted().size(), open_.data(), approximate_.data());
    const std::uint64_t present = here == group_neurons ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
    for (std::size_t q = 0; q < count; ++q)
      for (std::uint64_t left = (judged_[q] ? open_[q] : ~std::uint64_t{0}) & present; left; left &= left - 1) {
        const std::size_t i = static_cast<std::size_t>(std::countr_zero(left));
        opened_.push_back({static_cast<std::uint32_t>(from + i), static_cast<std::uint32_t>(q),
                           approximate_[q * group_neurons + i]});
      }
    work_.screened += here * count;
    work_.open += opened_.size();
    work_.bytes += any_judged_ ? here * coded : 0;
  }

  const ScreenedLayer& layer_;
  const CodedBatch& batch_;
  const Expect& expect_;
  const Found& found_;
  const Above& above_;
  std::vector<std::uint64_t> open_;
  std::vector<std::uint8_t> judged_;
  std::vector<float> approximate_, thresholds_;
  std::vector<NeuronPair> opened_, refining_, scoring_, firing_;
  Upcoming upcoming_;
  SparseWork work_;
  bool any_judged_ = false;
};

// Visits every group, on some threads, each of which takes the next `taken` when it is done: those are found by one
// thread, in order. Returns what it has cost.
template <class Expect, class Found, class Above>
SparseWork search_layer(const ScreenedLayer& layer, const CodedBatch& batch, std::size_t taken, std::size_t threads,
                        const Expect& expect, const Found& found, const Above& above) {
  const std::size_t groups = layer.groups();
  std::atomic<std::size_t> next{0};
  SparseWork work;
  std::mutex mutex;
  run_threads(std::min(threads, (groups + taken - 1) / taken), [&](std::size_t) {
    ScreenedLayer::Search<Expect, Found, Above> search(layer, batch, expect, found, above);
    for (std::size_t first; (first = next.fetch_add(taken, std::memory_order_relaxed)) < groups;)
      for (std::size_t group = first; group < std::min(first + taken, groups); ++group) search.visit(group);
    search.finish();
    const std::lock_guard lock(mutex);
    work.add(search.work());
  });
  return work;
}

}  // namespace fewfire
