// From the flat vector of a network's parameters, which Python owns, to the packed one of the kernels, and back.
#pragma once

#include <cstddef>

#include "kernels/mlp_layout.hpp"

namespace fewfire {

MlpLayout layout_of(std::size_t inputs, const std::size_t* widths, std::size_t depth, std::size_t outputs, bool skip,
                    std::size_t frequencies);

void pack(const MlpLayout& layout, const float* flat, float* packed);
void unpack(const MlpLayout& layout, const float* packed, float* flat);

}  // namespace fewfire
