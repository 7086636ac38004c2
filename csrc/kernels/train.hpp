// Training one two-layer network by minibatch SGD or full-batch descent; the CPU engine runs many side by side.
//
//   f(x) = Σ_i u_i σ(⟨w_i, x⟩ + b_i) + o,   θ ← keep·θ − rate·trunc(∇θ)
//
// The hidden weights are stored as W = c·V: weight decay only shrinks the scalar c, so neurons that no example with a
// non-zero loss gradient activates are not written at all. The update of step t is applied to a neuron just before its
// score for step t + 1, so that V streams through the cache once per step. Reference: src/fewfire/engines/reference.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned.hpp"
#include "base/cpu.hpp"
#include "base/named.hpp"
#include "kernels/activations.hpp"
#include "kernels/losses.hpp"

namespace fewfire {

enum class Sampling { replacement, epochs, online };
enum class Stop { running, steps, test_error, diverged };

constexpr Named<Sampling> samplings[] = {{"replacement", Sampling::replacement},
                                         {"epochs", Sampling::epochs},
                                         {"online", Sampling::online}};
constexpr Named<Stop> stops[] = {
    {"steps", Stop::steps}, {"test_error", Stop::test_error}, {"diverged", Stop::diverged}};

// A stretch of steps. Tables hold one row (hidden, bias, output, offset) per step, or one for all when `varies` is off.
struct PhaseTable {
  std::size_t steps = 0;
  std::size_t batch = 0;  // 0: every example
  bool varies = false;
  bool truncates = false;
  std::vector<double> rate, keep, truncation;
};

// Examples: signs as bits (−1 set, rows of `words` 64-bit words) or float32 rows.
struct Examples {
  const std::uint64_t* bits = nullptr;
  const float* dense = nullptr;
  const float* labels = nullptr;
  std::size_t rows = 0;
  std::size_t words = 0;
};

// A checkpoint looks at no more than so many rows of the training set, the first ones; MEASURED_ROWS of
// fewfire.engines.
constexpr std::size_t measured_rows = 10000;

struct Record {
  double step, train_loss, train_error, test_error, hidden_norm, output_norm, active_fraction, support_weight;
};

// One run: what it is (set once) and where it stands.
struct TrainingRun {
  std::size_t inputs = 0, width = 0;
  LossKind loss = LossKind::hinge;
  ActivationKind activation = ActivationKind::relu;
  float threshold = 0.0f;
  Sampling sampling = Sampling::replacement;
  bool boolean_labels = true;  // errors are shares of wrong signs; otherwise mean squares
  std::uint64_t key = 0, batch_stream = 0, epoch_stream = 0;
  Examples train, test;
  std::vector<PhaseTable> phases;
  std::vector<std::size_t> checkpoints;  // ascending, first 0
  double stop_error = -1.0;              // no early stop below 0
  std::vector<std::size_t> support;      // inputs the target depends on, where known

  AlignedVector<float> weights;  // V, width rows of `stride` floats
  AlignedVector<float> bias, output;
  double offset = 0.0, scale = 1.0;

  std::size_t step = 0, phase = 0, step_in_phase = 0, next_checkpoint = 0;
  std::uint64_t position = 0;  // examples drawn so far
  std::uint64_t origin = 0;    // online sampling: position of row 0 of `train`
  std::uint64_t examples_seen = 0, active_pairs = 0, multiply_adds = 0;
  Stop stopped = Stop::running;
  std::size_t diverged_step = 0;
  double diverged_rate = 0.0;
  std::vector<Record> records;

  std::size_t stride() const { return (inputs + 15) / 16 * 16; }

  // Scratch, sized by prepare().
  AlignedVector<float> columns, rows[2], scores, gradient;
  alignas(64) float slopes[32];
  std::vector<std::uint64_t> order;
  std::uint64_t order_epoch = ~std::uint64_t{0};
  int current = 0;
  bool pending = false;
  bool signs = false;  // columns holds signs in groups of four (columns_from_bits) instead of values
  double pending_rate[4], pending_keep[4], pending_truncation[4];
};

FEWFIRE_DECLARE(
    // Sizes the scratch and records the initial network.
    void prepare(TrainingRun& run);
    // Does at most `steps` steps; returns how many were done. Fewer mean that the run ended or needs more rows.
    std::size_t advance(TrainingRun& run, std::size_t steps);
    // The hidden weights W = c·V, width x inputs, with no pending update left.
    void export_weights(TrainingRun& run, float* hidden);)

}  // namespace fewfire
