#include "core/halfspace/index.hpp"

namespace fewfire {

void HalfspaceCounters::add(const HalfspaceCounters& other) {
  queries += other.queries, reported += other.reported, points += other.points;
  rechecks += other.rechecks, nodes += other.nodes, bytes += other.bytes;
}

std::unique_ptr<HalfspaceIndex> make_halfspace_index(const std::string& method, std::size_t dimension) {
  if (method == "scan") return make_scan_index(dimension);
  if (method == "screen") return make_screen_index(dimension);
  if (method == "tree") return make_tree_index(dimension);
  if (method == "layers" && dimension == 2) return make_layers_index();
  return nullptr;
}

}  // namespace fewfire
