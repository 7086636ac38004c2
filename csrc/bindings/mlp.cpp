// What a multilayer network does between its matrix products.
#include "kernels/mlp.hpp"

#include "bindings/bindings.hpp"

namespace fewfire {
namespace {

using Floats1 = Array1<float>;
using Floats2 = Array2<float>;

void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

void adamw_step(Floats1 parameters, ConstArray1<float> gradient, Floats1 mean, Floats1 square, float rate, float decay,
                float beta1, float beta2, float tiny) {
  const std::size_t count = parameters.shape(0);
  require(gradient.shape(0) == count && mean.shape(0) == count && square.shape(0) == count,
          "parameters, gradient, mean and square must have one length");
  nb::gil_scoped_release released;
  FEWFIRE_DISPATCH(adamw_step, parameters.data(), gradient.data(), mean.data(), square.data(), count,
                   AdamRule{rate, decay, beta1, beta2, tiny});
}

template <class T>
void bias_relu(Array2<T> hidden, ConstArray1<T> bias) {
  require(bias.shape(0) == hidden.shape(1), "bias must have one entry per neuron");
  nb::gil_scoped_release released;
  FEWFIRE_DISPATCH(bias_relu, hidden.data(), bias.data(), hidden.shape(0), hidden.shape(1));
}

void relu_backward(Floats2 back, ConstArray2<float> hidden, Floats1 bias_gradient) {
  const std::size_t rows = hidden.shape(0), width = hidden.shape(1);
  require(back.shape(0) == rows && back.shape(1) == width, "back and hidden must have one shape");
  require(bias_gradient.shape(0) == width, "bias_gradient must have one entry per neuron");
  nb::gil_scoped_release released;
  FEWFIRE_DISPATCH(relu_backward, back.data(), hidden.data(), bias_gradient.data(), rows, width);
}

void outer_relu_backward(ConstArray1<float> errors, ConstArray1<float> output, ConstArray2<float> hidden, Floats2 back,
                         Floats1 bias_gradient) {
  const std::size_t rows = hidden.shape(0), width = hidden.shape(1);
  require(back.shape(0) == rows && back.shape(1) == width, "back and hidden must have one shape");
  require(errors.shape(0) == rows, "errors must have one entry per row");
  require(output.shape(0) == width && bias_gradient.shape(0) == width, "output and bias_gradient: one entry per neuron");
  nb::gil_scoped_release released;
  FEWFIRE_DISPATCH(outer_relu_backward, errors.data(), output.data(), hidden.data(), back.data(), bias_gradient.data(),
                   rows, width);
}

}  // namespace

void bind_mlp(nb::module_& module) {
  module.def("adamw_step", &adamw_step, nb::arg("parameters").noconvert(), nb::arg("gradient").noconvert(),
             nb::arg("mean").noconvert(), nb::arg("square").noconvert(), nb::arg("rate"), nb::arg("decay"),
             nb::arg("beta1"), nb::arg("beta2"), nb::arg("tiny"));
  module.def("bias_relu", &bias_relu<float>, nb::arg("hidden").noconvert(), nb::arg("bias").noconvert());
  module.def("bias_relu", &bias_relu<double>, nb::arg("hidden").noconvert(), nb::arg("bias").noconvert());
  module.def("relu_backward", &relu_backward, nb::arg("back").noconvert(), nb::arg("hidden").noconvert(),
             nb::arg("bias_gradient").noconvert());
  module.def("outer_relu_backward", &outer_relu_backward, nb::arg("errors").noconvert(), nb::arg("output").noconvert(),
             nb::arg("hidden").noconvert(), nb::arg("back").noconvert(), nb::arg("bias_gradient").noconvert());
}

}  // namespace fewfire
