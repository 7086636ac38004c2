// Extremely randomised trees on a table of float32 columns.
#include <algorithm>
#include <cstring>

#include "bindings/bindings.hpp"
#include "core/extra_trees.hpp"

namespace fewfire {
namespace {

void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

// Trees that have been grown.
class BoundExtraTrees {
 public:
  BoundExtraTrees(ConstArray2<float> table, ConstArray2<std::int32_t> numbers, bool weighted, ConstArray2<float> target,
                  ConstArray1<std::int32_t> rows, std::size_t least_rows, std::size_t tried,
                  ConstArray1<std::uint64_t> seeds)
      : trees_(checked(table, numbers, weighted, target, rows, least_rows, tried),
               {rows.data(), rows.data() + rows.shape(0)}, least_rows, tried) {
    nb::gil_scoped_release released;
    for (std::size_t tree = 0; tree < seeds.shape(0); ++tree) trees_.grow(seeds.data()[tree]);
  }

  std::size_t forks() const { return trees_.forks().size(); }
  std::size_t leaves() const { return forks() + trees_.roots().size(); }

  // forks (forks, 4): column, threshold (the bits of a float), children; roots (trees,); sums (leaves, 1 + parts).
  void write(Array2<std::int32_t> forks, Array1<std::int32_t> roots, Array2<std::int64_t> sums) const {
    require(forks.shape(0) == this->forks() && forks.shape(1) == 4, "forks must be (forks, 4)");
    require(roots.shape(0) == trees_.roots().size(), "roots must be (trees,)");
    require(sums.shape(0) == leaves() && sums.size() == trees_.sums().size(), "sums must be (leaves, 1 + parts)");
    if (this->forks() > 0) std::memcpy(forks.data(), trees_.forks().data(), sizeof(TreeFork) * this->forks());
    std::copy(trees_.roots().begin(), trees_.roots().end(), roots.data());
    std::copy(trees_.sums().begin(), trees_.sums().end(), sums.data());
  }

 private:
  static ExtraTreesTable checked(const ConstArray2<float>& table, const ConstArray2<std::int32_t>& numbers, bool weighted,
                                 const ConstArray2<float>& target, const ConstArray1<std::int32_t>& rows,
                                 std::size_t least_rows, std::size_t tried) {
    const std::size_t columns = table.shape(0), all = table.shape(1);
    require(numbers.shape(1) == all && target.shape(0) == all, "numbers and target must have one per row of the table");
    require(numbers.shape(0) == target.shape(1) + weighted, "numbers must be those of the targets, after the weights");
    require(rows.shape(0) > 0, "rows must not be empty");
    require(std::all_of(rows.data(), rows.data() + rows.shape(0),
                        [&](std::int32_t row) { return 0 <= row && static_cast<std::size_t>(row) < all; }),
            "rows must be numbers of rows");
    require(least_rows >= 1, "least_rows must be at least 1");
    require(1 <= tried && tried <= columns, "tried must be a number of columns");
    return {table.data(), all, columns, numbers.data(), numbers.shape(0), weighted, target.data(), target.shape(1)};
  }

  ExtraTrees trees_;
};

}  // namespace

void bind_extra_trees(nb::module_& module) {
  nb::class_<BoundExtraTrees>(module, "ExtraTrees")
      .def(nb::init<ConstArray2<float>, ConstArray2<std::int32_t>, bool, ConstArray2<float>, ConstArray1<std::int32_t>,
                    std::size_t, std::size_t, ConstArray1<std::uint64_t>>(),
           nb::arg("table").noconvert(), nb::arg("numbers").noconvert(), nb::arg("weighted"),
           nb::arg("target").noconvert(), nb::arg("rows").noconvert(), nb::arg("least_rows"), nb::arg("tried"),
           nb::arg("seeds").noconvert())
      .def_prop_ro("forks", &BoundExtraTrees::forks)
      .def_prop_ro("leaves", &BoundExtraTrees::leaves)
      .def("write", &BoundExtraTrees::write, nb::arg("forks").noconvert(), nb::arg("roots").noconvert(),
           nb::arg("sums").noconvert());
}

}  // namespace fewfire
