// The losses of tabular models by name.
#pragma once

#include <cstring>
#include <utility>

#include "bindings/bindings.hpp"
#include "kernels/mlp_training.hpp"

namespace fewfire {

inline MlpLoss loss_named(const char* name) {
  for (const auto& [known, loss] : {std::pair{"logistic", MlpLoss::logistic},
                                    {"cross_entropy", MlpLoss::cross_entropy},
                                    {"squared", MlpLoss::squared}})
    if (!std::strcmp(name, known)) return loss;
  throw nb::value_error("loss must be 'logistic', 'cross_entropy' or 'squared'");
}

}  // namespace fewfire
