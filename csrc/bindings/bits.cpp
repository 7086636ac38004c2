#include "bindings/bindings.hpp"
#include "kernels/bits.hpp"

namespace fewfire {
namespace {

void require(bool holds, const char* message) {
  if (!holds) throw nb::value_error(message);
}

std::size_t words_for(std::size_t bits) { return (bits + 63) / 64; }

}  // namespace

void bind_bits(nb::module_& module) {
  module.def(
      "pack_rows",
      [](ConstArray2<std::int8_t> signs, Array2<std::uint64_t> words) {
        const std::size_t rows = signs.shape(0), columns = signs.shape(1);
        require(words.shape(0) == rows && words.shape(1) == words_for(columns), "words has the wrong shape");
        nb::gil_scoped_release released;
        return FEWFIRE_DISPATCH(pack_rows, signs.data(), rows, columns, columns, words.data());
      },
      nb::arg("signs").noconvert(), nb::arg("words").noconvert());
  module.def(
      "pack_columns",
      [](ConstArray2<std::int8_t> signs, Array2<std::uint64_t> words) {
        const std::size_t rows = signs.shape(0), columns = signs.shape(1);
        require(words.shape(0) == columns && words.shape(1) == words_for(rows), "words has the wrong shape");
        nb::gil_scoped_release released;
        return FEWFIRE_DISPATCH(pack_columns, signs.data(), rows, columns, columns, words.data());
      },
      nb::arg("signs").noconvert(), nb::arg("words").noconvert());
  module.def(
      "unpack_rows",
      [](ConstArray2<std::uint64_t> words, Array2<std::int8_t> signs) {
        const std::size_t rows = signs.shape(0), columns = signs.shape(1);
        require(words.shape(0) == rows && words.shape(1) == words_for(columns), "words has the wrong shape");
        nb::gil_scoped_release released;
        FEWFIRE_DISPATCH(unpack_rows, words.data(), rows, columns, signs.data());
      },
      nb::arg("words").noconvert(), nb::arg("signs").noconvert());
}

}  // namespace fewfire
