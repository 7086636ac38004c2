// Whole trainings with the weights in registers: ±1 inputs, ReLU, batches of 32, hinge, absolute or logistic loss.
//
// A run has PARTS blocks of WARPS warps of TILES tiles of sixteen neurons. Compiled once per layout; _layouts.py says
// which.
#include "training.cuh"

struct Resident : Neurons<Resident> {
  DEVICE Resident(Shared& block, Exchange& group) : Neurons<Resident>(block, group) {}
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    train_resident(const Job* jobs, Outcome* outcomes, int count, Mailbox* boxes, Control* control) {
  train_runs<Resident>(jobs, outcomes, count, boxes, control);
}

// For the host: bytes of shared memory per block, of a mailbox, and of what it fills in.
extern "C" __device__ const int sizes[4] = {sizeof(Shared), sizeof(Mailbox), sizeof(Job), sizeof(Outcome)};
