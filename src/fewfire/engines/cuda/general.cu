// Any run, at whatever speed: one block per run, weights in global memory.
//
//   f(x) = Σ_i u_i σ(⟨w_i, x⟩ + b_i) + o,   θ ← keep·θ − rate·trunc(∇θ)
//
// A step takes its examples 32 at a time. Lanes are examples where scores are computed and inputs where weights change;
// the 32 rows lie transposed in `rows`, x_j of example e at 33·j + e, so that both readings are free of bank conflicts.
// Sums over neurons and inputs run in a fixed order. src/fewfire/engines/reference.py is the reference.
#include "queue.cuh"

constexpr int WARPS = 8, THREADS = 32 * WARPS, LANES = 32;
constexpr u32 ALL = 0xFFFFFFFFu;

// How many steps, and how many examples of one step, pass between two looks at whether the host asks to end: wide
// networks take milliseconds for 32 examples.
constexpr int LOOK_OFTEN = 16, LARGE_BATCH = 64 * LANES;

// Scratch of one block, given by the host.
struct Scratch {
  float* rows;      // 33·inputs, unless they fit into shared memory
  float* scores;    // 32·width
  float* gradient;  // width·(inputs + 2): of steps of more than 32 examples
  u32* drawn;       // 32 rows of an online run
};

struct Shared {
  float outputs[WARPS][LANES];
  float labels[LANES], slopes[LANES];
  u32 chosen[LANES];
  double sums[WARPS][SUMS];
  u64 fired[WARPS];
  u32 run;
  int bad, leave;
};

DEVICE float lane_sum(float value) {
#pragma unroll
  for (int step = 16; step; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

DEVICE double lane_sum(double value) {
#pragma unroll
  for (int step = 16; step; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

DEVICE float truncated(float slope, float level) { return fabsf(slope) > level ? slope : 0.f; }

struct Training {
  const Job& job;
  Scratch scratch;
  Shared& shared;
  float* rows;
  double offset;
  u64 fired = 0, position = 0;
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;

  DEVICE Training(const Job& run, const Scratch& given, Shared& block, float* space)
      : job(run), scratch(given), shared(block), rows(space ? space : given.rows), offset(*run.offset) {}

  DEVICE float activate(float z) const { return z > job.low ? fminf(z, job.high) : 0.f; }

  // Rows shared.chosen[0 … count − 1] and their labels; lanes beyond are zero.
  DEVICE void load(const Examples& from, int count) {
    for (int i = threadIdx.x; i < LANES * job.inputs; i += THREADS) {
      const int e = i / job.inputs, j = i % job.inputs;
      float x = 0.f;
      if (e < count) {
        const u64 row = shared.chosen[e];
        x = from.rows ? from.rows[row * job.inputs + j]
                      : (from.bits[row * from.words + j / 32] >> (j % 32) & 1 ? -1.f : 1.f);
      }
      rows[33 * j + e] = x;
    }
    if (threadIdx.x < LANES) {
      float y = 0.f;
      if (lane < count) {
        const u64 row = shared.chosen[lane];
        y = from.labels ? from.labels[row] : (from.bits[(row + 1) * from.words - 1] >> 31 ? -1.f : 1.f);
      }
      shared.labels[lane] = y;
    }
    __syncthreads();
  }

  // The output on example `lane`, the same in every warp; scores are kept where asked.
  DEVICE float forward(int count, bool keep) {
    float sum = 0.f;
    for (int i = warp; i < job.width; i += WARPS) {
      const float* w = job.hidden + (u64)i * job.inputs;
      float z = 0.f;
      for (int j = 0; j < job.inputs; ++j) z += w[j] * rows[33 * j + lane];
      z += job.bias[i];
      if (keep) scratch.scores[(u64)LANES * i + lane] = z;
      fired += __popc(__ballot_sync(ALL, z > job.low && lane < count));
      sum += job.output[i] * activate(z);
    }
    shared.outputs[warp][lane] = sum;
    __syncthreads();
    float out = (float)offset;
    for (int w = 0; w < WARPS; ++w) out += shared.outputs[w][lane];
    __syncthreads();
    return out;
  }

  // Adds the gradient of 32 examples, or applies it at once when it is the whole of the step's.
  DEVICE void backward(const float* rate, bool whole) {
    const float slope = shared.slopes[lane];
    for (int i = warp; i < job.width; i += WARPS) {
      const float z = scratch.scores[(u64)LANES * i + lane], u = job.output[i];
      const float du = lane_sum(slope * activate(z));
      const float through = z > job.low && z < job.high ? slope * u : 0.f;
      const float db = lane_sum(through);
      const u32 live = __ballot_sync(ALL, through != 0.f);
      float* w = job.hidden + (u64)i * job.inputs;
      float* kept = scratch.gradient + (u64)i * (job.inputs + 2);
      for (int first = 0; first < job.inputs; first += LANES) {
        const int j = first + lane;
        float slope_w = 0.f;
        for (u32 left = live; left; left &= left - 1) {
          const int e = __ffs(left) - 1;
          const float factor = __shfl_sync(ALL, through, e);
          if (j < job.inputs) slope_w += factor * rows[33 * j + e];
        }
        if (j >= job.inputs) continue;
        if (whole)
          w[j] = rate[KEEP + HIDDEN] * w[j] - rate[RATE + HIDDEN] * truncated(slope_w, rate[TRUNCATION + HIDDEN]);
        else
          kept[j] += slope_w;
      }
      if (lane == 0) {
        if (whole)
          update_rest(i, db, du, rate);
        else
          kept[job.inputs] += db, kept[job.inputs + 1] += du;
      }
      __syncwarp();
    }
  }

  DEVICE void update_rest(int i, float db, float du, const float* rate) {
    job.bias[i] = rate[KEEP + BIAS] * job.bias[i] - rate[RATE + BIAS] * truncated(db, rate[TRUNCATION + BIAS]);
    job.output[i] =
        rate[KEEP + OUTPUT] * job.output[i] - rate[RATE + OUTPUT] * truncated(du, rate[TRUNCATION + OUTPUT]);
  }

  DEVICE void choose(int done, int count, bool everything) {
    const u64 at = position + done + lane;
    if (threadIdx.x < LANES && lane < count) {
      if (everything)
        shared.chosen[lane] = done + lane;
      else if (job.source.problem) {
        const int words = job.inputs / 32 + 1;
        draw_row(job.source, at, words, scratch.drawn + lane * words);
        shared.chosen[lane] = lane;
      } else
        shared.chosen[lane] =
            job.order ? job.order[at] : __umulhi(word(job.key, job.batches, at), (u32)job.train.count);
    }
    __syncthreads();
  }

  // Whether the host asks the kernel to end; the same in every thread.
  DEVICE bool leaves(const Control* control) {
    if (threadIdx.x == 0) shared.leave = asked_to_stop(control);
    __syncthreads();
    const bool leave = shared.leave;
    __syncthreads();
    return leave;
  }

  // One step; false when an output is not finite. A large batch is left in the middle when the host asks to end.
  DEVICE bool step(const Segment& segment, const float* rate, const Control* control) {
    const bool everything = segment.batch == 0;
    const int batch = everything ? job.train.count : segment.batch;
    const bool whole = batch <= LANES;
    const u64 cells = (u64)job.width * (job.inputs + 2);
    Examples from = job.train;
    if (job.source.problem) from = {scratch.drawn, nullptr, nullptr, LANES, job.inputs / 32 + 1};
    if (!whole)
      for (u64 i = threadIdx.x; i < cells; i += THREADS) scratch.gradient[i] = 0.f;
    double slope_offset = 0.0;
    for (int done = 0; done < batch; done += LANES) {
      const int count = min(LANES, batch - done);
      if (done % LARGE_BATCH == LARGE_BATCH - LANES && leaves(control)) return true;
      choose(done, count, everything);
      load(from, count);
      const float out = forward(count, true);
      const float slope = lane < count ? loss_slope(job.loss, out, shared.labels[lane]) / batch : 0.f;
      if (__ballot_sync(ALL, lane < count && !isfinite(out))) return false;
      if (warp == 0) shared.slopes[lane] = slope;
      slope_offset += lane_sum((double)slope);
      __syncthreads();
      backward(rate, whole);
      __syncthreads();
    }
    if (!everything) position += batch;
    if (!whole) {
      for (u64 c = threadIdx.x; c < (u64)job.width * job.inputs; c += THREADS) {
        const u64 i = c / job.inputs, j = c % job.inputs;
        job.hidden[c] = rate[KEEP + HIDDEN] * job.hidden[c] -
                        rate[RATE + HIDDEN] *
                            truncated(scratch.gradient[i * (job.inputs + 2) + j], rate[TRUNCATION + HIDDEN]);
      }
      for (int i = threadIdx.x; i < job.width; i += THREADS) {
        const float* kept = scratch.gradient + (u64)i * (job.inputs + 2) + job.inputs;
        update_rest(i, kept[0], kept[1], rate);
      }
      __syncthreads();
    }
    const double cut = fabs(slope_offset) > rate[TRUNCATION + OFFSET] ? slope_offset : 0.0;
    offset = (double)rate[KEEP + OFFSET] * offset - (double)rate[RATE + OFFSET] * cut;
    return true;
  }

  // Mean loss and error over the first `rows` rows of a set, and how many pairs fired (in this warp's neurons).
  DEVICE void measure(const Examples& data, int rows, double* loss, double* error, u64* active) {
    const u64 before = fired;
    double losses = 0, errors = 0;
    for (int done = 0; done < rows; done += LANES) {
      const int count = min(LANES, rows - done);
      if (threadIdx.x < LANES) shared.chosen[lane] = done + lane;
      __syncthreads();
      load(data, count);
      const float out = forward(count, false), y = shared.labels[lane];
      if (lane < count) {
        losses += loss_value(job.loss, out, y);
        const double miss = (double)out - y;
        errors += job.boolean_labels ? (out * y <= 0.f ? 1.0 : 0.0) : miss * miss;
      }
      __syncthreads();
    }
    *loss = lane_sum(losses) / rows;
    *error = lane_sum(errors) / rows;
    *active = fired - before;
    fired = before;
  }

  // Writes a checkpoint; returns the held-out error.
  DEVICE double record(int index) {
    double loss = nan(""), error = nan(""), test_loss, test_error = nan("");
    u64 active = 0, ignored;
    if (job.measured) measure(job.train, job.measured, &loss, &error, &active);
    if (job.test.count) measure(job.test, job.test.count, &test_loss, &test_error, &ignored);
    double sums[SUMS] = {0, 0, 0, 0, lane == 0 ? (double)active : 0.0};
    for (int i = warp; i < job.width; i += WARPS) {
      const double u = job.output[i];
      const float* w = job.hidden + (u64)i * job.inputs;
      if (lane == 0) sums[OUTPUT_SQUARES] += u * u;
      for (int j = lane; j < job.inputs; j += LANES) {
        const double value = w[j], mass = fabs(u) * fabs(value);
        sums[HIDDEN_SQUARES] += value * value;
        sums[MASS] += mass;
        if (job.support && (job.support[j / 32] >> (j % 32) & 1)) sums[SUPPORT_MASS] += mass;
      }
    }
    for (int q = 0; q < SUMS; ++q) {
      const double total = lane_sum(sums[q]);
      if (lane == 0) shared.sums[warp][q] = total;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      double* out = job.records + (u64)index * (RECORD + SUMS);
      out[TRAIN_LOSS] = loss;
      out[TRAIN_ERROR] = error;
      out[TEST_ERROR_RATE] = test_error;
      for (int q = 0; q < SUMS; ++q) {
        double total = 0;
        for (int w = 0; w < WARPS; ++w) total += shared.sums[w][q];
        out[RECORD + q] = total;
      }
    }
    __syncthreads();
    return test_error;
  }

  DEVICE Outcome carry_out(Control* control) {
    Clock clock(job);
    int check = 0;
    Outcome outcome = {0, RUNNING, 0, 0, 0.f};
    for (int s = 0;; ++s) {
      if (s == job.checkpoints[check]) {
        const double error = record(check++);
        outcome.records = check;
        if (error <= job.stop_error) outcome.stopped = TEST_ERROR;
        else if (s == job.steps) outcome.stopped = ALL_STEPS;
      }
      if (s % LOOK_OFTEN == 0) {
        if (threadIdx.x == 0 && s) atomicAdd(&control->steps, (u64)LOOK_OFTEN);
        if (leaves(control) && outcome.stopped == RUNNING) outcome.stopped = INTERRUPTED;
      }
      if (outcome.stopped != RUNNING) break;
      const float* rate = clock.rates();
      if (!step(clock.here(), rate, control)) {
        outcome.stopped = DIVERGED;
        outcome.steps = s + 1;
        outcome.rate = fmaxf(fmaxf(rate[0], rate[1]), fmaxf(rate[2], rate[3]));
        break;
      }
      outcome.steps = s + 1;
      clock.advance(1);
    }
    if (lane == 0) shared.fired[warp] = fired;
    __syncthreads();
    for (int w = 0; w < WARPS; ++w) outcome.active_pairs += shared.fired[w];
    if (threadIdx.x == 0) *job.offset = offset;
    return outcome;
  }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    train_general(const Job* jobs, Outcome* outcomes, int count, const Scratch* scratch, Control* control,
                  int rows_fit) {
  __shared__ Shared shared;
  extern __shared__ float space[];
  for (;;) {
    if (threadIdx.x == 0) shared.run = asked_to_stop(control) ? count : take(control);
    __syncthreads();
    const u32 run = shared.run;
    __syncthreads();
    if (run >= count) return;
    Training training(jobs[run], scratch[blockIdx.x], shared, rows_fit ? space : nullptr);
    const Outcome outcome = training.carry_out(control);
    if (threadIdx.x == 0) outcomes[run] = outcome;
    __syncthreads();
  }
}

extern "C" __device__ const int sizes[4] = {sizeof(Shared), sizeof(Scratch), sizeof(Job), sizeof(Outcome)};
