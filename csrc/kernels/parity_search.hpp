// Exhaustive search for the parity that agrees best with the labels.
//
//   correlation(S) = Σ_i y_i ∏_{j∈S} x_ij = m − 2·popcount(y ⊕ ⊕_{j∈S} x_j)
//
// over all sets S of one size. Sets share prefixes: y ⊕ (all members but the last) is computed once and combined with
// every later column, so a set costs one XOR and one popcount per word of 64 examples. Columns are stored in blocks of
// 8, word by word, so that the lanes of a vector belong to 8 sets and no sum across lanes is needed; 4 prefixes share
// each load of a block. Reference implementation: src/fewfire/learners/baselines/_exhaustive_parity.py.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/aligned.hpp"
#include "base/cpu.hpp"

namespace fewfire {

constexpr std::size_t kMaxParity = 5;      // largest set searched
constexpr std::size_t kParityBlock = 8;    // columns per block
constexpr std::size_t kParityPrefixes = 4; // prefixes combined with a block at a time

struct ParityData {
  const std::uint64_t* columns;  // columns x words, one bit vector per column
  const std::uint64_t* labels;   // words
  std::size_t count, words, examples, size;
  AlignedVector<std::uint64_t> blocks;  // ceil(count / 8) x words x 8, missing columns clear
};

struct ParityHit {
  std::int64_t strength = -1;  // |correlation|
  std::int64_t correlation = 0;
  std::uint32_t members[kMaxParity] = {};
};

// The two strongest sets; of equally strong ones the lexicographically first.
struct ParityBest {
  ParityHit first, second;
  std::uint64_t sets = 0, words = 0;  // sets looked at, words read (those in unused lanes included)
};

FEWFIRE_DECLARE(
    // How many independent pieces the search has.
    std::size_t parity_tasks(const ParityData& data);
    // Takes the hit in when it is one of the two strongest sets of this size.
    void consider(ParityBest& best, const ParityHit& hit, std::size_t size);
    void fill_blocks(ParityData& data);
    // Searches one piece; returns early when `stop` is set.
    void search_parities(const ParityData& data, std::size_t task, const std::atomic<bool>& stop, ParityBest& best);)

}  // namespace fewfire
