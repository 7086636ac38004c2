// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).
//
// A stream is a pair (key, stream id) of 64-bit numbers. Its block number t is the 128 bits
//   philox(counter = (t mod 2^32, t div 2^32, id mod 2^32, id div 2^32), key = (key mod 2^32, key div 2^32))
// and word w of the stream is word w mod 4 of block w div 4. Reference implementation: src/fewfire/_random/_reference.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

FEWFIRE_DECLARE(// Words from word `skip` (0 to 3) of block `first_block` on.
                void philox_words(std::uint64_t key, std::uint64_t stream, std::uint64_t first_block, std::size_t skip,
                                  std::size_t count, std::uint32_t* out);)

}  // namespace fewfire
