// The fast-query side of half-space reporting in the plane (sublinear, Corollary 6.2, part 2): convex layers.
//
// Peel the hull off again and again. A half-plane that meets a layer meets every layer around it, so a query walks from the
// outermost layer inwards: on each it finds the vertex farthest along a, reports to both sides while vertices are above,
// and stops at the first layer with none. The farthest vertex is found by the angle of a among the normals of the edges:
// a binary search on the first layer, and from there one step a layer through merged lists in which every second entry
// comes from the layer below (fractional cascading). A query costs O(log n + reported), peeling O(n · layers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/halfspace/index.hpp"

namespace fewfire {

class ConvexLayers {
 public:
  explicit ConvexLayers(const HalfspacePoints& points);

  std::size_t size() const { return ids_.size(); }
  std::size_t layers() const { return layers_.size(); }
  std::int64_t id(std::size_t vertex) const { return ids_[vertex]; }
  const float* row(std::size_t vertex) const { return rows_.data() + 2 * vertex; }
  std::size_t memory() const;

  // Appends to `found` every vertex whose real score ⟨p, a⟩ may be above `low` (all that are, hardly any others).
  void search(const float* direction, double low, std::vector<std::uint32_t>& found, HalfspaceCounters& counters) const;

 private:
  struct Layer {
    std::uint32_t first, count;    // vertices in the order of their outgoing edges' normals
    std::uint32_t merged, merged_count;
  };
  struct Entry {
    double angle;
    std::uint32_t edge, below;  // first place in the layer's own list, in the merged list below, not before `angle`
  };

  static constexpr std::uint32_t none = 0xffffffff;

  // Notes in `place` which vertex each point of the hull has become.
  void add_layer(const std::vector<std::uint32_t>& hull, const HalfspacePoints& points,
                 std::vector<std::uint32_t>& place);
  void merge_lists();

  std::vector<float> rows_;
  std::vector<double> angles_;  // of the edge that starts at each vertex
  std::vector<std::int64_t> ids_;
  std::vector<std::uint32_t> same_;  // another vertex with the same coordinates
  std::vector<Layer> layers_;
  std::vector<Entry> entries_;
};

}  // namespace fewfire
