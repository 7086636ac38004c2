// Where each id stands: a table in pages, so that ids that were removed long ago take no memory; and which slot it has,
// for methods that fill slots in order: freed slots are used again, last freed first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/halfspace.hpp"

namespace fewfire {

class IdTable {
 public:
  static constexpr std::int64_t absent = -1;

  std::int64_t find(std::int64_t id) const {
    if (id < 0 || static_cast<std::size_t>(id) / page_size >= pages_.size()) return absent;
    const auto& page = pages_[static_cast<std::size_t>(id) / page_size];
    return page ? page->places[static_cast<std::size_t>(id) % page_size] : absent;
  }

  void set(std::int64_t id, std::int64_t place) {
    const std::size_t number = static_cast<std::size_t>(id) / page_size;
    if (number >= pages_.size()) pages_.resize(number + 1);
    if (!pages_[number]) pages_[number] = std::make_unique<Page>();
    std::int64_t& at = pages_[number]->places[static_cast<std::size_t>(id) % page_size];
    if (at == absent) ++pages_[number]->used, ++size_;
    at = place;
  }

  void erase(std::int64_t id) {
    auto& page = pages_[static_cast<std::size_t>(id) / page_size];
    page->places[static_cast<std::size_t>(id) % page_size] = absent;
    --size_;
    if (--page->used == 0) page.reset();
  }

  std::size_t size() const { return size_; }
  std::size_t memory() const { return pages_.size() * sizeof(void*) + (size_ + page_size) * sizeof(std::int64_t); }

 private:
  static constexpr std::size_t page_size = 4096;
  struct Page {
    std::array<std::int64_t, page_size> places;
    std::size_t used = 0;
    Page() { places.fill(absent); }
  };
  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t size_ = 0;
};

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
