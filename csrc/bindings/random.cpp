#include "bindings/bindings.hpp"
#include "kernels/philox.hpp"

namespace fewfire {

void bind_random(nb::module_& module) {
  module.def(
      "philox_words",
      [](std::uint64_t key, std::uint64_t stream, std::uint64_t first_word, Array1<std::uint32_t> out) {
        std::uint32_t* data = out.data();
        const std::size_t count = out.shape(0);
        nb::gil_scoped_release released;
        FEWFIRE_DISPATCH(philox_words, key, stream, first_word, count, data);
      },
      nb::arg("key"), nb::arg("stream"), nb::arg("first_word"), nb::arg("out").noconvert());
}

}  // namespace fewfire
