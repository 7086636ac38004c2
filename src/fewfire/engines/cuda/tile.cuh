// A tile: sixteen hidden neurons of one warp, their float32 weights in registers for the whole training.
//
// Weights lie as the accumulators of mma.m16n8k16 do: lane (g, t) = (lane div 4, lane mod 4) holds, at w[k][4h + 2r +
// v], the weight of neuron g + 8r on column 16k + 8h + 2t + v. Two neighbouring accumulators are the A operand of the
// next product, so nothing moves between update and score. The bias is the last column in use, whose input is always +1:
// 16·K − 1, or 16·K − 9 with HALF, where the last eight are in use nowhere and cost nothing. Columns between inputs and
// bias, all in the last block k = K − 1, have input 0 and weight 0.
//
// Weights are negated and scaled, w = −W/c: the sign bit of a score then means "fires", and weight decay shrinks c
// alone. A product of float32 weights and ±1 inputs is two products of halves, w = hi + lo, and is right to 22 bits.
// The products themselves are in warp_products.cuh and warpgroup_products.cuh.
#pragma once

#include "philox.cuh"

constexpr u32 ALL = 0xFFFFFFFFu;
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

// 1/x to one unit in the last place, for x that is no subnormal.
DEVICE float reciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

// 0xFFFF in the half of each argument whose sign bit is set.
DEVICE u32 signs(float low, float high) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, 0xFFBB;" : "=r"(r) : "r"(__float_as_uint(low)), "r"(__float_as_uint(high)));
  return r;
}

// Whether updates multiply numbers of eight bits (e5m2, the upper byte of a half), which hold slopes of 0 and ±1 exactly: one
// product over all 32 examples instead of two. Beyond 13 blocks of columns shared memory has no room for the examples
// as bytes besides scores.
#define BYTES (WARPGROUP && !SPLIT_SLOPES && (!KEEP_SCORES || K <= 13))

#define BYTE_MASKS (BYTES && !KEEP_SCORES)  // what fires is kept as bytes

// What an update of one tile needs: slopes of the examples under the mask of firing neurons, as the A operand of a
// product over 32 examples or of two over 16 each, and each neuron's factor rate·u/(batch·c).
struct Update {
  u32 slopes[BYTES ? 1 : 2][4];
#if SPLIT_SLOPES
  u32 rest[2][4];  // what the halves in `slopes` leave out
#endif
  float factor[2];
};

// The bias, relative to the inputs: its learning rate, and what its weight is multiplied by first. 1 and 1 in lanes whose
// last column is not the bias.
struct BiasRates {
  float rate, keep;
};

// w ← w + factor·D on half h of a block, the last one or another; MOVED: first the part of Σ_j w_j·D_j in this lane.
template <bool LAST, bool MOVED>
DEVICE void move(float (&w)[8], int h, const Update& update, const float (&d)[4], const BiasRates& bias,
                 float (&moved)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r)
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      float& at = w[4 * h + 2 * r + v];
      if (MOVED) moved[r] = fmaf(at, d[2 * r + v], moved[r]);
      const bool maybe_bias = LAST && h == !HALF && v;
      at = fmaf(maybe_bias ? bias.rate * update.factor[r] : update.factor[r], d[2 * r + v],
                maybe_bias ? bias.keep * at : at);
    }
}

// The weights of one block of columns as halves, w = hi + lo; the last one may have only the first half of its columns.
template <bool LAST>
DEVICE void split(const float (&w)[8], u32 (&hi)[4], u32 (&lo)[4]) {
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    if (HALF && LAST && v >= 2) {
      hi[v] = lo[v] = 0;
      continue;
    }
    hi[v] = halves(w[2 * v], w[2 * v + 1]);
    lo[v] = halves(w[2 * v] - low_half(hi[v]), w[2 * v + 1] - high_half(hi[v]));
  }
}

// Four bytes of four halves that are 0 or all ones.
DEVICE u32 bytes_of(u32 first, u32 second) { return __byte_perm(first, second, 0x6420); }

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
