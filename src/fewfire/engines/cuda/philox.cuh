// Philox4x32-10 and the draws that stand on it: the same words as fewfire._random, on the device.
//
// Word w of stream (key, id) is word w mod 4 of the block with counter (b mod 2^32, b div 2^32, id mod 2^32, id div
// 2^32), b = w div 4. _random/_reference.py is the reference.
#pragma once

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define DEVICE __device__ __forceinline__

struct Words {
  u32 at[4];
};

DEVICE Words philox(u64 key, u64 stream, u64 block) {
  u32 a = (u32)block, b = (u32)(block >> 32), c = (u32)stream, d = (u32)(stream >> 32);
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 p = (u64)0xD2511F53u * a, q = (u64)0xCD9E8D57u * c;
    a = (u32)(q >> 32) ^ b ^ k0;
    c = (u32)(p >> 32) ^ d ^ k1;
    b = (u32)q;
    d = (u32)p;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{a, b, c, d}};
}

DEVICE u32 pick(const Words& words, u32 i) {
  const u32 low = i & 1 ? words.at[1] : words.at[0], high = i & 1 ? words.at[3] : words.at[2];
  return i & 2 ? high : low;
}

DEVICE u32 word(u64 key, u64 stream, u64 index) { return pick(philox(key, stream, index >> 2), (u32)index & 3); }

// Stream.uniform, then float32: the midpoint of one of 2^24 cells of (low, high), rounded as NumPy rounds it.
DEVICE float uniform(u64 key, u64 stream, u64 index, double low, double high) {
  const double unit = __dmul_rn(__dadd_rn((double)(word(key, stream, index) >> 8), 0.5), 1.0 / 16777216.0);
  return (float)__dadd_rn(low, __dmul_rn(__dsub_rn(high, low), unit));
}
