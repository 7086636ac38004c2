// The hidden neurons of a run that one warp looks after: what a step does to them.
//
//   f(x) = Σ_i u_i max(⟨w_i, x⟩ + b_i, 0) + o,   θ ← keep·θ − rate·∇θ
//
// `Self` is the kernel's own class. What it finds here works on the TILES tiles in this warp's registers; a kernel with
// more tiles than registers has its own versions, which bring tiles through those registers one after the other.
#pragma once

#include "block.cuh"

template <class Self>
struct Neurons {
  Shared& shared;
  Exchange& exchange;
  const Job& job;
  const int lane, t, example;  // each lane looks after the example that reduce_scatter leaves there
  float w[TILES][K - PARKED][8], u[TILES][2];
#if KEEP_SCORES && !WARPGROUP
  float kept[TILES][4][4];  // 2·min(score, 0) of the step under way
#elif BYTE_MASKS && TILES <= 2
  uint4 masks[TILES];       // which neurons fire in it; see `byte_masks`
#elif !KEEP_SCORES && !BYTE_MASKS
  u32 mask[TILES][8];       // which neurons fire in it; see `fires`
#endif
  float scale = FULL_SCALE, offset;
  u32 fired_pairs = 0;
  Slopes slopes;

  DEVICE Neurons(Shared& block, Exchange& group)
      : shared(block),
        exchange(group),
        job(block.job),
        lane(threadIdx.x & 31),
        t(threadIdx.x & 3),
        example(scattered_example(threadIdx.x & 31)) {}

  DEVICE Self& self() { return *(Self*)this; }
  DEVICE u32 address(int slot) const { return (u32)__cvta_generic_to_shared(&shared.rows.halves[slot][0]); }
#if PARKED
  DEVICE float4* parked() { return &shared.parked[exchange.warp][lane]; }
#else
  DEVICE float4* parked() { return nullptr; }
#endif
  DEVICE int tile_of(int i) { return (exchange.part * WARPS + exchange.warp) * TILES + i; }
  DEVICE int neuron(int i, int r) { return 16 * self().tile_of(i) + (lane >> 2) + 8 * r; }

  DEVICE float& weight(int i, int k, int h, int v) {
    if (k < K - PARKED) return w[i][k][4 * h + v];
    return ((float*)&parked()[32 * (2 * (PARKED * i + k - (K - PARKED)) + h)])[v];
  }

  // Calls visit(tile, r, neuron, input, weight) of this lane's weights.
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
          for (int hv = 0; hv < (HALF && k == K - 1 ? 2 : 4); ++hv)
            visit(i, r, id, input_of(2 * k + hv / 2, t, hv % 2), weight(i, k, hv / 2, 2 * r + hv % 2));
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
      weight = id < width && (input < inputs || input == BIAS_INPUT) ? -*from / FULL_SCALE : 0.f;
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
      if (id < width && (input < inputs || input == BIAS_INPUT)) *to = -scale * weight;
    });
  }

  // Keeps which of a tile's neurons fire, and adds what they contribute to the outputs of this lane's eight examples.
  DEVICE void contribute(int i, const float (&z)[4][4], float (&values)[8]) {
#if BYTE_MASKS
    u32 top[4], bottom[4];
#endif
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#if BYTE_MASKS
      top[q] = signs(z[q][0], z[q][1]);
      bottom[q] = signs(z[q][2], z[q][3]);
#elif !KEEP_SCORES
      mask[i][2 * q] = signs(z[q][0], z[q][1]);
      mask[i][2 * q + 1] = signs(z[q][2], z[q][3]);
#endif
      float clipped[4];
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        clipped[v] = z[q][v] - fabsf(z[q][v]);  // twice min(z, 0)
        values[2 * q + v % 2] = fmaf(-u[i][v / 2], clipped[v], values[2 * q + v % 2]);
#if KEEP_SCORES && !WARPGROUP
        kept[i][q][v] = clipped[v];
#endif
      }
#if WARPGROUP && KEEP_SCORES
      shared.kept[exchange.warp][32 * (4 * i + q) + lane] =
          make_float4(clipped[0], clipped[1], clipped[2], clipped[3]);
#endif
    }
#if BYTE_MASKS
    byte_masks(i) = make_uint4(bytes_of(top[0], top[1]), bytes_of(bottom[0], bottom[1]), bytes_of(top[2], top[3]),
                               bytes_of(bottom[2], bottom[3]));
#endif
  }

#if KEEP_SCORES
  // 2·min(score, 0) of examples 8q + 2t and the next, of neuron g, then of neuron g + 8.
  DEVICE float4 recall(int i, int q) const {
#if WARPGROUP
    return shared.kept[exchange.warp][32 * (4 * i + q) + lane];
#else
    return make_float4(kept[i][q][0], kept[i][q][1], kept[i][q][2], kept[i][q][3]);
#endif
  }
#endif

#if BYTE_MASKS
  // 0xFF in each byte whose example fires neuron g (x, z) or g + 8 (y, w) of a tile: byte b of the first two is example
  // 8·(b div 2) + 2t + b mod 2, of the others 16 more.
  DEVICE uint4& byte_masks(int i) {
#if TILES > 2
    return shared.masks[exchange.warp][32 * i + lane];
#else
    return masks[i];
#endif
  }
#endif

#if !BYTE_MASKS
  // 0xFFFF in each half whose example fires neuron g (row 0) or g + 8 (row 1) of a tile: examples 8q + 2t and the next.
  DEVICE u32 fires(int i, int q, int row) const {
#if KEEP_SCORES
    const float4 scores = recall(i, q);
    return row ? signs(scores.z, scores.w) : signs(scores.x, scores.y);
#else
    return mask[i][2 * q + row];
#endif
  }
#endif

  // Of example `example`, in every warp alike, from the sums published last or under tag `of`.
  DEVICE float output(u32 of) { return 0.5f * scale * exchange.collect(of) + offset; }
  DEVICE float output() { return output(exchange.tag); }

  // Scores the rows of a slot and publishes what they add to the outputs.
  DEVICE void score(int slot) {
    const u32 rows = score_address(address(slot), lane);
    float values[8] = {};
    pass<false, true>(w, parked(), [](int, Update&) {}, BiasRates(), 0, rows,
                      [](int, const float(&)[2]) {}, [&](int i, const float(&z)[4][4]) { contribute(i, z, values); });
    exchange.publish(reduce_scatter(values, lane));
  }

#if BYTE_MASKS
  DEVICE u32 take_fired() {
    const u32 count = __reduce_add_sync(ALL, fired_pairs);
    fired_pairs = 0;
    return count;
  }

  // Adds the pairs that fired on the first `count` examples of the scores just published.
  DEVICE void count_fired(int count) {
    u32 valid[2] = {0u, 0u};
#pragma unroll
    for (int b = 0; b < 8; ++b)
      if (8 * (b / 2) + 2 * t + b % 2 < count) valid[b / 4] |= 0xFFu << (8 * (b % 4));
#pragma unroll
    for (int i = 0; i < TILES; ++i) {
      const uint4 at = byte_masks(i);
      fired_pairs += (__popc(at.x & valid[0]) + __popc(at.y & valid[0]) + __popc(at.z & valid[1]) + __popc(at.w & valid[1])) / 8;
    }
  }
#else
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
#endif

  // Adds what a checkpoint has of the weights: squares, and the weight mass |u|·|w| of all inputs and of the support.
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

  // Slopes of the loss on the 32 examples, in the order of the A operand, and what they are multiplied by. Updates offset
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
#if BYTES
    slopes.bytes[0] = __byte_perm(slopes.pairs[0], slopes.pairs[1], 0x7531);
    slopes.bytes[1] = __byte_perm(slopes.pairs[2], slopes.pairs[3], 0x7531);
#endif
    slopes.for_output = shared.rate[RATE + OUTPUT] * scale * (KEEP_SCORES ? 0.5f : 1.f);
    offset = shared.rate[KEEP + OFFSET] * offset - shared.rate[RATE + OFFSET] * total;
    scale *= shared.rate[KEEP + HIDDEN];
    slopes.for_hidden = shared.rate[RATE + HIDDEN] * reciprocal(scale);
    return live;
  }

  // The slopes under the mask of a tile, whose fired pairs are counted; with scores kept, its output weights are
  // updated.
  DEVICE void prepare(int i, Update& update) {
#if BYTE_MASKS
    const uint4 at = byte_masks(i);
    update.slopes[0][0] = slopes.bytes[0] & at.x;
    update.slopes[0][1] = slopes.bytes[0] & at.y;
    update.slopes[0][2] = slopes.bytes[1] & at.z;
    update.slopes[0][3] = slopes.bytes[1] & at.w;
    // A byte of −1 times −1 counts one.
    fired_pairs = __dp4a((int)at.x, -1, __dp4a((int)at.y, -1, __dp4a((int)at.z, -1, __dp4a((int)at.w, -1, (int)fired_pairs))));
#else
#if KEEP_SCORES
    float moved[2] = {0.f, 0.f};
#endif
#if BYTES
    u32 tops[4], bottoms[4];
#endif
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#if KEEP_SCORES
      const float4 scores = recall(i, q);
      const u32 top = signs(scores.x, scores.y), bottom = signs(scores.z, scores.w);
      float a = low_half(slopes.pairs[q]), b = high_half(slopes.pairs[q]);
#if SPLIT_SLOPES
      a += low_half(slopes.rest[q]);
      b += high_half(slopes.rest[q]);
#endif
      moved[0] = fmaf(b, scores.y, fmaf(a, scores.x, moved[0]));
      moved[1] = fmaf(b, scores.w, fmaf(a, scores.z, moved[1]));
#else
      const u32 top = fires(i, q, 0), bottom = fires(i, q, 1);
#endif
      fired_pairs += top + bottom;
#if BYTES
      tops[q] = top;
      bottoms[q] = bottom;
#else
      update.slopes[q / 2][2 * (q % 2)] = slopes.pairs[q] & top;
      update.slopes[q / 2][2 * (q % 2) + 1] = slopes.pairs[q] & bottom;
#endif
#if SPLIT_SLOPES
      update.rest[q / 2][2 * (q % 2)] = slopes.rest[q] & top;
      update.rest[q / 2][2 * (q % 2) + 1] = slopes.rest[q] & bottom;
#endif
    }
#if BYTES
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      update.slopes[0][2 * h] = slopes.bytes[h] & bytes_of(tops[2 * h], tops[2 * h + 1]);
      update.slopes[0][2 * h + 1] = slopes.bytes[h] & bytes_of(bottoms[2 * h], bottoms[2 * h + 1]);
    }
#endif
#endif
    update.factor[0] = slopes.for_hidden * u[i][0];
    update.factor[1] = slopes.for_hidden * u[i][1];
#if KEEP_SCORES
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
    const u32 rows = update_address(shared.rows.for_update(slot), lane), next = score_address(address(next_slot), lane);
    const BiasRates bias = shared.bias[t];
    float values[8] = {};
    pass<true, SCORE>(w, parked(), [&](int i, Update& update) { prepare(i, update); }, bias, rows, next,
                      [&](int i, const float(&moved)[2]) {
                        if (!KEEP_SCORES) move_outputs(i, moved);
                      },
                      [&](int i, const float(&z)[4][4]) {
                        if (SCORE) contribute(i, z, values);
                      });
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

  DEVICE void note_fired() {
    const u32 waiting = take_fired();
    if (lane == 0) shared.fired[exchange.warp] += waiting;
  }
};
