// Low-degree least squares: products with the matrix of monomials, and its Gram matrix.
#include "kernels/subcubes.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <new>

#include "bindings/bindings.hpp"
#include "base/parallel.hpp"
#include "kernels/gram.hpp"

namespace fewfire {
namespace {

// A task of `subcube_values` is a range of samples and a lane of subcubes; lanes are added up at the end. Both are
// fixed by the shape of the problem, not by the number of threads, so the result does not depend on threads.
constexpr std::size_t range = std::size_t{1} << 18;  // long, so that building a table costs little next to its lookups
constexpr std::size_t most_lanes = 16;
constexpr std::size_t lane_subcubes = 8;                   // at least so many per lane, or adding up lanes would show
constexpr std::size_t lane_budget = std::size_t{1} << 22;  // doubles in all lanes together

using Bytes2 = ConstArray2<std::uint8_t>;
using Ints1 = ConstArray1<std::int64_t>;

void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

struct Freed {
  void operator()(double* block) const { ::operator delete[](block, std::align_val_t{64}); }
};
using Block = std::unique_ptr<double[], Freed>;

Block aligned(std::size_t count) {
  return Block(static_cast<double*>(::operator new[](count * sizeof(double), std::align_val_t{64})));
}

// Calls work(task, worker) once for each task, on at most `threads` threads; each takes the next task when it is free.
template <class Work>
void share_out(std::size_t tasks, std::size_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  run_threads(std::min(threads, tasks), [&](std::size_t worker) {
    for (std::size_t task = next++; task < tasks; task = next++) work(task, worker);
  });
}

// The cover of one sample, and scratch for its products. It keeps the arrays it was made from alive.
class SubcubeProducts {
 public:
  SubcubeProducts(Bytes2 patterns, ConstArray1<std::int32_t> group_bits, ConstArray2<std::int32_t> groups, Ints1 starts,
                  Ints1 monomials, ConstArray1<std::uint32_t> places)
      : patterns_(patterns), group_bits_(group_bits), groups_(groups), starts_(starts), monomials_(monomials),
        places_(places), subcubes_(groups.shape(0)),
        cover_{patterns.data(), patterns.shape(1), group_bits.data(), groups.data(), groups.shape(1), starts.data(),
               monomials.data(), places.data()} {
    require(subcubes_ > 0 && cover_.arity > 0, "a cover needs subcubes of at least one group");
    require(group_bits.shape(0) == patterns.shape(0), "patterns and group_bits must have one row per group");
    require(starts.shape(0) == subcubes_ + 1 && starts.data()[subcubes_] == static_cast<std::int64_t>(places.shape(0)),
            "starts must end with the number of places");
    require(monomials.shape(0) == places.shape(0), "monomials and places must have one entry per monomial");
    for (std::size_t i = 0; i < subcubes_ * cover_.arity; ++i)
      require(0 <= cover_.groups[i] && static_cast<std::size_t>(cover_.groups[i]) < group_bits.shape(0),
              "groups must name groups");
    for (std::size_t s = 0; s < subcubes_; ++s)
      table_size_ = std::max(table_size_, FEWFIRE_DISPATCH(subcube_table, cover_, s));
  }

  void values(ConstArray1<double> coefficients, Array1<double> values, std::size_t threads) const {
    const std::size_t samples = cover_.samples;
    require(coefficients.shape(0) == places_.shape(0), "coefficients must have one entry per monomial");
    require(values.shape(0) == samples, "values must have one entry per sample");
    nb::gil_scoped_release released;
    const std::size_t ranges = (samples + range - 1) / range;
    const std::size_t room = lane_budget / std::max<std::size_t>(samples, 1);
    const std::size_t lanes = std::bit_floor(std::clamp(std::min(subcubes_ / lane_subcubes, room), std::size_t{1}, most_lanes));
    const Block tables = aligned(table_size_ * threads), partial = aligned(lanes * samples);
    share_out(ranges * lanes, threads, [&](std::size_t task, std::size_t worker) {
      const std::size_t lane = task % lanes, begin = task / lanes * range, end = std::min(samples, begin + range);
      double* out = partial.get() + lane * samples;
      std::fill(out + begin, out + end, 0.0);
      for (std::size_t s = lane * subcubes_ / lanes; s < (lane + 1) * subcubes_ / lanes; ++s)
        FEWFIRE_DISPATCH(subcube_values, cover_, s, begin, end, coefficients.data(), out,
                         tables.get() + worker * table_size_);
    });
    std::fill_n(values.data(), samples, 0.0);
    for (std::size_t lane = 0; lane < lanes; ++lane)
      for (std::size_t i = 0; i < samples; ++i) values.data()[i] += partial[lane * samples + i];
  }

  void sums(ConstArray1<double> weights, Array1<double> sums, std::size_t threads) const {
    require(weights.shape(0) == cover_.samples, "weights must have one entry per sample");
    require(sums.shape(0) == places_.shape(0), "sums must have one entry per monomial");
    nb::gil_scoped_release released;
    const Block tables = aligned(table_size_ * threads);
    share_out(subcubes_, threads, [&](std::size_t s, std::size_t worker) {
      FEWFIRE_DISPATCH(subcube_sums, cover_, s, weights.data(), sums.data(), tables.get() + worker * table_size_);
    });
  }

 private:
  Bytes2 patterns_;
  ConstArray1<std::int32_t> group_bits_;
  ConstArray2<std::int32_t> groups_;
  Ints1 starts_, monomials_;
  ConstArray1<std::uint32_t> places_;
  std::size_t subcubes_, table_size_ = 0;
  Subcubes cover_;
};

void monomial_gram(ConstArray1<double> moments, std::size_t n, ConstArray2<std::int64_t> binomials,
                   ConstArray2<std::int64_t> sets, double samples, Array2<double> out, std::size_t threads) {
  const std::size_t degree = sets.shape(1), size = sets.shape(0) - 1;
  require(degree <= 32, "degree must be at most 32");
  require(binomials.shape(0) == n + 1 && binomials.shape(1) == 2 * degree + 1, "binomials has the wrong shape");
  require(out.shape(0) == size && out.shape(1) == size, "out must be square, one row per non-empty monomial");
  nb::gil_scoped_release released;
  const MomentTable table{moments.data(), n, degree, binomials.data(), sets.data(), samples};
  share_out(size, threads, [&](std::size_t task, std::size_t) {
    FEWFIRE_DISPATCH(gram_row, table, size - task, out.data() + (size - task - 1) * size);  // longest rows first
  });
}

}  // namespace

void bind_least_squares(nb::module_& module) {
  nb::class_<SubcubeProducts>(module, "SubcubeProducts")
      .def(nb::init<Bytes2, ConstArray1<std::int32_t>, ConstArray2<std::int32_t>, Ints1, Ints1,
                    ConstArray1<std::uint32_t>>(),
           nb::arg("patterns").noconvert(), nb::arg("group_bits").noconvert(), nb::arg("groups").noconvert(),
           nb::arg("starts").noconvert(), nb::arg("monomials").noconvert(), nb::arg("places").noconvert())
      .def("values", &SubcubeProducts::values, nb::arg("coefficients").noconvert(), nb::arg("values").noconvert(),
           nb::arg("threads"))
      .def("sums", &SubcubeProducts::sums, nb::arg("weights").noconvert(), nb::arg("sums").noconvert(),
           nb::arg("threads"));
  module.def("monomial_gram", &monomial_gram, nb::arg("moments").noconvert(), nb::arg("n"), nb::arg("binomials").noconvert(),
             nb::arg("sets").noconvert(), nb::arg("samples"), nb::arg("out").noconvert(), nb::arg("threads"));
}

}  // namespace fewfire
