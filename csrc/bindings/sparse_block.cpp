// Sparse blocks for Python: weights stay in the caller's arrays, which are kept alive; calls may run at the same time.
#include "core/sparse_block/block.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.hpp"

namespace fewfire {
namespace {

using Matrix = ConstArray2<float>;
using Vector = std::optional<ConstArray1<float>>;
// Rows of float32 or float16, or the words of bfloat16.
using Rows = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

template <class T>
nb::object copied(std::size_t count, const auto& entry) {
  T* data = new T[count];
  for (std::size_t i = 0; i < count; ++i) data[i] = entry(i);
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {count}, owner));
}

nb::tuple to_tuple(const SparseWork& work) {
  return nb::make_tuple(work.screened, work.open, work.scored, work.firing, work.multiply_adds, work.bytes);
}

LayerWeights layer_of(const Matrix& weight, const Vector& bias) {
  require(!bias || bias->shape(0) == weight.shape(0), "a bias must have one entry per row");
  return {weight.data(), bias ? bias->data() : nullptr, weight.shape(0), weight.shape(1)};
}

LayerWeights layer_of(const Rows& weight, const Vector& bias, const Vector& thresholds) {
  require(!bias || bias->shape(0) == weight.shape(0), "a bias must have one entry per row");
  require(!thresholds || thresholds->shape(0) == weight.shape(0), "thresholds must have one entry per row");
  const auto type = weight.dtype();
  const bool single = type == nb::dtype<float>(), brain = type == nb::dtype<std::uint16_t>();
  const bool half = type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float) && type.bits == 16;
  if (!single && !brain && !half) throw nb::type_error("weights must be float32, float16 or the words of bfloat16");
  return {weight.data(), bias ? bias->data() : nullptr, weight.shape(0), weight.shape(1),
          thresholds ? thresholds->data() : nullptr, single ? Stored::single : brain ? Stored::brain : Stored::half};
}

SparseActivation activation_of(const std::string& name) {
  return name == "shifted"     ? SparseActivation::shifted
         : name == "threshold" ? SparseActivation::threshold
         : name == "relu2"     ? SparseActivation::relu2
                               : SparseActivation::relu;
}

class LayerBinding {
 public:
  LayerBinding(Rows weight, Vector bias, float threshold, bool residual, std::size_t threads, Vector thresholds)
      : weight_(std::move(weight)), bias_(std::move(bias)), thresholds_(std::move(thresholds)) {
    const LayerWeights weights = layer_of(weight_, bias_, thresholds_);
    nb::gil_scoped_release released;
    layer_ = std::make_unique<ScreenedLayer>(weights, threshold, residual, nullptr, threads);
  }

  // Of the neurons that fire those with the `most` largest scores, where that is not 0.
  nb::tuple firing(Matrix x, std::size_t threads, std::size_t most) const {
    const std::size_t batch = check(x);
    SparseWork work;
    std::vector<NeuronPair> pairs;
    std::vector<std::int64_t> starts(batch + 1, 0);
    {
      nb::gil_scoped_release released;
      pairs = most ? largest_neurons(*layer_, x.data(), batch, most, threads, work)
                   : firing_neurons(*layer_, x.data(), batch, threads, work);
      for (const NeuronPair& pair : pairs) ++starts[pair.row + 1];
      for (std::size_t q = 0; q < batch; ++q) starts[q + 1] += starts[q];
    }
    return nb::make_tuple(copied<std::int64_t>(batch + 1, [&](std::size_t i) { return starts[i]; }),
                          copied<std::int64_t>(pairs.size(), [&](std::size_t i) { return pairs[i].neuron; }),
                          copied<float>(pairs.size(), [&](std::size_t i) { return pairs[i].score; }), to_tuple(work));
  }

  void scores(Matrix x, float resting, Array2<float> out, std::size_t threads) const {
    const std::size_t batch = check(x), width = layer_->weights().width;
    require(out.shape(0) == batch && out.shape(1) == width, "out must have one entry per row and neuron");
    nb::gil_scoped_release released;
    SparseWork work;
    const std::vector<NeuronPair> pairs = firing_neurons(*layer_, x.data(), batch, threads, work);
    std::fill_n(out.data(), batch * width, resting);
    for (const NeuronPair& pair : pairs) out.data()[pair.row * width + pair.neuron] = pair.score;
  }

  void recode(ConstArray1<std::int64_t> neurons, std::size_t threads) {
    for (std::size_t i = 0; i < neurons.shape(0); ++i)
      require(neurons(i) >= 0 && static_cast<std::size_t>(neurons(i)) < layer_->weights().width, "no such neuron");
    nb::gil_scoped_release released;
    layer_->recode(neurons.data(), neurons.shape(0), threads);
  }

  std::size_t memory() const { return layer_->memory(); }

 private:
  std::size_t check(const Matrix& x) const {
    require(x.shape(1) == layer_->weights().inputs, "x must have one column per input");
    return x.shape(0);
  }

  Rows weight_;
  Vector bias_, thresholds_;
  std::unique_ptr<ScreenedLayer> layer_;
};

class BlockBinding {
 public:
  BlockBinding(Matrix up, Vector up_bias, Matrix down, Vector down_bias, std::optional<Matrix> gate, Vector gate_bias,
               const std::string& activation, float threshold, const std::string& gated, bool residual,
               std::size_t threads)
      : up_(std::move(up)), down_(std::move(down)), gate_(std::move(gate)), up_bias_(std::move(up_bias)),
        down_bias_(std::move(down_bias)), gate_bias_(std::move(gate_bias)) {
    const LayerWeights up_layer = layer_of(up_, up_bias_);
    require(down_.shape(0) == up_.shape(0), "down must have one row per neuron");
    require(!down_bias_ || down_bias_->shape(0) == down_.shape(1), "the bias of down must have one entry per output");
    const DownWeights down_layer{down_.data(), down_bias_ ? down_bias_->data() : nullptr, down_.shape(0),
                                 down_.shape(1)};
    const Gating gating = gated == "reglu" ? Gating::reglu : gated == "drelu" ? Gating::drelu : Gating::none;
    require((gating != Gating::none) == gate_.has_value(), "a gate and what it does come together");
    LayerWeights screened = up_layer;
    if (gate_) {
      screened = layer_of(*gate_, gate_bias_);
      require(screened.width == up_layer.width && screened.inputs == up_layer.inputs, "gate must have the shape of up");
    }
    const SparseActivation kind = activation_of(activation);
    nb::gil_scoped_release released;
    block_ = std::make_unique<SparseBlock>(screened, up_layer, down_layer, kind, threshold, gating, residual, threads);
  }

  nb::tuple forward(Matrix x, Array2<float> out, std::size_t threads) const {
    require(x.shape(1) == up_.shape(1), "x must have one column per input");
    require(out.shape(0) == x.shape(0) && out.shape(1) == down_.shape(1), "out must have one entry per row and output");
    SparseWork work;
    {
      nb::gil_scoped_release released;
      block_->forward(x.data(), x.shape(0), threads, out.data(), work);
    }
    return to_tuple(work);
  }

  std::size_t memory() const { return block_->memory(); }

 private:
  Matrix up_, down_;
  std::optional<Matrix> gate_;
  Vector up_bias_, down_bias_, gate_bias_;
  std::unique_ptr<SparseBlock> block_;
};

void down_forward(ConstArray2<float> weight, Vector bias, std::optional<ConstArray1<std::uint8_t>> always,
                  ConstArray2<float> h, Array2<float> out, std::size_t threads) {
  require(h.shape(1) == weight.shape(0), "h must have one column per neuron");
  require(out.shape(0) == h.shape(0) && out.shape(1) == weight.shape(1), "out must have one entry per row and output");
  require(!bias || bias->shape(0) == weight.shape(1), "bias must have one entry per output");
  require(!always || always->shape(0) == weight.shape(0), "always must have one entry per neuron");
  nb::gil_scoped_release released;
  sparse_down({weight.data(), bias ? bias->data() : nullptr, weight.shape(0), weight.shape(1)},
              always ? always->data() : nullptr, h.data(), h.shape(0), threads, out.data());
}

void down_neurons(Rows weight, Vector bias, ConstArray1<std::int64_t> starts, ConstArray1<std::int64_t> neurons,
                  ConstArray1<float> values, Array2<float> out, std::size_t threads) {
  const LayerWeights down = layer_of(weight, std::nullopt, std::nullopt);
  const std::size_t batch = out.shape(0), count = neurons.shape(0);
  require(out.shape(1) == down.inputs && starts.shape(0) == batch + 1, "out must have one entry per row and output");
  require(!bias || bias->shape(0) == down.inputs, "bias must have one entry per output");
  require(values.shape(0) == count && starts(0) == 0 && starts(batch) == static_cast<std::int64_t>(count),
          "starts must go from 0 to the number of neurons");
  for (std::size_t q = 0; q < batch; ++q) require(starts(q) <= starts(q + 1), "starts must not fall");
  for (std::size_t i = 0; i < count; ++i)
    require(neurons(i) >= 0 && static_cast<std::size_t>(neurons(i)) < down.width, "no such neuron");
  nb::gil_scoped_release released;
  add_neurons(down, bias ? bias->data() : nullptr, starts.data(), neurons.data(), values.data(), batch, threads,
              out.data());
}

}  // namespace

void bind_sparse_block(nb::module_& module) {
  nb::class_<LayerBinding>(module, "ScreenedLayer")
      .def(nb::init<Rows, Vector, float, bool, std::size_t, Vector>(), nb::arg("weight").noconvert(),
           nb::arg("bias").noconvert().none(), nb::arg("threshold"), nb::arg("residual"), nb::arg("threads"),
           nb::arg("thresholds").noconvert().none() = nb::none())
      .def("firing", &LayerBinding::firing, nb::arg("x").noconvert(), nb::arg("threads"), nb::arg("most") = 0)
      .def("scores", &LayerBinding::scores, nb::arg("x").noconvert(), nb::arg("resting"), nb::arg("out").noconvert(),
           nb::arg("threads"))
      .def("recode", &LayerBinding::recode, nb::arg("neurons").noconvert(), nb::arg("threads"))
      .def_prop_ro("memory", &LayerBinding::memory);
  nb::class_<BlockBinding>(module, "SparseBlock")
      .def(nb::init<Matrix, Vector, Matrix, Vector, std::optional<Matrix>, Vector, const std::string&, float,
                    const std::string&, bool, std::size_t>(),
           nb::arg("up").noconvert(), nb::arg("up_bias").noconvert().none(), nb::arg("down").noconvert(),
           nb::arg("down_bias").noconvert().none(), nb::arg("gate").noconvert().none(),
           nb::arg("gate_bias").noconvert().none(), nb::arg("activation"), nb::arg("threshold"), nb::arg("gated"),
           nb::arg("residual"), nb::arg("threads"))
      .def("forward", &BlockBinding::forward, nb::arg("x").noconvert(), nb::arg("out").noconvert(), nb::arg("threads"))
      .def_prop_ro("memory", &BlockBinding::memory);
  module.def("down_neurons", &down_neurons, nb::arg("weight").noconvert(), nb::arg("bias").noconvert().none(),
             nb::arg("starts").noconvert(), nb::arg("neurons").noconvert(), nb::arg("values").noconvert(),
             nb::arg("out").noconvert(), nb::arg("threads"));
  module.def("sparse_down", &down_forward, nb::arg("weight").noconvert(), nb::arg("bias").noconvert().none(),
             nb::arg("always").noconvert().none(), nb::arg("h").noconvert(), nb::arg("out").noconvert(),
             nb::arg("threads"));
}

}  // namespace fewfire
