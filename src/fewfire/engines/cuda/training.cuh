// A training from start to end, for kernels that keep or stream their weights: steps, checkpoints, rates, stops.
//
// Per step: sum the outputs (exchange.cuh), turn them into slopes, then one pass over the weights that applies this
// step's update and computes the next step's scores (neurons.cuh). Rows of later steps (rows.cuh) are fetched a step
// before they are expanded, and expanded while sums are on their way, so that their latency hides.
#pragma once

#include "checkpoints.cuh"
#include "neurons.cuh"
#include "queue.cuh"

  // The rates of the step at hand; returns for how many steps they hold, and moves the clock there.
  DEVICE int read_rates(Shared& shared, Clock& clock) {
    block_sync();
    const float* rate = clock.rates();
    if (threadIdx.x < 8) shared.rate[threadIdx.x] = threadIdx.x < KEEP ? rate[threadIdx.x] / BATCH : rate[threadIdx.x];
    if (threadIdx.x < 4) {
      const bool own = threadIdx.x == 3;
      shared.bias[threadIdx.x] = {own ? rate[RATE + BIAS] / rate[RATE + HIDDEN] : 1.f,
                                  own ? rate[KEEP + BIAS] / rate[KEEP + HIDDEN] : 1.f};
    }
    block_sync();
    const int steps = clock.constant_for();
    clock.advance(steps);
    return steps;
  }

  // True when the host asks the kernel to end; also counts the steps for it.
template <class Self>
DEVICE bool look(Self& self, Control* control, int s) {
  self.note_fired();
  return self.exchange.tell([&]() {
    if (s) atomicAdd(&control->steps, (u64)LOOK_EVERY);
    return (u32)asked_to_stop(control);
  });
}

// Trains the run from its start to its end.
template <class Self>
DEVICE Outcome carry_out(Self& self, Control* control) {
  Shared& shared = self.shared;
  const Job& job = shared.job;
  RowSpace& rows = shared.rows;
  Incoming incoming;
  Clock clock(job);
  if (self.lane == 0) shared.fired[self.exchange.warp] = 0;
  self.load_weights();
  rows.draw_first(job);
  int rates_until = read_rates(shared, clock), stopped = RUNNING, check = 0, s = 0;
  incoming.fetch_step(rows, job, 0);
  incoming.store(rows, 0);
#pragma unroll 1
  for (;;) {
    // Between steps: all updates before step s are made, its rows are in slot s mod SLOTS and draws reach s + 2.
    int slot = s % SLOTS, next = (s + 1) % SLOTS, free = SLOTS == 3 ? (s + 2) % SLOTS : next;
    if (s == job.checkpoints[check]) {
      const double error = record(self, check++, next, free);
      stopped = error <= job.stop_error ? TEST_ERROR : s == job.steps ? ALL_STEPS : RUNNING;
    }
    if (stopped == RUNNING && s % LOOK_EVERY == 0 && look(self, control, s)) stopped = INTERRUPTED;
    if (stopped != RUNNING) break;
    if (s == rates_until) rates_until += read_rates(shared, clock);
    if (self.scale < LEAST_SCALE) self.restore_scale();
    int left = min(min(job.checkpoints[check], rates_until), s - s % LOOK_EVERY + LOOK_EVERY) - s;
    const bool always = shared.rate[KEEP + BIAS] != shared.rate[KEEP + HIDDEN];
    block_sync();
    self.score(slot);
    rows.ready_update(slot);
    rows.draw(job, s);
    incoming.fetch_step(rows, job, s + 1);
    incoming.store(rows, next);
    if (SLOTS == 3) incoming.fetch_step(rows, job, s + 2);
    // From step to step: scores of step s are published, rows reach s + 1 and draws s + 3.
    bool live;
#pragma unroll 1
    for (;;) {
      const float out = self.output();
      if (__ballot_sync(ALL, !isfinite(out))) {
        stopped = DIVERGED;
        break;
      }
      live = self.find_slopes(out, rows.negative[slot] >> self.example & 1) || always;
      ++s;
      if (--left == 0 || !live || self.scale < LEAST_SCALE) break;
      if (SLOTS == 2) {
        incoming.fetch_step(rows, job, s + 1);
        self.template advance<true>(slot, next);
        rows.draw(job, s);
        incoming.store(rows, slot);
      } else {
        self.template advance<true>(slot, next);
        // While the sums of other warps and blocks are on their way.
        rows.draw(job, s);
        rows.ready_update(next);
        incoming.store(rows, free);
        incoming.fetch_step(rows, job, s + 2);
      }
      const int last_slot = slot;
      slot = next;
      next = SLOTS == 3 ? free : last_slot;
      free = last_slot;
    }
    if (stopped != RUNNING) break;
    if (live)
      self.template advance<false>(slot, slot);
    else
      self.decay_outputs();
  }
  self.note_fired();
  Outcome outcome = {0, stopped, stopped == DIVERGED ? s + 1 : s, check, 0.f};
  outcome.rate = BATCH * fmaxf(fmaxf(shared.rate[0], shared.rate[1]), fmaxf(shared.rate[2], shared.rate[3]));
  return outcome;
}

// Takes runs from the queue and trains them, until there are none.
template <class Self, class... Given>
DEVICE void train_runs(const Job* jobs, Outcome* outcomes, int count, Mailbox* boxes, Control* control,
                       Given... given) {
  extern __shared__ __align__(16) unsigned char space[];
  Shared& shared = *(Shared*)space;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Exchange exchange = {shared.exchange, boxes + blockIdx.x / PARTS, (int)blockIdx.x % PARTS, warp, lane};
  if (PARTS > 1 && threadIdx.x == 0) atomicAdd(&control->arrived, 1ull);
  for (;;) {
    const u32 run = exchange.tell([&]() { return asked_to_stop(control) ? (u32)count : take(control); });
    if (run >= count) return;
    for (int i = threadIdx.x; i < sizeof(Job) / 4; i += THREADS)
      ((u32*)&shared.job)[i] = ((const u32*)(jobs + run))[i];
    block_sync();
    Self neurons(shared, exchange, given...);
    const Outcome outcome = carry_out(neurons, control);
    neurons.store_weights();
    if (lane == 0) atomicAdd(&outcomes[run].active_pairs, shared.fired[warp]);
    if (threadIdx.x == 0 && exchange.part == 0) {
      outcomes[run].stopped = outcome.stopped;
      outcomes[run].steps = outcome.steps;
      outcomes[run].records = outcome.records;
      outcomes[run].rate = outcome.rate;
    }
    block_sync();
  }
}
