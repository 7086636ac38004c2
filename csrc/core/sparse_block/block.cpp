#include "core/sparse_block/block.hpp"

#include <cmath>

#include "base/parallel.hpp"

namespace fewfire {
namespace {

// Groups of a piece: by their number alone, so that sums are the same for every caller.
std::size_t groups_of_piece(std::size_t groups) { return std::max<std::size_t>(4, (groups + 31) / 32); }

// Outputs of a batch, summed piece by piece. A piece belongs to one thread at a time.
class PieceSums {
 public:
  PieceSums(const DownWeights& down, std::size_t batch)
      : down_(down), batch_(batch), taken_(groups_of_piece((down.width + group_neurons - 1) / group_neurons)),
        pieces_((down.width + taken_ * group_neurons - 1) / (taken_ * group_neurons)),
        begun_(pieces_ * batch, 0), sums_(new float[pieces_ * batch * down.outputs]) {}

  std::size_t taken() const { return taken_; }
  std::size_t pieces() const { return pieces_; }

  // Adds factors[k]·(row of neurons[k]), at most 64 of one piece, to the outputs of a row of the batch.
  void add(std::size_t row, const std::uint32_t* neurons, const float* factors, std::size_t count,
           Upcoming& upcoming) {
    const std::size_t place = neurons[0] / group_neurons / taken_ * batch_ + row;
    float* sums = sums_.get() + place * down_.outputs;
    if (!begun_[place]) std::fill_n(sums, down_.outputs, 0.0f), begun_[place] = 1;
    const float* rows[group_neurons];
    for (std::size_t k = 0; k < count; ++k) rows[k] = down_.row(neurons[k]);
    FEWFIRE_DISPATCH(add_rows, sums, rows, factors, count, down_.outputs,
                     upcoming.codes(count * down_.outputs * sizeof(float)));
  }

  // Adds the pieces of each row in pairs, then the biases.
  void finish(float* y) {
    std::vector<float*> parts;
    for (std::size_t q = 0; q < batch_; ++q) {
      parts.clear();
      for (std::size_t place = q; place < begun_.size(); place += batch_)
        if (begun_[place]) parts.push_back(sums_.get() + place * down_.outputs);
      for (std::size_t apart = 1; apart < parts.size(); apart *= 2)
        for (std::size_t i = 0; i + apart < parts.size(); i += 2 * apart) add(parts[i], parts[i + apart]);
      float* out = y + q * down_.outputs;
      if (down_.biases)
        std::copy_n(down_.biases, down_.outputs, out);
      else
        std::fill_n(out, down_.outputs, 0.0f);
      if (!parts.empty()) add(out, parts[0]);
    }
  }

 private:
  void add(float* sums, const float* others) const {
    for (std::size_t k = 0; k < down_.outputs; ++k) sums[k] += others[k];
  }

  const DownWeights& down_;
  std::size_t batch_, taken_, pieces_;
  std::vector<std::uint8_t> begun_;
  std::unique_ptr<float[]> sums_;
};

// What the neurons of one group give, gathered row by row of the batch.
class GroupSum {
 public:
  GroupSum(PieceSums& sums, Upcoming& upcoming) : sums_(sums), upcoming_(upcoming) {}
  ~GroupSum() { flush(); }
  void add(std::uint32_t row, std::uint32_t neuron, float factor) {
    if (row != row_) flush(), row_ = row;
    neurons_[count_] = neuron, factors_[count_] = factor, ++count_;
  }

 private:
  void flush() {
    if (count_) sums_.add(row_, neurons_, factors_, count_, upcoming_);
    count_ = 0;
  }
  PieceSums& sums_;
  Upcoming& upcoming_;
  std::size_t row_ = 0, count_ = 0;
  std::uint32_t neurons_[group_neurons];
  float factors_[group_neurons];
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
    any |= mark_unbounded(static_cast<const float*>(up.rows), up.width, up.inputs, always.data());
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

float SparseBlock::value(const NeuronPair& pair, const float* x, Upcoming& upcoming, bool& left_out) const {
  const float own = activate(pair.score);
  left_out = false;
  if (gating_ == Gating::none) return own;
  const float score = up_.score(pair.neuron, x, upcoming);
  if (gating_ == Gating::reglu) return own * score;
  left_out = score <= threshold_ && std::isfinite(own) && !layer_->is_always_found(pair.neuron);
  return own * activate(score);
}

void SparseBlock::forward(const float* x, std::size_t batch, std::size_t threads, float* y, SparseWork& work) const {
  const CodedBatch coded = layer_->code(x, batch);
  const std::size_t gate_inputs = gating_ == Gating::none ? 0 : up_.inputs;
  PieceSums sums(down_, batch);
  std::atomic<std::uint64_t> products{0}, bytes{0};
  const auto expect = [&](std::size_t neuron, Upcoming& upcoming) {
    if (gate_inputs) upcoming.want(up_.row(neuron), up_.row_bytes());
    upcoming.want(down_.row(neuron), down_.outputs * sizeof(float));
  };
  const auto found = [&](const std::vector<NeuronPair>& pairs, Upcoming& upcoming) {
    GroupSum group(sums, upcoming);
    std::size_t added = 0;
    for (const NeuronPair& pair : pairs) {
      bool left_out;
      const float factor = value(pair, coded.row(pair.row), upcoming, left_out);
      if (left_out) continue;
      group.add(pair.row, pair.neuron, factor);
      ++added;
    }
    products.fetch_add(pairs.size() * gate_inputs + added * down_.outputs, std::memory_order_relaxed);
    bytes.fetch_add(distinct(pairs) * (gate_inputs + down_.outputs) * sizeof(float), std::memory_order_relaxed);
  };
  const auto above = [this](std::size_t) { return threshold_; };
  work = search_layer(*layer_, coded, sums.taken(), threads, expect, found, above);
  work.multiply_adds = products.load() + work.scored * up_.inputs;
  work.bytes += bytes.load();
  sums.finish(y);
}

std::vector<NeuronPair> firing_neurons(const ScreenedLayer& layer, const float* x, std::size_t batch,
                                       std::size_t threads, SparseWork& work) {
  const CodedBatch coded = layer.code(x, batch);
  const std::size_t taken = groups_of_piece(layer.groups());
  std::vector<std::vector<NeuronPair>> parts((layer.groups() + taken - 1) / taken);
  const auto found = [&](const std::vector<NeuronPair>& pairs, Upcoming&) {
    std::vector<NeuronPair>& part = parts[pairs[0].neuron / group_neurons / taken];
    for (const NeuronPair& pair : pairs)
      if (layer.fires(pair.neuron, pair.score, layer.threshold())) part.push_back(pair);
  };
  const auto above = [&](std::size_t) { return layer.threshold(); };
  work = search_layer(layer, coded, taken, threads, [](std::size_t, Upcoming&) {}, found, above);
  work.multiply_adds = work.scored * layer.weights().inputs;
  std::vector<NeuronPair> all;
  for (const std::vector<NeuronPair>& part : parts) all.insert(all.end(), part.begin(), part.end());
  if (batch > 1)
    std::stable_sort(all.begin(), all.end(), [](const NeuronPair& a, const NeuronPair& b) { return a.row < b.row; });
  return all;
}

std::vector<NeuronPair> largest_neurons(const ScreenedLayer& layer, const float* x, std::size_t batch, std::size_t most,
                                        std::size_t threads, SparseWork& work) {
  // A heap per row with the worst on top. All that is better than the final one is found, whatever the order is.
  struct Best {
    std::mutex mutex;
    std::vector<NeuronPair> heap;
    std::atomic<float> above{0.0f};
  };
  const auto better = [](const NeuronPair& a, const NeuronPair& b) {
    return a.score > b.score || (a.score == b.score && a.neuron < b.neuron);
  };
  std::vector<Best> rows(batch);
  const auto found = [&](const std::vector<NeuronPair>& pairs, Upcoming&) {
    for (const NeuronPair& pair : pairs) {
      Best& best = rows[pair.row];
      if (!(pair.score > best.above.load(std::memory_order_relaxed))) continue;
      const std::lock_guard lock(best.mutex);
      std::vector<NeuronPair>& heap = best.heap;
      heap.push_back(pair);
      std::push_heap(heap.begin(), heap.end(), better);
      if (heap.size() > most) std::pop_heap(heap.begin(), heap.end(), better), heap.pop_back();
      // Of equal scores a neuron that is found later may be the one before: they stay above.
      if (heap.size() == most) best.above = std::nextafter(heap.front().score, 0.0f);
    }
  };
  const auto above = [&](std::size_t q) { return rows[q].above.load(std::memory_order_relaxed); };
  const CodedBatch coded = layer.code(x, batch);
  const std::size_t taken = groups_of_piece(layer.groups());
  work = search_layer(layer, coded, taken, threads, [](std::size_t, Upcoming&) {}, found, above);
  work.multiply_adds = work.scored * layer.weights().inputs;
  std::vector<NeuronPair> all;
  for (Best& best : rows) {
    std::sort(best.heap.begin(), best.heap.end(),
              [](const NeuronPair& a, const NeuronPair& b) { return a.neuron < b.neuron; });
    all.insert(all.end(), best.heap.begin(), best.heap.end());
  }
  return all;
}

void add_neurons(const LayerWeights& down, const float* biases, const std::int64_t* starts, const std::int64_t* neurons,
                 const float* values, std::size_t batch, std::size_t threads, float* y) {
  constexpr std::size_t together = 16;
  const std::size_t outputs = down.inputs;
  parallel_for(batch, threads, [&](std::size_t q) {
    Upcoming upcoming;
    float* const out = y + q * outputs;
    if (biases)
      std::copy_n(biases, outputs, out);
    else
      std::fill_n(out, outputs, 0.0f);
    // Rows are asked for while those before are added: they stand anywhere, so nothing else would fetch them ahead.
    const auto expect = [&](std::int64_t from) {
      for (std::int64_t i = from; i < std::min(from + std::int64_t{together}, starts[q + 1]); ++i)
        for (std::size_t k = 0; k < down.row_bytes(); k += 64)
          __builtin_prefetch(down.row(static_cast<std::size_t>(neurons[i])) + k);
    };
    expect(starts[q]);
    for (std::int64_t from = starts[q]; from < starts[q + 1]; from += together) {
      expect(from + std::int64_t{together});
      const std::size_t count = std::min<std::size_t>(together, static_cast<std::size_t>(starts[q + 1] - from));
      float* const scratch = down.stored == Stored::single ? nullptr : upcoming.scratch(count * outputs);
      const float* rows[together];
      for (std::size_t k = 0; k < count; ++k)
        rows[k] = down.read(static_cast<std::size_t>(neurons[from + static_cast<std::int64_t>(k)]),
                            scratch ? scratch + k * outputs : nullptr);
      FEWFIRE_DISPATCH(add_rows, out, rows, values + from, count, outputs, upcoming.codes(count * outputs * sizeof(float)));
    }
  });
}

void sparse_down(const DownWeights& down, const std::uint8_t* always, const float* h, std::size_t batch,
                 std::size_t threads, float* y) {
  PieceSums sums(down, batch);
  parallel_for(sums.pieces(), threads, [&](std::size_t piece) {
    std::vector<NeuronPair> waiting, found;
    Upcoming nothing;
    const auto add_waiting = [&] {
      GroupSum group(sums, nothing);
      for (const NeuronPair& pair : waiting) group.add(pair.row, pair.neuron, pair.score);
    };
    const std::size_t span = sums.taken() * group_neurons, last = std::min((piece + 1) * span, down.width);
    // A group's rows are asked for while those of the group before are added.
    for (std::size_t from = piece * span; from < last; from += group_neurons) {
      for (std::size_t q = 0; q < batch; ++q)
        for (std::size_t j = from; j < std::min(from + group_neurons, last); ++j) {
          const float value = h[q * down.width + j];
          if (value == 0.0f && !(always && always[j])) continue;
          for (std::size_t k = 0; k < down.outputs; k += 16) __builtin_prefetch(down.row(j) + k);
          found.push_back({static_cast<std::uint32_t>(j), static_cast<std::uint32_t>(q), value});
        }
      add_waiting();
      waiting.swap(found);
      found.clear();
    }
    add_waiting();
  });
  sums.finish(y);
}

}  // namespace fewfire
