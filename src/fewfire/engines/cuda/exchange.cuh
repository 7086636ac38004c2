// Sums over all neurons of a run, whose warps may sit in several blocks: each lane brings one value and gets its sum
// over all warps. A run of one warp has nothing to add up.
//
// Within a block: a float per warp and example in shared memory. Between blocks: each block publishes its 32 partial
// sums through L2 as words of (value, tag), 64 bits written at once, and reads those of the others until their tags are
// due. Value and tag arrive together, so there is no fence, no counter and one trip each way. Sums run in a fixed order.
//
// Up to WAITING sums may be published before the first of them is collected, as checkpoints do, so that the trip hides. Of
// 2·WAITING buffers in turn none is overwritten too early: a block that publishes a tag has collected tag − WAITING, so all
// blocks have published that one, and before it have collected tag − 2·WAITING, whose buffer this is.
#pragma once

#include "philox.cuh"

// Warp r of a block reads what blocks r, r + WARPS, … have published, several words at a time.
constexpr int READERS = PARTS < WARPS ? PARTS : WARPS;
constexpr int READS = (PARTS + WARPS - 1) / WARPS, READS_AT_ONCE = READS < 6 ? READS : 6;

constexpr int WAITING = 4, BUFFERS = 2 * WAITING;

struct ExchangeSpace {
  float warps[2][WARPS][32];
#if PARTS > 1
  float blocks[2][READERS][32];
#endif
  u32 told;
};

// In global memory, one per group of blocks; all zero at launch.
struct Mailbox {
  u64 sums[BUFFERS][PARTS][32];
  u64 notice;
  u64 unused[15];
};

DEVICE void block_sync() {
  if (WARPS == 1)
    __syncwarp();
  else
    __syncthreads();
}

DEVICE void post(u64* at, u32 value, u32 tag) {
  asm volatile("st.relaxed.gpu.global.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(value), "r"(tag) : "memory");
}

DEVICE u32 await(const u64* at, u32 tag) {
  u32 value, seen;
  do {
    asm volatile("ld.relaxed.gpu.global.v2.b32 {%0, %1}, [%2];" : "=r"(value), "=r"(seen) : "l"(at) : "memory");
  } while (seen != tag);
  return value;
}

// The sum of the values at `count` addresses, `stride` words apart, each once its tag is there.
template <int COUNT>
DEVICE float await_sum(const u64* at, int stride, int count, u32 tag) {
  u32 value[COUNT], seen[COUNT];
  bool all;
  do {
    all = true;
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
      asm volatile("ld.relaxed.gpu.global.v2.b32 {%0, %1}, [%2];"
                   : "=r"(value[i]), "=r"(seen[i])
                   : "l"(at + (i < count ? i : 0) * stride)
                   : "memory");
#pragma unroll
    for (int i = 0; i < COUNT; ++i) all = all && seen[i] == tag;
  } while (!all);
  float sum = 0.f;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) sum += i < count ? __uint_as_float(value[i]) : 0.f;
  return sum;
}

struct Exchange {
  ExchangeSpace& space;
  Mailbox* box;
  int part, warp, lane;
  u32 tag = 0, notices = 0;
  float own = 0.f;

  DEVICE void publish(float value) {
#if PARTS * WARPS == 1
    own = value;
    return;
#endif
    ++tag;
    space.warps[tag & 1][warp][lane] = value;
#if PARTS > 1
    block_sync();
    if (warp == 0) {
      float sum = 0.f;
#pragma unroll
      for (int w = 0; w < WARPS; ++w) sum += space.warps[tag & 1][w][lane];
      post(&box->sums[tag % BUFFERS][part][lane], __float_as_uint(sum), tag);
    }
#endif
  }

  // The sum over all warps that was published under tag `of`, in every warp alike; a barrier of the block as well. Tags are
  // collected in order, and within one block before the next is published.
  DEVICE float collect(u32 of) {
    float sum = 0.f;
#if PARTS * WARPS == 1
    block_sync();
    return own;
#endif
#if PARTS > 1
    if (warp < READERS) {
      for (int q = warp; q < PARTS; q += WARPS * READS_AT_ONCE) {
        const int count = min(READS_AT_ONCE, (PARTS - q + WARPS - 1) / WARPS);
        sum += await_sum<READS_AT_ONCE>(&box->sums[of % BUFFERS][q][lane], 32 * WARPS, count, of);
      }
      space.blocks[of & 1][warp][lane] = sum;
    }
    block_sync();
    sum = 0.f;
#pragma unroll
    for (int r = 0; r < READERS; ++r) sum += space.blocks[of & 1][r][lane];
#else
    block_sync();
#pragma unroll
    for (int w = 0; w < WARPS; ++w) sum += space.warps[of & 1][w][lane];
#endif
    return sum;
  }

  // The value that the first thread of the first block computes, in all threads of the run's blocks.
  template <class Say>
  DEVICE u32 tell(Say say) {
    ++notices;
    if (warp == 0 && lane == 0) {
#if PARTS > 1
      if (part == 0) {
        space.told = say();
        post(&box->notice, space.told, notices);
      } else {
        space.told = await(&box->notice, notices);
      }
#else
      space.told = say();
#endif
    }
    block_sync();
    const u32 told = space.told;
    block_sync();
    return told;
  }
};
