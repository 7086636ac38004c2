// The 32 examples of a step on their way: chosen or drawn by Philox, fetched as bits, expanded to ±1 in half precision.
//
// Lane e of every warp serves row e; the warps share its pieces of eight columns (16 bytes), piece b going to warp b
// mod WARPS. Columns are inputs in an order that makes expansion two instructions per pair: the halves of a pair are
// bits 16 apart of one word; in the last word, bits 8 apart of one half of it, so that columns without an input are all
// among the last sixteen. Bits beyond the inputs are clear and read as +1, which the bias in the last column keeps; columns
// between inputs and bias are 0. The label is the top bit of the last word.
#pragma once

#include "job.cuh"
#if WARPGROUP
#include "warpgroup_products.cuh"
#else
#include "warp_products.cuh"
#endif

constexpr int THREADS = 32 * WARPS;
constexpr int ALL_PIECES = 2 * K - HALF;  // the others have no columns in use
constexpr int BIAS_INPUT = 16 * K - (HALF ? 5 : 1);  // what the bias is among inputs
constexpr int WORDS = (16 * K + 31) / 32;  // of a row of bits, label included
constexpr int PIECES = (ALL_PIECES + WARPS - 1) / WARPS;
constexpr int SLOTS = WARPS == 1 ? 2 : 3;  // rows of this step, of the next, and those being written
constexpr int RING = ONLINE ? 4 : 8;       // steps whose draws are kept
// Where weights stream, a checkpoint scores several times 32 rows per pass over them; these slots are for that alone.
constexpr int GROUP = STREAMED ? 4 : 0;

// The input on column 8·piece + 2t + second; BIAS_INPUT for the bias, and any other from the number of inputs on for no input.
DEVICE int input_of(int piece, int t, int second) {
  return piece / 4 < WORDS - 1 ? 4 * piece + 16 * (piece / 4) + t + 16 * second
                               : 4 * piece + 8 * (piece / 2) + t + 8 * second;
}

struct RowSpace {
  __align__(128) unsigned short halves[SLOTS + GROUP][ROWS_SIZE];
  __align__(16) u32 drawn[RING][32 * (ONLINE ? WORDS : 1)];  // numbers of a step's examples, or the examples themselves
  __align__(16) u32 used[2][4];                              // of the last two pieces: all ones in columns that have an input
  u32 negative[SLOTS + GROUP];                               // labels of a slot, a bit per example
#if BYTES
  __align__(128) unsigned char bytes[SLOTS][BYTES_SIZE];     // the examples of a slot for an update
#endif

  // Where an update reads the examples of a slot.
  DEVICE u32 for_update(int slot) const {
#if BYTES
    return (u32)__cvta_generic_to_shared(&bytes[slot][0]);
#else
    return (u32)__cvta_generic_to_shared(&halves[slot][0]);
#endif
  }

  // Makes that ready for a slot whose halves all warps have stored; the next `store` signals the tensor cores.
  DEVICE void ready_update(int slot) {
#if BYTES
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
      const int b = threadIdx.x / 32 + i * WARPS;
      if (ALL_PIECES % WARPS == 0 || b < ALL_PIECES)
        cut_to_bytes((u32)__cvta_generic_to_shared(&halves[slot][0]), for_update(slot), b);
    }
#endif
  }

  // Called before every step s: afterwards draws reach s + 3. The first warp does it for all.
  DEVICE void draw(const Job& job, int s) {
    const int lane = threadIdx.x & 31;
    if (threadIdx.x >= 32) return;
#if ONLINE
    draw_row(job.source, 32ull * (s + 3) + lane, WORDS, &drawn[(s + 3) % RING][lane * WORDS]);
#else
    if (s % 4) return;  // 32 blocks of Philox are the words of four steps
    u32 row[4];
    if (job.order) {
      // By epochs the order has it; draws run ahead of the last step.
#pragma unroll
      for (int i = 0; i < 4; ++i) row[i] = job.order[min(32ull * (s + 4) + 4 * lane + i, 32ull * job.steps - 1)];
    } else {
      const Words words = philox(job.key, job.batches, 8ull * (s + 4) + lane);
#pragma unroll
      for (int i = 0; i < 4; ++i) row[i] = __umulhi(words.at[i], (u32)job.train.count);
    }
    *(uint4*)&drawn[(s + 4 + lane / 8) % RING][4 * (lane % 8)] = make_uint4(row[0], row[1], row[2], row[3]);
#endif
  }

  // Draws steps 0 … 3 (or as many as a fresh run needs), in steps that come before the first.
  DEVICE void draw_first(const Job& job) {
    if (threadIdx.x < 8) {
      const int piece = 2 * K - 2 + threadIdx.x / 4, pair = threadIdx.x % 4, first = input_of(piece, pair, 0);
      const int second = input_of(piece, pair, 1);
      used[threadIdx.x / 4][pair] =
          (first < job.inputs ? 0xFFFFu : 0u) | (second < job.inputs || second == BIAS_INPUT ? 0xFFFF0000u : 0u);
    }
    if (HALF && threadIdx.x < 32)
      for (int slot = 0; slot < SLOTS; ++slot) *(uint4*)&halves[slot][piece_at(threadIdx.x, 2 * K - 1)] = make_uint4(0, 0, 0, 0);
    if (ONLINE)
      for (int s = -3; s < 0; ++s) draw(job, s);
    else
      draw(job, -4);
  }
};

struct Incoming {
  static constexpr int HELD = WARPS == 1 ? WORDS : PIECES;
  u32 words[HELD], top;

  // Row `row` of a table of bits is this lane's.
  DEVICE void fetch(const u32* table, u32 row) {
    const int warp = threadIdx.x / 32;
    const u32* from = table + (u64)row * WORDS;
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
      const int word = WARPS == 1 ? i : 4 % WARPS == 0 ? i * WARPS / 4 : (warp + i * WARPS) / 4;
      if (WARPS == 1 || ALL_PIECES % WARPS == 0 || warp + i * WARPS < ALL_PIECES) words[i] = from[word];
    }
    if (WARPS > 1 && warp == WARPS - 1) top = from[WORDS - 1];
  }

  DEVICE void fetch_step(const RowSpace& space, const Job& job, int step) {
    const int lane = threadIdx.x & 31;
#if ONLINE
    fetch(space.drawn[step % RING], lane);
#else
    fetch(job.train.bits, space.drawn[step % RING][lane]);
#endif
  }

  DEVICE void store(RowSpace& space, int slot) const {
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    u32 sign_bits = 0x80008000u;
    asm volatile("" : "+r"(sign_bits));  // kept in a register, so that masking and setting are one instruction
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
      const int b = warp + i * WARPS;
      if (ALL_PIECES % WARPS == 0 || b < ALL_PIECES) {
        u32 bits = words[WARPS == 1 ? i / 4 : i];
        // In the last word the label goes, and bits 8 apart of a half become 16 apart.
        if (b / 4 == WORDS - 1) bits = __byte_perm(bits & 0x7FFFFFFFu, 0, 0x3120);
        bits <<= 12 - 4 * (b % 4);
        u32 z[4];
#pragma unroll
        for (int v = 0; v < 4; ++v)
          asm("lop3.b32 %0, %1, %2, 0x3C003C00, 0xEA;" : "=r"(z[v]) : "r"(bits << (3 - v)), "r"(sign_bits));
        if (b >= 2 * K - 2) {
#pragma unroll
          for (int v = 0; v < 4; ++v) z[v] &= space.used[b - (2 * K - 2)][v];
        }
        *(uint4*)&space.halves[slot][piece_at(lane, b)] = make_uint4(z[0], z[1], z[2], z[3]);
      }
    }
#if WARPGROUP
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the tensor cores read what was written
#endif
    const u32 labels = __ballot_sync(0xFFFFFFFFu, (WARPS == 1 ? words[HELD - 1] : top) >> 31);
    if (threadIdx.x == 32 * (WARPS - 1)) space.negative[slot] = labels;
  }
};
