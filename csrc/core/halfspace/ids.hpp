// Where each id stands: a table in pages, so that ids that were removed long ago take no memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

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

}  // namespace fewfire
