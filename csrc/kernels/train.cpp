#include "kernels/train.hpp"

#include "kernels/train_examples-inl.hpp"
#include "kernels/train_scores-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// The update of one neuron from 32 examples, kept pending until the neuron is scored again.

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
      const Vec factor = fill(coefficient[ids[q]]);
      a = fused(factor, load(row), a);
      b = fused(factor, load(row + lanes), b);
      c = fused(factor, load(row + 2 * lanes), c);
      d = fused(factor, load(row + 3 * lanes), d);
    }
    store(out + j, a);
    store(out + j + lanes, b);
    store(out + j + 2 * lanes, c);
    store(out + j + 3 * lanes, d);
  }
  for (; j < stride; j += lanes) {
    Vec a = load(out + j);
    for (std::size_t q = 0; q < count; ++q) a = fused(fill(coefficient[ids[q]]), load(rows + ids[q] * stride + j), a);
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
      db = u * sum_between(run.slopes, z, run.threshold, slope_limit(run.activation));
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

// Steps.

// One step on at most 32 examples; the update of the hidden neurons is left pending.
bool small_step(TrainingRun& run, std::size_t count) {
  std::uint64_t chosen[batch_lanes];
  alignas(64) float labels[batch_lanes], outputs[batch_lanes];
  choose(run, count, chosen);
  load_batch(run, run.train, chosen, count, run.columns.data(), run.rows[run.current].data(), labels);
  const std::uint32_t live = run.pending ? live_lanes(run.slopes) : 0;
  const bool pending = run.pending;
  Outputs sums(run, count);
  for_tiles(
      run, run.columns.data(), run.scores.data(), true,
      [&](std::size_t first, std::size_t tiles) {
        if (pending)
          for (std::size_t u = 0; u < tiles; ++u) apply_pending(run, first + u, live);
      },
      [&](std::size_t first, std::size_t tiles, const float* z) { sums.add(run, first, tiles, z); });
  sums.write(outputs);
  run.pending = false;
  set_rates(run);
  if (!find_slopes(run, outputs, labels, count, static_cast<double>(count), run.slopes)) return false;
  double total = 0;
  for (float slope : run.slopes) total += slope;
  update_offset(run, total);
  shrink(run, run.pending_keep[0]);
  run.pending = true;
  run.current ^= 1;
  run.examples_seen += count;
  run.active_pairs += sums.fired;
  run.multiply_adds += std::uint64_t{count} * run.width * (run.inputs + 1);
  return true;
}

// One step on any number of examples: chunks of 32, their gradients summed, then one update.
bool large_step(TrainingRun& run, std::size_t batch) {
  flush(run);
  const std::size_t stride = run.stride(), cells = run.width * stride;
  run.gradient.assign(cells + 2 * run.width, 0.0f);
  float *slope_w = run.gradient.data(), *slope_b = slope_w + cells, *slope_u = slope_b + run.width;
  const bool whole = run.phases[run.phase].batch == 0;
  double slope_o = 0;
  std::uint64_t fired = 0;
  for (std::size_t done = 0; done < batch; done += batch_lanes) {
    const std::size_t count = std::min(batch_lanes, batch - done);
    std::uint64_t chosen[batch_lanes];
    alignas(64) float labels[batch_lanes], outputs[batch_lanes], slopes[batch_lanes];
    if (whole)
      for (std::size_t e = 0; e < count; ++e) chosen[e] = done + e;
    else
      choose(run, count, chosen);
    float* rows = run.rows[run.current].data();
    load_batch(run, run.train, chosen, count, run.columns.data(), rows, labels);
    Outputs sums(run, count);
    for_tiles(
        run, run.columns.data(), run.scores.data(), true, [](std::size_t, std::size_t) {},
        [&](std::size_t first, std::size_t tiles, const float* z) { sums.add(run, first, tiles, z); });
    sums.write(outputs);
    fired += sums.fired;
    if (!find_slopes(run, outputs, labels, count, static_cast<double>(batch), slopes)) {
      set_rates(run);
      return false;
    }
    const std::uint32_t live = live_lanes(slopes);
    for (float slope : slopes) slope_o += slope;
    if (!live) continue;
    const Vec g0 = load(slopes), g1 = load(slopes + lanes);
    for (std::size_t i = 0; i < run.width; ++i) {
      const float* z = run.scores.data() + batch_lanes * i;
      slope_u[i] += sum(g0 * activate(run.activation, load(z), run.threshold) +
                        g1 * activate(run.activation, load(z + lanes), run.threshold));
      const std::uint32_t active = between(z, run.threshold, slope_limit(run.activation)) & live;
      if (!active) continue;
      slope_b[i] += sum_between(slopes, z, run.threshold, slope_limit(run.activation));
      add_rows(stride, rows, active, slopes, slope_w + i * stride);
    }
  }
  set_rates(run);
  shrink(run, run.pending_keep[0]);
  const double factor = run.pending_rate[0] / run.scale;
  for (std::size_t i = 0; i < run.width; ++i) {
    const double u = run.output[i];
    float* weights = run.weights.data() + i * stride;
    const float* slope = slope_w + i * stride;
    if (run.pending_truncation[0] > 0)
      for (std::size_t j = 0; j < stride; ++j)
        weights[j] -= static_cast<float>(factor * truncated(u * slope[j], run.pending_truncation[0]));
    else
      for (std::size_t j = 0; j < stride; ++j) weights[j] -= static_cast<float>(factor * u) * slope[j];
    run.bias[i] = static_cast<float>(run.pending_keep[1] * run.bias[i] -
                                     run.pending_rate[1] * truncated(u * slope_b[i], run.pending_truncation[1]));
    run.output[i] = static_cast<float>(run.pending_keep[2] * u -
                                       run.pending_rate[2] * truncated<double>(slope_u[i], run.pending_truncation[2]));
  }
  update_offset(run, slope_o);
  run.examples_seen += batch;
  run.active_pairs += fired;
  run.multiply_adds += std::uint64_t{batch} * run.width * (run.inputs + 1);
  return true;
}

struct Measured {
  double loss = NAN, error = NAN, active = NAN;
};

// On the first `rows` rows.
Measured measure(TrainingRun& run, const Examples& data, std::size_t rows) {
  if (rows == 0) return {};
  double loss = 0, error = 0;
  std::uint64_t fired = 0;
  alignas(64) float labels[batch_lanes], outputs[batch_lanes], z_tile[tile * batch_lanes];
  for (std::size_t done = 0; done < rows; done += batch_lanes) {
    const std::size_t count = std::min(batch_lanes, rows - done);
    std::uint64_t chosen[batch_lanes];
    for (std::size_t e = 0; e < count; ++e) chosen[e] = done + e;
    if (data.bits) {
      run.signs = true;
      columns_from_bits(run, data, chosen, count, run.columns.data());
      std::copy(data.labels + done, data.labels + done + count, labels);
    } else {
      load_batch(run, data, chosen, count, run.columns.data(), run.rows[run.current].data(), labels);
    }
    Outputs sums(run, count);
    for_tiles(
        run, run.columns.data(), z_tile, false, [](std::size_t, std::size_t) {},
        [&](std::size_t first, std::size_t tiles, const float* z) { sums.add(run, first, tiles, z); });
    sums.write(outputs);
    fired += sums.fired;
    for (std::size_t e = 0; e < count; ++e) {
      loss += loss_value(run.loss, outputs[e], labels[e]);
      const double miss = static_cast<double>(outputs[e]) - labels[e];
      error += run.boolean_labels ? (outputs[e] * labels[e] <= 0 ? 1.0 : 0.0) : miss * miss;
    }
  }
  const double all = static_cast<double>(rows);
  return {loss / all, error / all, static_cast<double>(fired) / (all * static_cast<double>(run.width))};
}

double norm(const AlignedVector<float>& values) {
  double squares = 0;
  for (float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

// The share of the weight mass Σ_i |u_i|·|w_ij| on the inputs j of the support; NaN when there is none.
double support_weight(const TrainingRun& run) {
  if (run.support.empty()) return NAN;
  const std::size_t stride = run.stride();
  double total = 0, inside = 0;
  for (std::size_t i = 0; i < run.width; ++i) {
    const float* weights = run.weights.data() + i * stride;
    double row = 0, part = 0;
    for (std::size_t j = 0; j < run.inputs; ++j) row += std::abs(weights[j]);
    for (std::size_t j : run.support) part += std::abs(weights[j]);
    total += std::abs(run.output[i]) * row;
    inside += std::abs(run.output[i]) * part;
  }
  return total > 0 ? inside / total : NAN;
}

void record(TrainingRun& run) {
  flush(run);
  const bool online = run.sampling == Sampling::online;
  const Measured train = online ? Measured{} : measure(run, run.train, std::min(run.train.rows, measured_rows));
  const Measured test = measure(run, run.test, run.test.rows);
  run.records.push_back({static_cast<double>(run.step), train.loss, train.error, test.error,
                         std::abs(run.scale) * norm(run.weights), norm(run.output), train.active, support_weight(run)});
  ++run.next_checkpoint;
  if (test.error <= run.stop_error) run.stopped = Stop::test_error;
}

}  // namespace

void prepare(TrainingRun& run) {
  const std::size_t stride = run.stride();
  run.columns.assign(batch_lanes * ((run.inputs + 3) / 4 * 4), 0.0f);
  for (auto& rows : run.rows) rows.assign(batch_lanes * stride, 0.0f);
  run.scores.assign(batch_lanes * run.width, 0.0f);
  run.gradient.assign(stride, 0.0f);
  std::fill(std::begin(run.slopes), std::end(run.slopes), 0.0f);
  record(run);
}

std::size_t advance(TrainingRun& run, std::size_t steps) {
  std::size_t done = 0;
  while (done < steps && run.stopped == Stop::running) {
    const PhaseTable& phase = run.phases[run.phase];
    const std::size_t batch = phase.batch ? phase.batch : run.train.rows;
    if (run.sampling == Sampling::online && run.position + batch > run.origin + run.train.rows) break;
    const bool finite = batch <= batch_lanes && phase.batch ? small_step(run, batch) : large_step(run, batch);
    if (!finite) {
      run.stopped = Stop::diverged;
      run.diverged_step = run.step + 1;
      run.diverged_rate = *std::max_element(run.pending_rate, run.pending_rate + 4);
      break;
    }
    ++done;
    ++run.step;
    if (++run.step_in_phase == phase.steps) {
      run.step_in_phase = 0;
      ++run.phase;
    }
    if (run.step == run.checkpoints[run.next_checkpoint]) record(run);
    if (run.phase == run.phases.size() && run.stopped == Stop::running) run.stopped = Stop::steps;
  }
  return done;
}

void export_weights(TrainingRun& run, float* hidden) {
  flush(run);
  const std::size_t stride = run.stride();
  const float scale = static_cast<float>(run.scale);
  for (std::size_t i = 0; i < run.width; ++i)
    for (std::size_t j = 0; j < run.inputs; ++j) hidden[i * run.inputs + j] = scale * run.weights[i * stride + j];
}

}  // namespace fewfire::FEWFIRE_ISA
