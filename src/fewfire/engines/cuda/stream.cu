// Whole trainings of networks wider than the registers of the chip: tiles stream through registers from L2 and HBM.
//
// The runs that resident.cu serves, with PARTS blocks of WARPS warps each. A warp has every PARTS·WARPS-th tile of
// sixteen neurons. Once per step a tile is read, updated, scored for the next step and written back, while the next one
// is on its way into shared memory: 8·K + 10 words per lane, laid out lane by lane in pieces of 16 bytes. Odd steps
// walk the tiles backwards, so that those last written are still in L2.
#include "training.cuh"

struct Streamed : Neurons<Streamed> {
  using Base = Neurons<Streamed>;
  uint4* tiles;
  int tile = 0, next = -1;  // the one at hand, and the one after it
  bool backwards = false;

  DEVICE Streamed(Shared& block, Exchange& group, uint4* spaces, u64 pieces_per_run)
      : Base(block, group), tiles(spaces + blockIdx.x / PARTS * pieces_per_run) {}

  DEVICE int tile_of(int) const { return tile; }
  DEVICE int count() const { return (job.width + 15) / 16; }
  DEVICE uint4& piece(int i) const { return tiles[((u64)tile * PIECES_OF_TILE + i) * 32 + lane]; }

  // Calls visit() with each of this warp's tiles as the current one, in turn from either end. AHEAD: while a tile is
  // worked on, the next one is copied into shared memory; visit() has to call bring<true, …>, which starts that copy.
  template <bool AHEAD, class Visit>
  DEVICE void for_tiles(Visit visit) {
    const int first = exchange.part * WARPS + exchange.warp, stride = PARTS * WARPS;
    const int own = (count() - first + stride - 1) / stride;
    const int step = backwards ? -stride : stride;
    tile = backwards ? first + stride * (own - 1) : first;
    if (AHEAD && own > 0) copy(tile);
#pragma unroll 1
    for (int left = own; left > 0; --left, tile += step) {
      next = left > 1 ? tile + step : -1;
      visit();
    }
  }

  // Starts copying a tile into this warp's place in shared memory; each lane copies what it will read.
  DEVICE void copy(int which) {
    const uint4* from = tiles + (u64)which * PIECES_OF_TILE * 32 + lane;
    const u32 to = (u32)__cvta_generic_to_shared(&shared.coming[exchange.warp][lane]);
#pragma unroll
    for (int i = 0; i < PIECES_OF_TILE; ++i)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + 512 * i), "l"(from + 32 * i) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  template <bool AHEAD>
  DEVICE uint4 read(int i) const {
    return AHEAD ? shared.coming[exchange.warp][32 * i + lane] : piece(i);
  }

  // The current tile's weights, and with MASKS also which neurons fire, into registers.
  template <bool AHEAD, bool MASKS>
  DEVICE void bring() {
    if (AHEAD) asm volatile("cp.async.wait_all;" ::: "memory");
#pragma unroll
    for (int k = 0; k < K; ++k)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const uint4 four = read<AHEAD>(2 * k + h);
        w[0][k][4 * h] = __uint_as_float(four.x);
        w[0][k][4 * h + 1] = __uint_as_float(four.y);
        w[0][k][4 * h + 2] = __uint_as_float(four.z);
        w[0][k][4 * h + 3] = __uint_as_float(four.w);
      }
    const uint4 rest = read<AHEAD>(2 * K + 2);
    u[0][0] = __uint_as_float(rest.x);
    u[0][1] = __uint_as_float(rest.y);
    if (MASKS) bring_masks<AHEAD>();
    if (AHEAD && next >= 0) copy(next);
  }

  template <bool AHEAD>
  DEVICE void bring_masks() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const uint4 four = read<AHEAD>(2 * K + h);
      mask[0][4 * h] = four.x;
      mask[0][4 * h + 1] = four.y;
      mask[0][4 * h + 2] = four.z;
      mask[0][4 * h + 3] = four.w;
    }
  }

  DEVICE void keep_weights() {
#pragma unroll
    for (int k = 0; k < K; ++k)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        piece(2 * k + h) = make_uint4(__float_as_uint(w[0][k][4 * h]), __float_as_uint(w[0][k][4 * h + 1]),
                                      __float_as_uint(w[0][k][4 * h + 2]), __float_as_uint(w[0][k][4 * h + 3]));
    piece(2 * K + 2) = make_uint4(__float_as_uint(u[0][0]), __float_as_uint(u[0][1]), 0, 0);
  }

  DEVICE void keep_masks() {
#pragma unroll
    for (int h = 0; h < 2; ++h)
      piece(2 * K + h) = make_uint4(mask[0][4 * h], mask[0][4 * h + 1], mask[0][4 * h + 2], mask[0][4 * h + 3]);
  }

  DEVICE void load_weights() {
    offset = (float)*job.offset;
    for_tiles<false>([&]() {
      Base::load_weights();
      keep_weights();
    });
  }

  DEVICE void store_weights() {
    if (threadIdx.x == 0 && exchange.part == 0) *job.offset = offset;
    for_tiles<false>([&]() {
      bring<false, false>();
      Base::store_weights();
    });
  }

  DEVICE void sum_weights(float (&own)[4]) {
    for_tiles<false>([&]() {
      bring<false, false>();
      Base::sum_weights(own);
    });
  }

  DEVICE void restore_scale() {
    const float before = scale;
    for_tiles<false>([&]() {
      bring<false, false>();
      scale = before;
      Base::restore_scale();
      keep_weights();
    });
    scale = FULL_SCALE;
  }

  DEVICE void decay_outputs() {
    for_tiles<false>([&]() {
      bring<false, true>();
      Base::decay_outputs();
      keep_weights();
    });
    note_fired();
  }

  DEVICE void score(int slot) {
    const u32 rows = score_address(address(slot), lane);
    float values[8] = {};
    for_tiles<true>([&]() {
      bring<true, false>();
      pass<false, true>(w, nullptr, [](int, Update&) {}, BiasRates(), 0, rows,
                        [](int, const float(&)[2]) {}, [&](int, const float(&z)[4][4]) { contribute(0, z, values); });
      keep_masks();
    });
    exchange.publish(reduce_scatter(values, lane));
  }

  // Scores the first `batches` slots of the group in one pass over the tiles, counts which pairs fire on their first `rows`
  // rows, and publishes their sums one after the other.
  DEVICE void score_group(int batches, int rows) {
    float values[GROUP][8] = {};
    for_tiles<true>([&]() {
      bring<true, false>();
#pragma unroll
      for (int g = 0; g < GROUP; ++g) {
        if (g >= batches) break;
        pass<false, true>(w, nullptr, [](int, Update&) {}, BiasRates(), 0, score_address(address(SLOTS + g), lane),
                          [](int, const float(&)[2]) {}, [&](int, const float(&z)[4][4]) { contribute(0, z, values[g]); });
        Base::count_fired(min(32, rows - 32 * g));
      }
    });
#pragma unroll
    for (int g = 0; g < GROUP; ++g)
      if (g < batches) exchange.publish(reduce_scatter(values[g], lane));
  }

  template <bool SCORE>
  DEVICE void advance(int slot, int next_slot) {
    const u32 rows = update_address(address(slot), lane), next = score_address(address(next_slot), lane);
    const BiasRates bias = shared.bias[t];
    float values[8] = {};
    backwards = !backwards;
    for_tiles<true>([&]() {
      bring<true, true>();
      pass<true, SCORE>(w, nullptr, [&](int i, Update& update) { prepare(i, update); }, bias, rows, next,
                        [&](int, const float(&moved)[2]) { move_outputs(0, moved); },
                        [&](int, const float(&z)[4][4]) {
                          if (SCORE) contribute(0, z, values);
                        });
      if (SCORE) keep_masks();
      keep_weights();
    });
    if (SCORE) exchange.publish(reduce_scatter(values, lane));
    note_fired();  // a warp's tiles may be too many for the packed count of several steps
  }
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    train_streamed(const Job* jobs, Outcome* outcomes, int count, Mailbox* boxes, Control* control, uint4* spaces,
                   u64 pieces_per_run) {
  train_runs<Streamed>(jobs, outcomes, count, boxes, control, spaces, pieces_per_run);
}

extern "C" __device__ const int sizes[4] = {sizeof(Shared), sizeof(Mailbox), sizeof(Job), sizeof(Outcome)};
