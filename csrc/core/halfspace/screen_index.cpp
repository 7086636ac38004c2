// The screened scan: int8 codes of the points are read instead of the points (a quarter of the bytes, four times the
// products per instruction with VNNI), and only pairs that the error bound leaves open get the exact score.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "base/aligned.hpp"
#include "base/parallel.hpp"
#include "core/halfspace/collector.hpp"
#include "core/halfspace/index.hpp"
#include "core/halfspace/open_pairs.hpp"
#include "core/halfspace/slots.hpp"
#include "kernels/halfspace.hpp"

namespace fewfire {
namespace {

// Rows of numbers as integer codes times a scale, with norms that bound what was lost, rounded upwards.

struct Quantised {
  float scale = 0;  // row ≈ scale·codes
  float coded = 0;  // ‖scale·codes‖
  float lost = 0;   // ‖row − scale·codes‖
  float norm = 0;   // ‖row‖
};

// Calls put(j, code) for every coordinate, with |code| ≤ most. Rows outside [1e-25, 1e30] are coded as zero (all of it is
// lost), so that no scale or sum of the screen leaves the range in which float32 rounds relatively.
template <class Put>
Quantised quantise(const float* row, std::size_t dimension, int most, const Put& put) {
  float largest = 0;
  for (std::size_t j = 0; j < dimension; ++j) largest = std::max(largest, std::fabs(row[j]));
  Quantised out;
  if (largest > 1e-25f && largest < 1e30f) out.scale = largest / static_cast<float>(most);
  const double inverse = out.scale > 0 ? 1.0 / out.scale : 0.0;
  double coded = 0, lost = 0, norm = 0;
  for (std::size_t j = 0; j < dimension; ++j) {
    const int code = std::clamp(static_cast<int>(std::lrint(row[j] * inverse)), -most, most);
    put(j, code);
    const double value = static_cast<double>(out.scale) * code, error = row[j] - value;
    coded += value * value, lost += error * error, norm += static_cast<double>(row[j]) * row[j];
  }
  // Double sums are right to 2^-53 a term; one part in a million covers them. The step up covers the rounding to float,
  // which below the normal range may be a large part of a number.
  const auto up = [](double square) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const double root = std::sqrt(square) * (1 + 1e-6);
    if (root == 0) return 0.0f;
    return root < 3e38 ? std::nextafter(static_cast<float>(root), infinity) : infinity;
  };
  out.coded = up(coded), out.lost = up(lost), out.norm = up(norm);
  return out;
}

// A batch of queries, coded and packed.
struct CodedQueries {
  HalfspaceQueries queries;
  std::vector<std::int32_t> packed, bias;
  std::vector<float> steps, norms, lost;
  std::size_t parts;  // of a query's codes

  explicit CodedQueries(const HalfspaceQueries& batch)
      : queries(batch), steps(batch.count), norms(batch.count), lost(batch.count),
        parts(batch.count <= fine_queries ? 2 : 1) {
    const std::size_t quads = code_quads(batch.dimension);
    packed.assign(batch.count * parts * quads, 0);
    bias.resize(batch.count * parts);
    std::vector<std::int8_t> codes(parts * 4 * quads, 0);
    for (std::size_t q = 0; q < batch.count; ++q) {
      const int most = parts > 1 ? 127 * high_unit + 127 : 127;
      std::int64_t sums[2] = {0, 0};
      const auto put = [&](std::size_t j, int code) {
        const int high = parts > 1 ? (code + (code < 0 ? -127 : 127)) / high_unit : code;
        codes[j] = static_cast<std::int8_t>(high), sums[0] += high;
        if (parts == 1) return;
        const int low = code - high * high_unit;
        codes[4 * quads + j] = static_cast<std::int8_t>(low), sums[1] += low;
      };
      const Quantised row = quantise(batch.rows + q * batch.dimension, batch.dimension, most, put);
      steps[q] = row.scale, norms[q] = row.norm, lost[q] = row.lost;
      const std::size_t first = q / tile_queries * tile_queries;
      const std::size_t here = std::min(tile_queries, batch.count - first) * parts;
      for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t word = (q - first) * parts + part;
        bias[first * parts + word] = static_cast<std::int32_t>(-128 * sums[part]);  // beyond most_coded it is not used
        for (std::size_t k = 0; k < quads; ++k)
          std::memcpy(&packed[first * parts * quads + k * here + word], &codes[4 * (part * quads + k)], 4);
      }
    }
  }
};

class ScreenIndex final : public HalfspaceIndex {
 public:
  explicit ScreenIndex(std::size_t dimension) : dimension_(dimension) {}

  std::size_t size() const override { return slots_.size(); }
  bool contains(std::int64_t id) const override { return slots_.find(id) >= 0; }
  void insert(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
              std::size_t threads) override;
  void remove(const std::int64_t* ids, std::size_t count, std::size_t threads) override;
  void update(const std::int64_t* ids, const float* rows, const float* offsets, std::size_t count,
              std::size_t threads) override;
  HalfspaceReport query(const HalfspaceQueries& queries, std::size_t threads,
                        HalfspaceCounters& counters) const override {
    return answer(queries, threads, false, counters);
  }
  HalfspaceReport query_scores(const HalfspaceQueries& queries, std::size_t threads,
                               HalfspaceCounters& counters) const override {
    return answer(queries, threads, true, counters);
  }
  const float* point(std::int64_t id, float*, float& offset) const override {
    const auto slot = static_cast<std::size_t>(slots_.find(id));
    offset = offsets_[slot];
    return rows_.data() + slot * dimension_;
  }
  HalfspacePoints points() const override;
  std::size_t memory() const override;

 private:
  // Largest over the points of a block.
  struct BlockBounds {
    float lost = 0, coded = 0, offset = 0;
  };

  void write(std::size_t slot, std::int64_t id, const float* row, float offset);
  void expect_write(std::size_t slot) const;
  void bound_block(std::size_t block);
  HalfspaceReport answer(const HalfspaceQueries& queries, std::size_t threads, bool scored,
                         HalfspaceCounters& counters) const;
  void screen_range(std::size_t first, std::size_t last, const CodedQueries& prepared, Collector& collector,
                    std::size_t piece, bool scored, HalfspaceCounters& counters) const;

  std::size_t dimension_;
  SlotTable slots_;
  AlignedVector<std::uint8_t> codes_;
  AlignedVector<float> rows_, scales_, offsets_;
  std::vector<float> lost_, coded_;
  std::vector<BlockBounds> bounds_;
  std::vector<std::int64_t> ids_;
  std::vector<std::uint64_t> live_;
};

void ScreenIndex::write(std::size_t slot, std::int64_t id, const float* row, float offset) {
  std::copy(row, row + dimension_, rows_.begin() + static_cast<std::ptrdiff_t>(slot * dimension_));
  std::uint8_t* block = codes_.data() + slot / block_points * code_block(dimension_);
  const Quantised quantised = quantise(row, dimension_, 127, [&](std::size_t j, int code) {
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
  const std::size_t blocks = std::max(live_.size(), slots_.blocks_with(count)), points = blocks * block_points;
  const auto each_column = [&](const auto& change) {
    change(codes_, blocks * code_block(dimension_), std::uint8_t{128}), change(rows_, points * dimension_, 0.0f);
    change(scales_, points, 0.0f), change(offsets_, points, 0.0f);
    change(lost_, points, 0.0f), change(coded_, points, 0.0f), change(ids_, points, std::int64_t{0});
    change(live_, blocks, std::uint64_t{0}), change(bounds_, blocks, BlockBounds{});
  };
  each_column([](auto& column, std::size_t size, auto) { reserve_doubling(column, size); });
  slots_.expect(ids, count);
  // From here on nothing fails.
  each_column([](auto& column, std::size_t size, auto empty) { column.resize(size, empty); });
  for (std::size_t i = 0; i < count; ++i) slots[i] = slots_.take(ids[i]);
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
  slots_.expect_release(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t slot = slots_.release(ids[i]);
    live_[slot / block_points] &= ~(std::uint64_t{1} << slot % block_points);
  }
  if (!slots_.is_sparse()) return;
  try {
    const HalfspacePoints kept = points();
    ScreenIndex fresh(dimension_);
    fresh.insert(kept.ids.data(), kept.rows.data(), kept.offsets.data(), kept.ids.size(), threads);
    *this = std::move(fresh);
  } catch (const std::bad_alloc&) {  // no memory to move them together: a later removal will
  }
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

// Queries of the screened scan; see kernels/halfspace.hpp for the bound.

void ScreenIndex::screen_range(std::size_t first, std::size_t last, const CodedQueries& prepared, Collector& collector,
                               std::size_t piece, bool scored, HalfspaceCounters& counters) const {
  const HalfspaceQueries& queries = prepared.queries;
  const std::size_t quads = code_quads(dimension_);
  const ScreenQueries coded{prepared.parts, prepared.packed.data(), prepared.bias.data(), prepared.steps.data()};
  // Both scores round at most d + 8 times, each by at most 2^-24 of (‖p̂‖ + ‖p − p̂‖)·(‖a‖ + ‖a − â‖) + |b|, which
  // bounds every partial sum; a tenth more covers products of such errors, the rounding of this bound itself and the two
  // parts of a query, together at most 1 + √d/128 times as long as it, in the few roundings before they are added.
  const float rounding = 1.1f * static_cast<float>(dimension_ + 8) * 0x1p-24f;
  const float least = 8.0f * static_cast<float>(dimension_ + 8) * 0x1p-149f;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  alignas(64) static constexpr float no_offsets[block_points] = {};
  const std::size_t bytes = code_block(dimension_), between = blocks_between_points(queries.count);
  OpenPairs open;
  const auto settle = [&] { scored ? open.settle_scored(dimension_) : open.settle(dimension_); };
  for (std::size_t block = first; block < last; ++block) {
    if (block % between == 0) interruption_point();
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
      if (dimension_ <= most_coded)
        FEWFIRE_DISPATCH(screen_block, codes, quads, coded, low, high, from, here, maybe, sure);
      else
        std::fill_n(maybe, here, ~std::uint64_t{0}), std::fill_n(sure, here, std::uint64_t{0});
      for (std::size_t q = 0; q < here; ++q) {
        const std::uint64_t live = live_[block];
        std::uint64_t left = low[q] == -infinity ? live : maybe[q] & live;
        if (left == 0) continue;
        std::vector<std::int64_t>& row = collector.row(piece, from + q);
        counters.rechecks += static_cast<std::uint64_t>(std::popcount(left & ~sure[q]));
        if (!scored) {
          Collector::append_slots(row, block * block_points, left & sure[q]);
          left &= ~sure[q];
        }
        for (; left; left &= left - 1) {
          const std::size_t i = static_cast<std::size_t>(std::countr_zero(left)), slot = block * block_points + i;
          const std::size_t k = open.count++;
          open.points[k] = rows_.data() + slot * dimension_, open.offsets[k] = offsets_[slot];
          open.queries[k] = queries.rows + (from + q) * dimension_, open.thresholds[k] = queries.thresholds[from + q];
          open.slots[k] = static_cast<std::int64_t>(slot), open.rows[k] = &row;
          if (scored) open.row_scores[k] = &collector.scores(piece, from + q);
          // Infinite where sums may overflow: then nothing but the score decides.
          const float threshold = std::fabs(open.thresholds[k]), size = sizes[q] + threshold;
          open.margins[k] = low[q] == -infinity ? infinity : 2.5f * rounding * size + 0x1p-21f * threshold + least;
          for (std::size_t j = 0; j < std::min<std::size_t>(dimension_, 256); j += 16)
            __builtin_prefetch(open.points[k] + j);
          if (open.count == OpenPairs::capacity) settle();
        }
      }
    }
  }
  settle();
  collector.name_slots(piece, ids_.data());
  counters.points += (last - first) * block_points * queries.count;
  counters.bytes += (last - first) * (code_block(dimension_) + 2 * block_points * sizeof(float));
}

HalfspaceReport ScreenIndex::answer(const HalfspaceQueries& queries, std::size_t threads, bool scored,
                                    HalfspaceCounters& counters) const {
  const CodedQueries prepared(queries);
  const std::size_t blocks = live_.size();
  const bool small = blocks * block_points * dimension_ * queries.count < (std::size_t{1} << 21);
  // Small pieces, so that no thread waits long for another's last one; of many queries each would keep many rows.
  const std::size_t pieces = small ? 1 : std::min(blocks, (queries.count <= fine_queries ? 32 : 4) * threads);
  Collector collector(pieces, queries.count, scored);
  std::vector<HalfspaceCounters> spent(pieces);
  interruptible_for(pieces, threads, [&](std::size_t piece) {
    screen_range(piece * blocks / pieces, (piece + 1) * blocks / pieces, prepared, collector, piece, scored,
                 spent[piece]);
  });
  for (const HalfspaceCounters& part : spent) counters.add(part);
  counters.bytes += counters.rechecks * dimension_ * sizeof(float);
  return collector.finish(threads);
}

}  // namespace

std::unique_ptr<HalfspaceIndex> make_screen_index(std::size_t dimension) {
  return std::make_unique<ScreenIndex>(dimension);
}

}  // namespace fewfire
