// A network in training as the host describes it, the blocks of threads that share it, and what moves its weights.
#pragma once
#include "products.cuh"

constexpr int MOST_LAYERS = 3;
enum { LOGISTIC, CROSS_ENTROPY, SQUARED };
enum { OF_ROWS, SHRINK, RULE };  // kinds of factors of a step; those from RULE on are the update rule's

// All fields are of 8 bytes, in the order of FIELDS in _epoch_kernel.py. Numbers of parameters are places in the vector.
struct Network {
  float *parameters, *first_state, *second_state, *average;
  const float *table, *targets, *weights, *gains;     // targets and weights by the network's own numbers of rows
  const int* held_rows;                               // numbers in the table
  const float* held_gains;
  const int* rows;                                    // (epochs, block_steps, networks, block_batch), this network's first
  const float *factors, *newest;                      // (epochs, block_steps, kinds, networks) and (epochs, networks)
  float *losses, *outputs, *kept;                     // (epochs, networks), (…, held_most, outputs), (…, pitch)
  float *fed, *hidden[MOST_LAYERS], *back[MOST_LAYERS], *errors, *slopes, *row_losses;
  i64 start;                                          // of its rows in the table
  i64 inputs, fed_width, depth, widths[MOST_LAYERS], outputs_wide, frequencies, loss, adam;
  i64 decayed, size, pitch;
  i64 at_hidden[MOST_LAYERS], at_output, at_skip, at_mix, at_bias[MOST_LAYERS], at_offset, at_frequency, at_phase, at_shift;
  i64 part, batch, steps;                             // rows it trains on, of a step, and steps of an epoch
  i64 block_steps, block_batch, networks, kinds;      // what the block of epochs is laid out for
  i64 held, held_most, at_once;                       // validation rows, their room, and how many at a time
};

struct Share {
  int network, rank, parties, stride;  // a block alone with its network goes on with the one `stride` further
};

struct Shared {
  alignas(16) Pieces pieces;
  Network network;
};

// The blocks of a network, and where in their list of tasks this one stands.
struct Team {
  u32* arrived;
  u32 expected;
  int rank, parties, dealt;

  // Wait for all; what they wrote before is seen after.
  DEVICE void meet() {
    dealt = 0;
    __syncthreads();
    if (parties == 1) return;
    expected += parties;
    if (threadIdx.x == 0) {
      count_up(arrived);
      while (counted(arrived) < expected) {}
    }
    __syncthreads();
  }

  // act(number) for this block's share of so many tasks; later tasks go to blocks that have had fewer.
  template <class Act>
  DEVICE void share(int tasks, const Act& act) {
    int first = (rank - dealt) % parties;
    if (first < 0) first += parties;
    for (int task = first; task < tasks; task += parties) act(task);
    dealt = (dealt + tasks) % parties;
  }

  template <class Act>
  DEVICE void tiles(int rows, int columns, const Act& act) {
    const int across = (columns + TILE - 1) / TILE;
    share((rows + TILE - 1) / TILE * across, [&](int task) { act(task / across * TILE, task % across * TILE); });
  }
};

// The steps of AdamW and SGD (_dense/optimisers.py), after weight decay.
struct Rule {
  float shrink, of[4];
  bool adam;

  // A parameter and its state.
  struct Moved {
    float value, first, second;
  };

  DEVICE Rule(const Network& net, const float* factors) : adam(net.adam) {
    shrink = factors[SHRINK * net.networks];
#pragma unroll
    for (int i = 0; i < 4; ++i) of[i] = adam || i < 3 ? factors[(RULE + i) * net.networks] : 0.f;
  }

  DEVICE Moved look(const Network& net, int at) const {
    return {net.parameters[at], net.first_state[at], adam ? net.second_state[at] : 0.f};
  }

  DEVICE void move(const Network& net, int at, float slope, Moved now) const {
    now.value *= at < net.decayed ? shrink : 1.f;
    if (adam) {
      now.first += of[0] * (slope - now.first), now.second += of[1] * (slope * slope - now.second);
      now.value -= of[2] * (now.first / (sqrtf(now.second) + of[3]));
      net.second_state[at] = now.second;
    } else {
      now.first = now.first * of[0] - slope * of[1];
      now.value += now.first * of[2];
    }
    net.first_state[at] = now.first, net.parameters[at] = now.value;
  }

  DEVICE void move(const Network& net, int at, float slope) const { move(net, at, slope, look(net, at)); }
};
