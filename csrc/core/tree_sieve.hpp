// Outputs of trees: small ones by sieve, large ones by walks.
#pragma once

#include "kernels/trees.hpp"

namespace fewfire {

// out (rows, outputs) += what the trees, of so many forks in all, say of x (rows, columns). Every root is the first fork
// of its tree or, where that has none, a leaf; trees stand in order, and children come after their fork.
void add_trees(const FlatTrees& trees, std::size_t forks, const float* x, std::size_t rows, std::size_t columns,
               double* out, std::size_t outputs);

}  // namespace fewfire
