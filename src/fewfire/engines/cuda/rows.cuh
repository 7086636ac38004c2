// The 32 examples of a step on their way: chosen or drawn by Philox, fetched as bits, expanded to ±1 in half precision.
//
// Lane e of every warp serves row e; the warps share its pieces of eight columns (16 bytes), piece b going to warp b
// mod WARPS. Columns are inputs in an order that makes expansion two instructions per pair: the halves of a pair are
// bits 16 apart of one word; in the last word, bits 8 apart of one half of it, so that columns without an input are all
// among the last sixteen. Bits beyond the inputs are clear and read as +1: the bias in the last column, and columns
// before it whose weight is 0. The label is the top bit of the last word.
#pragma once

#include "job.cuh"

constexpr int THREADS = 32 * WARPS;
constexpr int ALL_PIECES = 2 * K;
constexpr int WORDS = (16 * K + 31) / 32;  // of a row of bits, label included
constexpr int PIECES = (ALL_PIECES + WARPS - 1) / WARPS;
constexpr int SLOTS = WARPS == 1 ? 2 : 3;  // rows of this step, of the next, and those being written
constexpr int RING = ONLINE ? 4 : 8;       // steps whose draws are kept

// The input on column 8·piece + 2t + second; 16·K − 1 for the bias, and from the number of inputs up to that for no
// input.
DEVICE int input_of(int piece, int t, int second) {
  return piece / 4 < WORDS - 1 ? 4 * piece + 16 * (piece / 4) + t + 16 * second
                               : 4 * piece + 8 * (piece / 2) + t + 8 * second;
}

struct RowSpace {
  __align__(16) unsigned short halves[SLOTS][32 * (16 * K + 8)];
  __align__(16) u32 drawn[RING][32 * (ONLINE ? WORDS : 1)];  // words that choose the examples of a step, or its rows
  u32 negative[SLOTS];                                       // labels of a slot, a bit per example

  // Called before every step s: afterwards draws reach s + 3. The first warp does it for all.
  DEVICE void draw(const Job& job, int s) {
    const int lane = threadIdx.x & 31;
    if (threadIdx.x >= 32) return;
#if ONLINE
    draw_row(job.source, 32ull * (s + 3) + lane, WORDS, &drawn[(s + 3) % RING][lane * WORDS]);
#else
    if (s % 4 || job.order) return;  // 32 blocks of Philox are the words of four steps
    const Words words = philox(job.key, job.batches, 8ull * (s + 4) + lane);
    *(uint4*)&drawn[(s + 4 + lane / 8) % RING][4 * (lane % 8)] =
        make_uint4(words.at[0], words.at[1], words.at[2], words.at[3]);
#endif
  }

  // Draws steps 0 … 3 (or as many as a fresh run needs), in steps that come before the first.
  DEVICE void draw_first(const Job& job) {
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
  DEVICE void fetch(const u32* table, u64 row) {
    const int warp = threadIdx.x / 32;
    const u32* from = table + row * WORDS;
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
      const int word = WARPS == 1 ? i : (warp + i * WARPS) / 4;
      if (WARPS == 1 || ALL_PIECES % WARPS == 0 || warp + i * WARPS < ALL_PIECES) words[i] = from[word];
    }
    if (WARPS > 1 && warp == WARPS - 1) top = from[WORDS - 1];
  }

  DEVICE void fetch_step(const RowSpace& space, const Job& job, int step) {
    const int lane = threadIdx.x & 31;
#if ONLINE
    fetch(space.drawn[step % RING], lane);
#else
    // By epochs the order says it; fetches run ahead of the last step.
    const u32 row = job.order ? job.order[32ull * min(step, job.steps - 1) + lane]
                              : __umulhi(space.drawn[step % RING][lane], (u32)job.train.count);
    fetch(job.train.bits, row);
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
        *(uint4*)&space.halves[slot][lane * (16 * K + 8) + 8 * b] = make_uint4(z[0], z[1], z[2], z[3]);
      }
    }
    if (warp == WARPS - 1) {
      const u32 labels = __ballot_sync(0xFFFFFFFFu, (WARPS == 1 ? words[HELD - 1] : top) >> 31);
      if (lane == 0) space.negative[slot] = labels;
    }
  }
};
