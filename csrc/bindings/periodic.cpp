// Periodic embeddings of the inputs of a multilayer network.
#include "kernels/periodic.hpp"

#include <algorithm>

#include "bindings/bindings.hpp"

namespace fewfire {
namespace {

using Floats1 = Array1<float>;
using Floats2 = Array2<float>;
using Input1 = ConstArray1<float>;
using Input2 = ConstArray2<float>;

// The sizes of inputs x (rows, inputs) and of mix (inputs, frequencies), whose shape all other arrays must have.
template <class Inputs, class... Tables>
PeriodicSizes sizes_of(const Inputs& x, const Inputs& mix, const Tables&... others) {
  const PeriodicSizes sizes{x.shape(0), x.shape(1), mix.shape(1), 2 * x.shape(1), x.shape(1)};
  const auto fits = [&](const auto& table) {
    return table.shape(0) == sizes.inputs && table.shape(1) == sizes.frequencies;
  };
  if (!(fits(mix) && ... && fits(others)))
    throw nb::value_error("mix, frequency and phase must have one row per input and one column per frequency");
  return sizes;
}

void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

void periodic_values(Input2 x, Input2 mix, Input2 frequency, Input2 phase, Input1 bias, Floats2 fed, Floats2 cosines,
                     Floats2 sines) {
  const PeriodicSizes sizes = sizes_of(x, mix, frequency, phase);
  const std::size_t kept = sizes.inputs * sizes.frequencies;
  require(bias.shape(0) == sizes.inputs, "bias must have one entry per input");
  require(fed.shape(0) == sizes.rows && fed.shape(1) == 2 * sizes.inputs, "fed must have two columns per input");
  require(cosines.shape(0) == sizes.rows && sines.shape(0) == sizes.rows && cosines.shape(1) == kept &&
              sines.shape(1) == kept,
          "cosines and sines must have one row per row of x and one column per frequency of each input");
  const PeriodicParameters<float> parameters{mix.data(), frequency.data(), phase.data(), bias.data()};
  nb::gil_scoped_release released;
  FEWFIRE_DISPATCH(periodic_values, x.data(), parameters, fed.data(), cosines.data(), sines.data(), sizes);
}

void periodic_outputs(ConstArray2<double> x, ConstArray2<double> mix, ConstArray2<double> frequency,
                      ConstArray2<double> phase, ConstArray1<double> bias, Array2<double> fed) {
  const PeriodicSizes sizes = sizes_of(x, mix, frequency, phase);
  require(bias.shape(0) == sizes.inputs, "bias must have one entry per input");
  require(fed.shape(0) == sizes.rows && fed.shape(1) == 2 * sizes.inputs, "fed must have two columns per input");
  const PeriodicParameters<double> parameters{mix.data(), frequency.data(), phase.data(), bias.data()};
  nb::gil_scoped_release released;
  FEWFIRE_DISPATCH(periodic_outputs, x.data(), parameters, fed.data(), sizes);
}

void periodic_gradients(Input2 x, Input2 back, Input2 cosines, Input2 sines, Input2 mix, Floats2 of_mix,
                        Floats2 of_frequency, Floats2 of_phase, Floats1 of_bias) {
  const PeriodicSizes sizes = sizes_of(x, mix, of_mix, of_frequency, of_phase);
  const std::size_t kept = sizes.inputs * sizes.frequencies;
  require(back.shape(0) == sizes.rows && back.shape(1) == sizes.inputs, "back and x must have one shape");
  require(of_bias.shape(0) == sizes.inputs, "of_bias must have one entry per input");
  require(cosines.shape(0) == sizes.rows && sines.shape(0) == sizes.rows && cosines.shape(1) == kept &&
              sines.shape(1) == kept,
          "cosines and sines must have one row per row of x and one column per frequency of each input");
  const PeriodicGradients sums{of_mix.data(), of_frequency.data(), of_phase.data(), of_bias.data()};
  nb::gil_scoped_release released;
  std::fill_n(sums.bias, sizes.inputs, 0.0f);
  for (float* part : {sums.mix, sums.frequency, sums.phase}) std::fill_n(part, kept, 0.0f);
  FEWFIRE_DISPATCH(periodic_sums, x.data(), back.data(), cosines.data(), sines.data(), sums, sizes);
  FEWFIRE_DISPATCH(periodic_factors, PeriodicParameters<float>{mix.data(), nullptr, nullptr, nullptr}, sums, sizes);
}

}  // namespace

void bind_periodic(nb::module_& module) {
  module.def("periodic_values", &periodic_values, nb::arg("x").noconvert(), nb::arg("mix").noconvert(),
             nb::arg("frequency").noconvert(), nb::arg("phase").noconvert(), nb::arg("bias").noconvert(),
             nb::arg("fed").noconvert(), nb::arg("cosines").noconvert(), nb::arg("sines").noconvert());
  module.def("periodic_outputs", &periodic_outputs, nb::arg("x").noconvert(), nb::arg("mix").noconvert(),
             nb::arg("frequency").noconvert(), nb::arg("phase").noconvert(), nb::arg("bias").noconvert(),
             nb::arg("fed").noconvert());
  module.def("periodic_gradients", &periodic_gradients, nb::arg("x").noconvert(), nb::arg("back").noconvert(),
             nb::arg("cosines").noconvert(), nb::arg("sines").noconvert(), nb::arg("mix").noconvert(),
             nb::arg("of_mix").noconvert(), nb::arg("of_frequency").noconvert(), nb::arg("of_phase").noconvert(),
             nb::arg("of_bias").noconvert());
}

}  // namespace fewfire
