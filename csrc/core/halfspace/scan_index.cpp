#include "core/halfspace/scan_index.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/parallel.hpp"

namespace fewfire {

void pack_queries(const float* queries, std::size_t count, std::size_t dimension, float* packed) {
  for (std::size_t first = 0; first < count; first += tile_queries) {
    const std::size_t here = count - first < tile_queries ? count - first : tile_queries;
    for (std::size_t q = 0; q < here; ++q)
      for (std::size_t j = 0; j < dimension; ++j)
        packed[first * dimension + j * here + q] = queries[(first + q) * dimension + j];
  }
}

void scan_range(const PointBlocks& blocks, std::size_t first, std::size_t last, const float* packed,
                const HalfspaceQueries& queries, Collector& collector, std::size_t piece,
                HalfspaceCounters& counters) {
  // A group of queries small enough to stay in the second-level cache while the blocks pass by.
  constexpr std::size_t cached_floats = 64 * 1024;
  const std::size_t tiles = std::max<std::size_t>(cached_floats / (blocks.dimension() * tile_queries), 1);
  const std::size_t group = tiles * tile_queries;
  std::vector<std::uint64_t> hits(std::min(group, queries.count));
  for (std::size_t from = 0; from < queries.count; from += group) {
    const std::size_t here = std::min(group, queries.count - from), between = blocks_between_points(here);
    for (std::size_t block = first; block < last; ++block) {
      if (block % between == 0) interruption_point();
      FEWFIRE_DISPATCH(scan_block, blocks.points(block), blocks.offsets(block), blocks.dimension(),
                       packed + from * blocks.dimension(), queries.thresholds + from, here, hits.data());
      for (std::size_t q = 0; q < here; ++q)
        if (const std::uint64_t above = hits[q] & blocks.live(block))
          Collector::append(collector.row(piece, from + q), blocks.ids(block), above);
    }
    counters.bytes += (last - first) * blocks.block_bytes();
  }
  counters.points += (last - first) * block_points * queries.count;
}

void append_point(HalfspacePoints& points, std::int64_t id, const float* row, std::size_t dimension, float offset) {
  points.ids.push_back(id);
  points.rows.insert(points.rows.end(), row, row + dimension);
  points.offsets.push_back(offset);
}

void copy_points(const PointBlocks& blocks, HalfspacePoints& points) {
  std::vector<float> row(blocks.dimension());
  for (std::size_t slot = 0; slot < blocks.slots(); ++slot) {
    if (!blocks.is_live(slot)) continue;
    float offset;
    blocks.get(slot, row.data(), offset);
    append_point(points, blocks.id(slot), row.data(), row.size(), offset);
  }
}

void ScanIndex::insert(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
                       std::size_t threads) {
  std::vector<std::size_t> slots(count);
  const std::size_t blocks = std::max(blocks_.blocks(), slots_.blocks_with(count));
  blocks_.reserve(blocks);
  slots_.expect(ids, count);
  // From here on nothing fails.
  blocks_.resize(blocks);
  for (std::size_t i = 0; i < count; ++i) slots[i] = slots_.take(ids[i]);
  const std::size_t pieces = count < 4096 ? 1 : 4 * threads;
  parallel_for(pieces, threads, [&](std::size_t piece) {
    for (std::size_t i = piece * count / pieces; i < (piece + 1) * count / pieces; ++i)
      blocks_.write(slots[i], ids[i], rows + i * blocks_.dimension(), offsets[i]);
  });
  for (const std::size_t slot : slots) blocks_.revive(slot);
}

void ScanIndex::remove(const std::int64_t* ids, std::size_t count, std::size_t threads) {
  slots_.expect_release(count);
  for (std::size_t i = 0; i < count; ++i) blocks_.clear(slots_.release(ids[i]));
  if (!slots_.is_sparse()) return;
  try {
    const HalfspacePoints kept = points();
    ScanIndex fresh(blocks_.dimension());
    fresh.insert(kept.ids.data(), kept.rows.data(), kept.offsets.data(), kept.ids.size(), threads);
    *this = std::move(fresh);
  } catch (const std::bad_alloc&) {  // no memory to move them together: a later removal will
  }
}

void ScanIndex::update(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
                       std::size_t threads) {
  const std::size_t pieces = count < 1024 ? 1 : 4 * threads;
  parallel_for(pieces, threads, [&](std::size_t piece) {
    constexpr std::size_t ahead = 4;
    const std::size_t first = piece * count / pieces, last = (piece + 1) * count / pieces;
    const auto slot = [&](std::size_t i) { return static_cast<std::size_t>(slots_.find(ids[i])); };
    for (std::size_t i = first; i < last; ++i) {
      if (i + ahead < last) blocks_.expect_write(slot(i + ahead));
      blocks_.write(slot(i), ids[i], rows + i * blocks_.dimension(), offsets[i]);
    }
  });
}

HalfspaceReport ScanIndex::query(const HalfspaceQueries& queries, std::size_t threads,
                                 HalfspaceCounters& counters) const {
  std::vector<float> packed(queries.count * queries.dimension);
  pack_queries(queries.rows, queries.count, queries.dimension, packed.data());
  const std::size_t blocks = blocks_.blocks();
  // Threads pay when the scan takes longer than starting one, some ten microseconds.
  const bool small = blocks * block_points * queries.dimension * queries.count < (std::size_t{1} << 19);
  const std::size_t pieces = small ? 1 : std::min(blocks, 4 * threads);
  Collector collector(pieces, queries.count);
  std::vector<HalfspaceCounters> spent(pieces);
  interruptible_for(pieces, threads, [&](std::size_t piece) {
    scan_range(blocks_, piece * blocks / pieces, (piece + 1) * blocks / pieces, packed.data(), queries, collector, piece,
               spent[piece]);
  });
  for (const HalfspaceCounters& part : spent) counters.add(part);
  return collector.finish(threads);
}

HalfspacePoints ScanIndex::points() const {
  HalfspacePoints points;
  copy_points(blocks_, points);
  return points;
}

std::unique_ptr<HalfspaceIndex> make_scan_index(std::size_t dimension) {
  return std::make_unique<ScanIndex>(dimension);
}

}  // namespace fewfire
