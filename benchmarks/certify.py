"""How much of what withstands attacks is proved, and how long does a proof take? With auto_LiRPA's CROWN and α-CROWN.

scikit-learn's digits, pixels in [0, 1], ℓ₂ radii 0.3 and 0.5; scikit-learn's MLP of 50 neurons and of two layers of 50
("deep"), undefended, and `RobustClassifier` trained for 0.5: as it is by default (1000 ReLUs, both layers), the same
with proof_weight=0.3, and by Algorithm 1 (300 shifted ReLUs per class). Each row is attacked, certified by `certify` as
it is by default, and by branch and bound where that leaves a row open. Asked: of the rows that withstand the attack, at
least 85% are proved in every setting of one hidden layer.

auto_LiRPA bounds ReLU networks; it has no jump at τ and, in the 2-norm, no box. It runs where the folder that holds it
is named, installed without its dependencies: version 0.3 asks for torch < 1.13, and three names that later versions of
torch and NumPy moved are put back here.

    pip install --no-deps --target DIRECTORY auto_LiRPA==0.3 appdirs tqdm graphviz
    python benchmarks/certify.py [--lirpa DIRECTORY] [--rows 300] [--only deep]

Milliseconds are the processor's, on one thread. Also checked: networks of 16 neurons against a dense search, and 10⁶
random points that no proof may miss.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import types
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

import fewfire as ff
from fewfire.networks import TwoLayer
from fewfire.robustness import attack, ball, certify

RADII, BOX, ASKED, NODES, TRIES = (0.3, 0.5), (0.0, 1.0), 0.85, 40, 10**6
Weights = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def weights_of(model: Any) -> Weights | None:
    """Weights and biases of both layers, (outputs, inputs) and (outputs,); None for anything but one ReLU network."""
    if isinstance(model, MLPClassifier):
        if len(model.coefs_) > 2:
            return None
        return model.coefs_[0].T, model.intercepts_[0], model.coefs_[1].T, model.intercepts_[1]
    first, *others = model.networks_
    if others or first.activation.threshold:
        return None
    return first.hidden, first.bias, np.reshape(first.output, (first.width, -1)).T, np.ravel(first.offset)


class Lirpa:
    """auto_LiRPA's CROWN and α-CROWN bounds of f_y − f_j for a ReLU network, without the box."""

    def __init__(self, folder: str) -> None:
        moved = types.ModuleType("numpy.lib.arraysetops")
        moved.isin = np.isin  # type: ignore[attr-defined]
        sys.modules["numpy.lib.arraysetops"] = moved
        sys.path.insert(0, folder)
        import torch
        import torch.onnx.symbolic_helper as helper
        from torch.onnx._internal.torchscript_exporter._globals import GLOBALS

        torch.set_num_threads(1)
        helper._set_opset_version = lambda version: setattr(GLOBALS, "export_onnx_opset_version", version)
        torch._C.Node.__getitem__ = lambda node, key: getattr(node, node.kindOf(key))(key)
        import auto_LiRPA

        self.torch, self.library = torch, auto_LiRPA

    def proved(self, parts: Weights, X: np.ndarray, y: np.ndarray, rho: float, method: str) -> np.ndarray:
        """Which rows "CROWN" or "CROWN-Optimized" proves."""
        torch = self.torch
        classes, (width, inputs) = len(parts[2]), parts[0].shape
        layers = torch.nn.Linear(inputs, width), torch.nn.ReLU(), torch.nn.Linear(width, classes)
        model = torch.nn.Sequential(*layers)  # float32: its optimisation takes nothing else
        for parameter, part in zip(model.parameters(), parts, strict=True):
            parameter.data = torch.tensor(np.array(part, dtype=np.float32))
        rows, own = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
        eye = torch.eye(classes)
        others = torch.tensor([[j for j in range(classes) if j != label] for label in y])
        spec = eye[own][:, None, :] - eye[others]
        options = {"optimize_bound_args": {"iteration": 50}}
        bounded = self.library.BoundedModule(model, torch.empty_like(rows), bound_opts=options, verbose=False)
        region = self.library.BoundedTensor(rows, self.library.PerturbationLpNorm(norm=2, eps=rho))
        found = bounded.compute_bounds(x=(region,), C=spec, method=method, bound_upper=False)[0]
        return np.asarray((found.detach() > 0).all(dim=1).numpy())


def models(rows: int, only: str | None) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = {
            name: MLPClassifier(hidden, max_iter=500, random_state=0).fit(X, y)
            for name, hidden in (("mlp", (50,)), ("deep", (50, 50)))
            if only in (None, name)
        }
    kinds: dict[str, dict[str, Any]] = {
        "both_layers": {},
        "proof_weight": {"proof_weight": 0.3},
        "algorithm_1": {"width": 300, "iterations": 100},
    }
    robust = {
        name: ff.RobustClassifier(rho=0.5, bounds=BOX, random_state=0, **options).fit(X, y)
        for name, options in kinds.items()
        if only in (None, name)
    }
    return plain | robust, X_test[:rows], y_test[:rows]


def dense_errors() -> list[float]:
    """Dense search less proof, on random networks of 16 neurons and two inputs."""
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        activation = "relu" if seed % 2 else "shifted_relu(0.2)"
        network = TwoLayer(rng.normal(size=(16, 2)), 0.3 * rng.normal(size=16), rng.normal(size=16), 0.5, activation)
        point, threat = rng.uniform(-1, 1, size=(1, 2)), ball("l2", 0.5, (-1.0, 1.0), 2)
        sign = 1 if network(point)[0] > 0 else -1
        proof = certify(network, point, [sign], 0.5, bounds=(-1, 1), method="branch", tight=True, nodes=3000)
        best, spread, least = point, threat.rho, np.inf
        for level in range(6):
            grid = np.linspace(-1, 1, 401 if level == 0 else 41)
            moves = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2) * spread
            many = (best[:, None] + moves).reshape(-1, 2)
            many = threat.project(many, np.broadcast_to(point, many.shape))
            values = sign * network(many)
            order = np.argsort(values)[:20]
            best, least, spread = many[order], min(least, float(values[order[0]])), spread / 15
        errors.append(least - float(proof.margin[0]))
    return errors


def broken(model: Any, X: np.ndarray, y: np.ndarray, rho: float, proved: np.ndarray) -> int:
    """Of TRIES random points around proved rows, on the rim mostly, how many the model gets wrong."""
    rows, rng, wrong = np.flatnonzero(proved), np.random.default_rng(0), 0
    threat = ball("l2", rho, BOX, X.shape[1])
    for _ in range(TRIES // 20_000):
        chosen = rng.choice(rows, 20_000)
        moved = threat.project(X[chosen] + rng.normal(size=(20_000, X.shape[1])), X[chosen])
        wrong += int(np.sum(model.predict(moved) != y[chosen]))
    return wrong


def main() -> int:
    with threadpool_limits(1, "blas"):
        return run()


def run() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lirpa", help="the folder that auto_LiRPA was installed into")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--only", help="the name of one model")
    options = parser.parse_args()
    lirpa = Lirpa(options.lirpa) if options.lirpa else None
    everyone, X, y = models(options.rows, options.only)
    result: dict[str, Any] = {"name": "certify", "rows": len(X)}
    shares: list[float] = []
    for name, model in everyone.items():
        weights = weights_of(model)
        for rho in RADII:
            withstood = np.asarray(attack(model, X, y, rho, bounds=BOX).margin > 0)
            began = time.process_time()
            proof = certify(model, X, y, rho, bounds=BOX)
            ms = 1e3 * (time.process_time() - began) / len(X)
            left = ~proof.decided
            more, branch_ms = proof.robust.copy(), 0.0
            if left.any():
                began = time.process_time()
                more[left] = certify(model, X[left], y[left], rho, bounds=BOX, method="branch", nodes=NODES).robust
                branch_ms = 1e3 * (time.process_time() - began) / int(left.sum())
            assert not (more & ~withstood).any(), "a row is proved and fell to the attack"
            share = float(more.sum() / max(1, withstood.sum()))
            shares += [share] if name != "deep" else []
            figures = {
                "attacked": withstood.mean(),
                "proved": proof.robust.mean(),
                "branch": more.mean(),
                "share": share,
                "ms": ms,
                "branch_ms_per_open_row": branch_ms,
            }
            if lirpa is not None and weights is not None:
                for key, method in (("crown", "CROWN"), ("alpha_crown", "CROWN-Optimized")):
                    began = time.process_time()
                    figures[key] = lirpa.proved(weights, X, y, rho, method).mean()
                    figures[f"{key}_ms"] = 1e3 * (time.process_time() - began) / len(X)
            if name in ("mlp", "deep"):
                figures["broken"] = broken(model, X, y, rho, more)
                assert not figures["broken"], "a random point breaks a proof"
            print(name, rho, {key: float(f"{value:.4g}") for key, value in figures.items()}, flush=True)
            result |= {f"{name}_{rho}_{key}": float(f"{value:.4g}") for key, value in figures.items()}
    errors = dense_errors()
    print("16 neurons, dense search less proof:", [float(f"{error:.2g}") for error in errors])
    complete = all(-1e-9 <= error <= 2e-3 for error in errors)
    result |= {"ratio": round(min(shares, default=1.0), 3), "asked": ASKED, "dense_error": float(f"{max(errors):.2g}")}
    print(json.dumps(result))
    return int(min(shares, default=1.0) < ASKED or not complete)


if __name__ == "__main__":
    sys.exit(main())
