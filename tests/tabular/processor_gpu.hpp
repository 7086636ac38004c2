// A GPU made of one thread of a processor: kernels of CUDA C++ run as they are, every thread of theirs a fibre.
//
// A fibre runs until it waits: for its block (__syncthreads), for its warp, or for other blocks (`counted`). All blocks are
// "on the chip" at once, as in a cooperative launch. What one fibre writes all see at once, so this finds wrong sums and
// missing barriers of a block, not missing fences.
#pragma once
#include <csetjmp>
#include <cmath>
#include <cstdlib>
#include <ucontext.h>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define BLOCK_MEMORY(type, name) type& name = *(type*)gpu::now->block->memory

struct alignas(16) float4 {
  float x, y, z, w;
};

namespace gpu {
constexpr int THREADS = 256, STACK = 1 << 16, MEMORY = 1 << 16;

struct Gate {
  int waiting = 0;
  unsigned opened = 0;
};

struct Block {
  void* memory;
  Gate gate, warps[THREADS / 32];
  float passed[THREADS];
};

struct Fibre {
  Block* block;
  unsigned thread, number;
  bool begun, done;
  jmp_buf state;
  ucontext_t start;
};

inline std::vector<Fibre> fibres;
inline Fibre* now;
inline jmp_buf host;
inline void (*body)();
struct Place {
  unsigned x;
};
inline Place threadIdx, blockIdx;

__attribute__((noinline)) inline void enter(Fibre& next) {
  now = &next, threadIdx.x = next.thread, blockIdx.x = next.number;
  if (next.begun) _longjmp(next.state, 1);
  next.begun = true;
  setcontext(&next.start);
}

__attribute__((noinline)) inline void pass_on() {
  const size_t from = now - fibres.data();
  for (size_t i = 1; i <= fibres.size(); ++i) {
    Fibre& next = fibres[(from + i) % fibres.size()];
    if (!next.done) enter(next);
  }
  _longjmp(host, 1);
}

__attribute__((noinline)) inline void pass() {
  if (!_setjmp(now->state)) pass_on();
}

inline void wait_at(Gate& gate, int parties) {
  const unsigned opened = gate.opened;
  if (++gate.waiting == parties) {
    gate.waiting = 0, ++gate.opened;
    return;
  }
  while (*(volatile unsigned*)&gate.opened == opened) pass();
}

inline void live() {
  body();
  now->done = true;
  pass_on();
}

inline void launch(int blocks, void (*kernel)()) {
  body = kernel;
  std::vector<Block> all(blocks);
  std::vector<char> stacks((size_t)blocks * THREADS * STACK);
  fibres.assign((size_t)blocks * THREADS, Fibre{});
  for (int block = 0; block < blocks; ++block) {
    all[block].memory = aligned_alloc(64, MEMORY);
    for (int thread = 0; thread < THREADS; ++thread) {
      const size_t at = (size_t)block * THREADS + thread;
      Fibre& fibre = fibres[at];
      fibre.block = &all[block], fibre.thread = thread, fibre.number = block;
      getcontext(&fibre.start);
      fibre.start.uc_stack.ss_sp = stacks.data() + at * STACK, fibre.start.uc_stack.ss_size = STACK;
      makecontext(&fibre.start, live, 0);
    }
  }
  if (!_setjmp(host)) enter(fibres[0]);
  for (Block& block : all) free(block.memory);
}
}  // namespace gpu

using gpu::blockIdx;
using gpu::threadIdx;

inline void __syncthreads() { gpu::wait_at(gpu::now->block->gate, gpu::THREADS); }
inline void __syncwarp() { gpu::wait_at(gpu::now->block->warps[gpu::now->thread / 32], 32); }
inline void count_up(unsigned* counter) { ++*counter; }
inline unsigned counted(const unsigned* counter) {
  gpu::pass();
  return *(volatile const unsigned*)counter;
}
inline float __shfl_sync(unsigned, float value, int lane) {
  gpu::Block* block = gpu::now->block;
  const unsigned thread = gpu::now->thread;
  block->passed[thread] = value;
  __syncwarp();
  const float other = block->passed[thread / 32 * 32 + lane];
  __syncwarp();
  return other;
}
inline float __shfl_xor_sync(unsigned all, float value, int apart) {
  return __shfl_sync(all, value, gpu::now->thread % 32 ^ apart);
}
inline float cospif(float x) { return (float)std::cos(M_PI * x); }
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = (float)std::sin(M_PI * x), *cosine = (float)std::cos(M_PI * x);
}
