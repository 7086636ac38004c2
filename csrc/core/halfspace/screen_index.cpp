#include "core/halfspace/screen_index.hpp"

#include <algorithm>
#include <utility>

#include "core/parallel.hpp"

namespace fewfire {

void ScreenIndex::write(std::size_t slot, std::int64_t id, const float* row, float offset) {
  std::copy(row, row + dimension_, rows_.begin() + static_cast<std::ptrdiff_t>(slot * dimension_));
  std::uint8_t* block = codes_.data() + slot / block_points * code_block(dimension_);
  const Quantised quantised = quantise(row, dimension_, [&](std::size_t j, std::int8_t code) {
    block[code_at(slot % block_points, j)] = static_cast<std::uint8_t>(code + 128);
  });
  for (std::size_t j = dimension_; j < 4 * code_quads(dimension_); ++j) block[code_at(slot % block_points, j)] = 128;
  scales_[slot] = quantised.scale;
  offsets_[slot] = offset;
  lost_[slot] = quantised.lost, coded_[slot] = quantised.coded;
  ids_[slot] = id;
}

void ScreenIndex::bound_block(std::size_t block) {
  BlockBounds& bounds = bounds_[block] = {};
  for (std::size_t slot = block * block_points; slot < (block + 1) * block_points; ++slot) {
    bounds.lost = std::max(bounds.lost, lost_[slot]);
    bounds.coded = std::max(bounds.coded, coded_[slot]);
    bounds.offset = std::max(bounds.offset, std::fabs(offsets_[slot]));
  }
}

void ScreenIndex::insert(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
                         std::size_t threads) {
  std::vector<std::size_t> slots(count);
  for (std::size_t i = 0; i < count; ++i) slots[i] = slots_.take(ids[i]);
  if (const std::size_t blocks = slots_.blocks(); blocks > live_.size()) {
    codes_.resize(blocks * code_block(dimension_), 128);
    rows_.resize(blocks * block_points * dimension_);
    for (auto* column : {&scales_, &offsets_}) column->resize(blocks * block_points);
    for (auto* column : {&lost_, &coded_}) column->resize(blocks * block_points);
    ids_.resize(blocks * block_points);
    live_.resize(blocks), bounds_.resize(blocks);
  }
  const std::size_t pieces = count < 1024 ? 1 : 4 * threads;
  parallel_for(pieces, threads, [&](std::size_t piece) {
    for (std::size_t i = piece * count / pieces; i < (piece + 1) * count / pieces; ++i)
      write(slots[i], ids[i], rows + i * dimension_, offsets[i]);
  });
  std::size_t last = live_.size();
  for (const std::size_t slot : slots) {
    live_[slot / block_points] |= std::uint64_t{1} << slot % block_points;
    if (slot / block_points != std::exchange(last, slot / block_points)) bound_block(slot / block_points);
  }
}

void ScreenIndex::remove(const std::int64_t* ids, std::size_t count, std::size_t threads) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t slot = slots_.release(ids[i]);
    live_[slot / block_points] &= ~(std::uint64_t{1} << slot % block_points);
  }
  if (!slots_.is_sparse()) return;
  const HalfspacePoints kept = points();
  ScreenIndex fresh(dimension_);
  fresh.insert(kept.ids.data(), kept.rows.data(), kept.offsets.data(), kept.ids.size(), threads);
  *this = std::move(fresh);
}

void ScreenIndex::expect_write(std::size_t slot) const {
  const std::uint8_t* block = codes_.data() + slot / block_points * code_block(dimension_);
  for (std::size_t j = 0; j < dimension_; j += 4) __builtin_prefetch(block + code_at(slot % block_points, j), 1);
  for (std::size_t j = 0; j < dimension_; j += 16) __builtin_prefetch(rows_.data() + slot * dimension_ + j, 1);
}

void ScreenIndex::update(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
                         std::size_t threads) {
  std::vector<BlockBounds> before(count);
  std::vector<std::size_t> slots(count);
  const std::size_t pieces = count < 256 ? 1 : 4 * threads;
  parallel_for(pieces, threads, [&](std::size_t piece) {
    constexpr std::size_t ahead = 4;
    const std::size_t first = piece * count / pieces, last = (piece + 1) * count / pieces;
    for (std::size_t i = first; i < last; ++i) slots[i] = static_cast<std::size_t>(slots_.find(ids[i]));
    for (std::size_t i = first; i < last; ++i) {
      if (i + ahead < last) expect_write(slots[i + ahead]);
      before[i] = {lost_[slots[i]], coded_[slots[i]], std::fabs(offsets_[slots[i]])};
      write(slots[i], ids[i], rows + i * dimension_, offsets[i]);
    }
  });
  // A block's bounds are looked for again only where the point that set one of them has changed.
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t slot = slots[i];
    BlockBounds& bounds = bounds_[slot / block_points];
    const auto set = [](float value, float bound) { return bound > 0 && value >= bound; };
    if (set(before[i].lost, bounds.lost) || set(before[i].coded, bounds.coded) || set(before[i].offset, bounds.offset))
      bound_block(slot / block_points);
    else
      bounds = {std::max(bounds.lost, lost_[slot]), std::max(bounds.coded, coded_[slot]),
                std::max(bounds.offset, std::fabs(offsets_[slot]))};
  }
}

HalfspacePoints ScreenIndex::points() const {
  HalfspacePoints points;
  for (std::size_t slot = 0; slot < ids_.size(); ++slot) {
    if (!(live_[slot / block_points] >> slot % block_points & 1)) continue;
    const float* row = rows_.data() + slot * dimension_;
    points.ids.push_back(ids_[slot]);
    points.rows.insert(points.rows.end(), row, row + dimension_);
    points.offsets.push_back(offsets_[slot]);
  }
  return points;
}

std::size_t ScreenIndex::memory() const {
  const std::size_t floats =
      rows_.capacity() + scales_.capacity() + offsets_.capacity() + lost_.capacity() + coded_.capacity();
  return codes_.capacity() + floats * sizeof(float) + bounds_.capacity() * sizeof(BlockBounds) +
         (ids_.capacity() + live_.capacity()) * 8 + slots_.memory();
}

std::unique_ptr<HalfspaceIndex> make_screen_index(std::size_t dimension) {
  return std::make_unique<ScreenIndex>(dimension);
}

}  // namespace fewfire
