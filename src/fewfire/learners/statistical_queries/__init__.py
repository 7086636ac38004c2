"""Learning from statistical queries (sparse-activations, section 4): an oracle, and learners that only ask it."""

from fewfire.learners.statistical_queries._low_degree import QueriedPolynomial, learn_low_degree
from fewfire.learners.statistical_queries._oracle import Query, QueryTarget, SQOracle
from fewfire.learners.statistical_queries._parity import QueriedParity, Strategy, learn_parity

__all__ = [
    "QueriedParity",
    "QueriedPolynomial",
    "Query",
    "QueryTarget",
    "SQOracle",
    "Strategy",
    "learn_low_degree",
    "learn_parity",
]
