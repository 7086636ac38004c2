// Draws what a batch of runs starts from: rows of examples as bits, and initial weights.
//
// One launch per kind for the whole batch; blocks stride over the items of one run after the other. The values are
// those of fewfire.problems and fewfire.networks.init, to the bit.
#include "job.cuh"

// Rows 0 … count − 1 of a sample.
struct SampleTask {
  Source source;
  u32* bits;
  int count, words;
};

// The start "dense" (ones = 0) or "sparse": rows of `ones` entries `value`, the others `rest`.
struct StartTask {
  u64 key, hidden, bias, output, offset;
  float *to_hidden, *to_bias, *to_output;
  double* to_offset;
  double inner, outer;  // 1/√inputs and 1/√width
  int inputs, width, ones;
  float value, rest;
};

extern "C" __global__ void draw_samples(const SampleTask* tasks, int count) {
  for (int q = blockIdx.y; q < count; q += gridDim.y) {
    const SampleTask& task = tasks[q];
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < task.count; row += gridDim.x * blockDim.x)
      draw_row(task.source, row, task.words, task.bits + (u64)row * task.words);
  }
}

// Partial Fisher–Yates of Stream.subsets, with the deck's changed places kept in a short list: `ones` is at most
// MOST_ONES.
constexpr int MOST_ONES = 16;

DEVICE void draw_sparse_row(const StartTask& task, u64 neuron) {
  float* row = task.to_hidden + neuron * task.inputs;
  for (int j = 0; j < task.inputs; ++j) row[j] = task.rest;
  int place[MOST_ONES], holds[MOST_ONES];  // places beyond `position` that no longer hold their own number
  for (int position = 0; position < task.ones; ++position) {
    const u32 drawn = word(task.key, task.hidden, neuron * task.ones + position);
    const int chosen = position + (int)(((u64)drawn * (u32)(task.inputs - position)) >> 32);
    int here = position, there = chosen, at = position;
    for (int i = 0; i < position; ++i) {
      if (place[i] == position) here = holds[i];
      if (place[i] == chosen) there = holds[i], at = i;
    }
    place[at] = chosen;
    holds[at] = here;
    if (at != position) place[position] = -1;
    row[there] = task.value;
  }
}

extern "C" __global__ void draw_starts(const StartTask* tasks, int count) {
  for (int q = blockIdx.y; q < count; q += gridDim.y) {
    const StartTask& task = tasks[q];
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    for (int i = first; i < task.width; i += stride) {
      task.to_bias[i] = uniform(task.key, task.bias, i, -task.inner, task.inner);
      task.to_output[i] = uniform(task.key, task.output, i, -task.outer, task.outer);
      if (task.ones) draw_sparse_row(task, i);
    }
    if (first == 0) *task.to_offset = uniform(task.key, task.offset, 0, -task.outer, task.outer);
    if (task.ones) continue;
    const u64 cells = (u64)task.width * task.inputs;
    for (u64 i = first; i < cells; i += stride)
      task.to_hidden[i] = uniform(task.key, task.hidden, i, -task.inner, task.inner);
  }
}

// Words of a stream; the permutation of an epoch is their stable order.
extern "C" __global__ void draw_words(u64 key, u64 stream, u64 start, u64 count, u64* out) {
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x)
    out[i] = word(key, stream, start + i);
}
