// Half-space reporting with ball trees that grow without being rebuilt each time.
//
// New points go to a tail that is scanned; a full tail becomes a tree, together with the trees that are at most twice as
// large as what is being built, so every point takes part in O(log n) buildings (the logarithmic method). A removed point
// leaves a hole, and a tree of more holes than points is built anew. An update stays in its block when the ball there
// can hold it and is a removal and an insertion otherwise.
#pragma once

#include <memory>
#include <vector>

#include "core/halfspace/ball_tree.hpp"
#include "core/halfspace/ids.hpp"
#include "core/halfspace/scan_index.hpp"

namespace fewfire {

class TreeIndex final : public HalfspaceIndex {
 public:
  explicit TreeIndex(std::size_t dimension) : dimension_(dimension), tail_(dimension) {}

  std::size_t size() const override { return places_.size(); }
  bool contains(std::int64_t id) const override { return places_.find(id) >= 0; }
  void insert(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
              std::size_t threads) override;
  void remove(const std::int64_t* ids, std::size_t count, std::size_t threads) override;
  void update(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
              std::size_t threads) override;
  HalfspaceReport query(const HalfspaceQueries& queries, std::size_t threads,
                        HalfspaceCounters& counters) const override;
  HalfspacePoints points() const override;
  std::size_t memory() const override;

 private:
  static constexpr std::size_t tail_limit = 2048;
  static constexpr std::int64_t in_tail = std::int64_t{1} << 62;
  static constexpr unsigned tree_shift = 40;

  void note_sizes(const float* rows, const float* offsets, std::size_t count);
  void place(const HalfspacePoints& fresh, std::size_t threads);
  void rebuild_sparse(std::size_t threads);
  void search_one(const HalfspaceQueries& queries, std::size_t query, std::vector<std::int64_t>& row,
                  HalfspaceCounters& counters) const;

  std::size_t dimension_;
  IdTable places_;                                // in_tail, or tree << tree_shift | slot
  std::vector<std::unique_ptr<BallTree>> trees_;  // empty places are used again
  ScanIndex tail_;
  double largest_norm_ = 0, largest_offset_ = 0;  // of all points there ever were
};

}  // namespace fewfire
