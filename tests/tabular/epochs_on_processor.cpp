// The kernel of the tabular networks on the made-up GPU of processor_gpu.hpp, as a function that Python calls.
#include "processor_gpu.hpp"

#include "epochs.cu"

static const Network* networks;
static const Share* shares;
static u32* arrived;
static int count, first, epochs;

extern "C" int network_bytes() { return sizeof(Network); }

extern "C" void train_on_processor(int blocks, const Network* a, const Share* b, u32* c, int d, int e, int f) {
  networks = a, shares = b, arrived = c, count = d, first = e, epochs = f;
  gpu::launch(blocks, [] { train_epochs(networks, shares, arrived, count, first, epochs); });
}
