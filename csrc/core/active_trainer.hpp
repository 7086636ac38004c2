// Training the hidden weights of f(x) = Σ_r a_r (z_r·1[z_r > τ]), z_r = ⟨w_r, x⟩ + b_r, on examples that move near their
// anchors, at the cost of the pairs near the threshold (kernels/drift_lists.hpp).
//
// The neurons are dealt to pieces, as many for any number of threads, and sums over pieces are taken in their order, so
// results do not depend on threads. Within a piece they are sorted by bias, which best predicts how often a neuron
// fires and does not change: what a pass reads lies together.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/drift_lists.hpp"

namespace fewfire {

class ActiveTrainer {
 public:
  struct Shape {
    std::size_t width, inputs, examples;
  };
  // Copies everything; `anchors` is examples × inputs. `slack` is added to `reach`: rounding of the caller's moves.
  ActiveTrainer(Shape shape, const float* hidden, const float* bias, const float* output, float threshold,
                const float* anchors, double reach, double slack, std::size_t threads);

  const Shape& shape() const { return shape_; }
  // Takes the moved examples (examples × inputs) of the next calls. −1, or the first row that is not finite or farther
  // than reach + slack from its anchor, and then nothing has changed.
  std::int64_t place(const float* moved);
  // Σ_r a_r σ(z_r) and, unless null, its gradient by x at the placed examples.
  void evaluate(double* values, float* gradients);
  // w_r −= rate·a_r·Σ_i slope_i x̃_i over active pairs (r, i), found anew unless the last call has left them.
  void update(const float* slopes, float rate);
  // The first pair that fires at the placed examples but is in no list; false when there is none.
  bool missing(std::uint64_t* pair) const;

  void export_weights(float* hidden) const;
  void export_fired(std::int64_t* fired) const;  // per example, of the last evaluation
  std::uint64_t last_active() const;             // their sum
  DriftCounts counts() const;
  std::size_t listed() const;  // entries of all lists

 private:
  // The references of a site, their largest distance from the anchors, and the sum of the longest steps they have taken.
  struct Site {
    AlignedVector<float> rows;
    double farthest = 0.0, base = 0.0;
  };

  // Cuts the neurons into pieces, in the order in which they are kept.
  void deal(const float* bias);
  // The site near the placed examples, a new one if need be, with what its odometer shows there. `farthest` is at least
  // the distance of every example from its anchor.
  std::size_t find_site(double farthest);
  void pass(bool gradients);

  Shape shape_;
  DriftNet net_;
  std::vector<std::uint32_t> order_;  // the neuron of each row of the net
  std::vector<DriftPiece> pieces_;
  AlignedVector<float> rows_;  // the placed examples
  Site sites_[most_sites];     // the first, at the anchors, stays
  DriftCall call_;
  bool scored_ = false;  // the pieces hold the active pairs of the placed examples at the present weights
  std::size_t threads_;
};

}  // namespace fewfire
