// Half-space reporting with ball trees that grow without being rebuilt each time.
//
// New points go to a tail that is scanned; a full tail becomes a tree, together with the trees that are at most twice as
// large as what is being built, so every point takes part in O(log n) buildings (the logarithmic method). A removed point
// leaves a hole, and a tree of more holes than points is built anew. An update stays in its block when the ball there
// can hold it and is a removal and an insertion otherwise.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "core/halfspace/ball_tree.hpp"
#include "core/halfspace/scan_index.hpp"
#include "core/halfspace/slots.hpp"

namespace fewfire {
namespace {

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
  const float* point(std::int64_t id, float* scratch, float& offset) const override {
    const std::int64_t at = places_.find(id);
    if (at == in_tail) return tail_.point(id, scratch, offset);
    trees_[static_cast<std::size_t>(at >> tree_shift)]->blocks().get(slot_at(at), scratch, offset);
    return scratch;
  }
  HalfspacePoints points() const override;
  std::size_t memory() const override;

 private:
  static constexpr std::size_t tail_limit = 2048;
  static constexpr std::int64_t in_tail = std::int64_t{1} << 62;
  static constexpr unsigned tree_shift = 40;

  static constexpr std::size_t no_tree = static_cast<std::size_t>(-1);

  struct Sizes {
    double norm = 0, offset = 0;
  };

  BallTree& tree_at(std::int64_t place) { return *trees_[static_cast<std::size_t>(place >> tree_shift)]; }
  static std::size_t slot_at(std::int64_t place) {
    return static_cast<std::size_t>(place) & ((std::size_t{1} << tree_shift) - 1);
  }
  Sizes sizes_with(const float* rows, const float* offsets, std::size_t count) const;
  void place(const HalfspacePoints& fresh, std::size_t from, std::size_t threads);
  void rebuild_sparse(std::size_t threads);
  void search_one(const HalfspaceQueries& queries, std::size_t query, std::vector<std::int64_t>& row,
                  HalfspaceCounters& counters) const;

  std::size_t dimension_;
  IdTable places_;                                // in_tail, or tree << tree_shift | slot
  std::vector<std::unique_ptr<BallTree>> trees_;  // empty places are used again
  ScanIndex tail_;
  Sizes largest_;  // of all points there ever were
};

TreeIndex::Sizes TreeIndex::sizes_with(const float* rows, const float* offsets, std::size_t count) const {
  Sizes sizes = largest_;
  for (std::size_t i = 0; i < count; ++i) {
    double square = 0;
    for (std::size_t j = 0; j < dimension_; ++j)
      square += static_cast<double>(rows[i * dimension_ + j]) * rows[i * dimension_ + j];
    sizes.norm = std::max(sizes.norm, std::sqrt(square));
    sizes.offset = std::max<double>(sizes.offset, std::fabs(offsets[i]));
  }
  return sizes;
}

// Gives points their place and drops the tree they come from, if there is one; `places_` may contain them already. All
// or nothing.
void TreeIndex::place(const HalfspacePoints& fresh, std::size_t from, std::size_t threads) {
  const auto drop_source = [&] {
    if (from != no_tree) trees_[from].reset();
  };
  if (tail_.size() + fresh.ids.size() <= tail_limit) {
    places_.expect(fresh.ids.data(), fresh.ids.size());
    tail_.insert(fresh.ids.data(), fresh.rows.data(), fresh.offsets.data(), fresh.ids.size(), threads);
    for (const std::int64_t id : fresh.ids) places_.set(id, in_tail);
    return drop_source();
  }
  HalfspacePoints all = fresh;
  copy_points(tail_.blocks(), all);
  std::vector<std::size_t> by_size;
  for (std::size_t t = 0; t < trees_.size(); ++t)
    if (trees_[t] && t != from) by_size.push_back(t);
  std::sort(by_size.begin(), by_size.end(),
            [&](std::size_t a, std::size_t b) { return trees_[a]->live() < trees_[b]->live(); });
  std::vector<std::size_t> merged;
  for (const std::size_t t : by_size) {
    if (trees_[t]->live() > 2 * all.ids.size()) break;
    copy_points(trees_[t]->blocks(), all);
    merged.push_back(t);
  }
  auto tree = std::make_unique<BallTree>(dimension_, all, threads);
  ScanIndex empty(dimension_);
  reserve_doubling(trees_, trees_.size() + 1);
  places_.expect(fresh.ids.data(), fresh.ids.size());
  // From here on nothing fails.
  drop_source();
  for (const std::size_t t : merged) trees_[t].reset();
  tail_ = std::move(empty);
  const auto free = static_cast<std::size_t>(std::find(trees_.begin(), trees_.end(), nullptr) - trees_.begin());
  if (free == trees_.size()) trees_.emplace_back();
  trees_[free] = std::move(tree);
  const PointBlocks& blocks = trees_[free]->blocks();
  for (std::size_t slot = 0; slot < blocks.slots(); ++slot)
    if (blocks.is_live(slot))
      places_.set(blocks.id(slot), static_cast<std::int64_t>(free << tree_shift | slot));
}

// Builds a tree of more holes than points anew. A change that got this far is made: without the memory for this, a
// later one will do it.
void TreeIndex::rebuild_sparse(std::size_t threads) {
  const Uninterrupted whole;
  for (std::size_t t = 0; t < trees_.size(); ++t) {
    if (!trees_[t] || 2 * trees_[t]->live() >= trees_[t]->built()) continue;
    if (trees_[t]->live() == 0) {
      trees_[t].reset();
      continue;
    }
    try {
      HalfspacePoints kept;
      copy_points(trees_[t]->blocks(), kept);
      place(kept, t, threads);
    } catch (const std::bad_alloc&) {
    }
    return;  // one tree at a time: a change rarely empties several
  }
}

void TreeIndex::insert(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
                       std::size_t threads) {
  place({{ids, ids + count}, {rows, rows + count * dimension_}, {offsets, offsets + count}}, no_tree, threads);
  largest_ = sizes_with(rows, offsets, count);
}

void TreeIndex::remove(const std::int64_t* ids, std::size_t count, std::size_t threads) {
  std::vector<std::int64_t> from_tail;
  for (std::size_t i = 0; i < count; ++i)
    if (places_.find(ids[i]) == in_tail) from_tail.push_back(ids[i]);
  tail_.remove(from_tail.data(), from_tail.size(), threads);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t at = places_.find(ids[i]);
    if (at != in_tail) tree_at(at).clear(slot_at(at));
    places_.erase(ids[i]);
  }
  rebuild_sparse(threads);
}

void TreeIndex::update(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
                       std::size_t threads) {
  std::vector<float> before(count * dimension_), offsets_before(count);
  std::vector<double> gaps(dimension_);
  HalfspacePoints moved;
  // A point as it was, where it stands: nothing there can fail.
  const auto write_back = [&](std::size_t i) {
    const std::int64_t at = places_.find(ids[i]);
    if (at == in_tail)
      tail_.update(ids + i, &before[i * dimension_], &offsets_before[i], 1, 1);
    else
      tree_at(at).restore(slot_at(at), &before[i * dimension_], offsets_before[i]);
  };
  std::size_t changed = 0;
  try {
    for (; changed < count; ++changed) {
      const std::size_t i = changed;
      const float* row = rows + i * dimension_;
      const std::int64_t at = places_.find(ids[i]);
      if (at == in_tail) {
        tail_.get(ids[i], &before[i * dimension_], offsets_before[i]);
        tail_.update(ids + i, row, offsets + i, 1, 1);
        continue;
      }
      BallTree& tree = tree_at(at);
      tree.blocks().get(slot_at(at), &before[i * dimension_], offsets_before[i]);
      if (tree.move(slot_at(at), row, offsets[i], gaps.data())) continue;
      append_point(moved, ids[i], row, dimension_, offsets[i]);
      tree.clear(slot_at(at));
    }
    if (!moved.ids.empty()) place(moved, no_tree, threads);
  } catch (...) {
    while (changed-- > 0) write_back(changed);
    throw;
  }
  largest_ = sizes_with(rows, offsets, count);
  rebuild_sparse(threads);
}

HalfspacePoints TreeIndex::points() const {
  HalfspacePoints points;
  copy_points(tail_.blocks(), points);
  for (const auto& tree : trees_)
    if (tree) copy_points(tree->blocks(), points);
  return points;
}

std::size_t TreeIndex::memory() const {
  std::size_t total = places_.memory() + tail_.memory();
  for (const auto& tree : trees_)
    if (tree) total += tree->memory();
  return total;
}

// Queries of the trees, parallel over queries; see kernels/halfspace.hpp for the bounds.

constexpr float infinity = std::numeric_limits<float>::infinity();

NodeQuery prepare(const float* row, float threshold, std::size_t dimension, double norm) {
  const float least = 8.0f * static_cast<float>(dimension + 8) * 0x1p-149f;  // what sums lose below the normal range
  const bool cones = norm > least_cone_norm && norm < 1e30;
  return {row, 0.0f, 0.0f, std::nextafter(static_cast<float>(norm), infinity), cones ? static_cast<float>(1 / norm) : 0.0f,
          std::nextafter(threshold - least, -infinity), std::nextafter(threshold + least, infinity)};
}

void TreeIndex::search_one(const HalfspaceQueries& queries, std::size_t query, std::vector<std::int64_t>& row,
                           HalfspaceCounters& counters) const {
  const float* direction = queries.rows + query * dimension_;
  double square = 0;
  for (std::size_t j = 0; j < dimension_; ++j) square += static_cast<double>(direction[j]) * direction[j];
  const double norm = std::sqrt(square);
  const NodeQuery prepared = prepare(direction, queries.thresholds[query], dimension_, norm);
  // Beyond this, partial sums may overflow and the bounds are void: look at every block.
  const bool bounded = 4 * norm * largest_.norm + largest_.offset < 1e38;
  std::vector<std::uint32_t> stack, leaves;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
  for (const auto& tree : trees_) {
    if (!tree) continue;
    const PointBlocks& blocks = tree->blocks();
    leaves.clear(), ranges.clear();
    if (bounded)
      tree->search(prepared, stack, leaves, ranges, counters);
    else
      for (std::size_t block = 0; block < blocks.blocks(); ++block) leaves.push_back(static_cast<std::uint32_t>(block));
    const std::size_t lines = std::min<std::size_t>(blocks.block_bytes() / 64, 32);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (i + 2 < leaves.size())
        for (std::size_t line = 0; line < lines; ++line) __builtin_prefetch(blocks.points(leaves[i + 2]) + 16 * line);
      std::uint64_t hits;
      FEWFIRE_DISPATCH(scan_block, blocks.points(leaves[i]), blocks.offsets(leaves[i]), dimension_, direction,
                       queries.thresholds + query, 1, &hits);
      Collector::append(row, blocks.ids(leaves[i]), hits & blocks.live(leaves[i]));
    }
    for (const auto& [first, last] : ranges)
      for (std::uint32_t block = first; block < last; ++block)
        Collector::append(row, blocks.ids(block), blocks.live(block));
    counters.points += leaves.size() * block_points;
    counters.bytes += leaves.size() * blocks.block_bytes();
  }
}

HalfspaceReport TreeIndex::query(const HalfspaceQueries& queries, std::size_t threads,
                                 HalfspaceCounters& counters) const {
  // Many small pieces: queries differ a lot in what they cost.
  const std::size_t pieces = std::min<std::size_t>(queries.count, 16 * threads);
  Collector collector(1, queries.count);
  std::vector<HalfspaceCounters> spent(pieces);
  interruptible_for(pieces, size() < 4 * tail_limit ? 1 : threads, [&](std::size_t piece) {
    const std::size_t first = piece * queries.count / pieces, last = (piece + 1) * queries.count / pieces;
    for (std::size_t q = first; q < last; ++q) {
      interruption_point();
      search_one(queries, q, collector.row(0, q), spent[piece]);
    }
  });
  for (const HalfspaceCounters& part : spent) counters.add(part);
  std::vector<float> packed(queries.count * dimension_);
  pack_queries(queries.rows, queries.count, dimension_, packed.data());
  scan_range(tail_.blocks(), 0, tail_.blocks().blocks(), packed.data(), queries, collector, 0, counters);
  return collector.finish(threads);
}

}  // namespace

std::unique_ptr<HalfspaceIndex> make_tree_index(std::size_t dimension) {
  return std::make_unique<TreeIndex>(dimension);
}

}  // namespace fewfire
