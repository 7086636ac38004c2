#include "kernels/halfspace_nodes.hpp"

#include "kernels/halfspace_lanes.hpp"

namespace fewfire::FEWFIRE_ISA {

void bound_children(const NodeBounds& node, std::size_t dimension, const NodeQuery& query, std::uint32_t& visit,
                    std::uint32_t& inside) {
  Lanes sums[2] = {fill(0.0f), fill(0.0f)};  // two chains, so that one waits for the other less
  std::size_t j = 0;
  for (; j + 2 <= dimension; j += 2) {
    sums[0] = fma(load(node.centres + j * node_children), fill(query.row[j]), sums[0]);
    sums[1] = fma(load(node.centres + (j + 1) * node_children), fill(query.row[j + 1]), sums[1]);
  }
  if (j < dimension) sums[0] = fma(load(node.centres + j * node_children), fill(query.row[j]), sums[0]);
  const Lanes centre = sums[0] + sums[1];
  const Lanes reach = fma(load(node.along), fill(query.along), load(node.across) * fill(query.across));
  const Lanes upper = centre + reach + load(node.high_offset);
  const Lanes lower = fma(reach, fill(-1.0f), centre) + load(node.low_offset);
  inside = greater(lower, fill(query.high));
  visit = greater(upper, fill(query.low));
  if (visit == 0 || query.inverse_norm == 0) return;
  // Cosines are right to (d + 8)·2^-24; four times that under the root keeps the sine an upper bound near angle 0.
  const float error = 4.0f * static_cast<float>(dimension + 8) * 0x1p-24f;
  const Lanes cosine = centre * load(node.inverse_norm) * fill(query.inverse_norm);
  const Lanes square = cosine * cosine;
  const Lanes sine = square_root(maximum(fma(square, fill(-1.0f), fill(1.0f + error)), fill(0.0f)));
  const Lanes within = fma(cosine, load(node.cone_cosine), sine * load(node.cone_sine)) + fill(2 * error);
  const Lanes cone = fma(maximum(within, fill(0.0f)) * load(node.cone_norm), fill(query.norm), load(node.high_offset));
  visit &= greater(cone, fill(query.low)) | greater(cosine + fill(error), load(node.cone_cosine));
}

}  // namespace fewfire::FEWFIRE_ISA
