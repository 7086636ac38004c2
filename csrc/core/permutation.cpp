#include "core/permutation.hpp"

#include <utility>
#include <vector>

#include "kernels/philox.hpp"

namespace fewfire {
namespace {

using Entry = std::uint64_t;  // a word above the number of its place, which it carries along

// Sorts by the digit of `Bits` bits that begins at bit `low`; equal digits stay in their order.
template <unsigned Bits>
void sort_by_digit(const std::vector<Entry>& from, std::vector<Entry>& to, unsigned low) {
  constexpr Entry mask = (Entry{1} << Bits) - 1;
  std::size_t places[mask + 1] = {};
  for (const Entry entry : from) ++places[entry >> low & mask];
  std::size_t before = 0;
  for (std::size_t& place : places) before += std::exchange(place, before);
  for (const Entry entry : from) to[places[entry >> low & mask]++] = entry;
}

}  // namespace

void permutation(std::uint64_t key, std::uint64_t stream, std::uint64_t first_block, std::size_t skip,
                 std::size_t count, std::int64_t* out) {
  std::vector<std::uint32_t> words(count);
  FEWFIRE_DISPATCH(philox_words, key, stream, first_block, skip, count, words.data());
  std::vector<Entry> entries(count), others(count);
  for (std::size_t i = 0; i < count; ++i) entries[i] = Entry{words[i]} << 32 | i;
  if (count < 4096) {  // tables of longer digits would take longer than the entries
    for (unsigned low = 32; low < 64; low += 8, entries.swap(others)) sort_by_digit<8>(entries, others, low);
  } else {
    for (unsigned low = 32; low < 64; low += 11, entries.swap(others)) sort_by_digit<11>(entries, others, low);
  }
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::int64_t>(entries[i] & 0xFFFFFFFFu);
}

}  // namespace fewfire
