// The screened scan: int8 codes of the points are read instead of the points (a quarter of the bytes, four times the
// products an instruction with VNNI), and only pairs that the error bound leaves open get the exact score.
#pragma once

#include "core/aligned.hpp"
#include "core/halfspace/collector.hpp"
#include "core/halfspace/index.hpp"
#include "core/halfspace/quantise.hpp"
#include "core/halfspace/slots.hpp"
#include "kernels/halfspace_screen.hpp"

namespace fewfire {

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
                        HalfspaceCounters& counters) const override;
  HalfspacePoints points() const override;
  std::size_t memory() const override;

 private:
  struct Prepared;  // a batch of queries, coded and packed
  // Largest over the points of a block.
  struct BlockBounds {
    float lost = 0, coded = 0, offset = 0;
  };

  void write(std::size_t slot, std::int64_t id, const float* row, float offset);
  void expect_write(std::size_t slot) const;
  void bound_block(std::size_t block);
  void screen_range(std::size_t first, std::size_t last, const Prepared& prepared, Collector& collector,
                    std::size_t piece, HalfspaceCounters& counters) const;

  std::size_t dimension_;
  SlotTable slots_;
  AlignedVector<std::uint8_t> codes_;
  AlignedVector<float> rows_, scales_, offsets_;
  std::vector<float> lost_, coded_;
  std::vector<BlockBounds> bounds_;
  std::vector<std::int64_t> ids_;
  std::vector<std::uint64_t> live_;
};

}  // namespace fewfire
