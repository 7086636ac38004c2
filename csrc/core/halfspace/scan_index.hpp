// The exact scan: every block against every query, parallel over blocks even for one query. The oracle of the other
// methods, and the fastest one when a query reports much or the dimension is small and the points few.
#pragma once

#include "core/halfspace/blocks.hpp"
#include "core/halfspace/collector.hpp"
#include "core/halfspace/index.hpp"
#include "core/halfspace/slots.hpp"

namespace fewfire {

// Places query q, coordinate j of a batch at the tile's start + j·(queries of the tile) + (q − first query).
void pack_queries(const float* queries, std::size_t count, std::size_t dimension, float* packed);
// Scans blocks [first, last) for all queries and appends what is above to row(query); counts what was read.
void scan_range(const PointBlocks& blocks, std::size_t first, std::size_t last, const float* packed,
                const HalfspaceQueries& queries, Collector& collector, std::size_t piece, HalfspaceCounters& counters);

class ScanIndex final : public HalfspaceIndex {
 public:
  explicit ScanIndex(std::size_t dimension) : blocks_(dimension) {}

  std::size_t size() const override { return slots_.size(); }
  bool contains(std::int64_t id) const override { return slots_.find(id) >= 0; }
  void insert(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
              std::size_t threads) override;
  void remove(const std::int64_t* ids, std::size_t count, std::size_t threads) override;
  void update(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
              std::size_t threads) override;
  HalfspaceReport query(const HalfspaceQueries& queries, std::size_t threads,
                        HalfspaceCounters& counters) const override;
  const float* point(std::int64_t id, float* scratch, float& offset) const override {
    get(id, scratch, offset);
    return scratch;
  }
  HalfspacePoints points() const override;
  std::size_t memory() const override { return blocks_.memory() + slots_.memory(); }

  const PointBlocks& blocks() const { return blocks_; }
  // The point of an id that is here.
  void get(std::int64_t id, float* row, float& offset) const {
    blocks_.get(static_cast<std::size_t>(slots_.find(id)), row, offset);
  }

 private:
  PointBlocks blocks_;
  SlotTable slots_;
};

// Appends one point, and every live point of the blocks, to `points`.
void append_point(HalfspacePoints& points, std::int64_t id, const float* row, std::size_t dimension, float offset);
void copy_points(const PointBlocks& blocks, HalfspacePoints& points);

}  // namespace fewfire
