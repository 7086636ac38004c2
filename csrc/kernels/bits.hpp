// Sign vectors as bits: −1 is a set bit, +1 a clear one, so a product of signs is an XOR of bits.
//
// Coordinate j of a row is bit j mod 64 of word j div 64; bits past the end are clear.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.hpp"

namespace fewfire {

FEWFIRE_DECLARE(
    // rows x columns signs (row stride in bytes) -> rows x ceil(columns / 64) words; false when a value is not ±1.
    bool pack_rows(const std::int8_t* signs, std::size_t rows, std::size_t columns, std::size_t stride,
                   std::uint64_t* words);
    // The transposed result: columns x ceil(rows / 64) words, one bit vector per coordinate.
    bool pack_columns(const std::int8_t* signs, std::size_t rows, std::size_t columns, std::size_t stride,
                      std::uint64_t* words);
    void unpack_rows(const std::uint64_t* words, std::size_t rows, std::size_t columns, std::int8_t* signs);)

}  // namespace fewfire
