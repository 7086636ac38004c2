// Boosting of trees on binned tables, and walks through trees.
#include <algorithm>

#include "bindings/bindings.hpp"
#include "bindings/losses.hpp"
#include "core/boosting.hpp"
#include "core/tree_sieve.hpp"

namespace fewfire {
namespace {

static_assert(sizeof(TreeFork) == 16);

void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

// A booster and the arrays it reads.
class BoundBooster {
 public:
  BoundBooster(ConstArray2<std::uint8_t> bins, ConstArray1<std::int64_t> counts, ConstArray2<float> target,
               ConstArray1<float> weight, const char* loss, ConstArray1<std::int32_t> rows,
               ConstArray1<std::int32_t> held, std::size_t leaves, std::size_t least_rows, double learning_rate, double l2,
               double share, std::uint64_t seed)
      : bins_(bins), target_(target), weight_(weight), booster_(checked(counts, loss, rows, held, leaves, share),
                                                                {counts.data(), counts.data() + counts.shape(0)},
                                                                target.data(), target.shape(1), weight.data(),
                                                                loss_named(loss), copied(rows), copied(held),
                                                                {leaves, least_rows, learning_rate, l2, share, seed}) {}

  void advance(Array1<double> losses) {
    nb::gil_scoped_release released;
    booster_.advance(losses.shape(0), losses.data());
  }

  std::size_t forks() const { return booster_.forks().size(); }
  std::size_t trees() const { return booster_.roots().size(); }

  // forks (forks, 4): column, threshold (the bits of a float), children; roots and ends (trees,): where the forks of each
  // tree begin and end; values (forks + trees,); baseline (outputs,).
  void write(Array2<std::int32_t> forks, Array1<std::int32_t> roots, Array1<std::int32_t> ends, Array1<float> values,
             Array1<double> baseline) const {
    require(forks.shape(0) == this->forks() && forks.shape(1) == 4, "forks must be (forks, 4)");
    require(roots.shape(0) == trees() && ends.shape(0) == trees(), "roots and ends must be (trees,)");
    require(values.shape(0) == booster_.values().size(), "values must have one number per leaf");
    require(baseline.shape(0) == target_.shape(1), "baseline must have one number per output");
    std::memcpy(forks.data(), booster_.forks().data(), sizeof(TreeFork) * this->forks());
    std::copy(booster_.roots().begin(), booster_.roots().end(), roots.data());
    std::copy(booster_.ends().begin(), booster_.ends().end(), ends.data());
    std::copy(booster_.values().begin(), booster_.values().end(), values.data());
    std::copy(booster_.baseline().begin(), booster_.baseline().end(), baseline.data());
  }

 private:
  static std::vector<std::int32_t> copied(const ConstArray1<std::int32_t>& rows) {
    return {rows.data(), rows.data() + rows.shape(0)};
  }

  BinnedTable checked(const ConstArray1<std::int64_t>& counts, const char* loss, const ConstArray1<std::int32_t>& rows,
                      const ConstArray1<std::int32_t>& held, std::size_t leaves, double share) const {
    const std::size_t columns = bins_.shape(0), all = bins_.shape(1);
    require(columns > 0 && counts.shape(0) == columns, "counts must have one number per column");
    for (std::size_t c = 0; c < columns; ++c) {
      require(1 <= counts.data()[c] && counts.data()[c] <= 256, "counts must be numbers of bins from 1 to 256");
      const std::uint8_t* of = bins_.data() + c * all;
      require(std::all_of(of, of + all, [&](std::uint8_t bin) { return bin < counts.data()[c]; }),
              "bins must be below counts");
    }
    require(target_.shape(0) == all && weight_.shape(0) == all, "target and weight must have one row per row of bins");
    require(target_.shape(1) > 0, "target must have at least one column");
    require(loss_named(loss) != MlpLoss::logistic || target_.shape(1) == 1, "the logistic loss is of one output");
    for (const auto* ids : {&rows, &held})
      require(std::all_of(ids->data(), ids->data() + ids->shape(0),
                          [&](std::int32_t row) { return 0 <= row && static_cast<std::size_t>(row) < all; }),
              "rows and held must be numbers of rows");
    require(rows.shape(0) > 0, "rows must not be empty");
    require(leaves >= 2, "leaves must be at least 2");
    require(0 < share && share <= 1, "share must be in (0, 1]");
    return {bins_.data(), all, columns};
  }

  ConstArray2<std::uint8_t> bins_;
  ConstArray2<float> target_;
  ConstArray1<float> weight_;
  Booster booster_;
};

void walk(ConstArray2<std::int32_t> forks, ConstArray1<std::int32_t> roots, ConstArray1<std::int32_t> first,
          ConstArray2<float> values, ConstArray2<float> x, Array2<double> out) {
  require(forks.shape(1) == 4, "forks must be (forks, 4)");
  require(first.shape(0) == roots.shape(0), "roots and first must have one number per tree");
  require(out.shape(0) == x.shape(0), "out must have one row per row of x");
  const std::size_t width = values.shape(1);
  const auto fits = [&](std::int32_t o) { return 0 <= o && static_cast<std::size_t>(o) + width <= out.shape(1); };
  require(std::all_of(first.data(), first.data() + first.shape(0), fits), "first must leave room for the values");
  const auto known = [&](std::int32_t child) {
    return child < 0 ? static_cast<std::size_t>(~child) < values.shape(0) : static_cast<std::size_t>(child) < forks.shape(0);
  };
  require(std::all_of(roots.data(), roots.data() + roots.shape(0), known), "roots must be forks or leaves");
  // From the last tree to the first: its forks end where those of the next begin.
  std::size_t end = forks.shape(0);
  for (std::size_t t = roots.shape(0); t-- > 0;) {
    const std::int32_t root = roots.data()[t];
    if (root < 0) continue;
    require(static_cast<std::size_t>(root) < end, "roots must be in order");
    for (auto f = static_cast<std::size_t>(root); f < end; ++f) {
      const std::int32_t* fork = forks.data() + 4 * f;
      require(0 <= fork[0] && static_cast<std::size_t>(fork[0] >> 1) < x.shape(1), "forks must name columns of x");
      for (const std::int32_t child : {fork[2], fork[3]})
        require(known(child) && (child < 0 || (static_cast<std::size_t>(child) > f && static_cast<std::size_t>(child) < end)),
                "children must come after their fork, in the same tree");
    }
    end = static_cast<std::size_t>(root);
  }
  const FlatTrees trees{reinterpret_cast<const TreeFork*>(forks.data()), roots.data(), first.data(), roots.shape(0),
                        values.data(), width};
  nb::gil_scoped_release released;
  add_trees(trees, forks.shape(0), x.data(), x.shape(0), x.shape(1), out.data(), out.shape(1));
}

}  // namespace

void bind_trees(nb::module_& module) {
  nb::class_<BoundBooster>(module, "Booster")
      .def(nb::init<ConstArray2<std::uint8_t>, ConstArray1<std::int64_t>, ConstArray2<float>, ConstArray1<float>,
                    const char*, ConstArray1<std::int32_t>, ConstArray1<std::int32_t>, std::size_t, std::size_t, double,
                    double, double, std::uint64_t>(),
           nb::arg("bins").noconvert(), nb::arg("counts").noconvert(), nb::arg("target").noconvert(),
           nb::arg("weight").noconvert(), nb::arg("loss"), nb::arg("rows").noconvert(), nb::arg("held").noconvert(),
           nb::arg("leaves"), nb::arg("least_rows"), nb::arg("learning_rate"), nb::arg("l2"), nb::arg("share"),
           nb::arg("seed"))
      .def("advance", &BoundBooster::advance, nb::arg("losses").noconvert())
      .def_prop_ro("forks", &BoundBooster::forks)
      .def_prop_ro("trees", &BoundBooster::trees)
      .def("write", &BoundBooster::write, nb::arg("forks").noconvert(), nb::arg("roots").noconvert(),
           nb::arg("ends").noconvert(), nb::arg("values").noconvert(), nb::arg("baseline").noconvert());
  module.def("walk_trees", &walk, nb::arg("forks").noconvert(), nb::arg("roots").noconvert(),
             nb::arg("first").noconvert(), nb::arg("values").noconvert(), nb::arg("x").noconvert(),
             nb::arg("out").noconvert());
}

}  // namespace fewfire
