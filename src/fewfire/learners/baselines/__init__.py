"""Classical baselines as scikit-learn estimators: elimination, searches for noisy parities, fixed features."""

from fewfire.learners.baselines._exhaustive_parity import ExhaustiveParity
from fewfire.learners.baselines._gaussian_elimination import GaussianElimination
from fewfire.learners.baselines._kernels import ConjugateKernel, TangentKernel
from fewfire.learners.baselines._meet_in_the_middle import MeetInTheMiddleParity
from fewfire.learners.baselines._random_features import RandomFeatures
from fewfire.learners.baselines._walsh_parity import WalshParity

__all__ = [
    "ConjugateKernel",
    "ExhaustiveParity",
    "GaussianElimination",
    "MeetInTheMiddleParity",
    "RandomFeatures",
    "TangentKernel",
    "WalshParity",
]
