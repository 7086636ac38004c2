// Half-space indexes for Python: queries share the index, changes have it alone, and the interpreter runs on meanwhile.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "bindings/bindings.hpp"
#include "bindings/shared_state.hpp"
#include "core/halfspace/index.hpp"

namespace fewfire {
namespace {

template <class T>
nb::object to_array(std::vector<T>&& values, std::size_t columns = 0) {
  auto moved = std::make_unique<std::vector<T>>(std::move(values));
  const nb::capsule owner(moved.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  std::vector<T>* kept = moved.release();
  if (columns) {
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(kept->data(), {kept->size() / columns, columns}, owner));
  }
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

using Ids = ConstArray1<std::int64_t>;
using Rows = ConstArray2<float>;
using Numbers = ConstArray1<float>;

// A number as float32, finite: a float, an integer that a float32 holds exactly, or a NumPy float32.
std::optional<float> plain_number(nb::handle value) {
  float number;
  if (PyFloat_Check(value.ptr())) {
    number = static_cast<float>(PyFloat_AsDouble(value.ptr()));
  } else if (PyLong_CheckExact(value.ptr())) {
    int overflow = 0;
    const long long whole = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow != 0 || whole > 1 << 24 || whole < -(1 << 24)) return std::nullopt;
    number = static_cast<float>(whole);
  } else {
    nb::ndarray<const float, nb::ndim<0>, nb::device::cpu> scalar;
    if (!nb::try_cast(value, scalar, false)) return std::nullopt;
    number = *scalar.data();
  }
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

// A vector of `dimension` finite float32 numbers, from an array of float32 (not copied), of float64 or a list.
class PlainVector {
 public:
  PlainVector(nb::handle values, std::size_t dimension) {
    ConstArray1<double> wide;
    if (nb::try_cast(values, array_, false)) {
      if (array_.shape(0) == dimension) data_ = array_.data();
    } else if (nb::try_cast(values, wide, false)) {
      if (wide.shape(0) != dimension) return;
      copy_.assign(wide.data(), wide.data() + dimension);
      data_ = copy_.data();
    } else if (PyList_CheckExact(values.ptr())) {
      if (static_cast<std::size_t>(PyList_Size(values.ptr())) != dimension) return;
      copy_.reserve(dimension);
      for (std::size_t j = 0; j < dimension; ++j) {
        const std::optional<float> number = plain_number(PyList_GetItem(values.ptr(), static_cast<Py_ssize_t>(j)));
        if (!number) return;
        copy_.push_back(*number);
      }
      data_ = copy_.data();
      return;
    }
    const auto finite = [](float number) { return std::isfinite(number); };
    if (data_ != nullptr && !std::all_of(data_, data_ + dimension, finite)) data_ = nullptr;
  }
  const float* data() const { return data_; }  // null where it is none

 private:
  Numbers array_;
  std::vector<float> copy_;
  const float* data_ = nullptr;
};

class HalfspaceBinding {
 public:
  HalfspaceBinding(const std::string& method, std::size_t dimension)
      : index_(make_halfspace_index(method, dimension)), dimension_(dimension) {
    if (!index_ || dimension < 1) throw nb::value_error("no such method in this dimension");
  }

  // The position of the first id that stands in the way (known when it has to be new, unknown when it has to be known),
  // with nothing changed; −1 when all went in.
  std::int64_t insert(Ids ids, Rows rows, Numbers offsets, std::size_t threads) {
    check(ids.shape(0), rows, offsets);
    return state_.change([&] {
      const std::int64_t wrong = first_that(ids, true);
      if (wrong < 0) index_->insert(ids.data(), rows.data(), offsets.data(), ids.shape(0), threads);
      return wrong;
    });
  }

  std::int64_t remove(Ids ids, std::size_t threads) {
    return state_.change([&] {
      const std::int64_t wrong = first_that(ids, false);
      if (wrong < 0) index_->remove(ids.data(), ids.shape(0), threads);
      return wrong;
    });
  }

  std::int64_t update(Ids ids, Rows rows, Numbers offsets, std::size_t threads) {
    check(ids.shape(0), rows, offsets);
    return state_.change([&] {
      const std::int64_t wrong = first_that(ids, false);
      if (wrong < 0) index_->update(ids.data(), rows.data(), offsets.data(), ids.shape(0), threads);
      return wrong;
    });
  }

  nb::tuple query(Rows rows, Numbers thresholds, std::size_t threads) {
    check(rows.shape(0), rows, thresholds);
    HalfspaceReport report = answer({rows.data(), thresholds.data(), rows.shape(0), dimension_}, threads, false);
    return nb::make_tuple(to_array(std::move(report.starts)), to_array(std::move(report.ids)));
  }

  nb::tuple query_scores(Rows rows, Numbers thresholds, std::size_t threads) {
    check(rows.shape(0), rows, thresholds);
    HalfspaceReport report = answer({rows.data(), thresholds.data(), rows.shape(0), dimension_}, threads, true);
    return nb::make_tuple(to_array(std::move(report.starts)), to_array(std::move(report.ids)),
                          to_array(std::move(report.scores)));
  }

  // The ids of one query, or the pair of them and their scores. None where `a` or the threshold is not plainly what it
  // has to be: the caller then converts what can be converted, and otherwise raises an error that names what is wrong.
  nb::object query_one(nb::handle a, nb::handle threshold, std::size_t threads, bool scores) {
    const PlainVector row(a, dimension_);
    const std::optional<float> above = row.data() == nullptr ? std::nullopt : plain_number(threshold);
    if (!above) return nb::none();
    HalfspaceReport report = answer({row.data(), &*above, 1, dimension_}, threads, scores);
    nb::object ids = to_array(std::move(report.ids));
    return scores ? nb::make_tuple(std::move(ids), to_array(std::move(report.scores))) : ids;
  }

  nb::tuple points() {
    HalfspacePoints points = state_.ask([&] { return index_->points(); });
    return nb::make_tuple(to_array(std::move(points.ids)), to_array(std::move(points.rows), dimension_),
                          to_array(std::move(points.offsets)));
  }

  std::vector<std::uint64_t> counters() {
    const HalfspaceCounters c = state_.note([&] { return counters_; });
    return {c.queries, c.reported, c.points, c.rechecks, c.nodes, c.bytes};
  }

  std::size_t size() {
    return state_.ask([&] { return index_->size(); });
  }

  std::size_t memory() {
    return state_.ask([&] { return index_->memory(); });
  }

 private:
  HalfspaceReport answer(const HalfspaceQueries& queries, std::size_t threads, bool scores) {
    HalfspaceCounters spent;
    HalfspaceReport report = state_.ask([&] {
      return scores ? index_->query_scores(queries, threads, spent) : index_->query(queries, threads, spent);
    });
    spent.queries = queries.count, spent.reported = report.ids.size();
    state_.note([&] { counters_.add(spent); });
    return report;
  }
  void check(std::size_t count, const Rows& rows, const Numbers& numbers) const {
    if (rows.shape(0) != count || rows.shape(1) != dimension_ || numbers.shape(0) != count)
      throw nb::value_error("an array has the wrong shape");
  }
  // The position of the first id that is known, or is not; −1 where there is none.
  std::int64_t first_that(const Ids& ids, bool known) const {
    for (std::size_t i = 0; i < ids.shape(0); ++i)
      if (index_->contains(ids.data()[i]) == known) return static_cast<std::int64_t>(i);
    return -1;
  }

  std::unique_ptr<HalfspaceIndex> index_;
  std::size_t dimension_;
  SharedState state_;
  HalfspaceCounters counters_;
};

}  // namespace

void bind_halfspace(nb::module_& module) {
  nb::class_<HalfspaceBinding>(module, "HalfspaceIndex")
      .def(nb::init<const std::string&, std::size_t>(), nb::arg("method"), nb::arg("dimension"))
      .def("insert", &HalfspaceBinding::insert, nb::arg("ids").noconvert(), nb::arg("rows").noconvert(),
           nb::arg("offsets").noconvert(), nb::arg("threads"))
      .def("remove", &HalfspaceBinding::remove, nb::arg("ids").noconvert(), nb::arg("threads"))
      .def("update", &HalfspaceBinding::update, nb::arg("ids").noconvert(), nb::arg("rows").noconvert(),
           nb::arg("offsets").noconvert(), nb::arg("threads"))
      .def("query", &HalfspaceBinding::query, nb::arg("rows").noconvert(), nb::arg("thresholds").noconvert(),
           nb::arg("threads"))
      .def("query_scores", &HalfspaceBinding::query_scores, nb::arg("rows").noconvert(),
           nb::arg("thresholds").noconvert(), nb::arg("threads"))
      .def("query_one", &HalfspaceBinding::query_one, nb::arg("a").none(), nb::arg("threshold").none(),
           nb::arg("threads"), nb::arg("scores"))
      .def("points", &HalfspaceBinding::points)
      .def_prop_ro("counters", &HalfspaceBinding::counters)
      .def_prop_ro("size", &HalfspaceBinding::size)
      .def_prop_ro("memory", &HalfspaceBinding::memory);
}

}  // namespace fewfire
