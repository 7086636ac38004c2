// Choices by their names: what Python passes, and what there is.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>

#include "base/named.hpp"

namespace fewfire {

namespace nb = nanobind;

// The choice of a name.
template <class Kind, std::size_t count>
Kind kind_of(const char* argument, const std::string& name, const Named<Kind> (&choices)[count]) {
  std::string known;
  for (const Named<Kind>& choice : choices) {
    if (name == choice.name) return choice.kind;
    known += (known.empty() ? "'" : ", '") + std::string(choice.name) + "'";
  }
  throw nb::value_error((std::string(argument) + " must be one of " + known + "; got '" + name + "'").c_str());
}

template <class Kind, std::size_t count>
nb::tuple names_of(const Named<Kind> (&choices)[count]) {
  nb::list names;
  for (const Named<Kind>& choice : choices) names.append(choice.name);
  return nb::tuple(names);
}

}  // namespace fewfire
