// Points in blocks of 64, coordinate by coordinate (kernels/halfspace.hpp), with their ids; a slot is a place in a
// block. Slots that hold no point are not live and are never reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned.hpp"
#include "core/halfspace/slots.hpp"
#include "kernels/halfspace.hpp"

namespace fewfire {

class PointBlocks {
 public:
  explicit PointBlocks(std::size_t dimension) : dimension_(dimension) {}

  std::size_t dimension() const { return dimension_; }
  std::size_t blocks() const { return live_.size(); }
  std::size_t slots() const { return blocks() * block_points; }
  const float* points(std::size_t block) const { return points_.data() + block * dimension_ * block_points; }
  const float* offsets(std::size_t block) const { return offsets_.data() + block * block_points; }
  const std::int64_t* ids(std::size_t block) const { return ids_.data() + block * block_points; }
  std::uint64_t live(std::size_t block) const { return live_[block]; }
  std::size_t block_bytes() const { return (dimension_ + 1) * block_points * sizeof(float); }

  // Room for so many blocks, after which `resize` to them does not throw.
  void reserve(std::size_t blocks) {
    reserve_doubling(points_, blocks * dimension_ * block_points);
    reserve_doubling(offsets_, blocks * block_points);
    reserve_doubling(ids_, blocks * block_points);
    reserve_doubling(live_, blocks);
  }
  void resize(std::size_t blocks) {
    points_.resize(blocks * dimension_ * block_points);
    offsets_.resize(blocks * block_points);
    ids_.resize(blocks * block_points);
    live_.resize(blocks);
  }
  // Different slots may be written by different threads; only `revive` and `clear` touch what slots share.
  void write(std::size_t slot, std::int64_t id, const float* row, float offset) {
    float* at = points_.data() + slot / block_points * dimension_ * block_points + slot % block_points;
    for (std::size_t j = 0; j < dimension_; ++j) at[j * block_points] = row[j];
    offsets_[slot] = offset;
    ids_[slot] = id;
  }
  // Asks for the cache lines that `write` to this slot will touch, one per coordinate.
  void expect_write(std::size_t slot) const {
    const float* at = points(slot / block_points) + slot % block_points;
    for (std::size_t j = 0; j < dimension_; ++j) __builtin_prefetch(at + j * block_points, 1);
  }
  void revive(std::size_t slot) { live_[slot / block_points] |= std::uint64_t{1} << slot % block_points; }
  void clear(std::size_t slot) { live_[slot / block_points] &= ~(std::uint64_t{1} << slot % block_points); }
  void get(std::size_t slot, float* row, float& offset) const {
    const float* at = points(slot / block_points) + slot % block_points;
    for (std::size_t j = 0; j < dimension_; ++j) row[j] = at[j * block_points];
    offset = offsets_[slot];
  }
  std::int64_t id(std::size_t slot) const { return ids_[slot]; }
  bool is_live(std::size_t slot) const { return live_[slot / block_points] >> slot % block_points & 1; }
  std::size_t memory() const {
    return (points_.capacity() + offsets_.capacity()) * sizeof(float) + (ids_.capacity() + live_.capacity()) * 8;
  }

 private:
  std::size_t dimension_;
  AlignedVector<float> points_, offsets_;
  std::vector<std::int64_t> ids_;
  std::vector<std::uint64_t> live_;
};

}  // namespace fewfire
