// Some epochs of many networks, of any layouts, in one launch: every network has a team of blocks of threads, which go
// through its steps without the host and wait for no other.
//
// After each epoch the weights are taken into their mean, which is kept, and the rows held out are predicted by it. All
// blocks have to be on the chip at the same time, for those of a team wait for each other (a cooperative launch).
#include "steps.cuh"

// The sum of the losses met on the way, by the first block alone.
DEVICE void add_losses(const Network& net, const Team& team, float* sums, int epoch) {
  if (team.rank) return;
  float sum = 0.f;
  const int part = net.part;
#pragma unroll 8
  for (int i = threadIdx.x; i < part; i += THREADS) sum += net.row_losses[i];
  sums[threadIdx.x] = sum;
  for (int half = THREADS / 2; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) net.losses[epoch * net.networks] = sums[0];
}

DEVICE void take_mean(const Network& net, Team& team, int epoch) {
  const float newest = net.newest[epoch * net.networks];
  float* kept = net.kept + epoch * net.networks * net.pitch;
  const int size = net.size, stride = team.parties * THREADS;
  for (int first = team.rank * THREADS + threadIdx.x; first < size; first += TOGETHER * stride) {
    float before[TOGETHER], now[TOGETHER];
#pragma unroll
    for (int t = 0, i = first; t < TOGETHER; ++t, i += stride)
      if (i < size) before[t] = net.average[i], now[t] = net.parameters[i];
#pragma unroll
    for (int t = 0, i = first; t < TOGETHER; ++t, i += stride)
      if (i < size)
        kept[i] = net.average[i] =
            newest < 0.5f ? before[t] + newest * (now[t] - before[t]) : now[t] - (now[t] - before[t]) * (1.f - newest);
  }
  team.meet();
}

// An epoch: its steps, and then, by the mean of the weights, the rows held out, some at a time. One loop for both, so that
// the code of the layers is there once.
DEVICE void take_epoch(const Network& net, Team& team, Pieces& pieces, int epoch) {
  const int steps = net.steps, blocks = net.held ? (net.held + net.at_once - 1) / net.at_once : 0, outputs = net.outputs_wide;
  for (int pass = 0; pass < steps + blocks; ++pass) {
    const bool steps_on = pass < steps;
    const i64 at = (i64)epoch * net.block_steps + pass, done = steps_on ? pass * net.batch : (pass - steps) * net.at_once;
    const i64 left = (steps_on ? net.part : net.held) - done, most = steps_on ? net.batch : net.at_once;
    const int count = left < most ? left : most;
    const int* rows = steps_on ? net.rows + at * net.networks * net.block_batch : net.held_rows + done;
    const float* weights = steps_on ? net.parameters : net.average;
    show(net, team, weights, rows, steps_on ? net.start : 0, steps_on ? net.gains : net.held_gains, count);
    forward(net, team, pieces, weights, count);
    if (steps_on) {
      const float* factors = net.factors + at * net.kinds * net.networks;
      compare(net, team, rows, factors[OF_ROWS], net.row_losses + done, count);
      backward(net, team, pieces, count);
      move(net, team, pieces, Rule(net, factors), count);
      if (pass == steps - 1) {
        add_losses(net, team, pieces.left[0], epoch);
        if (blocks) take_mean(net, team, epoch);
      }
    } else {
      float* to = net.outputs + ((i64)epoch * net.networks * net.held_most + done) * outputs;
      for (int row = team.rank * WARPS + warp(); row < count; row += team.parties * WARPS)
        for (int o = 0; o < outputs; ++o) {
          const float value = output(net, weights, row, o);
          if (lane() == 0) to[row * outputs + o] = value;
        }
      team.meet();
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
train_epochs(const Network* networks, const Share* shares, u32* arrived, int count, int first, int epochs) {
  BLOCK_MEMORY(Shared, shared);
  const Share share = shares[blockIdx.x];
  for (int number = share.network; number < count; number += share.stride) {
    constexpr int words = sizeof(Network) / sizeof(i64);
    for (int i = threadIdx.x; i < words; i += THREADS) ((i64*)&shared.network)[i] = ((const i64*)(networks + number))[i];
    __syncthreads();
    const Network& net = shared.network;
    Team team = {arrived + 32 * number, 0, share.rank, share.parties, 0};
    for (int epoch = first; epoch < first + epochs; ++epoch) take_epoch(net, team, shared.pieces, epoch);
    __syncthreads();
  }
}
