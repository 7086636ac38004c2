"""The conjugate kernel: an infinitely wide ReLU layer kept as drawn, only the output trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewfire.learners.baselines._arc_cosine import conjugate_kernel
from fewfire.learners.baselines._kernel_classifier import KernelClassifier

if TYPE_CHECKING:
    from fewfire._types import Float64Array


class ConjugateKernel(KernelClassifier):
    """Classifier with the conjugate kernel of the two-layer ReLU network; fixed features, of infinite width.

    The network is f(x) = √(2/width) Σ_j u_j relu(⟨w_j, x⟩/√n + bias·v_j) with standard normal w_j, v_j, so that
    K(x, x) = ‖x‖²/n + bias². `RandomFeatures` has finite width and tends to it.

    Parameters
    ----------
    bias : float of at least 0
        Standard deviation of the neurons' biases; at 0 no odd parity of three or more bits can be expressed.
    loss : "ridge" or "hinge"
    alpha : float above 0
        Strength of the penalty (alpha/2) ‖f‖² against the mean loss.

    Attributes
    ----------
    classes_ : array of shape (classes,)
    X_fit_ : array of shape (m, n)
    dual_coef_ : array of shape (m, 1 or classes), for ridge
    machine_ : scikit-learn SVC, for hinge
    """

    def _kernel(self, A: Float64Array, B: Float64Array) -> Float64Array:
        return conjugate_kernel(A, B, self.bias)
