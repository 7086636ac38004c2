#include "kernels/estimate.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/real_labels.hpp"
#include "kernels/sign_labels.hpp"
#include "kernels/subsets.hpp"
#include "kernels/vectors.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

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
