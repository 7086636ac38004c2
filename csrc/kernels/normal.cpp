#include "kernels/normal.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/elementary-inl.hpp"
#include "kernels/philox.hpp"

namespace fewfire::FEWFIRE_ISA {

void normal_numbers(std::uint64_t key, std::uint64_t stream, std::uint64_t start, std::size_t count, double* out) {
  constexpr std::size_t part = 256;
  std::uint32_t words[2 * part];
  for (std::size_t done = 0; done < count; done += part) {
    const std::size_t some = std::min(part, count - done);
    const std::uint64_t first = 2 * (start + done);
    philox_words(key, stream, first / 4, first % 4, 2 * some, words);
    for (std::size_t i = 0; i < some; ++i) {
      const double u = (words[2 * i] + 0.5) * 0x1p-32, v = (words[2 * i + 1] + 0.5) * 0x1p-32;
      out[done + i] = std::sqrt(-2.0 * log_unit(u)) * cos_turns(v);
    }
  }
}

}  // namespace fewfire::FEWFIRE_ISA
