// The Walsh–Hadamard transform of 2^n values on several threads.
//
// Parts of the array, a few for each thread, are transformed depth first (csrc/kernels/walsh.hpp); the levels
// between the parts follow in passes over the whole array, three levels each: one pass for two threads.
#pragma once

#include <cstddef>

namespace fewfire {

// to[S] = scale · Σ_i from[i] (−1)^|i ∩ S|; `from` may be `to`. T is double, float or std::int32_t (scale 1).
template <class T>
void walsh_transform(const T* from, T* to, unsigned n, T scale, std::size_t threads);

}  // namespace fewfire
