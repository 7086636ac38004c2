// Products of one warp by itself: mma.m16n8k16, on any device that the engine serves.
//
// The 32 examples of a step lie in shared memory as halves, row e at e·STRIDE, and are read by ldmatrix both ways.
#pragma once

#include "tile.cuh"

constexpr int STRIDE = 16 * K + 8;  // halves; an odd number of 16-byte pieces, so that ldmatrix meets no bank twice
constexpr int ROWS_SIZE = 32 * STRIDE;

// Where, in halves, piece b of eight columns of row e lies.
DEVICE int piece_at(int e, int b) { return e * STRIDE + 8 * b; }

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

// Where a lane reads the examples at shared address x: as columns of a score, and transposed, as rows of an update.
DEVICE u32 score_address(u32 x, int lane) {
  return x + 2 * (((lane & 7) + ((lane >> 4) << 3)) * STRIDE + ((lane >> 3) & 1) * 8);
}
DEVICE u32 update_address(u32 x, int lane) { return x + 2 * lane * STRIDE; }

// D = Σ_e slope_e·x_e on eight columns, half h of a block.
DEVICE void gradient(const Update& update, const u32 (&b)[4], float (&d)[4]) {
  mma_first(d, update.slopes[0], b[0], b[1]);
  mma(d, update.slopes[1], b[2], b[3]);
#if SPLIT_SLOPES
  mma(d, update.rest[0], b[0], b[1]);
  mma(d, update.rest[1], b[2], b[3]);
#endif
}

// z += ⟨w, x_e⟩ over one block of columns, as products of halves hi + lo.
template <bool FIRST, bool LAST>
DEVICE void add_scores(const float (&w)[8], const u32 (&b)[2][4], float (&z)[4][4]) {
  u32 hi[4], lo[4];
  split<LAST>(w, hi, lo);
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
// examples (SCORE), block by block. Unless scores are kept, `moved` gets Σ_j w_j·D_j, the change of the scores.
// Recursion rather than a loop, because an unrolled loop of this size leaves its arrays in memory.
template <int COUNT, bool UPDATE, bool SCORE, int k = 0>
DEVICE void pass_blocks(float (*w)[K][8], const Update* update, float (&moved)[COUNT][2], const BiasRates& bias, u32 rows,
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
        move<k == K - 1, !KEEP_SCORES>(w[i][k], h, update[i], d, bias, moved[i]);
      }
    }
  }
  if constexpr (SCORE) {
    u32 b[2][4];
    load_matrices(b[0], next_rows + 32 * k);
    load_matrices(b[1], next_rows + 32 * k + 2 * 16 * STRIDE);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) add_scores<k == 0, k == K - 1>(w[i][k], b, z[i]);
  }
  if constexpr (k + 1 < K) pass_blocks<COUNT, UPDATE, SCORE, k + 1>(w, update, moved, bias, rows, next_rows, z);
}

// The update of a step (UPDATE), then the scores of 32 examples (SCORE), on all tiles, AT_ONCE of them side by side. Calls
// prepare(i, update) before a tile's update, told(i, sums) after it and done(i, z) after its scores.
template <bool UPDATE, bool SCORE, class Prepare, class Moved, class Done>
DEVICE void pass(float (&w)[TILES][K][8], float4*, Prepare prepare, const BiasRates& bias, u32 rows, u32 next_rows,
                 Moved told, Done done) {
#pragma unroll
  for (int i = 0; i < TILES; i += AT_ONCE) {
    Update update[AT_ONCE];
    float z[AT_ONCE][4][4], moved[AT_ONCE][2] = {};
#pragma unroll
    for (int j = 0; j < AT_ONCE; ++j)
      if (UPDATE) prepare(i + j, update[j]);
    pass_blocks<AT_ONCE, UPDATE, SCORE>(&w[i], update, moved, bias, rows, next_rows, z);
#pragma unroll
    for (int j = 0; j < AT_ONCE; ++j) {
      if (UPDATE) told(i + j, moved[j]);
      done(i + j, z[j]);
    }
  }
}
