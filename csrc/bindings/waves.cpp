// Learned waves of the inputs of a multilayer network.
#include "kernels/waves.hpp"

#include "bindings/bindings.hpp"

namespace fewfire {
namespace {

using Floats1 = Array1<float>;
using Floats2 = Array2<float>;
using Input1 = ConstArray1<float>;
using Input2 = ConstArray2<float>;

// The sizes of inputs x (rows, inputs) and waves (inputs, waves); every array of waves must have them.
template <class... Tables>
WaveSizes sizes_of(const Input2& x, const Input2& mix, const Tables&... others) {
  const WaveSizes sizes{x.shape(0), x.shape(1), mix.shape(1)};
  if (!((mix.shape(0) == sizes.inputs) && ... && (others.shape(0) == sizes.inputs && others.shape(1) == sizes.waves)))
    throw nb::value_error("arrays of waves must have one row per input and one column per wave");
  return sizes;
}

void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

void wave_values(Input2 x, Input2 mix, Input2 frequency, Input2 phase, Input1 bias, Floats2 fed, Floats2 cosines,
                 Floats2 sines) {
  const WaveSizes sizes = sizes_of(x, mix, frequency, phase);
  const std::size_t kept = sizes.inputs * sizes.waves;
  require(bias.shape(0) == sizes.inputs, "bias must have one entry per input");
  require(fed.shape(0) == sizes.rows && fed.shape(1) == 2 * sizes.inputs, "fed must have two columns per input");
  require(cosines.shape(0) == sizes.rows && sines.shape(0) == sizes.rows && cosines.shape(1) == kept &&
              sines.shape(1) == kept,
          "cosines and sines must have one row per row of x and one column per wave");
  nb::gil_scoped_release released;
  FEWFIRE_DISPATCH(wave_values, x.data(), WaveParameters{mix.data(), frequency.data(), phase.data(), bias.data()},
                   fed.data(), cosines.data(), sines.data(), sizes);
}

void wave_gradients(Input2 x, Input2 back, Input2 cosines, Input2 sines, Input2 mix, Floats2 of_mix,
                    Floats2 of_frequency, Floats2 of_phase, Floats1 of_bias) {
  const WaveSizes sizes = sizes_of(x, mix, of_mix, of_frequency, of_phase);
  const std::size_t kept = sizes.inputs * sizes.waves;
  require(back.shape(0) == sizes.rows && back.shape(1) == sizes.inputs, "back and x must have one shape");
  require(of_bias.shape(0) == sizes.inputs, "of_bias must have one entry per input");
  require(cosines.shape(0) == sizes.rows && sines.shape(0) == sizes.rows && cosines.shape(1) == kept &&
              sines.shape(1) == kept,
          "cosines and sines must have one row per row of x and one column per wave");
  nb::gil_scoped_release released;
  FEWFIRE_DISPATCH(wave_gradients, x.data(), back.data(), cosines.data(), sines.data(),
                   WaveParameters{mix.data(), nullptr, nullptr, nullptr},
                   WaveGradients{of_mix.data(), of_frequency.data(), of_phase.data(), of_bias.data()}, sizes);
}

}  // namespace

void bind_waves(nb::module_& module) {
  module.def("wave_values", &wave_values, nb::arg("x").noconvert(), nb::arg("mix").noconvert(),
             nb::arg("frequency").noconvert(), nb::arg("phase").noconvert(), nb::arg("bias").noconvert(),
             nb::arg("fed").noconvert(), nb::arg("cosines").noconvert(), nb::arg("sines").noconvert());
  module.def("wave_gradients", &wave_gradients, nb::arg("x").noconvert(), nb::arg("back").noconvert(),
             nb::arg("cosines").noconvert(), nb::arg("sines").noconvert(), nb::arg("mix").noconvert(),
             nb::arg("of_mix").noconvert(), nb::arg("of_frequency").noconvert(), nb::arg("of_phase").noconvert(),
             nb::arg("of_bias").noconvert());
}

}  // namespace fewfire
