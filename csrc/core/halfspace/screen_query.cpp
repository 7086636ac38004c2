// Queries of the screened scan; see kernels/halfspace_screen.hpp for the bound.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/halfspace/screen_index.hpp"
#include "core/parallel.hpp"

namespace fewfire {

struct ScreenIndex::Prepared {
  HalfspaceQueries queries;
  std::vector<std::int32_t> packed, bias;
  std::vector<float> steps, norms, lost;

  explicit Prepared(const HalfspaceQueries& batch) : queries(batch), bias(batch.count) {
    const std::size_t quads = code_quads(batch.dimension);
    packed.assign(batch.count * quads, 0);
    steps.resize(batch.count), norms.resize(batch.count), lost.resize(batch.count);
    std::vector<std::int8_t> codes(4 * quads, 0);
    for (std::size_t q = 0; q < batch.count; ++q) {
      const Quantised row = quantise(batch.rows + q * batch.dimension, batch.dimension,
                                     [&](std::size_t j, std::int8_t code) { codes[j] = code; });
      bias[q] = -128 * row.sum, steps[q] = row.scale, norms[q] = row.norm, lost[q] = row.lost;
      const std::size_t first = q / tile_queries * tile_queries, here = std::min(tile_queries, batch.count - first);
      for (std::size_t k = 0; k < quads; ++k)
        std::memcpy(&packed[first * quads + k * here + (q - first)], &codes[4 * k], 4);
    }
  }
};

namespace {

// Pairs that the codes left open, settled some at a time: by a float32 product in any order where the rounding of that
// and of the score, `margin`, cannot change the answer, and by the score itself otherwise.
struct OpenPairs {
  static constexpr std::size_t capacity = 256;
  const float* points[capacity];
  const float* queries[capacity];
  float offsets[capacity], thresholds[capacity], margins[capacity], scores[capacity];
  std::int64_t slots[capacity];
  std::vector<std::int64_t>* rows[capacity];
  std::size_t count = 0;

  void settle(std::size_t dimension) {
    std::size_t left = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const float above = FEWFIRE_DISPATCH(quick_product, points[k], queries[k], dimension) + offsets[k] - thresholds[k];
      if (above > margins[k]) rows[k]->push_back(slots[k]);
      if (above > margins[k] || above < -margins[k]) continue;
      points[left] = points[k], queries[left] = queries[k], offsets[left] = offsets[k];
      thresholds[left] = thresholds[k], slots[left] = slots[k], rows[left] = rows[k];
      ++left;
    }
    FEWFIRE_DISPATCH(score_pairs, points, offsets, queries, dimension, left, scores);
    for (std::size_t k = 0; k < left; ++k)
      if (scores[k] > thresholds[k]) rows[k]->push_back(slots[k]);
    count = 0;
  }
};

}  // namespace

void ScreenIndex::screen_range(std::size_t first, std::size_t last, const Prepared& prepared, Collector& collector,
                               std::size_t piece, HalfspaceCounters& counters) const {
  const HalfspaceQueries& queries = prepared.queries;
  const std::size_t quads = code_quads(dimension_);
  const ScreenQueries coded{prepared.packed.data(), prepared.bias.data(), prepared.steps.data()};
  // Both scores round at most d + 8 times, each by at most 2^-24 of (‖p̂‖ + ‖p − p̂‖)·(‖a‖ + ‖a − â‖) + |b|, which
  // bounds every partial sum; a tenth more covers products of such errors and the rounding of this bound itself.
  const float rounding = 1.1f * static_cast<float>(dimension_ + 8) * 0x1p-24f;
  const float least = 8.0f * static_cast<float>(dimension_ + 8) * 0x1p-149f;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  alignas(64) static constexpr float no_offsets[block_points] = {};
  const std::size_t bytes = code_block(dimension_);
  OpenPairs open;
  for (std::size_t block = first; block < last; ++block) {
    const BlockBounds& bounds = bounds_[block];
    const ScreenBlock codes{codes_.data() + block * bytes, scales_.data() + block * block_points,
                            bounds.offset == 0 ? no_offsets : offsets_.data() + block * block_points};
    for (std::size_t from = 0; from < queries.count; from += tile_queries) {
      const std::size_t here = std::min(tile_queries, queries.count - from);
      float low[tile_queries], high[tile_queries], sizes[tile_queries];
      std::uint64_t maybe[tile_queries], sure[tile_queries];
      for (std::size_t q = 0; q < here; ++q) {
        const float norm = prepared.norms[from + q], lost = prepared.lost[from + q];
        const float threshold = queries.thresholds[from + q];
        const float size = sizes[q] = (bounds.coded + bounds.lost) * (norm + lost) + bounds.offset;
        const float error = (bounds.lost * norm + bounds.coded * lost) * (1 + 0x1p-20f) + rounding * size +
                            std::fabs(threshold) * 0x1p-22f + least;
        // Else partial sums, of floats or of codes, may overflow: decide exactly.
        const bool bounded = size < 1e37f && error < infinity && dimension_ <= most_coded;
        low[q] = bounded ? threshold - error : -infinity;
        high[q] = bounded ? threshold + error : infinity;
      }
      FEWFIRE_DISPATCH(screen_block, codes, quads, coded, low, high, from, here, maybe, sure);
      for (std::size_t q = 0; q < here; ++q) {
        const std::uint64_t live = live_[block];
        std::uint64_t left = low[q] == -infinity ? live : maybe[q] & live;
        if (left == 0) continue;
        std::vector<std::int64_t>& row = collector.row(piece, from + q);
        Collector::append_slots(row, block * block_points, left & sure[q]);
        left &= ~sure[q];
        counters.rechecks += static_cast<std::uint64_t>(std::popcount(left));
        for (; left; left &= left - 1) {
          const std::size_t i = static_cast<std::size_t>(std::countr_zero(left)), slot = block * block_points + i;
          const std::size_t k = open.count++;
          open.points[k] = rows_.data() + slot * dimension_, open.offsets[k] = offsets_[slot];
          open.queries[k] = queries.rows + (from + q) * dimension_, open.thresholds[k] = queries.thresholds[from + q];
          open.slots[k] = static_cast<std::int64_t>(slot), open.rows[k] = &row;
          // Infinite where sums may overflow: then nothing but the score decides.
          const float threshold = std::fabs(open.thresholds[k]), size = sizes[q] + threshold;
          open.margins[k] = low[q] == -infinity ? infinity : 2.5f * rounding * size + 0x1p-21f * threshold + least;
          for (std::size_t j = 0; j < std::min<std::size_t>(dimension_, 128); j += 16)
            __builtin_prefetch(open.points[k] + j);
          if (open.count == OpenPairs::capacity) open.settle(dimension_);
        }
      }
    }
  }
  open.settle(dimension_);
  collector.name_slots(piece, ids_.data());
  counters.points += (last - first) * block_points * queries.count;
  counters.bytes += (last - first) * (code_block(dimension_) + 2 * block_points * sizeof(float));
}

HalfspaceReport ScreenIndex::query(const HalfspaceQueries& queries, std::size_t threads,
                                   HalfspaceCounters& counters) const {
  const Prepared prepared(queries);
  const std::size_t blocks = live_.size();
  const bool small = blocks * block_points * dimension_ * queries.count < (std::size_t{1} << 21);
  const std::size_t pieces = small ? 1 : std::min(blocks, 4 * threads);
  Collector collector(pieces, queries.count);
  std::vector<HalfspaceCounters> spent(pieces);
  parallel_for(pieces, threads, [&](std::size_t piece) {
    screen_range(piece * blocks / pieces, (piece + 1) * blocks / pieces, prepared, collector, piece, spent[piece]);
  });
  for (const HalfspaceCounters& part : spent) counters.add(part);
  counters.bytes += counters.rechecks * dimension_ * sizeof(float);
  return collector.finish(threads);
}

}  // namespace fewfire
