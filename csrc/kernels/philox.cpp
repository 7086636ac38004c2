#include "kernels/philox.hpp"

#include <algorithm>
#include <cstring>

namespace fewfire::FEWFIRE_ISA {
namespace {

// Blocks computed side by side: one vector of 32-bit lanes per counter word.
constexpr std::size_t lanes = 16;

void blocks(std::uint64_t key, std::uint64_t stream, std::uint64_t first_block, std::uint32_t (&out)[lanes * 4]) {
  std::uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
  for (std::size_t i = 0; i < lanes; ++i) {
    const std::uint64_t block = first_block + i;
    c0[i] = static_cast<std::uint32_t>(block);
    c1[i] = static_cast<std::uint32_t>(block >> 32);
    c2[i] = static_cast<std::uint32_t>(stream);
    c3[i] = static_cast<std::uint32_t>(stream >> 32);
  }
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53u} * c0[i];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * c2[i];
      const std::uint32_t x0 = static_cast<std::uint32_t>(b >> 32) ^ c1[i] ^ k0;
      const std::uint32_t x2 = static_cast<std::uint32_t>(a >> 32) ^ c3[i] ^ k1;
      c1[i] = static_cast<std::uint32_t>(b);
      c3[i] = static_cast<std::uint32_t>(a);
      c0[i] = x0;
      c2[i] = x2;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (std::size_t i = 0; i < lanes; ++i) {
    out[4 * i] = c0[i];
    out[4 * i + 1] = c1[i];
    out[4 * i + 2] = c2[i];
    out[4 * i + 3] = c3[i];
  }
}

}  // namespace

void philox_words(std::uint64_t key, std::uint64_t stream, std::uint64_t first_block, std::size_t skip,
                  std::size_t count, std::uint32_t* out) {
  std::uint32_t buffer[lanes * 4];
  while (count > 0) {
    blocks(key, stream, first_block, buffer);
    const std::size_t take = std::min(count, lanes * 4 - skip);
    std::memcpy(out, buffer + skip, take * sizeof(std::uint32_t));
    out += take;
    count -= take;
    first_block += lanes;
    skip = 0;
  }
}

}  // namespace fewfire::FEWFIRE_ISA
