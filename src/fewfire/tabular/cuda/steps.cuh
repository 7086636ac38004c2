// Forward, errors, backward and update of one network by the blocks of its team; between parts they meet.
#pragma once
#include "network.cuh"

constexpr float HALF_TURN = 3.141592653589793f;
constexpr int TOGETHER = 8;  // loads that a thread has under way
constexpr int SHOWN = 4;     // the same where each asks for more

// Zero where it was, and NaN stays NaN, so that divergence shows.
DEVICE float relu(float value) { return value <= 0.f ? 0.f : value; }

DEVICE const float* seen(const Network& net, int layer) { return layer ? net.hidden[layer - 1] : net.fed; }
DEVICE int seen_width(const Network& net, int layer) { return layer ? net.widths[layer - 1] : net.fed_width; }

// The angle of a cosine of the embedding, in half turns.
DEVICE float half_turns(float x, float frequency, float phase) { return 2.f * x * frequency + phase * (1.f / HALF_TURN); }

// Inputs of the first layer at numbered rows: inputs times gains, then the periodic embedding.
DEVICE void show(const Network& net, Team& team, const float* weights, const int* rows, i64 start, const float* gains, int count) {
  const int inputs = net.inputs, wide = net.fed_width, total = count * inputs, stride = team.parties * THREADS;
  for (int first = team.rank * THREADS + threadIdx.x; first < total; first += SHOWN * stride) {
    float x[SHOWN];
#pragma unroll
    for (int t = 0; t < SHOWN; ++t) {
      const int i = first + t * stride, row = i / inputs, j = i - row * inputs;
      if (i < total) x[t] = net.table[(start + rows[row]) * inputs + j] * gains[j];
    }
#pragma unroll
    for (int t = 0; t < SHOWN; ++t) {
      const int i = first + t * stride, row = i / inputs, j = i - row * inputs;
      if (i < total) net.fed[row * wide + j] = x[t];
    }
    if (!net.frequencies) continue;
    float sums[SHOWN] = {};
    for (int k = 0; k < net.frequencies; ++k)
#pragma unroll
      for (int t = 0; t < SHOWN; ++t) {
        const int i = first + t * stride, at = i % inputs * (int)net.frequencies + k;
        if (i < total)
          sums[t] += cospif(half_turns(x[t], weights[net.at_frequency + at], weights[net.at_phase + at])) * weights[net.at_mix + at];
      }
#pragma unroll
    for (int t = 0; t < SHOWN; ++t) {
      const int i = first + t * stride, row = i / inputs, j = i - row * inputs;
      if (i < total) net.fed[row * wide + inputs + j] = sums[t] + weights[net.at_shift + j];
    }
  }
  team.meet();
}

DEVICE void forward(const Network& net, Team& team, Pieces& pieces, const float* weights, int count) {
  for (int layer = 0; layer < net.depth; ++layer) {
    const float *below = seen(net, layer), *matrix = weights + net.at_hidden[layer], *bias = weights + net.at_bias[layer];
    const int depth = seen_width(net, layer), width = net.widths[layer];
    float* to = net.hidden[layer];
    team.tiles(count, width, [&](int row, int column) {
      product<false, false>(pieces, {below + row * depth, count - row, depth}, {matrix + column * depth, width - column, depth}, depth,
                            [&](int, int n) { return bias[column + n]; },
                            [&](int m, int n, float sum, float offset) { to[(row + m) * width + column + n] = relu(sum + offset); });
    });
    team.meet();
  }
}

// One output of a row, by all lanes of a warp.
DEVICE float output(const Network& net, const float* weights, int row, int number) {
  const int width = net.widths[net.depth - 1], fed = net.fed_width;
  const float *top = net.hidden[net.depth - 1] + row * width, *matrix = weights + net.at_output + number * width;
  float sum = 0.f;
#pragma unroll 4
  for (int i = lane(); i < width; i += 32) sum += top[i] * matrix[i];
  if (net.at_skip >= 0) {
    const float *below = net.fed + row * fed, *skip = weights + net.at_skip + number * fed;
#pragma unroll 8
    for (int i = lane(); i < fed; i += 32) sum += below[i] * skip[i];
  }
  return warp_sum(sum) + weights[net.at_offset + number];
}

// Of a row's outputs, one per lane, the loss; they become its derivatives. By all lanes of a warp.
DEVICE float judge(const Network& net, float& value, float aim) {
  const int outputs = net.outputs_wide;
  const bool there = lane() < outputs;
  if (net.loss == LOGISTIC) {
    const float loss = relu(value) - value * aim + log1pf(expf(-fabsf(value)));
    value = 1.f / (1.f + expf(-value)) - aim;
    return loss;
  }
  if (net.loss == CROSS_ENTROPY) {
    const float top = warp_max(there ? value : -3.402823466e38f), share = there ? expf(value - top) : 0.f, sum = warp_sum(share);
    const float loss = warp_sum(there ? aim * (logf(sum) + top - value) : 0.f);
    value = share / sum - aim;
    return loss;
  }
  const float apart = value - aim, loss = 0.5f * warp_sum(there ? apart * apart : 0.f) / outputs;
  value = apart / outputs;
  return loss;
}

// Outputs, losses and errors of a step's rows, and the derivative by the last layer's scores; a warp per row.
DEVICE void compare(const Network& net, Team& team, const int* rows, float of_rows, float* row_losses, int count) {
  const int outputs = net.outputs_wide, last = net.depth - 1, width = net.widths[last];
  const float *matrix = net.parameters + net.at_output, *top = net.hidden[last];
  for (int row = team.rank * WARPS + warp(); row < count; row += team.parties * WARPS) {
    const i64 number = rows[row];
    const float weight = net.weights[number], aim = lane() < outputs ? net.targets[number * outputs + lane()] : 0.f;
    float error = 0.f;
    for (int o = 0; o < outputs; ++o) {
      const float value = output(net, net.parameters, row, o);
      if (lane() == o) error = value;
    }
    const float loss = judge(net, error, aim);
    error *= weight * of_rows;
    if (lane() < outputs) net.errors[row * outputs + lane()] = error;
    if (lane() == 0) row_losses[row] = loss * weight;
    for (int first = 0; first < width; first += 32) {
      const int i = first + lane();
      const bool fires = i < width && !(top[row * width + i] <= 0.f);
      float sum = 0.f;
      for (int o = 0; o < outputs; ++o) {
        const float of_output = __shfl_sync(ALL, error, o);
        if (i < width) sum += of_output * matrix[o * width + i];
      }
      if (i < width) net.back[last][row * width + i] = fires ? sum : 0.f;
    }
  }
  team.meet();
}

// Derivatives by the scores of the layers below the last, and by what the embedding shows. Reads weights, changes none.
DEVICE void backward(const Network& net, Team& team, Pieces& pieces, int count) {
  for (int layer = net.depth - 1; layer > 0; --layer) {
    const int depth = net.widths[layer], width = net.widths[layer - 1];
    const float *above = net.back[layer], *matrix = net.parameters + net.at_hidden[layer], *own = net.hidden[layer - 1];
    float* to = net.back[layer - 1];
    team.tiles(count, width, [&](int row, int column) {
      product<false, true>(pieces, {above + row * depth, count - row, depth}, {matrix + column, width - column, width}, depth,
                           [&](int m, int n) { return own[(row + m) * width + column + n]; },
                           [&](int m, int n, float sum, float value) { to[(row + m) * width + column + n] = value <= 0.f ? 0.f : sum; });
    });
    team.meet();
  }
  if (!net.frequencies) return;
  const int inputs = net.inputs, fed = net.fed_width, depth = net.widths[0], outputs = net.outputs_wide;
  const float* matrix = net.parameters + net.at_hidden[0] + inputs;
  const float* skip = net.at_skip < 0 ? nullptr : net.parameters + net.at_skip + inputs;
  team.tiles(count, inputs, [&](int row, int column) {
    product<false, true>(pieces, {net.back[0] + row * depth, count - row, depth}, {matrix + column, inputs - column, fed}, depth,
                         [&](int m, int n) {
                           float by_skip = 0.f;
                           for (int o = 0; skip && o < outputs; ++o)
                             by_skip += net.errors[(row + m) * outputs + o] * skip[o * fed + column + n];
                           return by_skip;
                         },
                         [&](int m, int n, float sum, float by_skip) { net.slopes[(row + m) * inputs + column + n] = sum + by_skip; });
  });
  team.meet();
}

// Move the parameters from `at` on along the sums over rows of a matrix's columns, each row times its `factor`, if there is one.
DEVICE void move_by_columns(const Network& net, Team& team, float* sums, const Rule& rule, int at, const float* matrix, int columns,
                            const float* factor, int factor_pitch, int count) {
  team.share((columns + 31) / 32, [&](int task) {
    const int column = task * 32 + lane();
    float sum = 0.f;
    Rule::Moved now = {};
    if (warp() == 0 && column < columns) now = rule.look(net, at + column);
    for (int first = warp(); first < count; first += TOGETHER * WARPS) {
      float of_row[TOGETHER];
#pragma unroll
      for (int t = 0; t < TOGETHER; ++t) {
        const int row = first + t * WARPS;
        const bool inside = row < count && column < columns;
        of_row[t] = inside ? matrix[row * columns + column] * (factor ? factor[row * factor_pitch] : 1.f) : 0.f;
      }
#pragma unroll
      for (int t = 0; t < TOGETHER; ++t) sum += of_row[t];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (warp() == 0 && column < columns) {
      for (int w = 1; w < WARPS; ++w) sum += sums[w * 32 + lane()];
      rule.move(net, at + column, sum, now);
    }
    __syncthreads();
  });
}

// Move the embedding of one input: sixteen frequencies at a time, by sixteen groups of threads that share the rows.
DEVICE void move_waves(const Network& net, float* sums, const Rule& rule, int input, int count) {
  const int waves = net.frequencies, group = threadIdx.x / 16, mix = net.at_mix + input * waves;
  const int frequency = net.at_frequency + input * waves, phase = net.at_phase + input * waves;
  float *xs = sums + 4 * THREADS, *slopes = xs + THREADS;
  for (int begin = 0; begin < waves; begin += 16) {
    const int k = begin + threadIdx.x % 16, place = k < waves ? k : 0;
    const Rule::Moved now[3] = {rule.look(net, mix + place), rule.look(net, frequency + place), rule.look(net, phase + place)};
    float own[4] = {};  // Σ slope times cosine, sine, x · sine, 1
    for (int first = 0; first < count; first += THREADS) {
      const int row = first + threadIdx.x, left = count - first < THREADS ? count - first : THREADS;
      if (row < count) xs[threadIdx.x] = net.fed[row * net.fed_width + input], slopes[threadIdx.x] = net.slopes[row * net.inputs + input];
      __syncthreads();
#pragma unroll 4
      for (int i = group; i < left; i += THREADS / 16) {
        float sine, cosine;
        sincospif(half_turns(xs[i], now[1].value, now[2].value), &sine, &cosine);
        own[0] += slopes[i] * cosine, own[1] += slopes[i] * sine, own[2] += slopes[i] * sine * xs[i], own[3] += slopes[i];
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i * THREADS + threadIdx.x] = own[i];
    __syncthreads();
    if (threadIdx.x < 16 && k < waves) {
      float total[4] = {};
      for (int g = 0; g < THREADS / 16; ++g)
#pragma unroll
        for (int i = 0; i < 4; ++i) total[i] += sums[i * THREADS + g * 16 + threadIdx.x];
      rule.move(net, mix + k, total[0], now[0]);
      rule.move(net, frequency + k, -2.f * HALF_TURN * now[0].value * total[2], now[1]);
      rule.move(net, phase + k, -now[0].value * total[1], now[2]);
      if (k == 0) rule.move(net, net.at_shift + input, total[3]);
    }
    __syncthreads();
  }
}

// Every parameter a step further; gradients are summed where they are used, and kept nowhere.
DEVICE void move(const Network& net, Team& team, Pieces& pieces, const Rule& rule, int count) {
  const int outputs = net.outputs_wide, last = net.depth - 1;
  float* sums = pieces.left[0];
  for (int layer = 0; layer < net.depth; ++layer) {
    const int width = net.widths[layer], depth = seen_width(net, layer), at = net.at_hidden[layer];
    const float *back = net.back[layer], *below = seen(net, layer);
    team.tiles(width, depth, [&](int row, int column) {
      product<true, true>(pieces, {back + row, width - row, width}, {below + column, depth - column, depth}, count,
                          [&](int m, int n) { return rule.look(net, at + (row + m) * depth + column + n); },
                          [&](int m, int n, float sum, Rule::Moved now) { rule.move(net, at + (row + m) * depth + column + n, sum, now); });
    });
  }
  for (int layer = 0; layer < net.depth; ++layer)
    move_by_columns(net, team, sums, rule, net.at_bias[layer], net.back[layer], net.widths[layer], nullptr, 0, count);
  for (int o = 0; o < outputs; ++o) {
    const int width = net.widths[last], fed = net.fed_width;
    move_by_columns(net, team, sums, rule, net.at_output + o * width, net.hidden[last], width, net.errors + o, outputs, count);
    if (net.at_skip >= 0)
      move_by_columns(net, team, sums, rule, net.at_skip + o * fed, net.fed, fed, net.errors + o, outputs, count);
  }
  move_by_columns(net, team, sums, rule, net.at_offset, net.errors, outputs, nullptr, 0, count);
  if (net.frequencies) team.share(net.inputs, [&](int input) { move_waves(net, sums, rule, input, count); });
  team.meet();
}
