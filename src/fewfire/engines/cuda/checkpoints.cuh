// What is measured at a checkpoint: losses and errors on its sets, norms, activity and the weight on its support.
//
// Errors are the same in every warp and written once; sums over neurons are written per block, and added up by the host.
#pragma once

#include "neurons.cuh"

DEVICE double lane_sum(double value) {
#pragma unroll
  for (int step = 16; step; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

// What a set adds up to, lane by lane; each looks after one of 32 examples.
struct Tally {
  double losses = 0, errors = 0;

  DEVICE void add(float out, float y) {
    losses += loss_value(LOSS, out, y);
    errors += out * y <= 0.f ? 1.0 : 0.0;
  }
};

template <class Self>
DEVICE float label(const Self& self, int slot) {
  return self.shared.rows.negative[slot] >> self.example & 1 ? -1.f : 1.f;
}

#if STREAMED
// Tallies the first `rows` rows of a set, GROUP times 32 per pass over the weights; returns how many pairs fired in this
// warp's neurons.
template <class Self>
DEVICE u64 measure(Self& self, const Examples& data, int rows, bool, int, int, Tally& tally) {
  Incoming incoming;
  u64 fired = 0;
  static_assert(GROUP <= WAITING);
#pragma unroll 1
  for (int done = 0; done < rows; done += 32 * GROUP) {
    const int batches = min(GROUP, (rows - done + 31) / 32);
#pragma unroll 1
    for (int g = 0; g < batches; ++g) {
      incoming.fetch(data.bits, min(done + 32 * g + self.lane, rows - 1));
      incoming.store(self.shared.rows, SLOTS + g);
    }
    block_sync();
    self.score_group(batches, rows - done);
    fired += self.take_fired();
#pragma unroll 1
    for (int g = 0; g < batches; ++g) {
      const float out = self.output(self.exchange.tag - (batches - 1 - g));
      if (done + 32 * g + self.example < rows) tally.add(out, label(self, SLOTS + g));
    }
    block_sync();
  }
  return fired;
}
#else
// Tallies the first `rows` rows of a set, which pass through two slots; returns how many pairs fired in this warp's neurons
// if they are to be counted. Where a run has several blocks, sums are collected one turn later, when they have arrived.
template <class Self>
DEVICE u64 measure(Self& self, const Examples& data, int rows, bool count, int slot, int other, Tally& tally) {
  constexpr int LATER = PARTS > 1 ? 32 : 0;
  Incoming incoming;
  u64 fired = 0;
  float y = 0.f, waiting = 0.f;  // labels of the rows just scored, and of those before
  block_sync();
  incoming.fetch(data.bits, min(self.lane, rows - 1));
  incoming.store(self.shared.rows, slot);
  block_sync();
#pragma unroll 1
  for (int done = 0; done < rows + LATER; done += 32) {
    u32 tag = self.exchange.tag;
    if (done < rows) {
      incoming.fetch(data.bits, min(done + 32 + self.lane, rows - 1));
      self.score(slot);
      y = label(self, slot);
      if (count) {
        self.count_fired(min(32, rows - done));
        fired += self.take_fired();
      }
      incoming.store(self.shared.rows, other);
      if (!LATER) tag = self.exchange.tag;
    }
    if (done >= LATER) {
      const float out = self.output(tag);
      if (done - LATER + self.example < rows) tally.add(out, LATER ? waiting : y);
    } else {
      block_sync();
    }
    waiting = y;
    const int swap = slot;
    slot = other;
    other = swap;
  }
  return fired;
}
#endif

// Writes a checkpoint; returns the held-out error. The rows of both slots are lost.
template <class Self>
DEVICE double record(Self& self, int index, int slot, int other) {
  double* out = self.job.records + (u64)index * (RECORD + SUMS * PARTS);
  self.note_fired();
  double error = nan("");
  u64 active = 0;
#pragma unroll 1
  for (int set = 0; set < 2; ++set) {
    const Examples& data = set ? self.job.test : self.job.train;
    const int rows = set ? data.count : self.job.measured;
    Tally tally;
    const u64 fired = rows ? measure(self, data, rows, set == 0, slot, other, tally) : 0;
    if (set == 0) active = fired;
    error = rows ? lane_sum(tally.errors) / rows : nan("");
    const double loss = rows ? lane_sum(tally.losses) / rows : nan("");
    if (threadIdx.x == 0 && self.exchange.part == 0) {
      if (set == 0) out[TRAIN_LOSS] = loss;
      out[set ? TEST_ERROR_RATE : TRAIN_ERROR] = error;
    }
  }
  float own[4] = {0.f, 0.f, 0.f, 0.f};  // a few hundred terms per lane; lanes and warps add up in double
  self.sum_weights(own);
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    const double total = lane_sum((double)own[q]);
    if (self.lane == 0) self.shared.sums[self.exchange.warp][q] = total;
  }
  if (self.lane == 0) self.shared.sums[self.exchange.warp][FIRED] = (double)active;
  block_sync();
  if (threadIdx.x < SUMS) {
    double total = 0;
    for (int w = 0; w < WARPS; ++w) total += self.shared.sums[w][threadIdx.x];
    out[RECORD + SUMS * self.exchange.part + threadIdx.x] = total;
  }
  block_sync();
  return error;
}
