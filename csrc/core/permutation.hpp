// Permutations: the stable order of uniform words. Reference: Stream.permutation (src/fewfire/_random/_stream.py).
#pragma once

#include <cstddef>
#include <cstdint>

namespace fewfire {

// out (count,): the numbers 0 to count − 1 in the stable order of so many words of a stream (kernels/philox.hpp), from
// word `skip` (0 to 3) of block `first_block` on; count is at most 2^32.
void permutation(std::uint64_t key, std::uint64_t stream, std::uint64_t first_block, std::size_t skip,
                 std::size_t count, std::int64_t* out);

}  // namespace fewfire
