// The update of one neuron from 32 examples, kept pending until the neuron is scored again.
#pragma once

#include "kernels/train_math.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// out[j] += Σ_{e in active} coefficient[e]·rows[e][j].
void add_rows(std::size_t stride, const float* rows, std::uint32_t active, const float* coefficient, float* out) {
  std::uint32_t ids[batch_lanes];
  std::size_t count = 0;
  for (; active; active &= active - 1) ids[count++] = static_cast<std::uint32_t>(std::countr_zero(active));
  std::size_t j = 0;
  for (; j + 4 * lanes <= stride; j += 4 * lanes) {
    Vec a = load(out + j), b = load(out + j + lanes), c = load(out + j + 2 * lanes), d = load(out + j + 3 * lanes);
    for (std::size_t q = 0; q < count; ++q) {
      const float* row = rows + ids[q] * stride + j;
      const float factor = coefficient[ids[q]];
      a += factor * load(row);
      b += factor * load(row + lanes);
      c += factor * load(row + 2 * lanes);
      d += factor * load(row + 3 * lanes);
    }
    store(out + j, a);
    store(out + j + lanes, b);
    store(out + j + 2 * lanes, c);
    store(out + j + 3 * lanes, d);
  }
  for (; j < stride; j += lanes) {
    Vec a = load(out + j);
    for (std::size_t q = 0; q < count; ++q) a += coefficient[ids[q]] * load(rows + ids[q] * stride + j);
    store(out + j, a);
  }
}

template <class T>
T truncated(T slope, T level) {
  return std::abs(slope) > level ? slope : T{0};
}

// Applies the pending update of the last step to neuron i.
void apply_pending(TrainingRun& run, std::size_t i, std::uint32_t live) {
  const float* z = run.scores.data() + batch_lanes * i;
  const float* rows = run.rows[run.current ^ 1].data();
  const std::size_t stride = run.stride();
  float du = 0, db = 0;
  if (live) {
    const Vec g0 = load(run.slopes), g1 = load(run.slopes + lanes);
    const Vec h0 = activate(run.activation, load(z), run.threshold);
    const Vec h1 = activate(run.activation, load(z + lanes), run.threshold);
    du = sum(g0 * h0 + g1 * h1);
    const std::uint32_t active = between(z, run.threshold, slope_limit(run.activation)) & live;
    const float u = run.output[i];
    if (active && u != 0.0f) {
      db = u * masked_sum(run.slopes, active);
      alignas(64) float coefficient[batch_lanes];
      const bool truncates = run.pending_truncation[0] > 0;
      const float factor = truncates ? u : static_cast<float>(-run.pending_rate[0] / run.scale) * u;
      store(coefficient, factor * g0);
      store(coefficient + lanes, factor * g1);
      float* weights = run.weights.data() + i * stride;
      if (truncates) {
        float* slope = run.gradient.data();
        std::fill(slope, slope + stride, 0.0f);
        add_rows(stride, rows, active, coefficient, slope);
        for (std::size_t j = 0; j < stride; ++j)
          weights[j] -= static_cast<float>(run.pending_rate[0] / run.scale) *
                        truncated(slope[j], static_cast<float>(run.pending_truncation[0]));
      } else if (factor != 0.0f) {
        add_rows(stride, rows, active, coefficient, weights);
      }
    }
  }
  const auto step = [&](int layer, float value, float slope) {
    return static_cast<float>(run.pending_keep[layer]) * value -
           static_cast<float>(run.pending_rate[layer]) *
               truncated(slope, static_cast<float>(run.pending_truncation[layer]));
  };
  run.bias[i] = step(1, run.bias[i], db);
  run.output[i] = step(2, run.output[i], du);
}

// c ← keep·c; V is touched only when c leaves a comfortable range.
void shrink(TrainingRun& run, double keep) {
  run.scale *= keep;
  if (std::abs(run.scale) > 1e-3 && std::abs(run.scale) < 1e3) return;
  const float factor = static_cast<float>(run.scale);
  for (float& w : run.weights) w *= factor;
  run.scale = 1.0;
}

std::uint32_t live_lanes(const float* slopes) {
  std::uint32_t live = 0;
  for (std::size_t e = 0; e < batch_lanes; ++e) live |= static_cast<std::uint32_t>(slopes[e] != 0.0f) << e;
  return live;
}

void flush(TrainingRun& run) {
  if (!run.pending) return;
  const std::uint32_t live = live_lanes(run.slopes);
  for (std::size_t i = 0; i < run.width; ++i) apply_pending(run, i, live);
  run.pending = false;
}

// Turns outputs into loss gradients divided by the batch size; false when an output is not finite.
bool find_slopes(const TrainingRun& run, const float* outputs, const float* labels, std::size_t count, double batch,
                 float* slopes) {
  for (std::size_t e = 0; e < count; ++e) {
    if (!std::isfinite(outputs[e])) return false;
    slopes[e] = static_cast<float>(loss_slope(run.loss, outputs[e], labels[e]) / batch);
  }
  std::fill(slopes + count, slopes + batch_lanes, 0.0f);
  return true;
}

void set_rates(TrainingRun& run) {
  const PhaseTable& phase = run.phases[run.phase];
  const std::size_t row = phase.varies ? 4 * run.step_in_phase : 0;
  for (std::size_t layer = 0; layer < 4; ++layer) {
    run.pending_rate[layer] = phase.rate[row + layer];
    run.pending_keep[layer] = phase.keep[row + layer];
    run.pending_truncation[layer] = phase.truncation[row + layer];
  }
}

void update_offset(TrainingRun& run, double slope) {
  run.offset = run.pending_keep[3] * run.offset - run.pending_rate[3] * truncated(slope, run.pending_truncation[3]);
}

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
