// Forward, errors, backward and update of one network by the blocks of its team; between parts they meet.
#pragma once
#include "network.cuh"

constexpr float TURN = 6.283185307179586f;

// Zero where it was, and NaN stays NaN, so that divergence shows.
DEVICE float relu(float value) { return value <= 0.f ? 0.f : value; }

DEVICE const float* seen(const Network& net, int layer) { return layer ? net.hidden[layer - 1] : net.fed; }
DEVICE int seen_width(const Network& net, int layer) { return layer ? net.widths[layer - 1] : net.fed_width; }

// What the first layer sees of numbered rows: inputs times gains and, beside them, the periodic embedding.
DEVICE void show(const Network& net, Team& team, const float* weights, const int* rows, i64 start, const float* gains, int count) {
  const int inputs = net.inputs, wide = net.fed_width, waves = net.frequencies;
  team.each(count * inputs, [&](int i) {
    const int row = i / inputs, j = i % inputs;
    const float x = net.table[(start + rows[row]) * inputs + j] * gains[j];
    net.fed[row * wide + j] = x;
    if (!waves) return;
    const float *mix = weights + net.at_mix + j * waves, *frequency = weights + net.at_frequency + j * waves;
    const float* phase = weights + net.at_phase + j * waves;
    float sum = 0.f;
    for (int k = 0; k < waves; ++k) sum += cosf(TURN * x * frequency[k] + phase[k]) * mix[k];
    net.fed[row * wide + inputs + j] = sum + weights[net.at_shift + j];
  });
  team.meet();
}

DEVICE void forward(const Network& net, Team& team, Pieces& pieces, const float* weights, int count) {
  for (int layer = 0; layer < net.depth; ++layer) {
    const float *below = seen(net, layer), *matrix = weights + net.at_hidden[layer], *bias = weights + net.at_bias[layer];
    const int depth = seen_width(net, layer), width = net.widths[layer];
    float* to = net.hidden[layer];
    team.tiles(count, width, [&](int row, int column) {
      product<false, false>(pieces, {below + row * depth, count - row, depth}, {matrix + column * depth, width - column, depth}, depth,
                            [&](int m, int n, float sum) { to[(row + m) * width + column + n] = relu(sum + bias[column + n]); });
    });
    team.meet();
  }
}

// One output of a row, by all lanes of a warp.
DEVICE float output(const Network& net, const float* weights, int row, int number) {
  const int width = net.widths[net.depth - 1], fed = net.fed_width;
  const float *top = net.hidden[net.depth - 1] + row * width, *matrix = weights + net.at_output + number * width;
  float sum = 0.f;
  for (int i = lane(); i < width; i += 32) sum += top[i] * matrix[i];
  if (net.at_skip >= 0) {
    const float *below = net.fed + row * fed, *skip = weights + net.at_skip + number * fed;
    for (int i = lane(); i < fed; i += 32) sum += below[i] * skip[i];
  }
  return warp_sum(sum) + weights[net.at_offset + number];
}

// Values in `errors` become derivatives of the loss; returns the loss. By all lanes of a warp.
DEVICE float judge(const Network& net, float* errors, const float* target) {
  const int outputs = net.outputs_wide;
  float loss = 0.f, top = errors[0], sum = 0.f;
  if (net.loss == LOGISTIC) {
    const float value = errors[0], aim = target[0];
    loss = (value > 0.f ? value : 0.f) - value * aim + log1pf(expf(-fabsf(value)));
    if (value != value) loss = value;
    __syncwarp();
    if (lane() == 0) errors[0] = 1.f / (1.f + expf(-value)) - aim;
  } else if (net.loss == CROSS_ENTROPY) {
    for (int o = 1; o < outputs; ++o) top = errors[o] <= top ? top : errors[o];
    for (int o = 0; o < outputs; ++o) sum += expf(errors[o] - top);
    const float log_sum = logf(sum) + top;
    for (int o = 0; o < outputs; ++o) loss += target[o] * (log_sum - errors[o]);
    __syncwarp();
    for (int o = lane(); o < outputs; o += 32) errors[o] = expf(errors[o] - top) / sum - target[o];
  } else {
    for (int o = 0; o < outputs; ++o) loss += (errors[o] - target[o]) * (errors[o] - target[o]);
    loss = 0.5f * loss / outputs;
    __syncwarp();
    for (int o = lane(); o < outputs; o += 32) errors[o] = (errors[o] - target[o]) / outputs;
  }
  return loss;
}

// Outputs, losses and errors of a step's rows, and the derivative by the last layer's scores; a warp per row.
DEVICE void compare(const Network& net, Team& team, const int* rows, float of_rows, float* row_losses, int count) {
  const int outputs = net.outputs_wide, last = net.depth - 1, width = net.widths[last];
  const float *matrix = net.parameters + net.at_output, *top = net.hidden[last];
  for (int row = team.rank * WARPS + warp(); row < count; row += team.parties * WARPS) {
    float* errors = net.errors + row * outputs;
    for (int o = 0; o < outputs; ++o) {
      const float value = output(net, net.parameters, row, o);
      if (lane() == 0) errors[o] = value;
    }
    __syncwarp();
    const float weight = net.weights[rows[row]], loss = judge(net, errors, net.targets + (i64)rows[row] * outputs);
    if (lane() == 0) row_losses[row] = loss * weight;
    __syncwarp();
    for (int o = lane(); o < outputs; o += 32) errors[o] *= weight * of_rows;
    __syncwarp();
    for (int i = lane(); i < width; i += 32) {
      float sum = 0.f;
      for (int o = 0; o < outputs; ++o) sum += errors[o] * matrix[o * width + i];
      net.back[last][row * width + i] = top[row * width + i] <= 0.f ? 0.f : sum;
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
                           [&](int m, int n, float sum) {
                             const int at = (row + m) * width + column + n;
                             to[at] = own[at] <= 0.f ? 0.f : sum;
                           });
    });
    team.meet();
  }
  if (!net.frequencies) return;
  const int inputs = net.inputs, fed = net.fed_width, depth = net.widths[0], outputs = net.outputs_wide;
  const float* matrix = net.parameters + net.at_hidden[0] + inputs;
  const float* skip = net.at_skip < 0 ? nullptr : net.parameters + net.at_skip + inputs;
  team.tiles(count, inputs, [&](int row, int column) {
    product<false, true>(pieces, {net.back[0] + row * depth, count - row, depth}, {matrix + column, inputs - column, fed}, depth,
                         [&](int m, int n, float sum) {
                           const int at = row + m, j = column + n;
                           for (int o = 0; skip && o < outputs; ++o) sum += net.errors[at * outputs + o] * skip[o * fed + j];
                           net.slopes[at * inputs + j] = sum;
                         });
  });
  team.meet();
}

// Move the parameters from `at` on along the sums over rows of a matrix's columns, each row times its `factor`, if there is one.
DEVICE void move_by_columns(const Network& net, Team& team, float* sums, const Rule& rule, int at, const float* matrix, int columns,
                            const float* factor, int factor_pitch, int count) {
  team.share((columns + 31) / 32, [&](int task) {
    const int column = task * 32 + lane();
    float sum = 0.f;
    if (column < columns)
      for (int row = warp(); row < count; row += WARPS)
        sum += matrix[row * columns + column] * (factor ? factor[row * factor_pitch] : 1.f);
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (warp() == 0 && column < columns) {
      for (int w = 1; w < WARPS; ++w) sum += sums[w * 32 + lane()];
      rule.move(net, at + column, sum);
    }
    __syncthreads();
  });
}

// Move the embedding of one input: sixteen frequencies at a time, by sixteen groups of threads that share the rows.
DEVICE void move_waves(const Network& net, float* sums, const Rule& rule, int input, int count) {
  const int waves = net.frequencies, group = threadIdx.x / 16, first = net.at_mix + input * waves;
  for (int begin = 0; begin < waves; begin += 16) {
    const int k = begin + threadIdx.x % 16, place = k < waves ? k : 0;
    const float frequency = net.parameters[net.at_frequency + input * waves + place];
    const float phase = net.parameters[net.at_phase + input * waves + place];
    float cosines = 0.f, sines = 0.f, tilted = 0.f, slopes = 0.f;
    for (int row = group; row < count; row += THREADS / 16) {
      const float x = net.fed[row * net.fed_width + input], slope = net.slopes[row * net.inputs + input];
      float sine, cosine;
      sincosf(TURN * x * frequency + phase, &sine, &cosine);
      cosines += slope * cosine, sines += slope * sine, tilted += slope * sine * x, slopes += slope;
    }
    const float own[4] = {cosines, sines, tilted, slopes};
    for (int i = 0; i < 4; ++i) sums[i * THREADS + threadIdx.x] = own[i];
    __syncthreads();
    if (threadIdx.x < 16 && k < waves) {
      float total[4] = {};
      for (int g = 0; g < THREADS / 16; ++g)
        for (int i = 0; i < 4; ++i) total[i] += sums[i * THREADS + g * 16 + threadIdx.x];
      const float mix = net.parameters[first + k];
      rule.move(net, first + k, total[0]);
      rule.move(net, net.at_frequency + input * waves + k, -TURN * mix * total[2]);
      rule.move(net, net.at_phase + input * waves + k, -mix * total[1]);
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
    const int width = net.widths[layer], depth = seen_width(net, layer);
    const float *back = net.back[layer], *below = seen(net, layer);
    team.tiles(width, depth, [&](int row, int column) {
      product<true, true>(pieces, {back + row, width - row, width}, {below + column, depth - column, depth}, count,
                          [&](int m, int n, float sum) { rule.move(net, net.at_hidden[layer] + (row + m) * depth + column + n, sum); });
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
