#include "kernels/parity_search.hpp"

#include <algorithm>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace fewfire::FEWFIRE_ISA {
namespace {

#if defined(__AVX512VPOPCNTDQ__)
typedef std::uint64_t Words __attribute__((vector_size(64), may_alias));
Words popcount(Words v) { return (Words)_mm512_popcnt_epi64((__m512i)v); }
#elif defined(__AVX2__)
typedef std::uint64_t Words __attribute__((vector_size(32), may_alias));
// Bits of each half byte from a table, then sums of the 8 bytes of a word.
Words popcount(Words v) {
  const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                         0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i low = _mm256_set1_epi8(15), bytes = (__m256i)v;
  const __m256i counts =
      _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(bytes, low)),
                      _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), low)));
  return (Words)_mm256_sad_epu8(counts, _mm256_setzero_si256());
}
#else
typedef std::uint64_t Words __attribute__((vector_size(16), may_alias));
// Sums of 2, 4, then 8 neighbouring bits; then of the 8 bytes.
Words popcount(Words v) {
  v -= (v >> 1) & 0x5555555555555555u;
  v = (v & 0x3333333333333333u) + ((v >> 2) & 0x3333333333333333u);
  v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  v += v >> 8;
  v += v >> 16;
  v += v >> 32;
  return v & 0x7fu;
}
#endif
constexpr std::size_t kLanes = sizeof(Words) / sizeof(std::uint64_t);

// distance[g][j] = popcount(prefix g ⊕ column j) for the 8 columns of a block; prefixes are words x 4.
void meet(const std::uint64_t* block, const std::uint64_t* prefixes, std::size_t words,
          std::uint64_t (&distance)[kParityPrefixes][kParityBlock]) {
  for (std::size_t part = 0; part < kParityBlock; part += kLanes) {
    Words total[kParityPrefixes] = {};
    for (std::size_t w = 0; w < words; ++w) {
      const Words column = *reinterpret_cast<const Words*>(block + kParityBlock * w + part);
      for (std::size_t g = 0; g < kParityPrefixes; ++g) total[g] += popcount(column ^ prefixes[kParityPrefixes * w + g]);
    }
    for (std::size_t g = 0; g < kParityPrefixes; ++g) *reinterpret_cast<Words*>(&distance[g][part]) = total[g];
  }
}

// One piece of the search: the prefix so far, and its words for every length.
struct Searcher {
  const ParityData& data;
  const std::atomic<bool>& stop;
  ParityBest& best;
  std::uint32_t members[kMaxParity] = {};
  AlignedVector<std::uint64_t> chain;     // kMaxParity x words: y ⊕ the first d members
  AlignedVector<std::uint64_t> prefixes;  // words x 4

  Searcher(const ParityData& data, const std::atomic<bool>& stop, ParityBest& best)
      : data(data), stop(stop), best(best), chain(kMaxParity * data.words), prefixes(kParityPrefixes * data.words) {
    std::copy_n(data.labels, data.words, chain.data());
  }

  std::uint64_t* link(std::size_t depth) { return chain.data() + depth * data.words; }
  const std::uint64_t* column(std::size_t j) const { return data.columns + j * data.words; }

  // Member number `depth` is j.
  void extend(std::size_t depth, std::uint32_t j) {
    members[depth] = j;
    for (std::size_t w = 0; w < data.words; ++w) link(depth + 1)[w] = link(depth)[w] ^ column(j)[w];
  }

  // All sets that start with the first `depth` members, the next one being at least `from`.
  void descend(std::size_t depth, std::size_t from) {
    if (depth + 2 == data.size) {
      for (std::size_t a = from; a + 1 < data.count && !stop; a += kParityPrefixes)
        group(a, std::min(a + kParityPrefixes, data.count - 1));
      return;
    }
    for (std::size_t j = from; j + data.size - depth <= data.count && !stop; ++j) {
      extend(depth, static_cast<std::uint32_t>(j));
      descend(depth + 1, j + 1);
    }
  }

  // All sets whose last member but one is in [begin, end), at most 4 of them.
  void group(std::size_t begin, std::size_t end) {
    const std::size_t depth = data.size - 2;
    for (std::size_t w = 0; w < data.words; ++w)
      for (std::size_t g = 0; g < kParityPrefixes; ++g)
        prefixes[kParityPrefixes * w + g] = link(depth)[w] ^ column(std::min(begin + g, end - 1))[w];
    meet_later(begin, end, true);
  }

  // Combines the prefixes with the columns after `begin` (all columns when there is no such member).
  void meet_later(std::size_t begin, std::size_t end, bool has_member) {
    const std::int64_t examples = static_cast<std::int64_t>(data.examples);
    alignas(64) std::uint64_t distance[kParityPrefixes][kParityBlock];
    alignas(64) std::int64_t correlation[kParityPrefixes][kParityBlock];
    const std::size_t first = has_member ? begin + 1 : 0;
    for (std::size_t b = first / kParityBlock; b * kParityBlock < data.count; ++b) {
      meet(data.blocks.data() + b * kParityBlock * data.words, prefixes.data(), data.words, distance);
      std::int64_t strongest = 0;
      for (std::size_t g = 0; g < kParityPrefixes; ++g)
        for (std::size_t lane = 0; lane < kParityBlock; ++lane) {
          const std::int64_t value = examples - 2 * static_cast<std::int64_t>(distance[g][lane]);
          correlation[g][lane] = value;
          strongest = std::max(strongest, value < 0 ? -value : value);
        }
      best.words += kParityPrefixes * kParityBlock * data.words;
      if (strongest >= best.second.strength)
        for (std::size_t g = 0; begin + g < end; ++g) report(begin + g, b * kParityBlock, correlation[g], has_member);
    }
    for (std::size_t a = begin; a < end; ++a) best.sets += data.count - (has_member ? a + 1 : 0);
  }

  void report(std::size_t a, std::size_t start, const std::int64_t* correlation, bool has_member) {
    for (std::size_t j = std::max(start, has_member ? a + 1 : 0); j < std::min(start + kParityBlock, data.count); ++j) {
      const std::int64_t value = correlation[j - start], strength = value < 0 ? -value : value;
      if (strength < best.second.strength) continue;
      ParityHit hit;
      hit.strength = strength;
      hit.correlation = value;
      std::copy_n(members, kMaxParity, hit.members);
      if (has_member) hit.members[data.size - 2] = static_cast<std::uint32_t>(a);
      hit.members[data.size - 1] = static_cast<std::uint32_t>(j);
      consider(best, hit, data.size);
    }
  }
};

bool stronger(const ParityHit& a, const ParityHit& b, std::size_t size) {
  if (a.strength != b.strength) return a.strength > b.strength;
  return std::lexicographical_compare(a.members, a.members + size, b.members, b.members + size);
}

}  // namespace

// Size 1 has one empty prefix; size 2 a group of first members per task; larger sizes one first member per task.
std::size_t parity_tasks(const ParityData& data) {
  if (data.size == 1) return 1;
  return data.size == 2 ? (data.count - 1 + kParityPrefixes - 1) / kParityPrefixes : data.count - data.size + 1;
}

void consider(ParityBest& best, const ParityHit& hit, std::size_t size) {
  if (stronger(hit, best.first, size)) {
    best.second = best.first;
    best.first = hit;
  } else if (stronger(hit, best.second, size)) {
    best.second = hit;
  }
}

void fill_blocks(ParityData& data) {
  const std::size_t blocks = (data.count + kParityBlock - 1) / kParityBlock;
  data.blocks.assign(blocks * data.words * kParityBlock, 0);
  for (std::size_t j = 0; j < data.count; ++j)
    for (std::size_t w = 0; w < data.words; ++w)
      data.blocks[(j / kParityBlock * data.words + w) * kParityBlock + j % kParityBlock] = data.columns[j * data.words + w];
}

void search_parities(const ParityData& data, std::size_t task, const std::atomic<bool>& stop, ParityBest& best) {
  Searcher searcher(data, stop, best);
  if (data.size == 1) {
    for (std::size_t w = 0; w < data.words; ++w)
      std::fill_n(&searcher.prefixes[kParityPrefixes * w], kParityPrefixes, data.labels[w]);
    searcher.meet_later(0, 1, false);
  } else if (data.size == 2) {
    const std::size_t begin = kParityPrefixes * task;
    searcher.group(begin, std::min(begin + kParityPrefixes, data.count - 1));
  } else {
    searcher.extend(0, static_cast<std::uint32_t>(task));
    searcher.descend(1, task + 1);
  }
}

}  // namespace fewfire::FEWFIRE_ISA
