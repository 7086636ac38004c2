// Products of four warps together: wgmma.m64n32k16 (Hopper), which runs beside other instructions and reads examples from
// shared memory by itself.
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

// A value that is the same in all lanes, told so to the compiler, which keeps descriptors in uniform registers then; these
// do not outlive a branch.
DEVICE u32 uniform_word(u32 x) { return __shfl_sync(ALL, x, 0); }

// d = A·B, or d += A·B unless FIRST, on 32 columns of B.
template <bool TRANSPOSED, bool FIRST>
DEVICE void start_product(float (&d)[4][4], const u32 (&a)[4], u32 rows) {
  const u64 matrix = (u64)(TRANSPOSED ? BY_COLUMN : BY_EXAMPLE) << 32 | rows;
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %21, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
      "{%16,%17,%18,%19}, %20, p, 1, 1, %22;}"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]),
        "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]),
        "+f"(d[3][2]), "+f"(d[3][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix), "n"(FIRST ? 0 : 1), "n"(TRANSPOSED ? 1 : 0));
}

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
  u32 hi[2][4], lo[2][4];  // the weights of its two blocks
};

constexpr int PAIRS = (K + 1) / 2, ITEMS = TILES * PAIRS;

// How many blocks item j has.
__host__ __device__ constexpr int blocks_of(int j) { return K % 2 && j % PAIRS == PAIRS - 1 ? 1 : 2; }

// Starts the gradient of item j: one group. The first of a tile has its slopes prepared.
template <int j, class Prepare>
DEVICE void start_gradient(Prepare prepare, u32 rows, Stages& stages) {
  const u32 at = rows + 2 * 2 * BY_COLUMN * (j % PAIRS);
  Update& own = stages.update;
  if constexpr (j % PAIRS == 0) {
    prepare(j / PAIRS, own);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      pin(own.slopes[half]);
#if SPLIT_SLOPES
      pin(own.rest[half]);
#endif
    }
  }
  fence_registers();
  start_product<true, true>(stages.d, own.slopes[0], at);
  start_product<true, false>(stages.d, own.slopes[1], at + 2 * BY_EXAMPLE);
#if SPLIT_SLOPES
  start_product<true, false>(stages.d, own.rest[0], at);
  start_product<true, false>(stages.d, own.rest[1], at + 2 * BY_EXAMPLE);
#endif
  close_group();
}

// Splits a block and starts its part of the scores: one group. Waits first until only the LEFT latest groups run, so that
// the halves of no more than two blocks take up registers.
template <int k, int LEFT>
DEVICE void start_scores(const float (&w)[8], u32 next_rows, Stages& stages, float (&z)[4][4]) {
  await_groups<LEFT>();
  split<k == K - 1>(w, stages.hi[k % 2], stages.lo[k % 2]);
  pin(stages.hi[k % 2]);
  pin(stages.lo[k % 2]);
  fence_registers();
  start_product<false, k == 0>(z, stages.hi[k % 2], next_rows + 2 * BY_COLUMN * k);
  start_product<false, false>(z, stages.lo[k % 2], next_rows + 2 * BY_COLUMN * k);
  close_group();
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
  float unused[2];
  bring_block<k>(w, parked, block);
  move<k == K - 1, false>(block, 0, update, stages.d[2 * (k % 2)], bias, unused);
  if constexpr (!(HALF && k == K - 1)) move<k == K - 1, false>(block, 1, update, stages.d[2 * (k % 2) + 1], bias, unused);
  keep_block<k>(w, parked, block);
}

// Item j and those after it; the gradient of item j is under way, and the scores of the items before.
template <bool UPDATE, bool SCORE, int j, class Prepare, class Done>
DEVICE void work(float (&w)[TILES][K - PARKED][8], float4* parked, Prepare prepare, const BiasRates& bias, u32 rows,
                 u32 next_rows, Stages& stages, float (&z)[TILES][4][4], Done done) {
  constexpr int i = j / PAIRS, k = 2 * (j % PAIRS), BLOCKS = blocks_of(j);
  constexpr int AHEAD = UPDATE && j + 1 < ITEMS;  // groups of the gradient started here
  float first[8], second[8];
  float4* const own = parked + 64 * PARKED * i;
  if constexpr (UPDATE) {
    await_groups<SCORE && j ? blocks_of(j - 1) : 0>();
    pin(stages.d);
    move_block<k>(w[i], own, stages.update, bias, stages, first);
    if constexpr (BLOCKS == 2) move_block<k + 1>(w[i], own, stages.update, bias, stages, second);
  } else {
    bring_block<k>(w[i], own, first);
    if constexpr (BLOCKS == 2) bring_block<k + 1>(w[i], own, second);
  }
  if constexpr (AHEAD) start_gradient<j + 1>(prepare, rows, stages);
  if constexpr (SCORE) {
    start_scores<k, AHEAD + 1>(first, next_rows, stages, z[i]);
    if constexpr (BLOCKS == 2) start_scores<k + 1, AHEAD + 1>(second, next_rows, stages, z[i]);
    if constexpr (i > 0 && k == 0) {
      await_groups<BLOCKS>();
      pin(z[i - 1]);
      done(i - 1, z[i - 1]);
    }
  }
  if constexpr (j + 1 < ITEMS)
    work<UPDATE, SCORE, j + 1>(w, parked, prepare, bias, rows, next_rows, stages, z, done);
}

// The update of a step (UPDATE), then the scores of 32 examples (SCORE), on all tiles. Calls prepare(i, update) before a
// tile's update, meanwhile() once when products are under way, and done(i, z, …) after its scores; these are kept there, so
// nothing is told of what they were.
template <bool UPDATE, bool SCORE, class Prepare, class Meanwhile, class Done>
DEVICE void pass(float (&w)[TILES][K - PARKED][8], float4* parked, Prepare prepare, const BiasRates& bias, u32 rows,
                 u32 next_rows, Meanwhile meanwhile, Done done) {
  static_assert(KEEP_SCORES && WARPS % 4 == 0);
  Stages stages;
  float z[TILES][4][4];
  const float none[2] = {0.f, 0.f};
  const auto tell = [&](int i, const float(&scores)[4][4]) { done(i, scores, none); };
  if constexpr (UPDATE) start_gradient<0>(prepare, uniform_word(rows), stages);
  meanwhile();
  work<UPDATE, SCORE, 0>(w, parked, prepare, bias, uniform_word(rows), uniform_word(next_rows), stages, z, tell);
  await_groups<0>();
  if constexpr (SCORE) {
    pin(z[TILES - 1]);
    tell(TILES - 1, z[TILES - 1]);
  }
}
