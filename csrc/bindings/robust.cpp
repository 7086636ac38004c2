// The trainer of drift lists as a Python object. Arrays are checked for shape here and for meaning in Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>

#include "bindings/bindings.hpp"
#include "core/active_trainer.hpp"

namespace fewfire {
namespace {

void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

void make(ActiveTrainer* self, ConstArray2<float> hidden, ConstArray1<float> bias, ConstArray1<float> output,
          float threshold, ConstArray2<float> anchors, double reach, double slack, std::size_t threads) {
  const ActiveTrainer::Shape shape{hidden.shape(0), hidden.shape(1), anchors.shape(0)};
  require(bias.shape(0) == shape.width && output.shape(0) == shape.width && anchors.shape(1) == shape.inputs,
          "an array has the wrong shape");
  require(shape.width > 0 && shape.inputs > 0 && shape.examples > 0, "an array is empty");
  require(shape.width < 0xffffffffu && shape.examples < 0xffffffffu, "neurons and examples must number below 2**32");
  require(threads >= 1, "threads must be at least 1");
  nb::gil_scoped_release released;
  new (self) ActiveTrainer(shape, hidden.data(), bias.data(), output.data(), threshold, anchors.data(), reach, slack,
                           threads);
}

std::int64_t place(ActiveTrainer& self, ConstArray2<float> moved) {
  require(moved.shape(0) == self.shape().examples && moved.shape(1) == self.shape().inputs, "moved has the wrong shape");
  return self.place(moved.data());
}

void evaluate(ActiveTrainer& self, Array1<double> values, std::optional<Array2<float>> gradients) {
  require(values.shape(0) == self.shape().examples, "values has the wrong shape");
  require(!gradients || (gradients->shape(0) == self.shape().examples && gradients->shape(1) == self.shape().inputs),
          "gradients has the wrong shape");
  double* sums = values.data();
  float* slopes = gradients ? gradients->data() : nullptr;
  nb::gil_scoped_release released;
  self.evaluate(sums, slopes);
}

void update(ActiveTrainer& self, ConstArray1<float> slopes, float rate) {
  require(slopes.shape(0) == self.shape().examples, "slopes has the wrong shape");
  const float* values = slopes.data();
  nb::gil_scoped_release released;
  self.update(values, rate);
}

}  // namespace

void bind_robust(nb::module_& module) {
  nb::class_<ActiveTrainer>(module, "ActiveTrainer")
      .def("__init__", &make, nb::arg("hidden"), nb::arg("bias"), nb::arg("output"), nb::arg("threshold"),
           nb::arg("anchors"), nb::arg("reach"), nb::arg("slack"), nb::arg("threads"))
      .def("place", &place, nb::arg("moved").noconvert())
      .def("evaluate", &evaluate, nb::arg("values").noconvert(), nb::arg("gradients").noconvert().none())
      .def("update", &update, nb::arg("slopes").noconvert(), nb::arg("rate"))
      .def("missing",
           [](const ActiveTrainer& self) -> std::optional<std::pair<std::uint64_t, std::uint64_t>> {
             std::uint64_t pair[2];
             if (!self.missing(pair)) return std::nullopt;
             return std::pair{pair[0], pair[1]};
           })
      .def("weights",
           [](const ActiveTrainer& self, Array2<float> hidden) {
             require(hidden.shape(0) == self.shape().width && hidden.shape(1) == self.shape().inputs,
                     "hidden has the wrong shape");
             self.export_weights(hidden.data());
           })
      .def("fired",
           [](const ActiveTrainer& self, Array1<std::int64_t> fired) {
             require(fired.shape(0) == self.shape().examples, "fired has the wrong shape");
             self.export_fired(fired.data());
           })
      .def_prop_ro("listed", &ActiveTrainer::listed)
      .def_prop_ro("counts", [](const ActiveTrainer& self) {
        const DriftCounts c = self.counts();
        return std::vector<std::uint64_t>{self.last_active(), c.active, c.touched, c.scored, c.summed,
                                          c.slots,            c.lists,  c.updated, c.refreshed};
      });
}

}  // namespace fewfire
