// Which slot each id has, for methods that fill slots in order: freed slots are used again, last freed first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/halfspace/ids.hpp"
#include "kernels/halfspace_scan.hpp"

namespace fewfire {

class SlotTable {
 public:
  std::size_t size() const { return table_.size(); }
  std::size_t blocks() const { return (end_ + block_points - 1) / block_points; }
  std::int64_t find(std::int64_t id) const { return table_.find(id); }

  std::size_t take(std::int64_t id) {
    std::size_t slot = end_;
    if (free_.empty())
      ++end_;
    else
      slot = free_.back(), free_.pop_back();
    table_.set(id, static_cast<std::int64_t>(slot));
    return slot;
  }
  std::size_t release(std::int64_t id) {
    const auto slot = static_cast<std::size_t>(table_.find(id));
    table_.erase(id);
    free_.push_back(slot);
    return slot;
  }
  // Worth moving together: over half of the slots are empty.
  bool is_sparse() const { return free_.size() > 4 * block_points && free_.size() > end_ / 2; }
  std::size_t memory() const { return table_.memory() + free_.capacity() * sizeof(std::size_t); }

 private:
  IdTable table_;
  std::vector<std::size_t> free_;
  std::size_t end_ = 0;
};

}  // namespace fewfire
