#include "bindings/bindings.hpp"
#include "core/permutation.hpp"
#include "kernels/normal.hpp"
#include "kernels/philox.hpp"

namespace fewfire {

void bind_random(nb::module_& module) {
  module.def(
      "philox_words",
      [](std::uint64_t key, std::uint64_t stream, std::uint64_t first_block, std::size_t skip,
         Array1<std::uint32_t> out) {
        if (skip > 3) throw nb::value_error("skip must be 0 to 3");
        std::uint32_t* data = out.data();
        const std::size_t count = out.shape(0);
        nb::gil_scoped_release released;
        FEWFIRE_DISPATCH(philox_words, key, stream, first_block, skip, count, data);
      },
      nb::arg("key"), nb::arg("stream"), nb::arg("first_block"), nb::arg("skip"), nb::arg("out").noconvert());
  module.def(
      "normal_numbers",
      [](std::uint64_t key, std::uint64_t stream, std::uint64_t start, Array1<double> out) {
        double* data = out.data();
        const std::size_t count = out.shape(0);
        nb::gil_scoped_release released;
        FEWFIRE_DISPATCH(normal_numbers, key, stream, start, count, data);
      },
      nb::arg("key"), nb::arg("stream"), nb::arg("start"), nb::arg("out").noconvert());
  module.def(
      "permutation",
      [](std::uint64_t key, std::uint64_t stream, std::uint64_t first_block, std::size_t skip,
         Array1<std::int64_t> out) {
        if (skip > 3) throw nb::value_error("skip must be 0 to 3");
        if (out.shape(0) > std::size_t{1} << 32) throw nb::value_error("out must have at most 2**32 places");
        std::int64_t* data = out.data();
        const std::size_t count = out.shape(0);
        nb::gil_scoped_release released;
        permutation(key, stream, first_block, skip, count, data);
      },
      nb::arg("key"), nb::arg("stream"), nb::arg("first_block"), nb::arg("skip"), nb::arg("out").noconvert());
}

}  // namespace fewfire
