// Standard normal numbers by Box and Muller, two words of Philox each, with the same bits on every instruction set.
// src/fewfire/_random/_reference.py is the reference implementation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

FEWFIRE_DECLARE(// Numbers `start` to start + count − 1 of a stream; number i is made of its words 2i and 2i + 1.
                void normal_numbers(std::uint64_t key, std::uint64_t stream, std::uint64_t start, std::size_t count,
                                    double* out);)

}  // namespace fewfire
