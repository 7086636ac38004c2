// Weights of three types as numbers, loads that keep out of the caches' way, sums over a warp, a barrier over the grid.
#pragma once

#define DEVICE __device__ __forceinline__

using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 ALL = 0xffffffffu;
enum { BF16, FP16, FP32 };                      // TYPE
enum { RELU, SHIFTED, THRESHOLDED, SQUARED };   // ACTIVATION
enum { PLAIN, ONE_FIRES, BOTH_FIRE };           // GATED

#if TYPE == 2
using Weight = float;
DEVICE float number(float value) { return value; }
DEVICE float stored(float value) { return value; }
DEVICE void unpack(uint4 v, float* to) {
  to[0] = __uint_as_float(v.x), to[1] = __uint_as_float(v.y), to[2] = __uint_as_float(v.z), to[3] = __uint_as_float(v.w);
}
#else
using Weight = unsigned short;
#if TYPE == 0
DEVICE float number(Weight value) { return __uint_as_float((u32)value << 16); }
DEVICE Weight stored(float value) {
  Weight to;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to) : "f"(value));
  return to;
}
DEVICE void pair(u32 v, float* to) { to[0] = __uint_as_float(v << 16), to[1] = __uint_as_float(v & 0xffff0000u); }
#else
DEVICE float number(Weight value) {
  float to;
  asm("cvt.f32.f16 %0, %1;" : "=f"(to) : "h"(value));
  return to;
}
DEVICE Weight stored(float value) {
  Weight to;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to) : "f"(value));
  return to;
}
DEVICE void pair(u32 v, float* to) { to[0] = number((Weight)(v & 0xffffu)), to[1] = number((Weight)(v >> 16)); }
#endif
DEVICE void unpack(uint4 v, float* to) { pair(v.x, to), pair(v.y, to + 2), pair(v.z, to + 4), pair(v.w, to + 6); }
#endif

DEVICE int lane() { return threadIdx.x & 31; }
DEVICE int warp() { return threadIdx.x >> 5; }

// NaN wins, so that it is not lost on the way.
DEVICE float larger(float a, float b) { return a > b || a != a ? a : b; }

DEVICE float warp_max(float value) {
  for (int step = 16; step; step /= 2) value = larger(value, __shfl_xor_sync(ALL, value, step));
  return value;
}

DEVICE float warp_sum(float value) {
  for (int step = 16; step; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

// The least power of two of which `most` is at most 32512; between 2⁻¹⁰⁰ and 2¹²⁰.
DEVICE float unit_of(float most) {
  const float wanted = most * (1.f / 32512.f);
  const int exponent = (int)(__float_as_uint(wanted) >> 23) - 126;
  return __uint_as_float((u32)(max(-100, min(120, exponent)) + 127) << 23);
}

// Read once: not kept in L1.
DEVICE uint4 stream(const uint4* at) {
  uint4 v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(at));
  return v;
}

DEVICE float load_fresh(const float* at) {
  float value;
  asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(value) : "l"(at) : "memory");
  return value;
}

DEVICE void prefetch(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// Sixteen products of signed bytes, added to a sum.
DEVICE int dot16(uint4 a, uint4 b, int sum) {
  sum = __dp4a((int)a.x, (int)b.x, sum), sum = __dp4a((int)a.y, (int)b.y, sum);
  return __dp4a((int)a.w, (int)b.w, __dp4a((int)a.z, (int)b.z, sum));
}

// All blocks of the launch, which are on the chip at the same time (a cooperative launch). The counter only grows: it
// needs no reset between launches.
DEVICE void grid_barrier(u64* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const u64 goal = (atomicAdd(arrived, 1ull) / gridDim.x + 1) * gridDim.x;
    u64 seen;
    do {
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(arrived) : "memory");
    } while (seen < goal);
    __threadfence();
  }
  __syncthreads();
}
