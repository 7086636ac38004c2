#include <algorithm>
#include <bit>

#include "bindings/bindings.hpp"
#include "base/parallel.hpp"
#include "core/walsh.hpp"
#include "kernels/estimate.hpp"
#include "kernels/subsets.hpp"

namespace fewfire {
namespace {

void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

// Splits coefficients first … last − 1 (all sizes in turn, as `monomials` orders them) by size and among threads;
// kernel(size, from, to, out) fills the sums of one piece. Divides by the number of samples.
template <class Kernel>
void estimate_pieces(std::size_t n, std::size_t samples, std::size_t degree, std::uint64_t first, std::uint64_t last,
                     std::size_t threads, double* out, const Kernel& kernel) {
  std::uint64_t start = 0;
  for (std::size_t size = 0; size <= degree; ++size) {
    const std::uint64_t sets = binomial(n, size);
    const std::uint64_t from = std::max(first, start), to = std::min(last, start + sets);
    if (from < to) {
      const std::uint64_t count = to - from, pieces = std::min<std::uint64_t>(threads == 1 ? 1 : 4 * threads, count);
      parallel_for(pieces, threads, [&](std::size_t index) {
        const std::uint64_t low = from + count * index / pieces, high = from + count * (index + 1) / pieces;
        kernel(size, low - start, high - start, out + low);
        for (std::uint64_t r = low; r < high; ++r) out[r] /= static_cast<double>(samples);
      });
    }
    start += sets;
  }
}

void check_range(std::size_t degree, std::uint64_t first, std::uint64_t last, std::size_t length,
                 std::size_t threads) {
  require(degree <= largest_subset, "degree must be at most 64");
  require(first <= last && last <= length, "the range does not lie within out");
  require(threads >= 1, "threads must be at least 1");
}

template <class T>
void bind_walsh(nb::module_& module) {
  module.def(
      "walsh",
      [](ConstArray1<T> values, Array1<T> out, T scale, std::size_t threads) {
        const std::size_t length = values.shape(0);
        require(std::has_single_bit(length) && out.shape(0) == length, "values and out must hold 2**n values each");
        require(threads >= 1, "threads must be at least 1");
        T* data = out.data();
        nb::gil_scoped_release released;
        walsh_transform<T>(values.data(), data, static_cast<unsigned>(std::countr_zero(length)), scale, threads);
      },
      nb::arg("values").noconvert(), nb::arg("out").noconvert(), nb::arg("scale"), nb::arg("threads"));
}

}  // namespace

void bind_fourier(nb::module_& module) {
  bind_walsh<double>(module);
  bind_walsh<float>(module);
  bind_walsh<std::int32_t>(module);
  module.def(
      "estimate_signs",
      [](ConstArray2<std::uint64_t> columns, ConstArray1<std::uint64_t> labels, std::size_t samples,
         std::size_t degree, std::uint64_t first, std::uint64_t last, std::size_t threads, Array1<double> out) {
        const BitColumns bits{columns.data(), columns.shape(0), columns.shape(1)};
        require(labels.shape(0) == bits.words && bits.words == (samples + 63) / 64 && samples > 0,
                "labels and columns must have ceil(samples / 64) words");
        check_range(degree, first, last, out.shape(0), threads);
        double* values = out.data();
        nb::gil_scoped_release released;
        estimate_pieces(bits.n, samples, degree, first, last, threads, values,
                        [&](std::size_t size, std::uint64_t low, std::uint64_t high, double* to) {
                          FEWFIRE_DISPATCH(estimate_signs, bits, labels.data(), samples, size, low, high, to);
                        });
      },
      nb::arg("columns").noconvert(), nb::arg("labels").noconvert(), nb::arg("samples"), nb::arg("degree"),
      nb::arg("first"), nb::arg("last"), nb::arg("threads"), nb::arg("out").noconvert());
  module.def(
      "estimate_reals",
      [](ConstArray2<std::uint64_t> columns, ConstArray1<double> labels, std::size_t degree, std::uint64_t first,
         std::uint64_t last, std::size_t threads, Array1<double> out) {
        const BitColumns bits{columns.data(), columns.shape(0), columns.shape(1)};
        const std::size_t samples = labels.shape(0);
        require(bits.words == (samples + 63) / 64 && samples > 0, "columns must have ceil(samples / 64) words");
        check_range(degree, first, last, out.shape(0), threads);
        double* values = out.data();
        nb::gil_scoped_release released;
        estimate_pieces(bits.n, samples, degree, first, last, threads, values,
                        [&](std::size_t size, std::uint64_t low, std::uint64_t high, double* to) {
                          FEWFIRE_DISPATCH(estimate_reals, bits, labels.data(), samples, size, low, high, to);
                        });
      },
      nb::arg("columns").noconvert(), nb::arg("labels").noconvert(), nb::arg("degree"), nb::arg("first"),
      nb::arg("last"), nb::arg("threads"), nb::arg("out").noconvert());
}

}  // namespace fewfire
