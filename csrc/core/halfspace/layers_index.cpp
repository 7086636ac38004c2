// The fast-query side of half-space reporting in the plane (sublinear, Corollary 6.2, part 2): convex layers.
//
// Peel the hull off again and again. A half-plane that meets a layer meets every layer around it, so a query walks from the
// outermost layer inwards: on each it finds the vertex farthest along a, reports to both sides while vertices are above,
// and stops at the first layer with none. The farthest vertex is found by the angle of a among the normals of the edges:
// a binary search on the first layer, and from there one step per layer through merged lists in which every second entry
// comes from the layer below (fractional cascading). A query costs O(log n + reported), peeling O(n · layers).
//
// The index keeps the layers, a scanned tail of new points, and marks on vertices that are gone. Peeled anew
// when the tail or the marks have grown to a part of the whole; that can be interrupted.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "base/interrupt.hpp"
#include "core/halfspace/index.hpp"
#include "core/halfspace/scan_index.hpp"
#include "core/halfspace/slots.hpp"

namespace fewfire {
namespace {

// Above 0 when o → a → b turns left. Rounding can leave a vertex inside the hull by a part in 10^15 of its size, which
// the margin of the queries covers many times over.
double turn(const float* o, const float* a, const float* b) {
  return (double{a[0]} - o[0]) * (double{b[1]} - o[1]) - (double{a[1]} - o[1]) * (double{b[0]} - o[0]);
}

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

ConvexLayers::ConvexLayers(const HalfspacePoints& points) {
  std::vector<std::uint32_t> left(points.ids.size());
  std::iota(left.begin(), left.end(), 0u);
  const auto row = [&](std::uint32_t i) { return points.rows.data() + 2 * std::size_t{i}; };
  std::sort(left.begin(), left.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(row(a)[0], row(a)[1]) < std::pair(row(b)[0], row(b)[1]);
  });
  // Equal points would be a layer each: one of them is peeled and the others hang on to it.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> repeated;  // a point, and the equal one before it
  std::size_t kept = 0;
  for (const std::uint32_t i : left) {
    const bool repeats = kept > 0 && row(i)[0] == row(left[kept - 1])[0] && row(i)[1] == row(left[kept - 1])[1];
    if (repeats)
      repeated.emplace_back(i, left[kept - 1]);
    else
      left[kept++] = i;
  }
  left.resize(kept);
  std::vector<std::uint32_t> hull, place(points.ids.size());
  std::vector<char> used(points.ids.size(), 0);
  while (!left.empty()) {
    interruption_point();
    hull.clear();
    const auto add = [&](std::uint32_t i, std::size_t floor) {
      while (hull.size() >= floor + 2 && turn(row(hull[hull.size() - 2]), row(hull.back()), row(i)) <= 0) hull.pop_back();
      hull.push_back(i);
    };
    for (const std::uint32_t i : left) add(i, 0);
    const std::size_t floor = hull.size() - 1;
    for (auto i = left.rbegin() + 1; i < left.rend(); ++i) add(*i, floor);
    if (hull.size() > 1) hull.pop_back();  // the first one, reached again
    std::erase_if(hull, [&](std::uint32_t i) { return std::exchange(used[i], 1) != 0; });  // two ends of a segment
    add_layer(hull, points, place);
    std::erase_if(left, [&](std::uint32_t i) { return used[i] != 0; });
  }
  merge_lists();
  same_.assign(points.ids.size(), none);
  for (const auto& [point, equal] : repeated) {
    const auto vertex = static_cast<std::uint32_t>(ids_.size());
    rows_.insert(rows_.end(), {row(point)[0], row(point)[1]});
    ids_.push_back(points.ids[point]);
    same_[vertex] = std::exchange(same_[place[equal]], vertex);
  }
}

void ConvexLayers::add_layer(const std::vector<std::uint32_t>& hull, const HalfspacePoints& points,
                             std::vector<std::uint32_t>& place) {
  const std::size_t count = hull.size();
  std::vector<double> angles(count);
  for (std::size_t v = 0; v < count; ++v) {
    const float* from = points.rows.data() + 2 * std::size_t{hull[v]};
    const float* to = points.rows.data() + 2 * std::size_t{hull[(v + 1) % count]};
    angles[v] = std::atan2(double{from[0]} - to[0], double{to[1]} - from[1]);  // outward normal of a left-turning walk
  }
  const auto start = static_cast<std::size_t>(std::min_element(angles.begin(), angles.end()) - angles.begin());
  layers_.push_back({static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint32_t>(count), 0, 0});
  double last = -4;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t v = (start + k) % count;
    rows_.insert(rows_.end(), {points.rows[2 * std::size_t{hull[v]}], points.rows[2 * std::size_t{hull[v]} + 1]});
    place[hull[v]] = static_cast<std::uint32_t>(ids_.size());
    ids_.push_back(points.ids[hull[v]]);
    angles_.push_back(last = std::max(last, angles[v]));  // in order, also where rounding has two edges the wrong way
  }
}

void ConvexLayers::merge_lists() {
  // From the innermost layer out; lists are written back to front and turned round at the end.
  std::vector<Entry> below, merged;
  std::vector<std::vector<Entry>> lists(layers_.size());
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const double* own = angles_.data() + layer.first;
    merged.clear();
    std::uint32_t edge = 0, next = 0;
    const auto size = static_cast<std::uint32_t>(below.size());
    while (edge < layer.count || next < size) {
      // `next` runs over every second entry of the list below.
      const bool take_own = next >= size || (edge < layer.count && own[edge] <= below[next].angle);
      merged.push_back({take_own ? own[edge] : below[next].angle, edge, next});
      if (take_own)
        ++edge;
      else
        next += 2;
    }
    for (Entry& entry : merged)  // `next` is the first sampled entry not before; one before it may not be before either
      while (entry.below > 0 && below[std::min(entry.below, size) - 1].angle >= entry.angle)
        entry.below = std::min(entry.below, size) - 1;
    lists[l] = merged;
    std::swap(below, merged);
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    layers_[l].merged = static_cast<std::uint32_t>(entries_.size());
    layers_[l].merged_count = static_cast<std::uint32_t>(lists[l].size());
    entries_.insert(entries_.end(), lists[l].begin(), lists[l].end());
  }
}

void ConvexLayers::search(const float* direction, double low, std::vector<std::uint32_t>& found,
                          HalfspaceCounters& counters) const {
  const auto score = [&](std::size_t v) { return double{rows_[2 * v]} * direction[0] + double{rows_[2 * v + 1]} * direction[1]; };
  const double angle = std::atan2(double{direction[1]}, double{direction[0]});
  std::uint32_t at = 0;  // first entry of the layer's merged list whose angle is not below
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const Entry* list = entries_.data() + layer.merged;
    if (l == 0)
      at = static_cast<std::uint32_t>(
          std::lower_bound(list, list + layer.merged_count, angle, [](const Entry& e, double a) { return e.angle < a; }) -
          list);
    else
      while (at > 0 && list[at - 1].angle >= angle) --at;  // at most two steps
    const bool end = at == layer.merged_count;
    const std::uint32_t edge = end ? layer.count : list[at].edge;
    const std::uint32_t top = edge == layer.count ? 0 : edge;
    ++counters.nodes;
    std::uint32_t up = 0, down = 0;  // vertices above, from the top onwards and backwards
    while (up < layer.count && score(layer.first + (top + up) % layer.count) > low) ++up;
    while (up + down < layer.count && up > 0 && score(layer.first + (top + layer.count - 1 - down) % layer.count) > low)
      ++down;
    counters.points += up + down + 2;
    if (up == 0) return;
    for (std::uint32_t k = 0; k < up + down; ++k)
      for (std::uint32_t v = layer.first + (top + layer.count - down + k) % layer.count; v != none; v = same_[v])
        found.push_back(v);
    if (l + 1 < layers_.size()) at = std::min(end ? layers_[l + 1].merged_count : list[at].below, layers_[l + 1].merged_count);
  }
}

std::size_t ConvexLayers::memory() const {
  return (rows_.capacity() + same_.capacity()) * 4 + (angles_.capacity() + ids_.capacity()) * 8 + layers_.capacity() * sizeof(Layer) +
         entries_.capacity() * sizeof(Entry);
}

class LayersIndex final : public HalfspaceIndex {
 public:
  std::size_t size() const override { return places_.size(); }
  bool contains(std::int64_t id) const override { return places_.find(id) >= 0; }

  void insert(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
              std::size_t threads) override {
    if (!peeled({}, {ids, rows, count})) {
      places_.expect(ids, count);
      tail_.insert(ids, rows, offsets, count, threads);
      for (std::size_t i = 0; i < count; ++i) places_.set(ids[i], in_tail);
    }
    note_sizes(rows, count);
  }

  void remove(const std::int64_t* ids, std::size_t count, std::size_t threads) override {
    if (peeled({ids, nullptr, count}, {})) return;
    std::vector<std::int64_t> from_tail;
    for (std::size_t i = 0; i < count; ++i)
      if (places_.find(ids[i]) == in_tail) from_tail.push_back(ids[i]);
    tail_.remove(from_tail.data(), from_tail.size(), threads);
    for (std::size_t i = 0; i < count; ++i) {
      mark_gone(places_.find(ids[i]));
      places_.erase(ids[i]);
    }
  }

  void update(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
              std::size_t threads) override {
    if (!peeled({ids, rows, count}, {ids, rows, count})) {
      HalfspacePoints to_tail;
      for (std::size_t i = 0; i < count; ++i)
        if (places_.find(ids[i]) != in_tail) append_point(to_tail, ids[i], rows + 2 * i, 2, 0.0f);
      tail_.insert(to_tail.ids.data(), to_tail.rows.data(), to_tail.offsets.data(), to_tail.ids.size(), threads);
      tail_.update(ids, rows, offsets, count, threads);
      for (const std::int64_t id : to_tail.ids) {
        mark_gone(places_.find(id));
        places_.set(id, in_tail);
      }
    }
    note_sizes(rows, count);
  }

  HalfspaceReport query(const HalfspaceQueries& queries, std::size_t threads,
                        HalfspaceCounters& counters) const override {
    Collector collector(1, queries.count);
    std::vector<std::uint32_t> found;
    for (std::size_t q = 0; q < queries.count; ++q) {
      interruption_point();
      const float *a = queries.rows + 2 * q, zero = 0;
      const double size = (std::fabs(double{a[0]}) + std::fabs(double{a[1]})) * largest_;
      // The float32 score is off by at most four roundings of `size`; where it may overflow, every vertex is scored.
      const double margin = 8 * 0x1p-24 * size + 16 * 0x1p-149;
      const double low = size < 1e38 ? queries.thresholds[q] - margin : -1e300;
      found.clear();
      layers_.search(a, low, found, counters);
      for (const std::uint32_t vertex : found) {
        if (gone_[vertex]) continue;
        const float* row = layers_.row(vertex);
        float score;
        FEWFIRE_DISPATCH(score_pairs, &row, &zero, &a, 2, 1, &score);
        if (score > queries.thresholds[q]) collector.row(0, q).push_back(layers_.id(vertex));
      }
    }
    std::vector<float> packed(queries.count * 2);
    pack_queries(queries.rows, queries.count, 2, packed.data());
    scan_range(tail_.blocks(), 0, tail_.blocks().blocks(), packed.data(), queries, collector, 0, counters);
    return collector.finish(threads);
  }

  const float* point(std::int64_t id, float* scratch, float& offset) const override {
    const std::int64_t at = places_.find(id);
    if (at == in_tail) return tail_.point(id, scratch, offset);
    offset = 0.0f;
    return layers_.row(static_cast<std::size_t>(at));
  }

  HalfspacePoints points() const override {
    HalfspacePoints points;
    copy_points(tail_.blocks(), points);
    for (std::size_t v = 0; v < layers_.size(); ++v) {
      if (gone_[v]) continue;
      points.ids.push_back(layers_.id(v));
      points.rows.insert(points.rows.end(), layers_.row(v), layers_.row(v) + 2);
      points.offsets.push_back(0.0f);
    }
    return points;
  }

  std::size_t memory() const override { return places_.memory() + tail_.memory() + layers_.memory() + gone_.capacity(); }

 private:
  static constexpr std::int64_t in_tail = std::int64_t{1} << 62;

  struct Change {
    const std::int64_t* ids = nullptr;
    const float* rows = nullptr;
    std::size_t count = 0;
  };

  void note_sizes(const float* rows, std::size_t count) {
    for (std::size_t i = 0; i < 2 * count; ++i) largest_ = std::max(largest_, std::fabs(double{rows[i]}));
  }
  void mark_gone(std::int64_t place) {
    if (place != in_tail) gone_[static_cast<std::size_t>(place)] = 1, ++gone_count_;
  }

  // Makes the change by peeling all points anew, if that is due; false if it is not, or if there is no memory for it.
  // All or nothing, also when interrupted.
  bool peeled(const Change& out, const Change& in) {
    std::size_t from_tail = 0;
    for (std::size_t i = 0; i < out.count; ++i) from_tail += places_.find(out.ids[i]) == in_tail;
    const std::size_t tail = tail_.size() - from_tail + in.count, gone = gone_count_ + (out.count - from_tail);
    const std::size_t whole = size() - out.count + in.count;
    if (tail <= std::max<std::size_t>(256, whole / 8) && 2 * gone <= layers_.size()) return false;
    try {
      std::vector<std::int64_t> left_out(out.ids, out.ids + out.count);
      std::sort(left_out.begin(), left_out.end());
      const HalfspacePoints now = points();
      HalfspacePoints all;
      for (std::size_t i = 0; i < now.ids.size(); ++i)
        if (!std::binary_search(left_out.begin(), left_out.end(), now.ids[i]))
          append_point(all, now.ids[i], &now.rows[2 * i], 2, 0.0f);
      for (std::size_t i = 0; i < in.count; ++i) append_point(all, in.ids[i], in.rows + 2 * i, 2, 0.0f);
      ConvexLayers layers(all);
      std::vector<char> none_gone(layers.size(), 0);
      ScanIndex tail_of_none(2);
      places_.expect(in.ids, in.count);
      // From here on nothing fails.
      if (in.count == 0)  // else those that go out come in again, or none go out
        for (std::size_t i = 0; i < out.count; ++i) places_.erase(out.ids[i]);
      layers_ = std::move(layers), tail_ = std::move(tail_of_none), gone_ = std::move(none_gone), gone_count_ = 0;
      for (std::size_t v = 0; v < layers_.size(); ++v) places_.set(layers_.id(v), static_cast<std::int64_t>(v));
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  IdTable places_;  // in_tail or the vertex
  ScanIndex tail_{2};
  ConvexLayers layers_{HalfspacePoints{}};
  std::vector<char> gone_;
  std::size_t gone_count_ = 0;
  double largest_ = 0;
};

}  // namespace

std::unique_ptr<HalfspaceIndex> make_layers_index() { return std::make_unique<LayersIndex>(); }

}  // namespace fewfire
