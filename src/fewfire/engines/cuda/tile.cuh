// A tile: sixteen hidden neurons of one warp, their float32 weights in registers for the whole training.
//
// Weights lie as the accumulators of mma.m16n8k16 do: lane (g, t) = (lane div 4, lane mod 4) holds, at w[k][4h + 2r +
// v], the weight of neuron g + 8r on column 16k + 8h + 2t + v. Two neighbouring accumulators are the A operand of the
// next product, so nothing moves between update and score. The bias is the last column, 16·K − 1, whose input is always
// +1; columns between inputs and bias, all in the last block k = K − 1, have weight 0 and stay there.
//
// Weights are negated and scaled, w = −W/c: the sign bit of a score then says "fires", and weight decay shrinks c
// alone. A product of float32 weights and ±1 inputs is two products of halves, w = hi + lo, and is right to 22 bits.
// The 32 examples of a step lie in shared memory as halves, row e at e·STRIDE, and are read by ldmatrix both ways.
#pragma once

#include "philox.cuh"

constexpr u32 ALL = 0xFFFFFFFFu;
constexpr int STRIDE = 16 * K + 8;  // halves; an odd number of 16-byte pieces, so that ldmatrix meets no bank twice

DEVICE void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

DEVICE void mma_first(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.f));
}

DEVICE void load_matrices(u32 (&r)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}

DEVICE void load_transposed(u32 (&r)[4], u32 at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}

// Two floats as halves, the first in the low half; and back.
DEVICE u32 halves(float low, float high) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

DEVICE float low_half(u32 pair) {
  float r;
  asm("{.reg .f16 a, b; mov.b32 {a, b}, %1; cvt.f32.f16 %0, a;}" : "=f"(r) : "r"(pair));
  return r;
}

DEVICE float high_half(u32 pair) {
  float r;
  asm("{.reg .f16 a, b; mov.b32 {a, b}, %1; cvt.f32.f16 %0, b;}" : "=f"(r) : "r"(pair));
  return r;
}

// 0xFFFF in the half of each argument whose sign bit is set.
DEVICE u32 signs(float low, float high) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, 0xFFBB;" : "=r"(r) : "r"(__float_as_uint(low)), "r"(__float_as_uint(high)));
  return r;
}

// Where a lane reads the examples at shared address x: as columns of a score, and transposed, as rows of an update.
DEVICE u32 score_address(u32 x, int lane) {
  return x + 2 * (((lane & 7) + ((lane >> 4) << 3)) * STRIDE + ((lane >> 3) & 1) * 8);
}
DEVICE u32 update_address(u32 x, int lane) { return x + 2 * lane * STRIDE; }

// What an update of one tile needs: slopes of the examples under the mask of firing neurons, as the A operand of two
// products over 16 examples each, and each neuron's factor rate·u/(batch·c).
struct Update {
  u32 slopes[2][4];
#if SPLIT_SLOPES
  u32 rest[2][4];  // what the halves in `slopes` leave out
#endif
  float factor[2];
};

// The last block of columns: what its updates are multiplied by, per (h, v), and what the bias is multiplied by before.
// 1 for inputs, 0 for columns without an input, and the bias's own rate and decay relative to those of the inputs.
struct LastColumns {
  float rate[4], keep;
};

// D = Σ_e slope_e·x_e on eight columns, half h of a block.
DEVICE void gradient(const Update& update, const u32 (&b)[4], float (&d)[4]) {
  mma_first(d, update.slopes[0], b[0], b[1]);
  mma(d, update.slopes[1], b[2], b[3]);
#if SPLIT_SLOPES
  mma(d, update.rest[0], b[0], b[1]);
  mma(d, update.rest[1], b[2], b[3]);
#endif
}

// w ← w + factor·D on half h of a block, the last one or another; MOVED: first the part of Σ_j w_j·D_j in this lane.
template <bool LAST, bool MOVED>
DEVICE void move(float (&w)[8], int h, const Update& update, const float (&d)[4], const LastColumns& last,
                 float (&moved)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      float& at = w[4 * h + 2 * r + v];
      if (MOVED) moved[r] = fmaf(at, d[2 * r + v], moved[r]);
      const float factor = LAST ? last.rate[2 * h + v] * update.factor[r] : update.factor[r];
      at = fmaf(factor, d[2 * r + v], LAST && h && v ? last.keep * at : at);
    }
}

// z += ⟨w, x_e⟩ over one block of columns, as products of halves hi + lo.
template <bool FIRST>
DEVICE void add_scores(const float (&w)[8], const u32 (&b)[2][4], float (&z)[4][4]) {
  u32 hi[4], lo[4];
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    hi[v] = halves(w[2 * v], w[2 * v + 1]);
    lo[v] = halves(w[2 * v] - low_half(hi[v]), w[2 * v + 1] - high_half(hi[v]));
  }
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    if (FIRST)
      mma_first(z[q], hi, b[q / 2][2 * (q % 2)], b[q / 2][2 * (q % 2) + 1]);
    else
      mma(z[q], hi, b[q / 2][2 * (q % 2)], b[q / 2][2 * (q % 2) + 1]);
  }
#pragma unroll
  for (int q = 0; q < 4; ++q) mma(z[q], lo, b[q / 2][2 * (q % 2)], b[q / 2][2 * (q % 2) + 1]);
}

// For COUNT tiles side by side, from block k of columns on: the update of a step (UPDATE), then the scores of 32
// examples (SCORE), block by block. Unless scores are kept, `moved` gets Σ_j w_j·D_j, which is what they would tell.
// Recursion rather than a loop, because an unrolled loop of this size leaves its arrays in memory.
template <int COUNT, bool UPDATE, bool SCORE, int k = 0>
DEVICE void pass(float (*w)[K][8], const Update* update, float (&moved)[COUNT][2], const LastColumns& last, u32 rows,
                 u32 next_rows, float (&z)[COUNT][4][4]) {
  if constexpr (UPDATE) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      u32 b[4];
      load_transposed(b, rows + 16 * (2 * k + h));
#pragma unroll
      for (int i = 0; i < COUNT; ++i) {
        float d[4];
        gradient(update[i], b, d);
        move<k == K - 1, !KEEP_SCORES>(w[i][k], h, update[i], d, last, moved[i]);
      }
    }
  }
  if constexpr (SCORE) {
    u32 b[2][4];
    load_matrices(b[0], next_rows + 32 * k);
    load_matrices(b[1], next_rows + 32 * k + 2 * 16 * STRIDE);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) add_scores<k == 0>(w[i][k], b, z[i]);
  }
  if constexpr (k + 1 < K) pass<COUNT, UPDATE, SCORE, k + 1>(w, update, moved, last, rows, next_rows, z);
}

// Sums eight values over the eight lanes of equal t: lane (g, t) ends with value g, that of example 8·(g div 2) + 2t +
// g mod 2.
DEVICE float reduce_scatter(const float (&values)[8], int lane) {
  const int g = lane >> 2;
  float four[4], two[2];
  bool upper = g & 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float send = upper ? values[i] : values[i + 4], mine = upper ? values[i + 4] : values[i];
    four[i] = mine + __shfl_xor_sync(ALL, send, 16);
  }
  upper = g & 2;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float send = upper ? four[i] : four[i + 2], mine = upper ? four[i + 2] : four[i];
    two[i] = mine + __shfl_xor_sync(ALL, send, 8);
  }
  upper = g & 1;
  const float send = upper ? two[0] : two[1], mine = upper ? two[1] : two[0];
  return mine + __shfl_xor_sync(ALL, send, 4);
}

DEVICE int scattered_example(int lane) { return 8 * (lane >> 3) + 2 * (lane & 3) + ((lane >> 2) & 1); }
