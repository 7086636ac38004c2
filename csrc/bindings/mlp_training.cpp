// Whole epochs and outputs of multilayer networks with packed parameters.
#include "kernels/mlp_training.hpp"

#include <algorithm>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/named.hpp"
#include "core/mlp_layout.hpp"
#include "core/permutation.hpp"

namespace fewfire {
namespace {

using Rows = ConstArray1<std::int64_t>;

void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

// The sizes of a network and where its parameters lie.
class PackedMlp {
 public:
  PackedMlp(std::size_t inputs, ConstArray1<std::int64_t> hidden, std::size_t outputs, bool skip,
            std::size_t frequencies, ConstArray1<std::int64_t> ladders) {
    const std::size_t depth = hidden.shape(0);
    require(1 <= depth && depth <= most_layers, "hidden must give the widths of one to three layers");
    require(inputs && outputs && std::all_of(hidden.data(), hidden.data() + depth, [](auto w) { return w > 0; }),
            "inputs, hidden and outputs must be at least 1");
    std::size_t widths[most_layers];
    std::copy_n(hidden.data(), depth, widths);
    at_ = layout_of(inputs, widths, depth, outputs, skip, frequencies);
    std::size_t bins = 0;
    for (std::size_t g = 0; g < ladders.shape(0); ++g) {
      require(ladders.data()[g] > 0, "ladders must have at least one bin each");
      bins += static_cast<std::size_t>(ladders.data()[g]);
    }
    require(bins <= inputs && !(bins && frequencies), "ladders must be among the inputs, and need that there be no frequencies");
    ladder_at_.push_back(inputs - bins);
    for (std::size_t g = 0; g < ladders.shape(0); ++g)
      ladder_at_.push_back(ladder_at_.back() + static_cast<std::size_t>(ladders.data()[g]));
    at_.ladders = ladders.shape(0);
    at_.ladder_at = ladder_at_.data();
  }

  PackedMlp(const PackedMlp&) = delete;  // at_ points into ladder_at_
  PackedMlp& operator=(const PackedMlp&) = delete;

  std::size_t size() const { return at_.size; }

  void pack(ConstArray1<float> flat, Array1<float> packed) const {
    require(flat.shape(0) == at_.flat_size && packed.shape(0) == at_.size, "flat and packed must be of the layout's sizes");
    nb::gil_scoped_release released;
    fewfire::pack(at_, flat.data(), packed.data());
  }

  void unpack(ConstArray1<float> packed, Array1<float> flat) const {
    require(flat.shape(0) == at_.flat_size && packed.shape(0) == at_.size, "flat and packed must be of the layout's sizes");
    nb::gil_scoped_release released;
    fewfire::unpack(at_, packed.data(), flat.data());
  }

  // `state`: the arrays that the optimiser keeps, such as AdamW's two means, each of the size.
  double epoch(Array1<float> packed, Array2<float> state, std::size_t steps, ConstArray2<float> x,
               ConstArray1<float> gains, Rows chosen, ConstArray2<float> target, ConstArray1<float> weight,
               const char* loss, std::size_t batch, const char* optimiser, double learning_rate, double decay,
               double beta1, double beta2) const {
    const MlpRows rows = checked(x, gains, chosen);
    const MlpTargets targets = checked(x.shape(0), target, weight, loss, batch);
    const MlpDescent descent = checked(packed, state, steps, {optimiser, learning_rate, decay, beta1, beta2});
    nb::gil_scoped_release released;
    return FEWFIRE_DISPATCH(mlp_epoch, at_, packed.data(), rows, targets, descent, batch);
  }

  // An epoch in a fresh order, the mean of the weights over epochs, and the outputs of that mean for held-out rows, all
  // without the interpreter's lock. The order is that of words `start` on of a stream; one step takes rows as they are.
  double advance(Array1<float> packed, Array2<float> state, std::size_t steps, ConstArray2<float> x,
                 ConstArray1<float> gains, Rows chosen, ConstArray2<float> target, ConstArray1<float> weight,
                 const char* loss, std::size_t batch, const char* optimiser, double learning_rate, double decay,
                 double beta1, double beta2, std::uint64_t key, std::uint64_t stream, std::uint64_t start,
                 Array1<float> mean, float newest, ConstArray2<float> held_x, ConstArray1<float> held_gains, Rows held,
                 Array2<double> out) const {
    MlpRows rows = checked(x, gains, chosen);
    const MlpTargets targets = checked(x.shape(0), target, weight, loss, batch);
    const MlpDescent descent = checked(packed, state, steps, {optimiser, learning_rate, decay, beta1, beta2});
    const MlpRows judges = checked(held_x, held_gains, held);
    require(mean.shape(0) == at_.size, "mean must be of the layout's size");
    require(out.shape(0) == judges.rows && out.shape(1) == at_.outputs, "out must have one row per validation row");
    nb::gil_scoped_release released;
    std::vector<std::int64_t> order;
    if (batch < rows.rows) {
      order.resize(rows.rows);
      permutation(key, stream, start / 4, start % 4, order.size(), order.data());
      for (std::int64_t& place : order) place = rows.chosen[place];
      rows.chosen = order.data();
    }
    const double total = FEWFIRE_DISPATCH(mlp_epoch, at_, packed.data(), rows, targets, descent, batch);
    float* means = mean.data();
    for (std::size_t e = 0; e < at_.size; ++e)
      means[e] = newest < 1 ? means[e] + newest * (packed.data()[e] - means[e]) : packed.data()[e];
    FEWFIRE_DISPATCH(mlp_outputs, at_, means, 1, judges, out.data());
    return total;
  }

  void outputs(ConstArray2<float> packed, ConstArray2<float> x, ConstArray1<float> gains, Rows chosen,
               Array2<double> out) const {
    const MlpRows rows = checked(x, gains, chosen);
    require(packed.shape(0) > 0 && packed.shape(1) == at_.size, "packed must have one row per network, of the layout's size");
    require(out.shape(0) == rows.rows && out.shape(1) == at_.outputs, "out must have one row per chosen row");
    nb::gil_scoped_release released;
    FEWFIRE_DISPATCH(mlp_outputs, at_, packed.data(), packed.shape(0), rows, out.data());
  }

 private:
  MlpRows checked(const ConstArray2<float>& x, const ConstArray1<float>& gains, const Rows& chosen) const {
    require(x.shape(1) == at_.inputs && gains.shape(0) == at_.inputs, "x and gains must have one column per input");
    const auto inside = [&](std::int64_t row) { return 0 <= row && row < static_cast<std::int64_t>(x.shape(0)); };
    require(std::all_of(chosen.data(), chosen.data() + chosen.shape(0), inside), "chosen must be numbers of rows of x");
    return {x.data(), gains.data(), chosen.data(), chosen.shape(0)};
  }

  MlpTargets checked(std::size_t table, const ConstArray2<float>& target,
                     const ConstArray1<float>& weight, const char* loss, std::size_t batch) const {
    require(target.shape(0) == table && target.shape(1) == at_.outputs && weight.shape(0) == table,
            "target and weight must have one row per row of x");
    const MlpTargets targets{target.data(), weight.data(), kind_of("loss", loss, mlp_losses)};
    require(targets.loss != MlpLoss::logistic || at_.outputs == 1, "the logistic loss is of one output");
    require(batch > 0, "batch must be at least 1");
    return targets;
  }

  struct Rule {
    const char* optimiser;
    double learning_rate, decay, beta1, beta2;
  };

  MlpDescent checked(const Array1<float>& packed, const Array2<float>& state, std::size_t steps, Rule by) const {
    require(packed.shape(0) == at_.size && state.shape(1) == at_.size, "packed and state must be of the layout's size");
    const OptimiserKind kind = kind_of("optimiser", by.optimiser, optimisers);
    require(state.shape(0) == states_of(kind), "state must have a row per array that the optimiser keeps");
    return {kind, by.learning_rate, by.decay, by.beta1, by.beta2, steps,
            state.data(), state.shape(0) > 1 ? state.data() + at_.size : nullptr};
  }

  MlpLayout at_;
  std::vector<std::size_t> ladder_at_;
};

}  // namespace

void bind_mlp_training(nb::module_& module) {
  nb::class_<PackedMlp>(module, "PackedMlp")
      .def(nb::init<std::size_t, ConstArray1<std::int64_t>, std::size_t, bool, std::size_t, ConstArray1<std::int64_t>>(),
           nb::arg("inputs"),
           nb::arg("hidden"), nb::arg("outputs"), nb::arg("skip"), nb::arg("frequencies"),
           nb::arg("ladders"))
      .def_prop_ro("size", &PackedMlp::size)
      .def("pack", &PackedMlp::pack, nb::arg("flat").noconvert(), nb::arg("packed").noconvert())
      .def("unpack", &PackedMlp::unpack, nb::arg("packed").noconvert(), nb::arg("flat").noconvert())
      .def("epoch", &PackedMlp::epoch, nb::arg("packed").noconvert(), nb::arg("state").noconvert(), nb::arg("steps"),
           nb::arg("x").noconvert(), nb::arg("gains").noconvert(), nb::arg("chosen").noconvert(),
           nb::arg("target").noconvert(), nb::arg("weight").noconvert(), nb::arg("loss"), nb::arg("batch"),
           nb::arg("optimiser"), nb::arg("learning_rate"), nb::arg("decay"), nb::arg("beta1"), nb::arg("beta2"))
      .def("advance", &PackedMlp::advance, nb::arg("packed").noconvert(), nb::arg("state").noconvert(),
           nb::arg("steps"), nb::arg("x").noconvert(), nb::arg("gains").noconvert(), nb::arg("chosen").noconvert(),
           nb::arg("target").noconvert(), nb::arg("weight").noconvert(), nb::arg("loss"), nb::arg("batch"),
           nb::arg("optimiser"), nb::arg("learning_rate"), nb::arg("decay"), nb::arg("beta1"), nb::arg("beta2"),
           nb::arg("key"), nb::arg("stream"), nb::arg("start"), nb::arg("mean").noconvert(), nb::arg("newest"),
           nb::arg("held_x").noconvert(), nb::arg("held_gains").noconvert(), nb::arg("held").noconvert(),
           nb::arg("out").noconvert())
      .def("outputs", &PackedMlp::outputs, nb::arg("packed").noconvert(), nb::arg("x").noconvert(),
           nb::arg("gains").noconvert(), nb::arg("chosen").noconvert(), nb::arg("out").noconvert());
}

}  // namespace fewfire
