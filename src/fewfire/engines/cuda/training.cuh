// A training from start to end, for kernels that keep or stream their weights: steps, checkpoints, rates, stops.
//
//   f(x) = Σ_i u_i max(⟨w_i, x⟩ + b_i, 0) + o,   θ ← keep·θ − rate·∇θ
//
// Per step: sum the outputs (exchange.cuh), turn them into slopes, then one pass over the weights that applies this
// step's update and computes the next step's scores (tile.cuh). Rows of the step after the next (rows.cuh) are fetched
// before that pass and expanded after it, so that their latency hides behind products.
//
// `Self` is the kernel's own class. What it finds here works on the TILES tiles in this warp's registers; a kernel with
// more tiles than registers has its own versions, which bring tiles through those registers one after the other.
#pragma once

#include "checkpoints.cuh"
#include "exchange.cuh"
#include "queue.cuh"
#include "rows.cuh"
#include "tile.cuh"

constexpr float BATCH = 32.f;

// Weights are kept as W/c with c between these two: small ones then stay clear of the subnormal halves, and weights of
// magnitude up to 255 below the largest half.
constexpr float FULL_SCALE = 1.f / 256.f, LEAST_SCALE = FULL_SCALE / 2.f;

// Of a tile in memory: weights, which neurons fire, output weights; a piece is 16 bytes per lane.
constexpr int PIECES_OF_TILE = 2 * K + 3;

// Of a step: slopes of the loss as pairs of halves, for examples 8q + 2t and the next, and the factors of updates.
struct Slopes {
  u32 pairs[4];
#if SPLIT_SLOPES
  u32 rest[4];  // what the halves leave out
#endif
  float for_hidden, for_output;
};

struct Shared {
  RowSpace rows;
  ExchangeSpace exchange;
  Job job;
  float rate[8];  // learning rates and 1 − decay of the step under way
  LastColumns last[4];  // by t
  double sums[WARPS][SUMS];
  u64 fired[WARPS];
#if STREAMED
  __align__(16) uint4 coming[WARPS][PIECES_OF_TILE * 32];  // each warp's next tile
#endif
};

template <class Self>
struct Training {
  Shared& shared;
  Exchange& exchange;
  const Job& job;
  const int lane, t, example;  // each lane looks after the example that reduce_scatter leaves there
  float w[TILES][K][8], u[TILES][2];
#if KEEP_SCORES
  float kept[TILES][4][4];  // min(score, 0) of the step under way
#else
  u32 mask[TILES][8];       // which neurons fire in it; see `fires`
#endif
  float scale = FULL_SCALE, offset;
  u32 fired_pairs = 0;
  Slopes slopes;
  Incoming incoming;

  DEVICE Training(Shared& block, Exchange& group)
      : shared(block),
        exchange(group),
        job(block.job),
        lane(threadIdx.x & 31),
        t(threadIdx.x & 3),
        example(scattered_example(threadIdx.x & 31)) {}

  DEVICE Self& self() { return *(Self*)this; }
  DEVICE u32 address(int slot) const { return (u32)__cvta_generic_to_shared(&shared.rows.halves[slot][0]); }
  DEVICE int tile_of(int i) { return (exchange.part * WARPS + exchange.warp) * TILES + i; }
  DEVICE int neuron(int i, int r) { return 16 * self().tile_of(i) + (lane >> 2) + 8 * r; }

  // Calls visit(tile, r, neuron, input, weight) for every weight in this lane's registers.
  template <class Visit>
  DEVICE void for_weights(Visit visit) {
#pragma unroll
    for (int i = 0; i < TILES; ++i)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int id = neuron(i, r);
#pragma unroll
        for (int k = 0; k < K; ++k)
#pragma unroll
          for (int hv = 0; hv < 4; ++hv)
            visit(i, r, id, input_of(2 * k + hv / 2, t, hv % 2), w[i][k][4 * (hv / 2) + 2 * r + hv % 2]);
      }
  }

  DEVICE void load_weights() {
    offset = (float)*job.offset;
#pragma unroll
    for (int i = 0; i < TILES; ++i)
#pragma unroll
      for (int r = 0; r < 2; ++r) u[i][r] = neuron(i, r) < job.width ? job.output[neuron(i, r)] : 0.f;
    const int inputs = job.inputs, width = job.width;
    for_weights([&](int, int, int id, int input, float& weight) {
      const float* from = input < inputs ? job.hidden + (u64)id * inputs + input : job.bias + id;
      weight = id < width && (input < inputs || input == 16 * K - 1) ? -*from / FULL_SCALE : 0.f;
    });
  }

  DEVICE void store_weights() {
    if (threadIdx.x == 0 && exchange.part == 0) *job.offset = offset;
#pragma unroll
    for (int i = 0; i < TILES; ++i)
#pragma unroll
      for (int r = 0; r < 2; ++r)
        if (t == 0 && neuron(i, r) < job.width) job.output[neuron(i, r)] = u[i][r];
    const int inputs = job.inputs, width = job.width;
    for_weights([&](int, int, int id, int input, float& weight) {
      float* to = input < inputs ? job.hidden + (u64)id * inputs + input : job.bias + id;
      if (id < width && (input < inputs || input == 16 * K - 1)) *to = -scale * weight;
    });
  }

  // Keeps which of a tile's neurons fire, and adds what they contribute to the outputs of this lane's eight examples.
  DEVICE void contribute(int i, const float (&z)[4][4], float (&values)[8]) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#if !KEEP_SCORES
      mask[i][2 * q] = signs(z[q][0], z[q][1]);
      mask[i][2 * q + 1] = signs(z[q][2], z[q][3]);
#endif
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float clipped = fminf(z[q][v], 0.f);
        values[2 * q + v % 2] = fmaf(-u[i][v / 2], clipped, values[2 * q + v % 2]);
#if KEEP_SCORES
        kept[i][q][v] = clipped;
#endif
      }
    }
  }

  // 0xFFFF in each half whose example fires neuron g (row 0) or g + 8 (row 1) of a tile: examples 8q + 2t and the next.
  DEVICE u32 fires(int i, int q, int row) const {
#if KEEP_SCORES
    return signs(kept[i][q][2 * row], kept[i][q][2 * row + 1]);
#else
    return mask[i][2 * q + row];
#endif
  }

  // Of example `example`, in every warp alike.
  DEVICE float output() { return scale * exchange.collect() + offset; }

  // Scores the rows of a slot and publishes what they add to the outputs.
  DEVICE void score(int slot) {
    const u32 rows = score_address(address(slot), lane);
    float values[8] = {};
#pragma unroll
    for (int i = 0; i < TILES; i += AT_ONCE) {
      float z[AT_ONCE][4][4], moved[AT_ONCE][2];
      pass<AT_ONCE, false, true>(&w[i], nullptr, moved, LastColumns(), 0, rows, z);
#pragma unroll
      for (int j = 0; j < AT_ONCE; ++j) contribute(i + j, z[j], values);
    }
    exchange.publish(reduce_scatter(values, lane));
  }

  // Σ mask = 65536·(low − high) − low over masks of 0xFFFF halves; this reads the two counts back.
  DEVICE u32 take_fired() {
    const u32 low = (0u - fired_pairs) & 0xFFFFu, high = (low - ((fired_pairs + low) >> 16)) & 0xFFFFu;
    fired_pairs = 0;
    return __reduce_add_sync(ALL, low + high);
  }

  // Adds the pairs that fired on the first `count` examples of the scores just published.
  DEVICE void count_fired(int count) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int e = 8 * q + 2 * t;
      const u32 valid = (e < count ? 0xFFFFu : 0u) | (e + 1 < count ? 0xFFFF0000u : 0u);
#pragma unroll
      for (int i = 0; i < TILES; ++i) fired_pairs += (fires(i, q, 0) & valid) + (fires(i, q, 1) & valid);
    }
  }

  // Adds what a checkpoint tells of the weights: squares, and the weight mass |u|·|w| of all inputs and of the support.
  DEVICE void sum_weights(float (&own)[4]) {
    const int inputs = job.inputs;
    const u32* support = job.support;
    for_weights([&](int i, int r, int, int input, float& weight) {
      const float value = input < inputs ? fabsf(scale * weight) : 0.f, mass = fabsf(u[i][r]) * value;
      own[HIDDEN_SQUARES] += value * value;
      own[MASS] += mass;
      own[SUPPORT_MASS] += support && input < inputs && support[input / 32] >> (input % 32) & 1 ? mass : 0.f;
    });
#pragma unroll
    for (int i = 0; i < TILES; ++i)
      if (t == 0) own[OUTPUT_SQUARES] += u[i][0] * u[i][0] + u[i][1] * u[i][1];
  }

  // Folds what decay has taken off c into the weights; between steps, when no scores are waiting.
  DEVICE void restore_scale() {
    const float factor = scale / FULL_SCALE;
    for_weights([&](int, int, int, int, float& weight) { weight *= factor; });
    scale = FULL_SCALE;
  }

  // Slopes of the loss on the 32 examples, as the A operand wants them, and what they are multiplied by. Updates offset
  // and c. False when all slopes are zero.
  DEVICE bool find_slopes(float out, bool negative) {
    const float slope = loss_slope(LOSS, out, negative ? -1.f : 1.f);
    u32 live;
    float total;
#if SPLIT_SLOPES
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const float a = __shfl_sync(ALL, slope, 8 * q + t), b = __shfl_sync(ALL, slope, 8 * q + 4 + t);
      slopes.pairs[q] = halves(a, b);
      slopes.rest[q] = halves(a - low_half(slopes.pairs[q]), b - high_half(slopes.pairs[q]));
    }
    total = slope;
#pragma unroll
    for (int step = 16; step; step /= 2) total += __shfl_xor_sync(ALL, total, step);
    live = 1;
#else
    const u32 down = __ballot_sync(ALL, slope < 0.f);
    live = __ballot_sync(ALL, slope != 0.f);
    total = (float)(__popc(live) - 2 * __popc(down));
    // As a half: ±1 is 0x3C00 under its sign. Lanes 8q + t and 8q + 4 + t look after the examples 8q + 2t and the next.
    const u32 own = slope == 0.f ? 0u : 0x3C00u | (__float_as_uint(slope) >> 16 & 0x8000u);
    const u32 other = __shfl_xor_sync(ALL, own, 4), pair = lane & 4 ? other | own << 16 : own | other << 16;
#pragma unroll
    for (int q = 0; q < 4; ++q) slopes.pairs[q] = __shfl_sync(ALL, pair, 8 * q + t);
#endif
    slopes.for_output = shared.rate[RATE + OUTPUT] * scale / BATCH;
    offset = shared.rate[KEEP + OFFSET] * offset - shared.rate[RATE + OFFSET] / BATCH * total;
    scale *= shared.rate[KEEP + HIDDEN];
    slopes.for_hidden = __fdividef(shared.rate[RATE + HIDDEN], BATCH * scale);
    return live;
  }

  // The slopes under the mask of a tile, whose fired pairs are counted; with scores kept, its output weights are
  // updated.
  DEVICE void prepare(int i, Update& update) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const u32 top = fires(i, q, 0), bottom = fires(i, q, 1);
      fired_pairs += top + bottom;
      update.slopes[q / 2][2 * (q % 2)] = slopes.pairs[q] & top;
      update.slopes[q / 2][2 * (q % 2) + 1] = slopes.pairs[q] & bottom;
#if SPLIT_SLOPES
      update.rest[q / 2][2 * (q % 2)] = slopes.rest[q] & top;
      update.rest[q / 2][2 * (q % 2) + 1] = slopes.rest[q] & bottom;
#endif
    }
    update.factor[0] = slopes.for_hidden * u[i][0];
    update.factor[1] = slopes.for_hidden * u[i][1];
#if KEEP_SCORES
    float moved[2] = {0.f, 0.f};
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      float a = low_half(slopes.pairs[q]), b = high_half(slopes.pairs[q]);
#if SPLIT_SLOPES
      a += low_half(slopes.rest[q]);
      b += high_half(slopes.rest[q]);
#endif
#pragma unroll
      for (int r = 0; r < 2; ++r) moved[r] = fmaf(b, kept[i][q][2 * r + 1], fmaf(a, kept[i][q][2 * r], moved[r]));
    }
    move_outputs(i, moved);
#endif
  }

  // u ← keep·u − rate·Σ_e slope_e·max(z_e, 0), from this lane's part of the sum.
  DEVICE void move_outputs(int i, const float (&moved)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = moved[r] + __shfl_xor_sync(ALL, moved[r], 1);
      sum += __shfl_xor_sync(ALL, sum, 2);
      u[i][r] = shared.rate[KEEP + OUTPUT] * u[i][r] + slopes.for_output * sum;
    }
  }

  // Applies the update of this step, whose rows are in `slot`; SCORE: scores and publishes the next one's.
  template <bool SCORE>
  DEVICE void advance(int slot, int next_slot) {
    const u32 rows = update_address(address(slot), lane), next = score_address(address(next_slot), lane);
    const LastColumns last = shared.last[t];
    Update update[TILES];
#pragma unroll
    for (int i = 0; i < TILES; ++i) prepare(i, update[i]);
    float values[8] = {};
#pragma unroll
    for (int i = 0; i < TILES; i += AT_ONCE) {
      float z[AT_ONCE][4][4], moved[AT_ONCE][2] = {};
      pass<AT_ONCE, true, SCORE>(&w[i], &update[i], moved, last, rows, next, z);
#pragma unroll
      for (int j = 0; j < AT_ONCE; ++j) {
#if !KEEP_SCORES
        move_outputs(i + j, moved[j]);
#endif
        if (SCORE) contribute(i + j, z[j], values);
      }
    }
    if (SCORE) exchange.publish(reduce_scatter(values, lane));
  }

  // A step without slopes.
  DEVICE void decay_outputs() {
    count_fired(32);
#pragma unroll
    for (int i = 0; i < TILES; ++i) {
      u[i][0] *= shared.rate[KEEP + OUTPUT];
      u[i][1] *= shared.rate[KEEP + OUTPUT];
    }
  }

  // The rates of the step at hand; returns for how many steps they hold, and moves the clock there.
  DEVICE int read_rates(Clock& clock) {
    block_sync();
    const float* rate = clock.rates();
    if (threadIdx.x < 8) shared.rate[threadIdx.x] = rate[threadIdx.x];
    if (threadIdx.x < 4) {
      LastColumns& last = shared.last[threadIdx.x];
      for (int hv = 0; hv < 4; ++hv)
        last.rate[hv] = input_of(2 * (K - 1) + hv / 2, threadIdx.x, hv % 2) < job.inputs ? 1.f : 0.f;
      last.keep = 1.f;
      if (threadIdx.x == 3) {
        last.rate[3] = rate[RATE + BIAS] / rate[RATE + HIDDEN];
        last.keep = rate[KEEP + BIAS] / rate[KEEP + HIDDEN];
      }
    }
    block_sync();
    const int steps = clock.constant_for();
    clock.advance(steps);
    return steps;
  }

  DEVICE void note_fired() {
    const u32 waiting = take_fired();
    if (lane == 0) shared.fired[exchange.warp] += waiting;
  }

  // True when the host wants the kernel to end; also tells it how far the run is.
  DEVICE bool look(Control* control, int s) {
    note_fired();
    return exchange.tell([&]() {
      if (s) atomicAdd(&control->steps, (u64)LOOK_EVERY);
      return (u32)asked_to_stop(control);
    });
  }

  DEVICE Outcome carry_out(Control* control) {
    Clock clock(job);
    if (lane == 0) shared.fired[exchange.warp] = 0;
    self().load_weights();
    shared.rows.draw_first(job);
    int rates_until = read_rates(clock), stopped = RUNNING, check = 0, s = 0;
    incoming.fetch_step(shared.rows, job, 0);
    incoming.store(shared.rows, 0);
#pragma unroll 1
    for (;;) {
      // Between steps: all updates before step s are made, its rows are in slot s mod SLOTS and draws reach s + 2.
      int slot = s % SLOTS, next = (s + 1) % SLOTS, free = SLOTS == 3 ? (s + 2) % SLOTS : next;
      if (s == job.checkpoints[check]) {
        const double error = record(self(), check++, next, free);
        stopped = error <= job.stop_error ? TEST_ERROR : s == job.steps ? ALL_STEPS : RUNNING;
      }
      if (stopped == RUNNING && s % LOOK_EVERY == 0 && look(control, s)) stopped = INTERRUPTED;
      if (stopped != RUNNING) break;
      if (s == rates_until) rates_until += read_rates(clock);
      if (scale < LEAST_SCALE) self().restore_scale();
      int left = min(min(job.checkpoints[check], rates_until), s - s % LOOK_EVERY + LOOK_EVERY) - s;
      const bool always = shared.rate[KEEP + BIAS] != shared.rate[KEEP + HIDDEN];
      block_sync();
      self().score(slot);
      shared.rows.draw(job, s);
      incoming.fetch_step(shared.rows, job, s + 1);
      incoming.store(shared.rows, next);
      // From step to step: scores of step s are published, rows reach s + 1 and draws s + 3.
      bool live;
#pragma unroll 1
      for (;;) {
        const float out = output();
        if (__ballot_sync(ALL, !isfinite(out))) {
          stopped = DIVERGED;
          break;
        }
        live = find_slopes(out, shared.rows.negative[slot] >> example & 1) || always;
        ++s;
        if (--left == 0 || !live || scale < LEAST_SCALE) break;
        incoming.fetch_step(shared.rows, job, s + 1);
        self().template advance<true>(slot, next);
        shared.rows.draw(job, s);
        incoming.store(shared.rows, SLOTS == 3 ? free : slot);
        const int last_slot = slot;
        slot = next;
        next = SLOTS == 3 ? free : last_slot;
        free = last_slot;
      }
      if (stopped != RUNNING) break;
      if (live)
        self().template advance<false>(slot, slot);
      else
        self().decay_outputs();
    }
    note_fired();
    Outcome outcome = {0, stopped, stopped == DIVERGED ? s + 1 : s, check, 0.f};
    outcome.rate = fmaxf(fmaxf(shared.rate[0], shared.rate[1]), fmaxf(shared.rate[2], shared.rate[3]));
    return outcome;
  }
};

// Takes runs from the queue and trains them, until there are none.
template <class Self, class... Given>
DEVICE void train_runs(const Job* jobs, Outcome* outcomes, int count, Mailbox* boxes, Control* control,
                       Given... given) {
  extern __shared__ __align__(16) unsigned char space[];
  Shared& shared = *(Shared*)space;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Exchange exchange = {shared.exchange, boxes + blockIdx.x / PARTS, (int)blockIdx.x % PARTS, warp, lane};
  for (;;) {
    const u32 run = exchange.tell([&]() { return asked_to_stop(control) ? (u32)count : take(control); });
    if (run >= count) return;
    for (int i = threadIdx.x; i < sizeof(Job) / 4; i += THREADS)
      ((u32*)&shared.job)[i] = ((const u32*)(jobs + run))[i];
    block_sync();
    Self training(shared, exchange, given...);
    const Outcome outcome = training.carry_out(control);
    training.store_weights();
    if (lane == 0) atomicAdd(&outcomes[run].active_pairs, shared.fired[warp]);
    if (threadIdx.x == 0 && exchange.part == 0) {
      outcomes[run].stopped = outcome.stopped;
      outcomes[run].steps = outcome.steps;
      outcomes[run].records = outcome.records;
      outcomes[run].rate = outcome.rate;
    }
    block_sync();
  }
}
