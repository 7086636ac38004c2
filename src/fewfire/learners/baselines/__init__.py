"""Classical rivals of the networks, as scikit-learn estimators: elimination, exhaustive search, fixed features."""

from fewfire.learners.baselines._conjugate_kernel import ConjugateKernel
from fewfire.learners.baselines._exhaustive_parity import ExhaustiveParity
from fewfire.learners.baselines._gaussian_elimination import GaussianElimination
from fewfire.learners.baselines._random_features import RandomFeatures
from fewfire.learners.baselines._tangent_kernel import TangentKernel

__all__ = ["ConjugateKernel", "ExhaustiveParity", "GaussianElimination", "RandomFeatures", "TangentKernel"]
