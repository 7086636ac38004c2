// Convex layers as an index: the layers, a scanned tail of new points, and marks on vertices that are gone. Peeled anew
// when the tail or the marks have grown to a part of the whole.
#include <algorithm>
#include <cmath>

#include "core/halfspace/convex_layers.hpp"
#include "core/halfspace/ids.hpp"
#include "core/halfspace/scan_index.hpp"

namespace fewfire {
namespace {

class LayersIndex final : public HalfspaceIndex {
 public:
  std::size_t size() const override { return places_.size(); }
  bool contains(std::int64_t id) const override { return places_.find(id) >= 0; }

  void insert(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
              std::size_t threads) override {
    for (std::size_t i = 0; i < 2 * count; ++i) largest_ = std::max(largest_, std::fabs(double{rows[i]}));
    tail_.insert(ids, rows, offsets, count, threads);
    for (std::size_t i = 0; i < count; ++i) places_.set(ids[i], in_tail);
    peel_when_due();
  }

  void remove(const std::int64_t* ids, std::size_t count, std::size_t threads) override {
    std::vector<std::int64_t> from_tail;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t at = places_.find(ids[i]);
      if (at == in_tail)
        from_tail.push_back(ids[i]);
      else
        gone_[static_cast<std::size_t>(at)] = 1, ++gone_count_;
      places_.erase(ids[i]);
    }
    tail_.remove(from_tail.data(), from_tail.size(), threads);
    peel_when_due();
  }

  void update(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
              std::size_t threads) override {
    remove(ids, count, threads);
    insert(ids, rows, offsets, count, threads);
  }

  HalfspaceReport query(const HalfspaceQueries& queries, std::size_t threads,
                        HalfspaceCounters& counters) const override {
    Collector collector(1, queries.count);
    std::vector<std::uint32_t> found;
    for (std::size_t q = 0; q < queries.count; ++q) {
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

  void peel_when_due() {
    if (tail_.size() <= std::max<std::size_t>(256, size() / 8) && 2 * gone_count_ <= layers_.size()) return;
    const HalfspacePoints all = points();
    layers_ = ConvexLayers(all);
    tail_ = ScanIndex(2);
    gone_.assign(layers_.size(), 0), gone_count_ = 0;
    for (std::size_t v = 0; v < layers_.size(); ++v) places_.set(layers_.id(v), static_cast<std::int64_t>(v));
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
