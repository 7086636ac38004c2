// A number that depends on all bits of another (the finaliser of SplitMix64): what trees draw by.
#pragma once

#include <cstdint>

namespace fewfire {

inline std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace fewfire
