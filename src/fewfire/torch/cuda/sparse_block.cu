// y = Σ over the neurons that fire of value · row of the second layer, for one to four inputs at once: one launch.
//
// A block of threads owns rows of the first layer. It (1) turns the inputs into 16-bit numbers, as two bytes each; (2)
// scores its rows by their int8 codes and leaves open those that the bound of `screen` does not rule out; (3) scores the
// open rows with the weights themselves; (4) lists those that fire, in the order of rows. After a barrier over the grid
// it (5) adds up a share of the listed rows of the second layer for a slice of the outputs, and the last block adds
// the shares of a slice. Every sum has a fixed order, so the same input gives the same bits.
//
// Compiled for its shape: INPUTS, OUTPUTS, BATCH (inputs at once), TYPE (weights), GATED, ACTIVATION, THREADS, and LANES, the
// 16 bytes of a row of the second layer that are a slice. Rows of the second layer are asked for as soon as they are
// known, so that they are in L2 when their turn comes; asking for open rows while codes are read gets in their way.
#include "numbers.cuh"

constexpr int WARPS = THREADS / 32;
constexpr int CHUNKS = (INPUTS + 511) / 512;       // a warp reads 512 codes at a time
constexpr int KNOWN = (3 + CHUNKS + 3) / 4 * 4;    // numbers that a row of codes comes with
constexpr int VECTOR = 16 / sizeof(Weight);        // weights in 16 bytes
constexpr int VECTORS = INPUTS / VECTOR;           // in a row of the first layer
constexpr int SLICE = LANES * VECTOR;              // outputs per slice
constexpr int SLICES = (OUTPUTS + SLICE - 1) / SLICE;
constexpr int TOGETHER = THREADS / LANES;            // listed rows that a block adds at a time

struct Weights {
  const uint4* codes;     // of the screened layer, CHUNKS · 512 per row
  const float* bounds;    // KNOWN per row: norm of what codes leave out, norm of what they say, bias, scales of 512 codes each
  const Weight* screened; // the screened layer itself
  const Weight* factor;   // the other first layer of a gated block, with its biases
  const float* factor_bias;
  const Weight* second;   // neuron by neuron
  const float* second_bias;
  int width;
  float threshold;
};

// Shared by the blocks of a launch; counters are 0 before the first and after each launch, except `arrived`, which grows.
struct Space {
  int* counts;        // per block of threads: how many rows it lists
  int* rows;          // lists, those of a block from its first row on
  float* values;      // BATCH per listed row
  float* shares;      // per slice and share: BATCH · SLICE sums
  u32* finished;      // per slice: shares done
  u64* arrived;       // blocks that came to the barrier, ever
};

// What a block keeps of the inputs, and the lists of its rows; the latter lie behind it, sized by the launch.
struct Shared {
  uint4 high[BATCH][CHUNKS * 32], low[BATCH][CHUNKS * 32];
  Weight inputs[BATCH][INPUTS];
  float scale[BATCH], norm[BATCH], lost[BATCH];  // of an input: unit of its numbers, its norm, the norm of their rounding
  float sums[WARPS][BATCH][SLICE];
  float reduce[2][WARPS];
  int scan[WARPS];
  int open, firing, starts[1025];
};

// By all lanes of a warp.
DEVICE void prefetch_row(const Weight* row, int length) {
  for (int at = lane() * 128; at < length * (int)sizeof(Weight); at += 32 * 128) prefetch((const char*)row + at);
}

DEVICE float block_max(Shared& s, float value) {
  value = warp_max(value);
  if (lane() == 0) s.reduce[0][warp()] = value;
  __syncthreads();
  float most = 0.f;
  for (int w = 0; w < WARPS; ++w) most = larger(most, s.reduce[0][w]);
  __syncthreads();
  return most;
}

// Two sums at once; each adds squares of at most 2^30 in units of the scale, so nothing over- or underflows.
DEVICE float2 block_sums(Shared& s, float a, float b) {
  a = warp_sum(a), b = warp_sum(b);
  if (lane() == 0) s.reduce[0][warp()] = a, s.reduce[1][warp()] = b;
  __syncthreads();
  float2 sum = {0.f, 0.f};
  for (int w = 0; w < WARPS; ++w) sum.x += s.reduce[0][w], sum.y += s.reduce[1][w];
  __syncthreads();
  return sum;
}

// Inputs as whole multiples of a power of two, 256 · high + low, and how much that leaves out.
DEVICE void take_inputs(Shared& s, const Weight* x) {
  for (int b = 0; b < BATCH; ++b) {
    float most = 0.f;
    for (int i = threadIdx.x; i < INPUTS; i += THREADS) {
      const Weight value = x[(size_t)b * INPUTS + i];
      s.inputs[b][i] = value;
      most = larger(most, fabsf(number(value)));
    }
    most = block_max(s, most);
    // The least power of two with |x| ≤ 32512 of it. NaN and infinity give a norm that rules nothing out.
    const float unit = unit_of(most), units = 1.f / unit;
    float squares = 0.f, rest = 0.f;
    for (int i = threadIdx.x; i < CHUNKS * 512; i += THREADS) {
      const float value = i < INPUTS ? number(s.inputs[b][i]) * units : 0.f;
      const int whole = __float2int_rn(value), high = (whole + 128) >> 8;
      const float left = value - (float)whole;
      squares += value * value, rest += left * left;
      ((signed char*)s.high[b])[i] = (signed char)high;
      ((signed char*)s.low[b])[i] = (signed char)(whole - 256 * high);
    }
    const float2 sum = block_sums(s, squares, rest);
    if (threadIdx.x == 0) s.scale[b] = unit, s.norm[b] = 1.0001f * unit * sqrtf(sum.x), s.lost[b] = 1.0001f * unit * sqrtf(sum.y);
  }
  __syncthreads();
}

// Leaves open every row whose score may exceed the threshold. With w = v + r, where v = scale · code on each 512 of the
// inputs, and x = unit · whole + ρ, the score is unit · ⟨v, whole⟩ + ⟨r, x⟩ + ⟨v, ρ⟩ + bias, and the two products in the
// middle are at most ‖r‖‖x‖ and ‖v‖‖ρ‖. Each of the CHUNKS + 5 sums that a lane takes part in, and each term, is rounded by
// 2⁻²⁴ of terms whose absolute values add up to ‖v‖‖x‖ at most: ROUNDING of it covers them all.
constexpr float ROUNDING = (CHUNKS + 16) * 6e-8f;

DEVICE void screen(Shared& s, int* open, const Weights& w, int first, int count) {
  for (int row = warp(); row < count; row += WARPS) {
    const uint4* codes = w.codes + (size_t)(first + row) * (CHUNKS * 32) + lane();
    const float* known = w.bounds + (size_t)(first + row) * KNOWN;
    float sum[BATCH] = {};
#pragma unroll 16
    for (int c = 0; c < CHUNKS; ++c) {
      const uint4 code = stream(codes + c * 32);
      const float scale = known[3 + c];
#pragma unroll
      for (int b = 0; b < BATCH; ++b) {
        const int high = dot16(code, s.high[b][c * 32 + lane()], 0), low = dot16(code, s.low[b][c * 32 + lane()], 0);
        sum[b] = fmaf(scale, (float)(256 * high + low), sum[b]);
      }
    }
    const float left = known[0], said = known[1], bias = known[2];
    bool fires = false;
#pragma unroll
    for (int b = 0; b < BATCH; ++b) {
      const float score = s.scale[b] * warp_sum(sum[b]);
      const float bound = left * s.norm[b] + said * (s.lost[b] + ROUNDING * s.norm[b]) + 1e-6f * fabsf(bias);
      fires = fires || !(score + bias + bound <= w.threshold);  // NaN is left open
    }
    if (fires && lane() == 0) open[atomicAdd(&s.open, 1)] = row;
  }
}

// Scores of listed rows: row list[i] times each input into scores[i], by one warp or, for few rows, by several each.
DEVICE void score(Shared& s, const int* list, int count, const Weight* rows, int first, float (*scores)[BATCH], float (*parts)[BATCH]) {
  const int split = 4 * count <= WARPS ? 4 : 2 * count <= WARPS ? 2 : 1;
  for (int item = warp(); item < count * split; item += WARPS) {
    const uint4* row = (const uint4*)(rows + (size_t)(first + list[item / split]) * INPUTS);
    const int from = item % split * VECTORS / split, to = (item % split + 1) * VECTORS / split;
    float sum[BATCH] = {};
#pragma unroll 4
    for (int v = from + lane(); v < to; v += 32) {
      const uint4 packed = stream(row + v);
      float weight[VECTOR];
      unpack(packed, weight);
#pragma unroll
      for (int b = 0; b < BATCH; ++b) {
        float input[VECTOR];
        unpack(((const uint4*)s.inputs[b])[v], input);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) sum[b] = fmaf(weight[i], input[i], sum[b]);
      }
    }
#pragma unroll
    for (int b = 0; b < BATCH; ++b) sum[b] = warp_sum(sum[b]);
    if (lane() == 0)
      for (int b = 0; b < BATCH; ++b) (split == 1 ? scores : parts)[item][b] = sum[b];
  }
  __syncthreads();
  if (split > 1) {
    for (int i = threadIdx.x; i < count * BATCH; i += THREADS) {
      float sum = 0.f;
      for (int p = 0; p < split; ++p) sum += parts[i / BATCH * split + p][i % BATCH];
      scores[i / BATCH][i % BATCH] = sum;
    }
    __syncthreads();
  }
}

DEVICE float activated(float z, float threshold) {
  if (z <= threshold) return 0.f;
  return ACTIVATION == SHIFTED ? z - threshold : ACTIVATION == SQUARED ? z * z : z;
}

// The values of open rows by row, 0 elsewhere; a gated block multiplies those that fire by their other score.
DEVICE void fire(Shared& s, int* list, float (*scores)[BATCH], float (*parts)[BATCH], float (*values)[BATCH], const Weights& w, int first) {
  const int open = s.open;
  score(s, list, open, w.screened, first, scores, parts);
  for (int i = warp(); i < open; i += WARPS) {
    const int row = list[i];
    const float bias = w.bounds[(size_t)(first + row) * KNOWN + 2];
    bool fires = false;
    for (int b = 0; b < BATCH; ++b) {
      const float value = activated(scores[i][b] + bias, w.threshold);
      fires = fires || value != 0.f;
      if (lane() == b) values[row][b] = value;
    }
    if (fires) {
      prefetch_row(w.second + (size_t)(first + row) * OUTPUTS, OUTPUTS);
      if (GATED) prefetch_row(w.factor + (size_t)(first + row) * INPUTS, INPUTS);
    }
  }
  __syncthreads();
#if GATED
  // The rows that fire in place of the open ones.
  if (warp() == 0) {
    int kept = 0;
    for (int from = 0; from < open; from += 32) {
      const int i = from + lane(), row = i < open ? list[i] : 0;
      bool fires = false;
      if (i < open)
        for (int b = 0; b < BATCH; ++b) fires = fires || values[row][b] != 0.f;
      const u32 mask = __ballot_sync(ALL, fires);
      if (fires) list[kept + __popc(mask & ((1u << lane()) - 1))] = row;
      kept += __popc(mask);
      __syncwarp();
    }
    if (lane() == 0) s.firing = kept;
  }
  __syncthreads();
  const int firing = s.firing;
  score(s, list, firing, w.factor, first, scores, parts);
  for (int i = threadIdx.x; i < firing * BATCH; i += THREADS) {
    const int row = list[i / BATCH], b = i % BATCH;
    const float factor = scores[i / BATCH][b] + w.factor_bias[first + row];
    if (values[row][b] != 0.f) values[row][b] *= GATED == BOTH_FIRE && factor <= 0.f ? 0.f : factor;
  }
  __syncthreads();
#endif
}

// Lists the rows with a value, in order, for all blocks to read.
DEVICE void publish(float (*values)[BATCH], const Space& space, int first, int count) {
  if (warp() == 0) {
    int listed = 0;
    for (int from = 0; from < count; from += 32) {
      const int row = from + lane();
      bool fires = false;
      if (row < count)
        for (int b = 0; b < BATCH; ++b) fires = fires || values[row][b] != 0.f;
      const u32 mask = __ballot_sync(ALL, fires);
      if (fires) {
        const int to = first + listed + __popc(mask & ((1u << lane()) - 1));
        space.rows[to] = first + row;
        for (int b = 0; b < BATCH; ++b) space.values[(size_t)to * BATCH + b] = values[row][b];
      }
      listed += __popc(mask);
    }
    if (lane() == 0) space.counts[blockIdx.x] = listed;
  }
}

// Where each block's list starts when all are put together, and after the last one how many rows are listed.
DEVICE void gather_starts(Shared& s, const Space& space) {
  int total = 0;
  for (int from = 0; from < gridDim.x; from += THREADS) {
    const int block = from + threadIdx.x, count = block < gridDim.x ? space.counts[block] : 0;
    int sum = count;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(ALL, sum, step);
      if (lane() >= step) sum += other;
    }
    if (lane() == 31) s.scan[warp()] = sum;
    __syncthreads();
    int before = total;
    for (int other = 0; other < WARPS; ++other) before += other < warp() ? s.scan[other] : 0, total += s.scan[other];
    if (block < gridDim.x) s.starts[block] = before + sum - count;
    __syncthreads();
  }
  if (threadIdx.x == 0) s.starts[gridDim.x] = total;
  __syncthreads();
}

DEVICE int block_of(const Shared& s, int position) {
  int low = 0, high = gridDim.x;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (s.starts[middle] <= position) low = middle; else high = middle;
  }
  return low;
}

DEVICE void write_output(const Weights& w, Weight* y, int input, int column, float sum) {
  if (column < OUTPUTS) y[(size_t)input * OUTPUTS + column] = stored(sum + w.second_bias[column]);
}

// One slice of the outputs, over one share of the listed rows.
DEVICE void add_rows(Shared& s, const Weights& w, const Space& space, Weight* y, int slice, int share, int shares, int per_block) {
  const int total = s.starts[gridDim.x], to = (int)((long long)total * (share + 1) / shares);
  const int column = slice * SLICE + threadIdx.x % LANES * VECTOR;
  float sum[BATCH][VECTOR] = {};
  if (column < OUTPUTS)
#pragma unroll 2
    for (int k = (int)((long long)total * share / shares) + threadIdx.x / LANES; k < to; k += TOGETHER) {
      const int block = block_of(s, k), entry = block * per_block + k - s.starts[block];
      const uint4 packed = *(const uint4*)(w.second + (size_t)space.rows[entry] * OUTPUTS + column);
      float weight[VECTOR];
      unpack(packed, weight);
#pragma unroll
      for (int b = 0; b < BATCH; ++b) {
        const float value = space.values[(size_t)entry * BATCH + b];
        if (value != 0.f)  // rows that another input of the batch fires: 0 · ∞ is not asked for
#pragma unroll
          for (int i = 0; i < VECTOR; ++i) sum[b][i] = fmaf(value, weight[i], sum[b][i]);
      }
    }
#pragma unroll
  for (int b = 0; b < BATCH; ++b)
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
#pragma unroll
      for (int step = LANES; step < 32; step *= 2) sum[b][i] += __shfl_xor_sync(ALL, sum[b][i], step);
      if (lane() < LANES) s.sums[warp()][b][lane() * VECTOR + i] = sum[b][i];
    }
  __syncthreads();
  for (int i = threadIdx.x; i < BATCH * SLICE; i += THREADS) {
    float all = 0.f;
    for (int v = 0; v < WARPS; ++v) all += s.sums[v][i / SLICE][i % SLICE];
    if (shares > 1)
      space.shares[((size_t)slice * shares + share) * BATCH * SLICE + i] = all;
    else
      write_output(w, y, i / SLICE, slice * SLICE + i % SLICE, all);
  }
  if (shares > 1) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) s.open = atomicAdd(space.finished + slice, 1u) == shares - 1;
    __syncthreads();
    if (s.open) {
      __threadfence();
      for (int i = threadIdx.x; i < BATCH * SLICE; i += THREADS) {
        float all = 0.f;
        for (int p = 0; p < shares; ++p) all += load_fresh(space.shares + ((size_t)slice * shares + p) * BATCH * SLICE + i);
        write_output(w, y, i / SLICE, slice * SLICE + i % SLICE, all);
      }
      if (threadIdx.x == 0) space.finished[slice] = 0;
    }
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS) sparse_block(
    const Weight* x, Weight* y, const uint4* codes, const float* bounds, const Weight* screened, const Weight* factor,
    const float* factor_bias, const Weight* second, const float* second_bias, int width, float threshold, int* counts, int* rows,
    float* values, float* shares, u32* finished, u64* arrived) {
  extern __shared__ __align__(128) char memory[];
  const Weights w = {codes, bounds, screened, factor, factor_bias, second, second_bias, width, threshold};
  const Space space = {counts, rows, values, shares, finished, arrived};
  Shared& s = *(Shared*)memory;
  const int per_block = (width + gridDim.x - 1) / gridDim.x, first = min((int)blockIdx.x * per_block, width);
  const int count = min(per_block, width - first);
  float(*value)[BATCH] = (float(*)[BATCH])(memory + sizeof(Shared));
  float(*scores)[BATCH] = value + per_block;
  float(*parts)[BATCH] = scores + per_block;
  int* list = (int*)(parts + WARPS);

  // The first codes start on their way while the inputs are made ready.
  for (int line = threadIdx.x; line < min(count, WARPS) * CHUNKS * 4; line += THREADS)
    prefetch((const char*)(codes + (size_t)first * CHUNKS * 32) + line * 128);
  for (int i = threadIdx.x; i < count * BATCH; i += THREADS) (*value)[i] = 0.f;
  if (threadIdx.x == 0) s.open = 0;
  take_inputs(s, x);
  screen(s, list, w, first, count);
  __syncthreads();
  fire(s, list, scores, parts, value, w, first);
  publish(value, space, first, count);
  grid_barrier(space.arrived);

  gather_starts(s, space);
  const int per_slice = max(1, (int)gridDim.x / SLICES);
  for (int item = blockIdx.x; item < SLICES * per_slice; item += gridDim.x)
    add_rows(s, w, space, y, item % SLICES, item / SLICES, per_slice, per_block);
}

__device__ int shared_bytes[1] = {(int)sizeof(Shared)};
__device__ int slices[2] = {SLICES, SLICE};
