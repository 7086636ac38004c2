"""Figure 5 of `pareto`: where the luck of lottery tickets lives, measured choice by choice over many wide networks.

Wide networks learn a parity of 50 bits online; a few of their neurons are rewound and trained alone, and so are neurons
that are not tickets. One training of each kind per wide network: the trial is the wide network.

    python tools/figure5.py run docs/results    # continues figure5.json; half an hour of a core
    python tools/figure5.py page docs/results   # figure5.md from it

Kinds of neurons trained alone: tickets, the largest by "product" |u_j|·‖w_j‖, by "rows" ‖w_j‖ or by "output" |u_j|;
"hidden", tickets by product with fresh output weights; "redrawn" as the wide network's neurons were; "alone", redrawn
as a network of that few neurons is (larger output weights); "others", any neurons of the wide network.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from figure4 import markdown

from fewfire._random import Stream
from fewfire.engines import get_engine
from fewfire.papers._effects import mean, share
from fewfire.papers._second_layer import neurons
from fewfire.papers._statistics import in_most
from fewfire.papers.pareto.recipes.lottery_tickets import START, largest, learned, online_run
from fewfire.problems import Parity

if TYPE_CHECKING:
    from fewfire._types import Float64Array
    from fewfire.engines import Result
    from fewfire.networks import TwoLayer

BITS, FIRST, LEARNED, EVALUATE = 50, 7000, 0.1, 2000
"""Bits; the seed of the first network, which no recipe uses; the error of a run that learned; steps between looks."""
RANKS = ("product", "rows", "output")


@dataclass(frozen=True)
class Wide:
    """Wide networks, how many of their neurons are kept, and for how long both are trained."""

    k: int = 5
    width: int = 100
    weight_decay: float = 0.0
    keep: int = 5
    steps: int = 100_000
    retrain_steps: int = 150_000
    networks: int = 40


TABLE: tuple[tuple[Wide, tuple[str, ...]], ...] = (
    (Wide(), ("product", "redrawn", "rows", "output", "hidden", "alone", "others")),
    (Wide(weight_decay=0.01, steps=60_000), ("product", "redrawn")),
    (Wide(width=300, steps=40_000), ("product", "redrawn")),
    (Wide(keep=10, steps=60_000), ("product", "redrawn")),
    (Wide(k=4, steps=40_000, retrain_steps=60_000), ("product", "redrawn", "hidden")),
)


def run(out: Path) -> int:
    """Train what figure5.json lacks."""
    path = out / "figure5.json"
    found = json.loads(path.read_text()) if path.exists() else []
    for setting, kinds in TABLE:
        entry = next((entry for entry in found if entry["setting"] == asdict(setting)), None)
        missing = [kind for kind in kinds if entry is None or kind not in entry["kinds"]]
        if not missing:
            continue
        measured = measure(setting, missing)
        if entry is None:
            found.append(measured)
        else:
            entry["kinds"] |= measured["kinds"]
        path.write_text(json.dumps(found, separators=(",", ":")) + "\n")
    return 0


def measure(setting: Wide, kinds: list[str]) -> dict[str, Any]:
    """Steps to 10% error (None: never) of the wide networks and of each kind, and how lucky the networks were."""
    problem, engine = Parity(BITS, setting.k), get_engine("cpu")
    test = problem.sample(4000, seed=10**6)

    def train(networks: list[TwoLayer], steps: int, key: str, stop_error: float | None = None) -> list[Result]:
        options: dict[str, Any] = {"evaluate": EVALUATE, "weight_decay": setting.weight_decay, "stop_error": stop_error}
        return engine.train(
            [
                online_run(network, problem, test, steps, key.format(number), **options)
                for number, network in enumerate(networks)
            ]
        )

    initial = [START(BITS, setting.width, Stream(FIRST + number, "init")) for number in range(setting.networks)]
    wide = train(initial, setting.steps, f"w {{}} {setting.k} {setting.width} {setting.weight_decay}")
    entry: dict[str, Any] = {
        "setting": asdict(setting),
        "lucky": [_lucky(network, problem) for network in initial],
        "wide": [result.history.first_step(LEARNED) for result in wide],
        "pruned": {
            rank: [_error(neurons(found.network, largest(found.network, setting.keep, rank)), test) for found in wide]
            for rank in RANKS
        },
        "kinds": {},
    }
    for kind in kinds:
        networks = alone(kind, setting, initial, [result.network for result in wide])
        results = train(networks, setting.retrain_steps, "r {} 0", LEARNED)
        entry["kinds"][kind] = [result.history.first_step(LEARNED) for result in results]
        learned = sum(step is not None for step in entry["kinds"][kind])
        print(f"{setting}: {kind} {learned} of {setting.networks}", flush=True)
    return entry


def alone(kind: str, setting: Wide, initial: list[TwoLayer], trained: list[TwoLayer]) -> list[TwoLayer]:
    """The neurons that are trained alone, one small network per wide one."""
    rng, networks, keep = np.random.default_rng(5), [], setting.keep
    for number, network in enumerate(initial):
        fresh = Stream(FIRST + number, "out 0" if kind == "hidden" else "redraw 0")
        if kind in ("redrawn", "alone"):
            width = setting.width if kind == "redrawn" else keep
            networks.append(neurons(START(BITS, width, fresh), np.arange(keep)))
        elif kind == "others":
            networks.append(neurons(network, np.sort(rng.choice(setting.width, keep, replace=False))))
        else:
            ticket = neurons(network, largest(trained[number], keep, "product" if kind == "hidden" else kind))
            if kind == "hidden":
                ticket = ticket.with_parameters(output=START(BITS, setting.width, fresh).output[:keep])
            networks.append(ticket)
    return networks


def _lucky(network: TwoLayer, problem: Parity) -> int:
    """How many neurons start with both weights on bits of the parity."""
    return int(((network.hidden != 0)[:, sorted(problem.support)].sum(axis=1) == 2).sum())


def _error(network: TwoLayer, test: tuple[Any, Any]) -> float:
    return round(float(np.mean(np.sign(network(test[0])) != test[1])), 4)


HEAD = """# Figure 5 of `pareto`: which neurons learn

For readers of pareto who ask why few of the neurons learn the parity, and whether these would learn it alone.

`tools/figure5.py`, {networks} wide networks per row that learn a parity of 50 bits online (rate 0.1, batches of
32, as in C.2; no weight decay where none is named), seeds that the recipe does not use. One training of each kind
per wide network: the trial is the wide network. Shares of trainings that reach 10% test error with Wilson's 95%
intervals; differences are within pairs (Student's interval, sign test)."""

TAIL = """\
The luck is in the rows of the first layer: how the ticket is chosen matters little, and fresh output weights take
nothing away. It is rare: a neuron that starts with both weights on bits of the parity, of which a network of 100 has
none in about four of ten cases at k = 5, and whose ticket then does hardly better than redrawn neurons. Trainings of
one wide network all share its luck, so thirty of them measure the luck of that network: 5 of 30 rewound against 8 of
30 redrawn were once found at k = 5 on a network that has no such neuron. Other neurons of the same network do
little better than redrawn ones. With C.1's weight decay of 0.01, which C.2 does not name, the effect is not seen:
fewer wide networks learn in that time, and five neurons alone hardly ever do, rewound or not. The recipe
`pareto/lottery-tickets` takes 40 other networks, at k = 4 and 5. Other widths and more neurons kept are in the
script's table, and not yet measured."""


def page(out: Path) -> int:
    """Write figure5.md from figure5.json."""
    found = json.loads((out / "figure5.json").read_text())
    base = next(entry for entry in found if entry["setting"] == asdict(Wide()))
    kinds, luck, wide = [], [], []
    for entry in found:
        setting, tickets = describe(entry["setting"]), learned(entry["kinds"]["product"])
        # Redrawn neurons do not depend on the wide network: the same ones serve however long it was trained.
        redrawn = learned(entry["kinds"].get("redrawn", base["kinds"]["redrawn"]))
        for kind, steps in entry["kinds"].items():
            mine = learned(steps)
            cells = [setting, NAMES[kind], share_of(mine), "", ""]
            if kind != "redrawn":
                gap = mean("", mine - redrawn)
                better, worse = int((mine > redrawn).sum()), int((mine < redrawn).sum())
                cells[3] = f"{gap.value:+.0%} ({gap.low:+.0%} to {gap.high:+.0%})"
                cells[4] = f"{in_most(better, better + worse):.2g}"
            kinds.append(cells)
        lucky = np.minimum(entry["lucky"], 2)
        for count, name in enumerate(("none", "one", "two or more")):
            if (lucky == count).any():
                luck.append((setting, name, (lucky == count).sum(), share_of(tickets[lucky == count])))
        small = {name: np.mean([error <= LEARNED for error in errors]) for name, errors in entry["pruned"].items()}
        best = ", ".join(f"{kept:.0%} by {name}" for name, kept in small.items())
        part = np.mean(learned(entry["wide"]))
        wide.append(f"- {setting}: {part:.0%} of the wide networks learn; pruned and not trained again, {best}")
    text = [
        HEAD.format(networks=base["setting"]["networks"]),
        markdown(("wide networks", "trained alone", "learn", "more than redrawn", "p"), kinds),
        markdown(("wide networks", "neurons that start on two bits of the parity", "networks", "tickets learn"), luck),
        TAIL,
        "The wide networks, and how many of them still have at most 10% error with all but the tickets removed:",
        "\n".join(wide),
    ]
    (out / "figure5.md").write_text("\n\n".join(text) + "\n")
    return 0


def share_of(values: Float64Array) -> str:
    """The share of runs that learned, with its interval."""
    found = share("", int(values.sum()), len(values))
    return f"{found.value:.0%} ({found.low:.0%} to {found.high:.0%})"


NAMES = {
    "product": "tickets by the product of both layers' norms",
    "rows": "tickets by the norm of the row",
    "output": "tickets by the output weight",
    "hidden": "tickets, fresh output weights",
    "redrawn": "redrawn",
    "alone": "redrawn, output weights of a small network",
    "others": "other neurons of the network",
}


def describe(setting: dict[str, Any]) -> str:
    """What a row of the tables calls a setting."""
    usual = asdict(Wide(k=setting["k"], steps=setting["steps"], retrain_steps=setting["retrain_steps"]))
    words = [f"k = {setting['k']}", f"{setting['steps'] // 1000}k + {setting['retrain_steps'] // 1000}k steps"]
    words += [f"{key.replace('_', ' ')} {setting[key]}" for key in usual if setting[key] != usual[key]]
    return ", ".join(words)


def main() -> int:
    """Run or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "page"])
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    return run(given.out) if given.verb == "run" else page(given.out)


if __name__ == "__main__":
    raise SystemExit(main())
