// What the Python module is made of: one `bind_*` per kernel family.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace fewfire {

namespace nb = nanobind;

void bind_random(nb::module_& module);
void bind_least_squares(nb::module_& module);
void bind_bits(nb::module_& module);
void bind_fourier(nb::module_& module);
void bind_train(nb::module_& module);
void bind_parity_search(nb::module_& module);
void bind_halfspace(nb::module_& module);
void bind_robust(nb::module_& module);
void bind_mlp(nb::module_& module);
void bind_mlp_training(nb::module_& module);
void bind_periodic(nb::module_& module);
void bind_sparse_block(nb::module_& module);

template <class T>
using ConstArray1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using ConstArray2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

}  // namespace fewfire
