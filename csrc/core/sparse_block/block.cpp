#include "core/sparse_block/block.hpp"

#include <cmath>

#include "base/parallel.hpp"

namespace fewfire {
namespace {

// By the number of groups alone, so that sums are the same whoever calls.
std::size_t pieces_of(std::size_t groups) { return std::clamp<std::size_t>(groups / 8, 1, 32); }

// Outputs of a batch, summed by pieces.
class PieceSums {
 public:
  PieceSums(std::size_t pieces, std::size_t batch, std::size_t outputs)
      : batch_(batch), outputs_(outputs), sums_(new float[pieces * batch * outputs]) {}

  // The sums of a piece, one row of outputs per row of the batch, set to 0.
  float* begin(std::size_t piece) {
    float* sums = sums_.get() + piece * batch_ * outputs_;
    std::fill_n(sums, batch_ * outputs_, 0.0f);
    return sums;
  }
  void finish(std::size_t pieces, const float* biases, float* y) const {
    for (std::size_t q = 0; q < batch_; ++q) {
      float* out = y + q * outputs_;
      if (biases)
        std::copy_n(biases, outputs_, out);
      else
        std::fill_n(out, outputs_, 0.0f);
      for (std::size_t piece = 0; piece < pieces; ++piece) {
        const float* sums = sums_.get() + (piece * batch_ + q) * outputs_;
        for (std::size_t k = 0; k < outputs_; ++k) out[k] += sums[k];
      }
    }
  }

 private:
  std::size_t batch_, outputs_;
  std::unique_ptr<float[]> sums_;
};

// Rows of the second layer to be added to the outputs of one row of the batch, some at a time.
class RowSum {
 public:
  RowSum(const DownWeights& down, float* sums) : down_(down), sums_(sums) {}
  ~RowSum() { flush(); }
  void add(std::size_t row, std::size_t neuron, float factor) {
    if (row != row_ || count_ == most) flush(), row_ = row;
    rows_[count_] = down_.row(neuron), factors_[count_] = factor, ++count_;
  }
  void flush() {
    if (count_) FEWFIRE_DISPATCH(add_rows, sums_ + row_ * down_.outputs, rows_, factors_, count_, down_.outputs);
    count_ = 0;
  }

 private:
  static constexpr std::size_t most = 64;
  const DownWeights& down_;
  float* sums_;
  std::size_t row_ = 0, count_ = 0;
  const float* rows_[most];
  float factors_[most];
};

}  // namespace

bool mark_unbounded(const float* rows, std::size_t width, std::size_t length, std::uint8_t* marks) {
  bool any = false;
  for (std::size_t neuron = 0; neuron < width; ++neuron) {
    float sum = 0;  // 0·x is 0 for finite x and NaN for others
    for (std::size_t k = 0; k < length; ++k) sum += 0.0f * rows[neuron * length + k];
    if (sum != 0.0f) marks[neuron] = 1, any = true;
  }
  return any;
}

SparseBlock::SparseBlock(const LayerWeights& screened, const LayerWeights& up, const DownWeights& down,
                         SparseActivation activation, float threshold, Gating gating, bool residual,
                         std::size_t threads)
    : up_(up), down_(down), activation_(activation), threshold_(threshold), gating_(gating) {
  // 0 times a weight that is not finite is NaN, as in a dense block: such neurons are never left out.
  std::vector<std::uint8_t> always(down.width, 0);
  bool any = mark_unbounded(down.rows, down.width, down.outputs, always.data());
  if (gating != Gating::none) {
    any |= mark_unbounded(up.rows, up.width, up.inputs, always.data());
    if (up.biases) any |= mark_unbounded(up.biases, up.width, 1, always.data());
  }
  layer_ = std::make_unique<ScreenedLayer>(screened, threshold, residual, any ? always.data() : nullptr, threads);
}

float SparseBlock::activate(float score) const {
  if (score <= threshold_) return 0.0f;
  switch (activation_) {
    case SparseActivation::shifted: return score - threshold_;
    case SparseActivation::relu2: return score * score;
    default: return score;
  }
}

float SparseBlock::value(const NeuronPair& pair, const float* x, bool& left_out) const {
  const float own = activate(pair.score);
  left_out = false;
  if (gating_ == Gating::none) return own;
  const float score = up_.score(pair.neuron, x);
  if (gating_ == Gating::reglu) return own * score;
  left_out = score <= threshold_ && std::isfinite(own) && !layer_->is_always_found(pair.neuron);
  return own * activate(score);
}

void SparseBlock::forward(const float* x, std::size_t batch, std::size_t threads, float* y, SparseWork& work) const {
  const CodedBatch coded = layer_->code(x, batch);
  const std::size_t groups = layer_->groups(), pieces = pieces_of(groups);
  PieceSums sums(pieces, batch, down_.outputs);
  std::vector<SparseWork> spent(pieces);
  parallel_for(pieces, threads, [&](std::size_t piece) {
    float* own = sums.begin(piece);
    std::uint64_t added = 0;
    const auto expect = [&](std::size_t neuron) {
      if (gating_ != Gating::none) expect_row(up_.row(neuron), up_.inputs);
      expect_row(down_.row(neuron), down_.outputs);
    };
    const auto found = [&](const std::vector<NeuronPair>& pairs) {
      RowSum rows(down_, own);
      for (const NeuronPair& pair : pairs) {
        bool left_out;
        const float factor = value(pair, coded.row(pair.row), left_out);
        if (left_out) continue;
        rows.add(pair.row, pair.neuron, factor);
        ++added;
      }
      const std::size_t gate_inputs = gating_ == Gating::none ? 0 : up_.inputs;
      spent[piece].multiply_adds += pairs.size() * gate_inputs;
      spent[piece].bytes += distinct(pairs) * (gate_inputs + down_.outputs) * sizeof(float);
    };
    layer_->find(piece * groups / pieces, (piece + 1) * groups / pieces, coded, expect, found, spent[piece]);
    spent[piece].multiply_adds += added * down_.outputs + spent[piece].scored * up_.inputs;
  });
  for (const SparseWork& part : spent) work.add(part);
  sums.finish(pieces, down_.biases, y);
}

std::vector<NeuronPair> firing_neurons(const ScreenedLayer& layer, const float* x, std::size_t batch,
                                       std::size_t threads, SparseWork& work) {
  const CodedBatch coded = layer.code(x, batch);
  const std::size_t groups = layer.groups(), pieces = pieces_of(groups);
  std::vector<SparseWork> spent(pieces);
  std::vector<std::vector<NeuronPair>> parts(pieces);
  parallel_for(pieces, threads, [&](std::size_t piece) {
    const auto found = [&](const std::vector<NeuronPair>& pairs) {
      for (const NeuronPair& pair : pairs)
        if (layer.fires(pair.score)) parts[piece].push_back(pair);
    };
    layer.find(piece * groups / pieces, (piece + 1) * groups / pieces, coded, [](std::size_t) {}, found, spent[piece]);
  });
  for (const SparseWork& part : spent) work.add(part);
  std::vector<NeuronPair> all;
  for (const std::vector<NeuronPair>& part : parts) all.insert(all.end(), part.begin(), part.end());
  if (batch > 1)
    std::stable_sort(all.begin(), all.end(), [](const NeuronPair& a, const NeuronPair& b) { return a.row < b.row; });
  return all;
}

void sparse_down(const DownWeights& down, const std::uint8_t* always, const float* h, std::size_t batch,
                 std::size_t threads, float* y) {
  const std::size_t groups = (down.width + group_neurons - 1) / group_neurons, pieces = pieces_of(groups);
  PieceSums sums(pieces, batch, down.outputs);
  parallel_for(pieces, threads, [&](std::size_t piece) {
    float* own = sums.begin(piece);
    std::vector<NeuronPair> waiting, found;
    // A group's rows are asked for while those of the group before are added.
    for (std::size_t group = piece * groups / pieces; group <= (piece + 1) * groups / pieces; ++group) {
      if (group < (piece + 1) * groups / pieces)
        for (std::size_t q = 0; q < batch; ++q)
          for (std::size_t j = group * group_neurons; j < std::min((group + 1) * group_neurons, down.width); ++j) {
            const float value = h[q * down.width + j];
            if (value == 0.0f && !(always && always[j])) continue;
            expect_row(down.row(j), down.outputs);
            found.push_back({static_cast<std::uint32_t>(j), static_cast<std::uint32_t>(q), value});
          }
      RowSum rows(down, own);
      for (const NeuronPair& pair : waiting) rows.add(pair.row, pair.neuron, pair.score);
      rows.flush();
      waiting.swap(found);
      found.clear();
    }
  });
  sums.finish(pieces, down.biases, y);
}

}  // namespace fewfire
