#include "kernels/estimate.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/subsets.hpp"
#include "kernels/vectors-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// Sums of ±1 labels over sets: one XOR and one popcount per word and set.

// Columns whose sums are taken side by side: they share the loads of the prefix and hide the latency of the sums.
constexpr std::size_t sign_tile = 4;

#if defined(__AVX512VPOPCNTDQ__)

constexpr std::size_t group_words = vector_words;

// out[c] += number of set bits of prefix XOR column c, for `count` columns.
template <std::size_t count>
void add_bits(const std::uint64_t* prefix, const std::uint64_t* columns, std::size_t words, double* out) {
  __m512i sums[count];
  for (std::size_t c = 0; c < count; ++c) sums[c] = _mm512_setzero_si512();
  for (std::size_t w = 0; w < words; w += vector_words) {
    const __m512i shared = _mm512_load_si512(prefix + w);
    for (std::size_t c = 0; c < count; ++c)
      sums[c] = _mm512_add_epi64(
          sums[c], _mm512_popcnt_epi64(_mm512_xor_si512(shared, _mm512_load_si512(columns + c * words + w))));
  }
  for (std::size_t c = 0; c < count; ++c) out[c] += static_cast<double>(_mm512_reduce_add_epi64(sums[c]));
}

#else

constexpr std::size_t group_words = 8 * vector_words;

Words byte_counts(Words bits) {
  bits -= (bits >> 1) & 0x5555555555555555ull;
  bits = (bits & 0x3333333333333333ull) + ((bits >> 2) & 0x3333333333333333ull);
  return (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0Full;
}

Words word_counts(Words bits) {
  Words counts = byte_counts(bits);
  counts = (counts & 0x00FF00FF00FF00FFull) + ((counts >> 8) & 0x00FF00FF00FF00FFull);
  counts += counts >> 32;
  return (counts + (counts >> 16)) & 0xFFFFull;
}

// Three bit planes to two: a + b + c = 2·carry + sum in every bit position.
void carry_save(Words a, Words b, Words c, Words& carry, Words& sum) {
  const Words half = a ^ b;
  carry = (a & b) | (half & c);
  sum = half ^ c;
}

// Eight vectors at a time through a tree of carry-save adders, so that one vector in eight is counted bit by bit.
template <std::size_t count>
void add_bits(const std::uint64_t* prefix, const std::uint64_t* columns, std::size_t words, double* out) {
  for (std::size_t c = 0; c < count; ++c) {
    const auto* shared = reinterpret_cast<const Words*>(prefix);
    const auto* column = reinterpret_cast<const Words*>(columns + c * words);
    Words ones{}, twos{}, fours{}, eights_counted{};
    for (std::size_t v = 0; v < words / vector_words; v += 8) {
      const auto at = [&](std::size_t i) { return shared[v + i] ^ column[v + i]; };
      Words two_a, two_b, four_a, four_b, eight;
      carry_save(ones, at(0), at(1), two_a, ones);
      carry_save(ones, at(2), at(3), two_b, ones);
      carry_save(twos, two_a, two_b, four_a, twos);
      carry_save(ones, at(4), at(5), two_a, ones);
      carry_save(ones, at(6), at(7), two_b, ones);
      carry_save(twos, two_a, two_b, four_b, twos);
      carry_save(fours, four_a, four_b, eight, fours);
      eights_counted += word_counts(eight);
    }
    const Words total = 8 * eights_counted + 4 * word_counts(fours) + 2 * word_counts(twos) + word_counts(ones);
    std::uint64_t sum = 0;
    for (std::size_t lane = 0; lane < vector_words; ++lane) sum += total[lane];
    out[c] += static_cast<double>(sum);
  }
}

#endif

struct SignLabels {
  using Value = std::uint64_t;
  // Words of a block: many enough that the horizontal sums are few, few enough that the columns stay in L2.
  static std::size_t block_words(std::size_t n) {
    const std::size_t fit = (std::size_t{1} << 18) / (8 * n) / group_words * group_words;
    return std::clamp(fit, std::max<std::size_t>(group_words, 32), std::size_t{1024});
  }
  static std::size_t values(std::size_t words) { return words; }
  static std::size_t padded(std::size_t words) { return (words + group_words - 1) / group_words * group_words; }

  static void times_column(const Value* labels, const std::uint64_t* column, std::size_t words, Value* product) {
    for (std::size_t w = 0; w < words; ++w) product[w] = labels[w] ^ column[w];
  }
  static void add_row(const Value* prefix, const std::uint64_t* columns, std::size_t count, std::size_t words,
                      double* out) {
    std::size_t c = 0;
    for (; c + sign_tile <= count; c += sign_tile) add_bits<sign_tile>(prefix, columns + c * words, words, out + c);
    for (; c < count; ++c) add_bits<1>(prefix, columns + c * words, words, out + c);
  }
  // The empty set: XOR with an all-clear column.
  static void add_total(const Value* labels, std::size_t words, double* out) {
    const Buffer<std::uint64_t> clear = aligned<std::uint64_t>(words);
    std::memset(clear.get(), 0, words * sizeof(std::uint64_t));
    add_bits<1>(labels, clear.get(), words, out);
  }
};

// Sums of real labels over sets: one masked addition per vector and set.

// Columns whose sums are taken side by side.
constexpr std::size_t real_tile = 4;

// Eight partial sums whatever the vector width, so that every variant adds in the same order.
constexpr std::size_t lanes = 8;

double fold(const double (&sums)[lanes]) {
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

double total(const double* values, std::size_t count) {
  double sums[lanes] = {};
  for (std::size_t i = 0; i < count; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += values[i + lane];
  return fold(sums);
}

#if !defined(__AVX512F__)
constexpr std::size_t width = vector_bytes / sizeof(double);

// All bits of every lane whose bit of the index is set. A constant: nothing of this variant may run before it is chosen.
struct LaneMasks {
  alignas(vector_bytes) std::uint64_t lanes_of[1u << width][width];
  constexpr LaneMasks() : lanes_of{} {
    for (std::size_t index = 0; index < 1u << width; ++index)
      for (std::size_t lane = 0; lane < width; ++lane) lanes_of[index][lane] = index >> lane & 1 ? ~std::uint64_t{0} : 0;
  }
};
constexpr LaneMasks lane_masks;
#endif

// sums[c] = Σ over the set bits of column c of the signed labels.
template <std::size_t count>
void masked_sums(const double* prefix, const std::uint64_t* columns, std::size_t words, double* sums) {
#if defined(__AVX512F__)
  __m512d partial[count];
  for (std::size_t c = 0; c < count; ++c) partial[c] = _mm512_setzero_pd();
  // Byte t of a column holds the bits of samples 8t … 8t + 7 and is itself the mask of their vector.
  const auto* masks = reinterpret_cast<const unsigned char*>(columns);
  for (std::size_t t = 0; t < 8 * words; ++t) {
    const __m512d shared = _mm512_load_pd(prefix + lanes * t);
    for (std::size_t c = 0; c < count; ++c) {
      const __mmask8 mask = _cvtu32_mask8(masks[8 * c * words + t]);
      partial[c] = _mm512_mask_add_pd(partial[c], mask, partial[c], shared);
    }
  }
  for (std::size_t c = 0; c < count; ++c) {
    double lane_sums[lanes];
    _mm512_storeu_pd(lane_sums, partial[c]);
    sums[c] = fold(lane_sums);
  }
#else
  constexpr std::size_t parts = lanes / width;
  Reals partial[count][parts] = {};
  for (std::size_t w = 0; w < words; ++w)
    for (std::size_t byte = 0; byte < 8; ++byte) {
      const auto* shared = reinterpret_cast<const Words*>(prefix + 64 * w + lanes * byte);
      for (std::size_t c = 0; c < count; ++c) {
        const std::uint64_t bits = columns[c * words + w] >> (8 * byte);
        for (std::size_t p = 0; p < parts; ++p) {
          // A clear bit adds +0.0, which changes no partial sum: they start at +0.0.
          const auto& mask = lane_masks.lanes_of[bits >> (p * width) & ((1u << width) - 1)];
          partial[c][p] += reinterpret_cast<Reals>(*reinterpret_cast<const Words*>(mask) & shared[p]);
        }
      }
    }
  for (std::size_t c = 0; c < count; ++c) {
    double lane_sums[lanes];
    std::memcpy(lane_sums, partial[c], sizeof lane_sums);
    sums[c] = fold(lane_sums);
  }
#endif
}

struct RealLabels {
  using Value = double;
  static std::size_t block_words(std::size_t) { return 16; }
  static std::size_t values(std::size_t words) { return 64 * words; }
  static std::size_t padded(std::size_t words) { return words; }

  static void times_column(const Value* labels, const std::uint64_t* column, std::size_t words, Value* product) {
    for (std::size_t w = 0; w < words; ++w)
      for (std::size_t i = 0; i < 64; ++i) {
        const std::uint64_t sign = (column[w] >> i) << 63;
        std::uint64_t bits;
        std::memcpy(&bits, labels + 64 * w + i, sizeof bits);
        bits ^= sign;
        std::memcpy(product + 64 * w + i, &bits, sizeof bits);
      }
  }
  // Σ ±z = Σ z − 2 Σ over the set bits.
  static void add_row(const Value* prefix, const std::uint64_t* columns, std::size_t count, std::size_t words,
                      double* out) {
    const double all = total(prefix, values(words));
    double sums[real_tile];
    std::size_t c = 0;
    for (; c + real_tile <= count; c += real_tile) {
      masked_sums<real_tile>(prefix, columns + c * words, words, sums);
      for (std::size_t t = 0; t < real_tile; ++t) out[c + t] += all - 2.0 * sums[t];
    }
    for (; c < count; ++c) {
      masked_sums<1>(prefix, columns + c * words, words, sums);
      out[c] += all - 2.0 * sums[0];
    }
  }
  static void add_total(const Value* labels, std::size_t words, double* out) { *out += total(labels, values(words)); }
};

// Adds one block of samples to the sums of the sets of ranks first … last − 1, prefix by prefix: `columns` and `labels` hold `words` words of samples each.
template <class Labels>
void add_block(const std::uint64_t* columns, std::size_t n, std::size_t words, const typename Labels::Value* labels,
               typename Labels::Value* scratch, std::size_t size, std::uint64_t first, std::uint64_t last,
               double* out) {
  if (size == 0) return Labels::add_total(labels, words, out);
  Subset prefix = subset_of_rank(n, size, first);
  const std::size_t depth = size - 1, values = Labels::values(words);
  const auto product = [&](std::size_t level) { return level == 0 ? labels : scratch + (level - 1) * values; };
  std::size_t from = prefix.members[depth], changed = 0;
  prefix.size = depth;
  for (std::uint64_t left = last - first; left > 0;) {
    for (std::size_t level = changed; level < depth; ++level)
      Labels::times_column(product(level), columns + prefix.members[level] * words, words, scratch + level * values);
    const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(n - from, left));
    Labels::add_row(product(depth), columns + from * words, count, words, out);
    out += count;
    left -= count;
    if (left == 0) break;
    changed = next_subset(prefix, n - 1);
    from = prefix.members[depth - 1] + 1;
  }
}

// Samples block by block: the block's columns are copied side by side and padded, and stay in cache for all sets.
template <class Labels, class CopyLabels>
void add_all(BitColumns columns, std::size_t size, std::uint64_t first, std::uint64_t last, double* out,
             const CopyLabels& copy_labels) {
  std::fill(out, out + (last - first), 0.0);
  if (first == last) return;
  const std::size_t longest = std::min(Labels::block_words(columns.n), Labels::padded(columns.words));
  const auto block = aligned<std::uint64_t>(columns.n * longest);
  const auto labels = aligned<typename Labels::Value>(Labels::values(longest));
  const auto scratch = aligned<typename Labels::Value>(size * Labels::values(longest));
  for (std::size_t start = 0; start < columns.words; start += longest) {
    const std::size_t real = std::min(longest, columns.words - start), words = Labels::padded(real);
    for (std::size_t j = 0; j < columns.n; ++j) {
      std::memcpy(block.get() + j * words, columns.data + j * columns.words + start, real * sizeof(std::uint64_t));
      std::memset(block.get() + j * words + real, 0, (words - real) * sizeof(std::uint64_t));
    }
    copy_labels(start, real, words, labels.get());
    add_block<Labels>(block.get(), columns.n, words, labels.get(), scratch.get(), size, first, last, out);
  }
}

}  // namespace

void estimate_signs(BitColumns columns, const std::uint64_t* labels, std::size_t samples, std::size_t size,
                    std::uint64_t first, std::uint64_t last, double* out) {
  add_all<SignLabels>(columns, size, first, last, out,
                      [&](std::size_t start, std::size_t real, std::size_t words, std::uint64_t* to) {
                        std::memcpy(to, labels + start, real * sizeof(std::uint64_t));
                        std::memset(to + real, 0, (words - real) * sizeof(std::uint64_t));
                      });
  for (std::uint64_t r = 0; r < last - first; ++r) out[r] = static_cast<double>(samples) - 2.0 * out[r];
}

void estimate_reals(BitColumns columns, const double* labels, std::size_t samples, std::size_t size,
                    std::uint64_t first, std::uint64_t last, double* out) {
  add_all<RealLabels>(columns, size, first, last, out,
                      [&](std::size_t start, std::size_t, std::size_t words, double* to) {
                        const std::size_t real = std::min(64 * words, samples - 64 * start);
                        std::memcpy(to, labels + 64 * start, real * sizeof(double));
                        std::fill(to + real, to + 64 * words, 0.0);
                      });
}

}  // namespace fewfire::FEWFIRE_ISA
