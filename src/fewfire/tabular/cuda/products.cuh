// Products of matrices in tiles of 32 × 32, by one block of threads each, in single precision.
//
// A block goes through the common dimension in pieces of 64, the next of which is on its way while one is multiplied.
// Its four quarters each take 16 of the 64 and add up a tile of their own, 4 × 4 numbers per thread; then the quarters are
// added. So even a tile of a small product keeps 256 threads busy, and every sum has one order, whichever threads compute it.
// Memory is far away and products are small: whatever can be asked for early is.
#pragma once

#define DEVICE __device__ __forceinline__
#ifndef BLOCK_MEMORY  // tests define it, who run this code on a processor
#define BLOCK_MEMORY(type, name) __shared__ type name
// All that a block did before, and then one more.
DEVICE void count_up(unsigned int* counter) { asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory"); }
// What others did before they counted is seen after.
DEVICE unsigned int counted(const unsigned int* counter) {
  unsigned int found;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(counter) : "memory");
  return found;
}
#endif

using u32 = unsigned int;
using i64 = long long;

constexpr int THREADS = 256, WARPS = THREADS / 32, QUARTERS = 4;
constexpr int TILE = 32;    // rows and columns of a tile
constexpr int DEEP = 64;    // what of the common dimension is in shared memory at a time
constexpr int EACH = DEEP * TILE / THREADS;
constexpr int PITCH = 36;   // numbers from one row of a piece to the next: multiples of 16 bytes, on different banks
constexpr u32 ALL = 0xffffffffu;

DEVICE int lane() { return threadIdx.x % 32; }
DEVICE int warp() { return threadIdx.x / 32; }

// A factor, from its tile's first row on: element (m, k) is at[m · pitch + k], or at[k · pitch + m] where it lies ACROSS.
struct Factor {
  const float* at;
  int rows, pitch;
};

struct Pieces {
  float left[2][DEEP * PITCH], right[2][DEEP * PITCH];
};

template <bool ACROSS>
DEVICE int place_m(int) { return ACROSS ? lane() : threadIdx.x / 8; }
template <bool ACROSS>
DEVICE int place_k(int i) { return ACROSS ? warp() + WARPS * i : threadIdx.x % 8 + 8 * i; }

template <bool ACROSS>
DEVICE void fetch(float (&to)[EACH], const Factor& factor, int first, int depth) {
#pragma unroll
  for (int i = 0; i < EACH; ++i) {
    const int m = place_m<ACROSS>(i), k = first + place_k<ACROSS>(i);
    const bool inside = m < factor.rows && k < depth;
    to[i] = inside ? factor.at[ACROSS ? (i64)k * factor.pitch + m : (i64)m * factor.pitch + k] : 0.f;
  }
}

template <bool ACROSS>
DEVICE void put(float* piece, const float (&from)[EACH]) {
#pragma unroll
  for (int i = 0; i < EACH; ++i) piece[place_k<ACROSS>(i) * PITCH + place_m<ACROSS>(i)] = from[i];
}

// store(m, n, Σ_k left(m, k) · right(n, k), look(m, n)) for all m and n of a tile that are there.
template <bool LEFT_ACROSS, bool RIGHT_ACROSS, class Look, class Store>
DEVICE void product(Pieces& pieces, const Factor& left, const Factor& right, int depth, const Look& look, const Store& store) {
  const int quarter = threadIdx.x / 64, row = threadIdx.x % 64 / 8 * 4, column = threadIdx.x % 8 * 4;
  float sums[4][4] = {}, of_left[EACH], of_right[EACH];
  fetch<LEFT_ACROSS>(of_left, left, 0, depth), fetch<RIGHT_ACROSS>(of_right, right, 0, depth);
  decltype(look(0, 0)) looked[TILE / WARPS] = {};
#pragma unroll
  for (int i = 0; i < TILE / WARPS; ++i)
    if (warp() + WARPS * i < left.rows && lane() < right.rows) looked[i] = look(warp() + WARPS * i, lane());
  put<LEFT_ACROSS>(pieces.left[0], of_left), put<RIGHT_ACROSS>(pieces.right[0], of_right);
  __syncthreads();
  for (int first = 0, now = 0; first < depth; first += DEEP, now = 1 - now) {
    const bool more = first + DEEP < depth;
    if (more) fetch<LEFT_ACROSS>(of_left, left, first + DEEP, depth), fetch<RIGHT_ACROSS>(of_right, right, first + DEEP, depth);
#pragma unroll 8
    for (int i = 0; i < DEEP / QUARTERS; ++i) {
      const int k = quarter * (DEEP / QUARTERS) + i;
      const float4 a = *(const float4*)&pieces.left[now][k * PITCH + row];
      const float4 b = *(const float4*)&pieces.right[now][k * PITCH + column];
      const float as[4] = {a.x, a.y, a.z, a.w}, bs[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int m = 0; m < 4; ++m)
#pragma unroll
        for (int n = 0; n < 4; ++n) sums[m][n] += as[m] * bs[n];
    }
    if (more) put<LEFT_ACROSS>(pieces.left[1 - now], of_left), put<RIGHT_ACROSS>(pieces.right[1 - now], of_right);
    __syncthreads();
  }
  float* quarters = pieces.left[0];  // room for all four tiles
  static_assert(sizeof(Pieces) >= QUARTERS * TILE * TILE * sizeof(float), "the quarters' tiles take the pieces' place");
#pragma unroll
  for (int m = 0; m < 4; ++m) {
    float4 four = {sums[m][0], sums[m][1], sums[m][2], sums[m][3]};
    *(float4*)&quarters[(quarter * TILE + row + m) * TILE + column] = four;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < TILE / WARPS; ++i) {
    const int m = warp() + WARPS * i, n = lane();
    float sum = 0.f;
#pragma unroll
    for (int q = 0; q < QUARTERS; ++q) sum += quarters[(q * TILE + m) * TILE + n];
    if (m < left.rows && n < right.rows) store(m, n, sum, looked[i]);
  }
  __syncthreads();
}

DEVICE float warp_sum(float value) {
#pragma unroll
  for (int apart = 16; apart; apart /= 2) value += __shfl_xor_sync(ALL, value, apart);
  return value;
}

DEVICE float warp_max(float value) {
#pragma unroll
  for (int apart = 16; apart; apart /= 2) value = fmaxf(value, __shfl_xor_sync(ALL, value, apart));
  return value;
}
