// The Python module `fewfire._core`. Arrays are allocated by the caller: kernels only fill them.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "base/cpu.hpp"

NB_MODULE(_core, m) {
#ifdef NDEBUG
  // Objects still referenced when the interpreter ends are no leak a user could mend; debug builds report them.
  nanobind::set_leak_warnings(false);
#endif
  m.def("isa", [] { return std::string(fewfire::isa_name(fewfire::current_isa())); });
  m.def("available_isas", &fewfire::available_isas);
  m.def("set_isa", [](const std::string& name) {
    if (!fewfire::set_isa(name)) throw nanobind::value_error(("instruction set not available here: " + name).c_str());
  });
  fewfire::bind_random(m);
  fewfire::bind_least_squares(m);
  fewfire::bind_bits(m);
  fewfire::bind_fourier(m);
  fewfire::bind_train(m);
  fewfire::bind_parity_search(m);
  fewfire::bind_halfspace(m);
  fewfire::bind_robust(m);
  fewfire::bind_mlp(m);
  fewfire::bind_mlp_training(m);
  fewfire::bind_periodic(m);
  fewfire::bind_sparse_block(m);
}
