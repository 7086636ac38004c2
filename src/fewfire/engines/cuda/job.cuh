// The records of each run that the host gives the kernels; _records.py holds the same layout as NumPy records.
//
// Sign rows are bits (−1 set): coordinate j of a row is bit j mod 32 of its word j div 32, rows have inputs div 32 + 1
// words, and the top bit of the last word, which is never a coordinate, is the label. Real rows are float32, row by
// row.
#pragma once

#include "philox.cuh"

enum Loss { HINGE = 0, LOGISTIC = 1, SQUARE = 2, ABSOLUTE = 3 };
enum Stop { RUNNING = 0, ALL_STEPS = 1, TEST_ERROR = 2, DIVERGED = 3, INTERRUPTED = 4 };
enum Problem { NO_PROBLEM = 0, PARITY = 1, CORRELATED_PARITY = 2 };

// Endless examples of a parity: rows of stream `rows`, labels flipped where word i of `noise` is below `flip`.
struct Source {
  u64 key, rows, noise, mixture;
  u64 flip;            // ⌈noise·2^32⌉
  const u32* support;  // a bit per input
  int problem, inputs;
};

// A stretch of steps; row `row` of the rates holds for all of it, or row + i for its step i when `varies`.
struct Segment {
  int steps, batch, row, varies;  // batch 0: every example
};

// Columns of a row of rates: learning rate, 1 − decay and truncation, each of hidden, bias, output, offset.
constexpr int RATE = 0, KEEP = 4, TRUNCATION = 8, RATE_COLUMNS = 12;
constexpr int HIDDEN = 0, BIAS = 1, OUTPUT = 2, OFFSET = 3;

struct Examples {
  const u32* bits;
  const float* rows;
  const float* labels;
  int count, words;
};

struct Job {
  Examples train, test;
  Source source;             // of an online run
  u64 key, batches;          // the stream that picks minibatches
  const u32* order;          // by epochs: the example at each position; otherwise null
  float *hidden, *bias, *output;  // the start; at the end, the trained network
  double* offset;
  const Segment* segments;
  const float* rates;
  const int* checkpoints;    // ascending, from 0 to the last step
  const u32* support;        // a bit per input, or null
  double* records;           // RECORD doubles for the run and SUMS for each of its blocks, per checkpoint
  double stop_error;         // no early stop below 0
  int inputs, width, steps, phases, checks, loss;
  float low, high;           // σ(z) = min(z·1[z > low], high)
  int boolean_labels;
  int measured;              // rows of the training set that a checkpoint looks at, the first ones
};

// How a run ended. `records` counts the checkpoints reached, `steps` the updates made.
struct Outcome {
  u64 active_pairs;
  int stopped, steps, records;
  float rate;  // the largest rate of the step that diverged
};

// Of a checkpoint: what is the same in every block, and what each block adds up over its own neurons.
constexpr int TRAIN_LOSS = 0, TRAIN_ERROR = 1, TEST_ERROR_RATE = 2, RECORD = 3;
constexpr int HIDDEN_SQUARES = 0, OUTPUT_SQUARES = 1, MASS = 2, SUPPORT_MASS = 3, FIRED = 4, SUMS = 5;

// Row `row` of a source, as bits with the label on top; `words` of them.
DEVICE void draw_row(const Source& from, u64 row, int words, u32* out) {
  const int blocks = (from.inputs + 127) / 128;
  u32 odd = 0, equal = 0, equal_to = 0;
  if (from.problem == CORRELATED_PARITY) {
    const u32 coins = philox(from.key, from.mixture, row).at[0];
    equal = (coins & 1) ? ~0u : 0u;
    equal_to = (coins & 2) ? ~0u : 0u;
  }
  for (int b = 0; b < blocks; ++b) {
    const Words drawn = philox(from.key, from.rows, row * blocks + b);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int w = 4 * b + i, left = from.inputs - 32 * w;
      if (w >= words) break;
      u32 value = drawn.at[i] & (left >= 32 ? ~0u : left > 0 ? (1u << left) - 1 : 0u);
      const u32 mask = left > 0 ? from.support[w] : 0u;
      value = (value & ~(mask & equal)) | (equal_to & mask & equal);
      odd ^= value & mask;
      out[w] = value;
    }
  }
  u32 label = __popc(odd) & 1;
  if (from.flip && word(from.key, from.noise, row) < from.flip) label ^= 1;
  // A row of 128·blocks inputs needs one word more than the blocks hold.
  for (int w = 4 * blocks; w < words; ++w) out[w] = 0;
  out[words - 1] |= label << 31;
}

DEVICE float loss_value(int loss, float f, float y) {
  const float margin = y * f;
  if (loss == HINGE) return fmaxf(1.f - margin, 0.f);
  if (loss == LOGISTIC) return margin > 0 ? log1pf(expf(-margin)) : -margin + log1pf(expf(margin));
  if (loss == SQUARE) return (f - y) * (f - y) * 0.5f;
  return fabsf(f - y);
}

DEVICE float loss_slope(int loss, float f, float y) {
  if (loss == HINGE) return y * f < 1.f ? -y : 0.f;
  if (loss == LOGISTIC) return -y / (1.f + expf(y * f));
  if (loss == SQUARE) return f - y;
  return f > y ? 1.f : f < y ? -1.f : 0.f;
}

// Where a run stands in its schedule: segments are walked in order.
struct Clock {
  const Job& job;
  int segment = 0, within = 0;

  DEVICE Clock(const Job& run) : job(run) {}
  DEVICE const Segment& here() const { return job.segments[segment]; }
  DEVICE const float* rates() const {
    return job.rates + (u64)RATE_COLUMNS * (here().row + (here().varies ? within : 0));
  }
  // For how many steps from here on the rates stay as they are.
  DEVICE int constant_for() const { return here().varies ? 1 : here().steps - within; }
  DEVICE void advance(int steps) {
    within += steps;
    if (within < here().steps) return;
    within = 0;
    ++segment;
  }
};
