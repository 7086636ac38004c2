#include "core/halfspace/tree_index.hpp"

#include <algorithm>
#include <cmath>

namespace fewfire {

void TreeIndex::note_sizes(const float* rows, const float* offsets, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    double square = 0;
    for (std::size_t j = 0; j < dimension_; ++j)
      square += static_cast<double>(rows[i * dimension_ + j]) * rows[i * dimension_ + j];
    largest_norm_ = std::max(largest_norm_, std::sqrt(square));
    largest_offset_ = std::max<double>(largest_offset_, std::fabs(offsets[i]));
  }
}

// Gives new points their place; `places_` may know them already, from where they were.
void TreeIndex::place(const HalfspacePoints& fresh, std::size_t threads) {
  if (tail_.size() + fresh.ids.size() <= tail_limit) {
    tail_.insert(fresh.ids.data(), fresh.rows.data(), fresh.offsets.data(), fresh.ids.size(), threads);
    for (const std::int64_t id : fresh.ids) places_.set(id, in_tail);
    return;
  }
  HalfspacePoints all = fresh;
  copy_points(tail_.blocks(), all);
  std::vector<std::size_t> by_size;
  for (std::size_t t = 0; t < trees_.size(); ++t)
    if (trees_[t]) by_size.push_back(t);
  std::sort(by_size.begin(), by_size.end(),
            [&](std::size_t a, std::size_t b) { return trees_[a]->live() < trees_[b]->live(); });
  std::vector<std::size_t> merged;
  for (const std::size_t t : by_size) {
    if (trees_[t]->live() > 2 * all.ids.size()) break;
    copy_points(trees_[t]->blocks(), all);
    merged.push_back(t);
  }
  auto tree = std::make_unique<BallTree>(dimension_, all, threads);
  for (const std::size_t t : merged) trees_[t].reset();
  tail_ = ScanIndex(dimension_);
  const auto free = static_cast<std::size_t>(std::find(trees_.begin(), trees_.end(), nullptr) - trees_.begin());
  if (free == trees_.size()) trees_.emplace_back();
  trees_[free] = std::move(tree);
  const PointBlocks& blocks = trees_[free]->blocks();
  for (std::size_t slot = 0; slot < blocks.slots(); ++slot)
    if (blocks.is_live(slot))
      places_.set(blocks.id(slot), static_cast<std::int64_t>(free << tree_shift | slot));
}

void TreeIndex::rebuild_sparse(std::size_t threads) {
  for (auto& tree : trees_) {
    if (!tree || 2 * tree->live() >= tree->built()) continue;
    HalfspacePoints kept;
    copy_points(tree->blocks(), kept);
    tree.reset();
    if (!kept.ids.empty()) return place(kept, threads);  // one tree at a time: a change rarely empties several
  }
}

void TreeIndex::insert(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
                       std::size_t threads) {
  note_sizes(rows, offsets, count);
  place({{ids, ids + count}, {rows, rows + count * dimension_}, {offsets, offsets + count}}, threads);
}

void TreeIndex::remove(const std::int64_t* ids, std::size_t count, std::size_t threads) {
  std::vector<std::int64_t> from_tail;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t at = places_.find(ids[i]);
    if (at == in_tail)
      from_tail.push_back(ids[i]);
    else
      trees_[static_cast<std::size_t>(at >> tree_shift)]->clear(static_cast<std::size_t>(at) & ((1ull << tree_shift) - 1));
    places_.erase(ids[i]);
  }
  tail_.remove(from_tail.data(), from_tail.size(), threads);
  rebuild_sparse(threads);
}

void TreeIndex::update(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
                       std::size_t threads) {
  note_sizes(rows, offsets, count);
  HalfspacePoints moved;
  for (std::size_t i = 0; i < count; ++i) {
    const float* row = rows + i * dimension_;
    const std::int64_t at = places_.find(ids[i]);
    if (at == in_tail) {
      tail_.update(ids + i, row, offsets + i, 1, 1);
      continue;
    }
    BallTree& tree = *trees_[static_cast<std::size_t>(at >> tree_shift)];
    const std::size_t slot = static_cast<std::size_t>(at) & ((1ull << tree_shift) - 1);
    if (tree.move(slot, row, offsets[i])) continue;
    tree.clear(slot);
    moved.ids.push_back(ids[i]);
    moved.rows.insert(moved.rows.end(), row, row + dimension_);
    moved.offsets.push_back(offsets[i]);
  }
  if (!moved.ids.empty()) place(moved, threads);
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

std::unique_ptr<HalfspaceIndex> make_tree_index(std::size_t dimension) {
  return std::make_unique<TreeIndex>(dimension);
}

}  // namespace fewfire
