// Some epochs of many networks, of any layouts, in one launch: every network has a team of blocks of threads, which go
// through its steps without the host and wait for nobody else.
//
// After each epoch the weights are taken into their mean, which is kept, and the rows held out are predicted by it. All
// blocks have to be on the chip at the same time, for those of a team wait for each other (a cooperative launch).
#include "steps.cuh"

DEVICE void take_steps(const Network& net, Team& team, Pieces& pieces, int epoch) {
  for (int step = 0; step < net.steps; ++step) {
    const i64 at = (i64)epoch * net.block_steps + step;
    const int* rows = net.rows + at * net.networks * net.block_batch;
    const float* factors = net.factors + at * net.kinds * net.networks;
    const i64 left = net.part - step * net.batch;
    const int count = left < net.batch ? left : net.batch;
    show(net, team, net.parameters, rows, net.start, net.gains, count);
    forward(net, team, pieces, net.parameters, count);
    compare(net, team, rows, factors[OF_ROWS], net.row_losses + step * net.batch, count);
    backward(net, team, pieces, count);
    move(net, team, pieces, Rule(net, factors), count);
  }
}

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

DEVICE void predict_held(const Network& net, Team& team, Pieces& pieces, int epoch) {
  const int outputs = net.outputs_wide;
  float* to = net.outputs + (i64)epoch * net.networks * net.held_most * outputs;
  for (i64 first = 0; first < net.held; first += net.at_once) {
    const int count = net.held - first < net.at_once ? net.held - first : net.at_once;
    show(net, team, net.average, net.held_rows + first, 0, net.held_gains, count);
    forward(net, team, pieces, net.average, count);
    for (int row = team.rank * WARPS + warp(); row < count; row += team.parties * WARPS)
      for (int o = 0; o < outputs; ++o) {
        const float value = output(net, net.average, row, o);
        if (lane() == 0) to[(first + row) * outputs + o] = value;
      }
    team.meet();
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
    for (int epoch = first; epoch < first + epochs; ++epoch) {
      take_steps(net, team, shared.pieces, epoch);
      add_losses(net, team, shared.pieces.left[0], epoch);
      if (net.held) {
        take_mean(net, team, epoch);
        predict_held(net, team, shared.pieces, epoch);
      }
    }
    __syncthreads();
  }
}
