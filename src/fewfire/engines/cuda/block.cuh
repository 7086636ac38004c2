// What the warps of a block share: the examples under way, sums on their way, the run at hand and its rates, and what
// does not fit into registers.
#pragma once

#include "exchange.cuh"
#include "job.cuh"
#include "rows.cuh"

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
#if BYTES
  u32 bytes[2];  // of four examples each
#endif
  float for_hidden, for_output;
};

struct Shared {
  RowSpace rows;
  ExchangeSpace exchange;
  Job job;
  float rate[8];  // learning rates per example and 1 − decay of the step under way
  BiasRates bias[4];  // by t
  double sums[WARPS][SUMS];
  u64 fired[WARPS];
#if WARPGROUP && KEEP_SCORES
  float4 kept[WARPS][TILES * 4 * 32];  // 2·min(score, 0) of the step under way, lane by lane
#elif BYTE_MASKS && TILES > 2
  uint4 masks[WARPS][TILES * 32];  // which neurons fire in it
#endif
#if PARKED
  float4 parked[WARPS][TILES * PARKED * 2 * 32];  // blocks of columns that are not in registers
#endif
#if STREAMED
  __align__(16) uint4 coming[WARPS][PIECES_OF_TILE * 32];  // each warp's next tile
#endif
};
