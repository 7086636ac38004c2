// Choices by their names in Python; tests compare the names with Python's own.
#pragma once

namespace fewfire {

template <class Kind>
struct Named {
  const char* name;
  Kind kind;
};

}  // namespace fewfire
