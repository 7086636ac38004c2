// Persistent kernels: a fixed number of blocks takes runs from a queue until none is left or the host asks to stop.
#pragma once

#include "job.cuh"

// Shared with the host while the kernel runs.
struct Control {
  u32 next;       // the first run that no block has taken
  u32 stop;       // set by the host: end every run at its next look
  u64 steps;      // updates made so far by all runs together
  u64 arrived;    // blocks that are on the chip, of kernels whose blocks wait for each other
};

// How often a run looks at `stop` and adds to `steps`.
constexpr int LOOK_EVERY = 256;

DEVICE u32 take(Control* control) { return atomicAdd(&control->next, 1u); }
DEVICE bool asked_to_stop(const Control* control) { return *(const volatile u32*)&control->stop != 0; }
