"""Classical baselines as scikit-learn estimators: elimination, exhaustive search, fixed features."""

from fewfire.learners.baselines._exhaustive_parity import ExhaustiveParity
from fewfire.learners.baselines._gaussian_elimination import GaussianElimination
from fewfire.learners.baselines._kernels import ConjugateKernel, TangentKernel
from fewfire.learners.baselines._random_features import RandomFeatures

__all__ = ["ConjugateKernel", "ExhaustiveParity", "GaussianElimination", "RandomFeatures", "TangentKernel"]
