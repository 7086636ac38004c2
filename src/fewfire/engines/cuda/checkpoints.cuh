// What a run tells at a checkpoint: losses and errors on its sets, norms, activity and the weight on its support.
//
// Errors are known to every warp alike and written once; sums over neurons are written per block, and added up by the host.
#pragma once

#include "neurons.cuh"

DEVICE double lane_sum(double value) {
#pragma unroll
  for (int step = 16; step; step /= 2) value += __shfl_xor_sync(ALL, value, step);
  return value;
}

// Mean loss and error over the first `rows` rows of a set, which pass through two slots; returns how many pairs fired in
// this warp's neurons.
template <class Self>
DEVICE u64 measure(Self& self, const Examples& data, int rows, int slot, int other, double* loss, double* error) {
  Incoming incoming;
  double losses = 0, errors = 0;
  u64 fired = 0;
  const int last = rows - 1;
  block_sync();
  incoming.fetch(data.bits, min(self.lane, last));
  incoming.store(self.shared.rows, slot);
  block_sync();
#pragma unroll 1
  for (int done = 0; done < rows; done += 32) {
    const int count = min(32, rows - done);
    incoming.fetch(data.bits, min(done + 32 + self.lane, last));
    self.score(slot);
    const float y = self.shared.rows.negative[slot] >> self.example & 1 ? -1.f : 1.f;
    self.count_fired(count);
    fired += self.take_fired();
    incoming.store(self.shared.rows, other);
    const float out = self.output();
    if (self.example < count) {
      losses += loss_value(LOSS, out, y);
      errors += out * y <= 0.f ? 1.0 : 0.0;
    }
    const int swap = slot;
    slot = other;
    other = swap;
  }
  *loss = lane_sum(losses) / rows;
  *error = lane_sum(errors) / rows;
  return fired;
}

// Writes a checkpoint; returns the held-out error. The rows of both slots are lost.
template <class Self>
DEVICE double record(Self& self, int index, int slot, int other) {
  double* out = self.job.records + (u64)index * (RECORD + SUMS * PARTS);
  self.note_fired();
  double error = nan("");
  u64 active = 0;
#pragma unroll 1
  for (int set = 0; set < 2; ++set) {
    double loss = nan("");
    error = nan("");
    const Examples& data = set ? self.job.test : self.job.train;
    const int rows = set ? data.count : self.job.measured;
    const u64 fired = rows ? measure(self, data, rows, slot, other, &loss, &error) : 0;
    if (set == 0) active = fired;
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
