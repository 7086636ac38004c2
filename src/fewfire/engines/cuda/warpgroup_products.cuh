// Products of four warps together: wgmma.m64n32k16 (Hopper), which runs concurrently with other instructions and reads
// examples from shared memory by itself.
//
// Warp i of a group brings rows 16i … 16i + 15 of A from registers, which lie as in tile.cuh, and gets those rows of
// the result. The 32 examples of a step lie in shared memory as matrices of 8 examples × 8 columns, 128 bytes each: piece
// b of eight columns of example e at 16-byte unit 32b + e. A score reads them with columns as the inner dimension, an
// update transposed, with examples as the inner dimension.
#pragma once

#include "tile.cuh"

constexpr int ROWS_SIZE = 32 * 16 * K;  // halves

// Where, in halves, piece b of eight columns of row e lies.
DEVICE int piece_at(int e, int b) { return 8 * (32 * b + e); }

// Matrix descriptors: the lower word holds the address and the stride along the inner dimension, the upper word the
// other stride, all in 16-byte units. Strides are 8 from eight examples to the next, 32 from eight columns to the next.
constexpr u32 BY_EXAMPLE = 8, BY_COLUMN = 32;
DEVICE u32 score_address(u32 x, int) { return x >> 4 | BY_COLUMN << 16; }
DEVICE u32 update_address(u32 x, int) { return x >> 4 | BY_EXAMPLE << 16; }

#if BYTES
// The examples once more as bytes, for updates, whose products of bytes take no transposed operand: matrices of 8 columns ×
// 16 examples, 128 bytes each, those of piece b at 16-byte unit 16b. Strides are 8 from sixteen examples to the next, 16
// from eight columns to the next. Examples go in the order of the scores that a lane has: 2t, 2t + 1, 8 + 2t, 9 + 2t.
constexpr int BYTES_SIZE = 32 * 16 * K;
constexpr u32 BYTES_BY_COLUMN = 16;

// The bytes of piece b from its halves.
DEVICE void cut_to_bytes(u32 halves, u32 bytes, int b) {
  const int lane = threadIdx.x & 31;
  u32 r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(halves + 16 * (32 * b + lane)));
#pragma unroll
  for (int h = 0; h < 2; ++h)
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(bytes + 256 * b + 128 * h + 4 * lane),
                 "r"(__byte_perm(r[2 * h], r[2 * h + 1], 0x7531))
                 : "memory");
}
#endif

// A value that is the same in all lanes, marked so for the compiler, which keeps descriptors in uniform registers then;
// these do not outlive a branch.
DEVICE u32 uniform_word(u32 x) { return __shfl_sync(ALL, x, 0); }

// d = A·B, or d += A·B unless FIRST, on 32 columns of B.
template <bool TRANSPOSED, bool FIRST>
DEVICE void start_product(float (&d)[4][4], const u32 (&a)[4], u32 rows) {
  const u64 matrix = (u64)(TRANSPOSED ? BY_COLUMN : BY_EXAMPLE) << 32 | rows;
  if constexpr (FIRST)
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
        "{%16,%17,%18,%19}, %20, p, 1, 1, %21;}"
        : "=f"(d[0][0]), "=f"(d[0][1]), "=f"(d[0][2]), "=f"(d[0][3]), "=f"(d[1][0]), "=f"(d[1][1]), "=f"(d[1][2]),
          "=f"(d[1][3]), "=f"(d[2][0]), "=f"(d[2][1]), "=f"(d[2][2]), "=f"(d[2][3]), "=f"(d[3][0]), "=f"(d[3][1]),
          "=f"(d[3][2]), "=f"(d[3][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix), "n"(TRANSPOSED ? 1 : 0));
  else
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, 1, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
        "{%16,%17,%18,%19}, %20, p, 1, 1, %21;}"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]),
          "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]),
          "+f"(d[3][2]), "+f"(d[3][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix), "n"(TRANSPOSED ? 1 : 0));
}

#if BYTES
// d = A·B on COLUMNS columns of B, bytes.
template <int COLUMNS>
DEVICE void start_product_of_bytes(float (&d)[4][4], const u32 (&a)[4], u32 rows) {
  static_assert(COLUMNS % 8 == 0 && COLUMNS <= 32);
  const u64 matrix = (u64)BYTES_BY_COLUMN << 32 | rows;
  if constexpr (COLUMNS == 32)
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k32.f32.e5m2.e5m2 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
        "{%16,%17,%18,%19}, %20, p, 1, 1;}"
        : "=f"(d[0][0]), "=f"(d[0][1]), "=f"(d[0][2]), "=f"(d[0][3]), "=f"(d[1][0]), "=f"(d[1][1]), "=f"(d[1][2]),
          "=f"(d[1][3]), "=f"(d[2][0]), "=f"(d[2][1]), "=f"(d[2][2]), "=f"(d[2][3]), "=f"(d[3][0]), "=f"(d[3][1]),
          "=f"(d[3][2]), "=f"(d[3][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix));
  else if constexpr (COLUMNS == 24)
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n24k32.f32.e5m2.e5m2 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11}, "
        "{%12,%13,%14,%15}, %16, p, 1, 1;}"
        : "=f"(d[0][0]), "=f"(d[0][1]), "=f"(d[0][2]), "=f"(d[0][3]), "=f"(d[1][0]), "=f"(d[1][1]), "=f"(d[1][2]),
          "=f"(d[1][3]), "=f"(d[2][0]), "=f"(d[2][1]), "=f"(d[2][2]), "=f"(d[2][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix));
  else if constexpr (COLUMNS == 16)
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n16k32.f32.e5m2.e5m2 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, %12, p, 1, 1;}"
        : "=f"(d[0][0]), "=f"(d[0][1]), "=f"(d[0][2]), "=f"(d[0][3]), "=f"(d[1][0]), "=f"(d[1][1]), "=f"(d[1][2]),
          "=f"(d[1][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix));
  else
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, p, 1, 1;}"
        : "=f"(d[0][0]), "=f"(d[0][1]), "=f"(d[0][2]), "=f"(d[0][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix));
}
#endif

// Registers written before are seen by products started after.
DEVICE void fence_registers() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void close_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until all but the last LEFT groups of products are done.
template <int LEFT>
DEVICE void await_groups() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// Keeps the compiler from moving uses of these registers to before, or writes to after, this place.
DEVICE void pin(float (&d)[4][4]) {
#pragma unroll
  for (int q = 0; q < 4; ++q)
    asm volatile("" : "+f"(d[q][0]), "+f"(d[q][1]), "+f"(d[q][2]), "+f"(d[q][3])::"memory");
}
DEVICE void pin(u32 (&a)[4]) { asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3])::"memory"); }

// A pass works through items: two blocks of columns of one tile, tile after tile. What is in flight:
struct Stages {
  Update update;           // of its tile
  float d[4][4];           // the gradient of an item, on 32 columns
  float moved[2];          // of its tile: Σ_j w_j·D_j, unless scores are kept
  u32 hi[2][4], lo[2][4];  // the weights of its two blocks
};

constexpr int PAIRS = (K + 1) / 2, ITEMS = TILES * PAIRS;

// How many blocks item j has.
__host__ __device__ constexpr int blocks_of(int j) { return K % 2 && j % PAIRS == PAIRS - 1 ? 1 : 2; }

// How many columns it has, but for those in use nowhere.
__host__ __device__ constexpr int columns_of(int j) { return 16 * blocks_of(j) - (HALF && j % PAIRS == PAIRS - 1 ? 8 : 0); }

// Starts the gradient of item j: one group. The first of a tile has its slopes prepared.
template <int j, class Prepare>
DEVICE void start_gradient(Prepare prepare, u32 rows, Stages& stages) {
  Update& own = stages.update;
  if constexpr (j % PAIRS == 0) {
    prepare(j / PAIRS, own);
    pin(own.slopes[0]);
#if !BYTES
    pin(own.slopes[1]);
#endif
#if SPLIT_SLOPES
    pin(own.rest[0]);
    pin(own.rest[1]);
#endif
  }
  fence_registers();
#if BYTES
  start_product_of_bytes<columns_of(j)>(stages.d, own.slopes[0], rows + 4 * BYTES_BY_COLUMN * (j % PAIRS));
#else
  const u32 at = rows + 2 * 2 * BY_COLUMN * (j % PAIRS);
  start_product<true, true>(stages.d, own.slopes[0], at);
  start_product<true, false>(stages.d, own.slopes[1], at + 2 * BY_EXAMPLE);
#if SPLIT_SLOPES
  start_product<true, false>(stages.d, own.rest[0], at);
  start_product<true, false>(stages.d, own.rest[1], at + 2 * BY_EXAMPLE);
#endif
#endif
  close_group();
}

// The weights of block k as halves.
template <int k>
DEVICE void split_block(const float (&w)[8], Stages& stages) {
  u32(&hi)[4] = stages.hi[k % 2], (&lo)[4] = stages.lo[k % 2];
  split<k == K - 1>(w, hi, lo);
  if constexpr (HALF && k == K - 1) {
    hi[2] = lo[0];
    hi[3] = lo[1];
  } else {
    pin(lo);
  }
  pin(hi);
}

// Starts the part of block k in the scores.
template <int k>
DEVICE void start_block(u32 next_rows, Stages& stages, float (&z)[4][4]) {
  const u32 at = next_rows + 2 * BY_COLUMN * k;
  // Eight columns are half a product: upper and lower halves are one, with a stride of 0 between equal columns.
  if constexpr (HALF && k == K - 1) {
    start_product<false, k == 0>(z, stages.hi[k % 2], at - (BY_COLUMN << 16));
  } else {
    start_product<false, k == 0>(z, stages.hi[k % 2], at);
    start_product<false, false>(z, stages.lo[k % 2], at);
  }
}

// The weights of block k of tile i, from registers or from where they are parked.
template <int k>
DEVICE void bring_block(const float (&w)[K - PARKED][8], const float4* parked, float (&block)[8]) {
#pragma unroll
  for (int h = 0; h < 2 - (HALF && k == K - 1); ++h) {
    if constexpr (k < K - PARKED) {
#pragma unroll
      for (int v = 0; v < 4; ++v) block[4 * h + v] = w[k][4 * h + v];
    } else {
      const float4 four = parked[32 * (2 * (k - (K - PARKED)) + h)];
      block[4 * h] = four.x, block[4 * h + 1] = four.y, block[4 * h + 2] = four.z, block[4 * h + 3] = four.w;
    }
  }
}

template <int k>
DEVICE void keep_block(float (&w)[K - PARKED][8], float4* parked, const float (&block)[8]) {
#pragma unroll
  for (int h = 0; h < 2 - (HALF && k == K - 1); ++h) {
    if constexpr (k < K - PARKED) {
#pragma unroll
      for (int v = 0; v < 4; ++v) w[k][4 * h + v] = block[4 * h + v];
    } else {
      parked[32 * (2 * (k - (K - PARKED)) + h)] =
          make_float4(block[4 * h], block[4 * h + 1], block[4 * h + 2], block[4 * h + 3]);
    }
  }
}

// Block k of tile i: w ← w + factor·D.
template <int k>
DEVICE void move_block(float (&w)[K - PARKED][8], float4* parked, const Update& update, const BiasRates& bias,
                       Stages& stages, float (&block)[8]) {
  if (k == 0) stages.moved[0] = stages.moved[1] = 0.f;
  bring_block<k>(w, parked, block);
  move<k == K - 1, !KEEP_SCORES>(block, 0, update, stages.d[2 * (k % 2)], bias, stages.moved);
  if constexpr (!(HALF && k == K - 1))
    move<k == K - 1, !KEEP_SCORES>(block, 1, update, stages.d[2 * (k % 2) + 1], bias, stages.moved);
  keep_block<k>(w, parked, block);
}

// Item j and those after it; the gradient of item j is under way, and the scores of the items before.
template <bool UPDATE, bool SCORE, int j, class Prepare, class Moved, class Done>
DEVICE void work(float (&w)[TILES][K - PARKED][8], float4* parked, Prepare prepare, const BiasRates& bias, u32 rows,
                 u32 next_rows, Stages& stages, float (&z)[TILES][4][4], Moved moved, Done done) {
  constexpr int i = j / PAIRS, k = 2 * (j % PAIRS), BLOCKS = blocks_of(j);
  constexpr int AHEAD = UPDATE && j + 1 < ITEMS;  // whether the gradient of the next item is started here
  float first[8], second[8];
  float4* const own = parked + 64 * PARKED * i;
  if constexpr (UPDATE) {
    await_groups<SCORE && j ? 1 : 0>();
    pin(stages.d);
    move_block<k>(w[i], own, stages.update, bias, stages, first);
    if constexpr (BLOCKS == 2) move_block<k + 1>(w[i], own, stages.update, bias, stages, second);
    if constexpr (j % PAIRS == PAIRS - 1) moved(i, stages.moved);
  } else {
    bring_block<k>(w[i], own, first);
    if constexpr (BLOCKS == 2) bring_block<k + 1>(w[i], own, second);
  }
  if constexpr (AHEAD) start_gradient<j + 1>(prepare, rows, stages);
  if constexpr (SCORE) {
    // One group per item: its halves take the registers of those before, whose products have to be done.
    await_groups<AHEAD>();
    split_block<k>(first, stages);
    if constexpr (BLOCKS == 2) split_block<k + 1>(second, stages);
    fence_registers();
    start_block<k>(next_rows, stages, z[i]);
    if constexpr (BLOCKS == 2) start_block<k + 1>(next_rows, stages, z[i]);
    close_group();
    if constexpr (i > 0 && k == 0) {
      await_groups<1>();
      pin(z[i - 1]);
      done(i - 1, z[i - 1]);
    }
  }
  if constexpr (j + 1 < ITEMS)
    work<UPDATE, SCORE, j + 1>(w, parked, prepare, bias, rows, next_rows, stages, z, moved, done);
}

// The update of a step (UPDATE), then the scores of 32 examples (SCORE), on all tiles. Calls prepare(i, update) before a
// tile's update, moved(i, sums) after it and done(i, z) after its scores.
template <bool UPDATE, bool SCORE, class Prepare, class Moved, class Done>
DEVICE void pass(float (&w)[TILES][K - PARKED][8], float4* parked, Prepare prepare, const BiasRates& bias, u32 rows,
                 u32 next_rows, Moved moved, Done done) {
  static_assert(WARPS % 4 == 0);
  Stages stages;
  float z[TILES][4][4];
  const u32 at = uniform_word(rows), next_at = uniform_word(next_rows);
  if constexpr (UPDATE) start_gradient<0>(prepare, at, stages);
  work<UPDATE, SCORE, 0>(w, parked, prepare, bias, at, next_at, stages, z, moved, done);
  await_groups<0>();
  if constexpr (SCORE) {
    pin(z[TILES - 1]);
    done(TILES - 1, z[TILES - 1]);
  }
}
