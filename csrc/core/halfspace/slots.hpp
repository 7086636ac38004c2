// Where each id stands: a table in pages, found by number, so that memory follows the ids there are and not their size;
// and which slot it has, for methods that fill slots in order: freed slots are used again, last freed first.
//
// Changes come in two steps, so that one that runs out of memory leaves everything as it was: first `expect…`, which
// may throw and changes nothing that can be seen, then the change itself, which does not allocate.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernels/halfspace.hpp"

namespace fewfire {

// Room for `size` elements, at least doubled where it grows: what is added up to there does not throw.
template <class Vector>
void reserve_doubling(Vector& vector, std::size_t size) {
  if (size > vector.capacity()) vector.reserve(std::max(size, 2 * vector.capacity()));
}

class IdTable {
 public:
  static constexpr std::int64_t absent = -1;

  std::int64_t find(std::int64_t id) const {
    if (id < 0) return absent;
    const auto page = pages_.find(number(id));
    return page == pages_.end() ? absent : page->second.places[place(id)];
  }

  // Makes the pages of these ids. The last step that may fail, since pages that stay empty take room until ids of theirs
  // come and go.
  void expect(const std::int64_t* ids, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) pages_.try_emplace(number(ids[i]));
  }

  // Of an id that is here or was expected.
  void set(std::int64_t id, std::int64_t where) {
    Page& page = pages_.find(number(id))->second;
    std::int64_t& at = page.places[place(id)];
    if (at == absent) ++page.used, ++size_;
    at = where;
  }

  void erase(std::int64_t id) {
    const auto page = pages_.find(number(id));
    page->second.places[place(id)] = absent;
    --size_;
    if (--page->second.used == 0) pages_.erase(page);
  }

  std::size_t size() const { return size_; }
  std::size_t memory() const {
    return pages_.bucket_count() * sizeof(void*) + pages_.size() * (sizeof(Page) + 4 * sizeof(void*));
  }

 private:
  static constexpr std::size_t page_size = 128;
  static std::size_t number(std::int64_t id) { return static_cast<std::size_t>(id) / page_size; }
  static std::size_t place(std::int64_t id) { return static_cast<std::size_t>(id) % page_size; }
  struct Page {
    std::array<std::int64_t, page_size> places;
    std::size_t used = 0;
    Page() { places.fill(absent); }
  };
  std::unordered_map<std::size_t, Page> pages_;
  std::size_t size_ = 0;
};

class SlotTable {
 public:
  std::size_t size() const { return table_.size(); }
  std::int64_t find(std::int64_t id) const { return table_.find(id); }

  // Blocks in use once so many more slots are taken.
  std::size_t blocks_with(std::size_t more) const {
    const std::size_t end = end_ + (more > free_.size() ? more - free_.size() : 0);
    return (end + block_points - 1) / block_points;
  }
  void expect(const std::int64_t* ids, std::size_t count) { table_.expect(ids, count); }
  std::size_t take(std::int64_t id) {
    std::size_t slot = end_;
    if (free_.empty())
      ++end_;
    else
      slot = free_.back(), free_.pop_back();
    table_.set(id, static_cast<std::int64_t>(slot));
    return slot;
  }

  void expect_release(std::size_t count) { reserve_doubling(free_, free_.size() + count); }
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
