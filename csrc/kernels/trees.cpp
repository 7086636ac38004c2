#include "kernels/trees.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

typedef std::int64_t Two __attribute__((vector_size(16)));
typedef std::int64_t Longs __attribute__((vector_size(64)));
typedef double Doubles __attribute__((vector_size(64)));
constexpr std::size_t lanes = 8;

constexpr std::size_t together = 4;       // columns whose bins are added to side by side: their sums do not wait for each other
constexpr std::size_t walkers = 16;       // rows that walk side by side
constexpr std::size_t block_rows = 512;  // that see one tree after the other: a tree and these rows fit into cache

template <std::size_t Columns>
void add_columns(const std::uint8_t* const* bins, const std::int32_t* ids, const BinSums* parts, std::size_t rows,
                 BinSums* const* sums) {
  for (std::size_t i = 0; i < rows; ++i) {
    Two part;
    __builtin_memcpy(&part, parts + i, sizeof part);
    const auto id = static_cast<std::size_t>(ids[i]);
    for (std::size_t c = 0; c < Columns; ++c) {
      BinSums* at = sums[c] + bins[c][id];
      Two sum;
      __builtin_memcpy(&sum, at, sizeof sum);
      sum += part;
      __builtin_memcpy(at, &sum, sizeof sum);
    }
  }
}

// Whole numbers below 2^51 as floating point: beside 1.5 · 2^52 they are its last bits.
Doubles converted(const Longs& numbers) {
  constexpr double large = 0x1.8p52;
  std::int64_t bits;
  __builtin_memcpy(&bits, &large, sizeof bits);
  const Longs beside = numbers + bits;
  Doubles found;
  __builtin_memcpy(&found, &beside, sizeof found);
  return found - large;
}

// Takes every walker to a leaf. Those that have arrived stay, without a branch that would have to be guessed.
void walk(const TreeFork* forks, const float* const* of, std::int32_t* at) {
  for (bool walking = true; walking;) {
    walking = false;
    for (std::size_t i = 0; i < walkers; ++i) {
      const std::int32_t here = at[i];
      const bool arrived = here < 0;
      const TreeFork& fork = forks[arrived ? 0 : here];
      const float value = of[i][fork.column >> 1];
      const bool left = (value <= fork.threshold) | ((value != value) & (fork.column & 1));
      const std::int32_t next = fork.children[1 - left];
      at[i] = arrived ? here : next;
      walking |= at[i] >= 0;
    }
  }
}

inline void add_leaf(const FlatTrees& trees, std::size_t tree, std::int32_t at, double* out) {
  const float* said = trees.values + static_cast<std::size_t>(~at) * trees.width;
  double* to = out + trees.first[tree];
  for (std::size_t o = 0; o < trees.width; ++o) to[o] += said[o];
}

}  // namespace

void add_to_bins(const BinnedTable& table, const std::int32_t* ids, const BinSums* parts, std::size_t rows,
                 const std::size_t* offsets, BinSums* sums) {
  const std::uint8_t* bins[together];
  BinSums* to[together];
  for (std::size_t column = 0; column < table.columns; column += together) {
    const std::size_t left = table.columns - column, count = left < together ? left : together;
    for (std::size_t c = 0; c < count; ++c) {
      bins[c] = table.bins + (column + c) * table.rows;
      to[c] = sums + offsets[column + c];
    }
    if (count == 4) add_columns<4>(bins, ids, parts, rows, to);
    else if (count == 3) add_columns<3>(bins, ids, parts, rows, to);
    else if (count == 2) add_columns<2>(bins, ids, parts, rows, to);
    else add_columns<1>(bins, ids, parts, rows, to);
  }
}

// In units of slopes and curvatures, powers of two that change no rounding.
bool better_split(const BinSums* sums, std::size_t bins, const BinSums& all, const BinUnits& units, const BinRule& rule,
                  BinSplit& best) {
  const std::size_t known = bins - 1, last = (known + lanes - 1) / lanes * lanes;
  const BinSums missing = sums[known];
  std::int64_t slopes[256 + split_room], packed[256 + split_room];  // of all bins up to one
  Two sum{};
  for (std::size_t bin = 0; bin < known; ++bin) {
    Two part;
    __builtin_memcpy(&part, sums + bin, sizeof part);
    sum += part;
    slopes[bin] = sum[0], packed[bin] = sum[1];
  }
  for (std::size_t bin = known; bin < last; ++bin) slopes[bin] = packed[bin] = 0;  // no rows: no split
  const std::int64_t mask = (std::int64_t{1} << units.shift) - 1, rows = all.curvature_and_rows & mask;
  const double slope = static_cast<double>(all.slope), curvature = static_cast<double>(all.curvature_and_rows >> units.shift);
  const double l2 = rule.l2 / units.curvature, least = rule.least_curvature / units.curvature;
  const double unit = units.slope * units.slope / units.curvature, before = slope * slope / (curvature + l2);
  double bound = best.gain / unit + before;
  bool found = false;
  for (int with_missing = 0; with_missing < 1 + (missing.curvature_and_rows != 0); ++with_missing)
    for (std::size_t bin = 0; bin < last; bin += lanes) {
      Longs of_slopes, both;
      __builtin_memcpy(&of_slopes, slopes + bin, sizeof of_slopes);
      __builtin_memcpy(&both, packed + bin, sizeof both);
      if (with_missing) of_slopes += missing.slope, both += missing.curvature_and_rows;
      const Longs left_rows = both & mask;
      const Doubles left = converted(of_slopes), left_curvature = converted(both >> units.shift);
      const Doubles right = slope - left, right_curvature = curvature - left_curvature;  // exact
      const Doubles below_left = left_curvature + l2, below_right = right_curvature + l2;
      const Doubles product = below_left * below_right, gains = left * left * below_right + right * right * below_left;
      const Longs better = (gains > bound * product) & (left_rows >= rule.least_rows) &
                           (left_rows <= rows - rule.least_rows) & (left_curvature >= least) & (right_curvature >= least);
      std::int64_t any = 0;
      for (std::size_t lane = 0; lane < lanes; ++lane) any |= better[lane];
      if (!any) continue;
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const double gain = (gains[lane] / product[lane] - before) * unit;
        if (!better[lane] || bin + lane >= known || !(gain > best.gain)) continue;
        // Missing values that have not been seen go with the more rows.
        const bool missing_left = with_missing || (missing.curvature_and_rows == 0 && 2 * left_rows[lane] > rows);
        best = {gain, bin + lane, missing_left, {of_slopes[lane], both[lane]}};
        bound = gain / unit + before;
        found = true;
      }
    }
  return found;
}

void walk_trees(const FlatTrees& trees, const float* x, std::size_t rows, std::size_t columns, double* out,
                std::size_t outputs) {
  for (std::size_t block = 0; block < rows; block += block_rows) {
    const std::size_t end = block + block_rows < rows ? block + block_rows : rows;
    for (std::size_t t = 0; t < trees.trees; ++t)
      for (std::size_t begin = block; begin < end; begin += walkers) {
        const std::size_t count = end - begin < walkers ? end - begin : walkers;
        std::int32_t at[walkers];
        const float* of[walkers];
        for (std::size_t i = 0; i < walkers; ++i) {  // fewer rows than walkers: the first row walks several times
          at[i] = trees.roots[t];
          of[i] = x + (begin + (i < count ? i : 0)) * columns;
        }
        walk(trees.forks, of, at);
        for (std::size_t i = 0; i < count; ++i) add_leaf(trees, t, at[i], out + (begin + i) * outputs);
      }
  }
}

void sift_trees(const FlatTrees& trees, const TreeSieve& sieve, const float* x, std::size_t rows, std::size_t columns,
                double* out, std::size_t outputs, float* upright) {
  for (std::size_t begin = 0; begin < rows; begin += sieve_rows) {
    const std::size_t count = rows - begin < sieve_rows ? rows - begin : sieve_rows;
    for (std::size_t c = 0; c < columns; ++c)
      for (std::size_t i = 0; i < sieve_rows; ++i) upright[c * sieve_rows + i] = x[(begin + (i < count ? i : 0)) * columns + c];
    for (std::size_t t = 0; t < trees.trees; ++t) {
      std::uint32_t left[sieve_rows];
      for (std::size_t i = 0; i < sieve_rows; ++i) left[i] = ~std::uint32_t{0};
      const auto first = static_cast<std::size_t>(sieve.starts[t]), last = static_cast<std::size_t>(sieve.starts[t + 1]);
      for (std::size_t f = first; f < last; ++f) {
        const TreeFork& fork = trees.forks[f];
        const float* of = upright + static_cast<std::size_t>(fork.column >> 1) * sieve_rows;
        const float threshold = fork.threshold;
        const std::uint32_t kept = sieve.kept[f];
        if (fork.column & 1)
          for (std::size_t i = 0; i < sieve_rows; ++i) left[i] &= of[i] > threshold ? kept : ~std::uint32_t{0};
        else
          for (std::size_t i = 0; i < sieve_rows; ++i) left[i] &= of[i] <= threshold ? ~std::uint32_t{0} : kept;
      }
      const std::int32_t* leaves = sieve.leaves + first + t;  // a tree has one leaf more than forks
      for (std::size_t i = 0; i < count; ++i)
        add_leaf(trees, t, ~leaves[__builtin_ctz(left[i])], out + (begin + i) * outputs);
    }
  }
}

}  // namespace fewfire::FEWFIRE_ISA
