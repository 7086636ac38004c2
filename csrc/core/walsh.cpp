#include "core/walsh.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/parallel.hpp"
#include "kernels/walsh.hpp"

namespace fewfire {
namespace {

constexpr unsigned parallel_bytes = 20;          // log2 of the array size from which a second thread pays
constexpr unsigned smallest_part_bytes = 15;     // log2 of the least part worth handing out
constexpr std::size_t chunk_bytes = 1u << 14;    // columns of a pass handed out at a time
constexpr std::size_t line_bytes = 64;

// Levels left to passes over the whole array: at least four parts per thread, in whole passes.
template <class T>
unsigned shared_levels(unsigned n, std::size_t threads) {
  constexpr unsigned value_bytes = std::countr_zero(sizeof(T));
  if (threads == 1 || n + value_bytes < parallel_bytes) return 0;
  const unsigned wanted = static_cast<unsigned>(std::bit_width(4 * threads - 1));
  const unsigned whole = (wanted + walsh_pass_levels - 1) / walsh_pass_levels * walsh_pass_levels;
  return std::min(whole, n + value_bytes - smallest_part_bytes);
}

}  // namespace

template <class T>
void walsh_transform(const T* from, T* to, unsigned n, T scale, std::size_t threads) {
  const unsigned shared = shared_levels<T>(n, threads), part = n - shared;
  parallel_for(std::size_t{1} << shared, threads, [&](std::size_t index) {
    FEWFIRE_DISPATCH(walsh_block, from + (index << part), to + (index << part), part, shared == 0 ? scale : T(1));
  });
  // Columns are cut at cache lines of the array, wherever it begins.
  const std::size_t lead = (0 - reinterpret_cast<std::uintptr_t>(to)) % line_bytes / sizeof(T);
  for (unsigned low = part; low < n;) {
    const unsigned levels = std::min(n - low, walsh_pass_levels);
    const std::size_t columns = std::size_t{1} << low, chunk = chunk_bytes / sizeof(T), chunks = columns / chunk;
    parallel_for(chunks << (n - low - levels), threads, [&](std::size_t piece) {
      const std::size_t group = piece / chunks, index = piece % chunks;
      const std::size_t first = index == 0 ? 0 : index * chunk + lead;
      const std::size_t last = index + 1 == chunks ? columns : (index + 1) * chunk + lead;
      T* data = to + (group << (low + levels));
      FEWFIRE_DISPATCH(walsh_pass, data, low, levels, first, last, low + levels == n ? scale : T(1));
    });
    low += levels;
  }
}

template void walsh_transform(const double*, double*, unsigned, double, std::size_t);
template void walsh_transform(const float*, float*, unsigned, float, std::size_t);
template void walsh_transform(const std::int32_t*, std::int32_t*, unsigned, std::int32_t, std::size_t);

}  // namespace fewfire
