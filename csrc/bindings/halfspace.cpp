// Half-space indexes for Python: queries share the index, changes have it alone, and the interpreter runs on meanwhile.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <shared_mutex>

#include "bindings/bindings.hpp"
#include "core/halfspace/index.hpp"

namespace fewfire {
namespace {

template <class T>
nb::object to_array(std::vector<T>&& values, std::size_t columns = 0) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  if (columns) {
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(kept->data(), {kept->size() / columns, columns}, owner));
  }
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

using Ids = ConstArray1<std::int64_t>;
using Rows = ConstArray2<float>;
using Numbers = ConstArray1<float>;

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
    const nb::gil_scoped_release released;
    const std::lock_guard turn(turnstile_);
    const std::unique_lock lock(guard_);
    for (std::size_t i = 0; i < ids.shape(0); ++i)
      if (index_->contains(ids.data()[i])) return static_cast<std::int64_t>(i);
    index_->insert(ids.data(), rows.data(), offsets.data(), ids.shape(0), threads);
    return -1;
  }

  std::int64_t remove(Ids ids, std::size_t threads) {
    const nb::gil_scoped_release released;
    const std::lock_guard turn(turnstile_);
    const std::unique_lock lock(guard_);
    const std::int64_t wrong = first_unknown(ids);
    if (wrong < 0) index_->remove(ids.data(), ids.shape(0), threads);
    return wrong;
  }

  std::int64_t update(Ids ids, Rows rows, Numbers offsets, std::size_t threads) {
    check(ids.shape(0), rows, offsets);
    const nb::gil_scoped_release released;
    const std::lock_guard turn(turnstile_);
    const std::unique_lock lock(guard_);
    const std::int64_t wrong = first_unknown(ids);
    if (wrong < 0) index_->update(ids.data(), rows.data(), offsets.data(), ids.shape(0), threads);
    return wrong;
  }

  nb::tuple query(Rows rows, Numbers thresholds, std::size_t threads) {
    check(rows.shape(0), rows, thresholds);
    HalfspaceReport report;
    {
      const nb::gil_scoped_release released;
      const std::shared_lock lock = shared();
      HalfspaceCounters spent;
      report = index_->query({rows.data(), thresholds.data(), rows.shape(0), dimension_}, threads, spent);
      spent.queries = rows.shape(0), spent.reported = report.ids.size();
      const std::lock_guard counting(counting_);
      counters_.add(spent);
    }
    return nb::make_tuple(to_array(std::move(report.starts)), to_array(std::move(report.ids)));
  }

  nb::tuple points() {
    HalfspacePoints points;
    {
      const nb::gil_scoped_release released;
      const std::shared_lock lock = shared();
      points = index_->points();
    }
    return nb::make_tuple(to_array(std::move(points.ids)), to_array(std::move(points.rows), dimension_),
                          to_array(std::move(points.offsets)));
  }

  std::vector<std::uint64_t> counters() {
    const std::lock_guard counting(counting_);
    const HalfspaceCounters& c = counters_;
    return {c.queries, c.reported, c.points, c.rechecks, c.nodes, c.bytes};
  }

  std::size_t size() {
    const nb::gil_scoped_release released;
    const std::shared_lock lock = shared();
    return index_->size();
  }

  std::size_t memory() {
    const nb::gil_scoped_release released;
    const std::shared_lock lock = shared();
    return index_->memory();
  }

 private:
  void check(std::size_t count, const Rows& rows, const Numbers& numbers) const {
    if (rows.shape(0) != count || rows.shape(1) != dimension_ || numbers.shape(0) != count)
      throw nb::value_error("an array has the wrong shape");
  }
  // Queries pass the turnstile one by one and a change holds it, so that a stream of queries cannot keep a change waiting.
  std::shared_lock<std::shared_mutex> shared() {
    const std::lock_guard turn(turnstile_);
    return std::shared_lock(guard_);
  }
  std::int64_t first_unknown(const Ids& ids) const {
    for (std::size_t i = 0; i < ids.shape(0); ++i)
      if (!index_->contains(ids.data()[i])) return static_cast<std::int64_t>(i);
    return -1;
  }

  std::unique_ptr<HalfspaceIndex> index_;
  std::size_t dimension_;
  std::shared_mutex guard_;
  std::mutex turnstile_, counting_;
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
      .def("points", &HalfspaceBinding::points)
      .def_prop_ro("counters", &HalfspaceBinding::counters)
      .def_prop_ro("size", &HalfspaceBinding::size)
      .def_prop_ro("memory", &HalfspaceBinding::memory);
}

}  // namespace fewfire
