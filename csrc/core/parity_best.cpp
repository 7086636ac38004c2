#include <algorithm>

#include "kernels/parity_search.hpp"

namespace fewfire {
namespace {

bool stronger(const ParityHit& a, const ParityHit& b, std::size_t size) {
  if (a.strength != b.strength) return a.strength > b.strength;
  return std::lexicographical_compare(a.members, a.members + size, b.members, b.members + size);
}

}  // namespace

// Size 1 has one empty prefix; size 2 a group of first members a task; larger sizes one first member a task.
std::size_t ParityData::tasks() const {
  if (size == 1) return 1;
  return size == 2 ? (count - 1 + kParityPrefixes - 1) / kParityPrefixes : count - size + 1;
}

void ParityBest::consider(const ParityHit& hit, std::size_t size) {
  if (stronger(hit, first, size)) {
    second = first;
    first = hit;
  } else if (stronger(hit, second, size)) {
    second = hit;
  }
}

}  // namespace fewfire
