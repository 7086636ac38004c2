"""A decoder's weights in files small enough to travel: bfloat16, in shards, with the training's facts beside them.

Rounding to bfloat16 keeps eight bits of each weight; what is decoded later is the network with the rounded weights, in
float32. Files are written by `torch.save` and read with `weights_only=True`, which runs no code.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from fewfire._atomic import replacing
from fewfire._errors import FileFormatError
from fewfire._optional import require
from fewfire.experiments.lazy_neurons._decoder import Decoder, DecoderShape

if TYPE_CHECKING:
    from pathlib import Path

    from fewfire.experiments.lazy_neurons._language import TrainedDecoder

torch: Any = require("torch", "torch", "fewfire.experiments.lazy_neurons")

SHARD_BYTES: Final = 15 << 20
FACTS: Final = "decoder.json"


def save_decoder(trained: TrainedDecoder, folder: Path) -> list[Path]:
    """Write weights and facts into a folder; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    shards: list[dict[str, Any]] = [{}]
    size = 0
    for name, weight in trained.model.state_dict().items():
        rounded = weight.detach().to("cpu", torch.bfloat16).clone()
        if size + rounded.nbytes > SHARD_BYTES and shards[-1]:
            shards.append({})
            size = 0
        shards[-1][name] = rounded
        size += rounded.nbytes
    paths = [folder / f"decoder-{number}.pt" for number in range(len(shards))]
    for path, shard in zip(paths, shards, strict=True):
        with replacing(path) as file:
            torch.save(shard, file)
    facts = {
        "shape": asdict(trained.model.shape),
        "files": [path.name for path in paths],
        "seconds": trained.seconds,
        "curve": trained.curve,
    }
    with replacing(folder / FACTS) as file:
        file.write(json.dumps(facts, indent=1).encode())
    return [*paths, folder / FACTS]


def load_decoder(folder: Path) -> tuple[Decoder, dict[str, Any]]:
    """The decoder of a folder, in float32 on the CPU, and the facts of its training."""
    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text())
        model = Decoder(DecoderShape(**facts["shape"]))
        state: dict[str, Any] = {}
        for name in facts["files"]:
            state |= torch.load(folder / name, map_location="cpu", weights_only=True)
        model.load_state_dict({name: weight.float() for name, weight in state.items()})
    except FileNotFoundError:
        raise
    except Exception as error:
        raise FileFormatError(f"{folder} does not hold the files of a decoder ({error}).") from error
    return model.eval(), facts
