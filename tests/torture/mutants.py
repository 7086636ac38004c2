"""Damages files and reads them, in a process whose memory is limited: run by `test_files_mutated.py`.

Each line of input is a seed; the answer is a line of JSON with how many damaged files gave their content, another valid
one, or an error of fewfire in one line. Anything else is written as `wrong` with the seed that repeats it.
"""

import io
import json
import resource
import sys
import tempfile
import traceback
import zipfile
from pathlib import Path

import numpy as np

from fewfire import FewfireError, halfspace, networks
from fewfire.networks import TwoLayer
from fewfire.sweeps import SqliteStore, cells
from fewfire.sweeps.store._protocol import SweepRecord
from fewfire.testing._sweeps import made_up_measurement, made_up_row

ROOM = 512 << 20
TRIES = 40


def make(folder):
    """Valid files by kind, two of each."""
    draw = np.random.default_rng(0)
    for number in range(2):
        hidden = draw.normal(size=(20 + number, 6)).astype(np.float32)
        TwoLayer(hidden, np.zeros(len(hidden)), np.ones(len(hidden))).save(folder / f"network-{number}")
        halfspace.Index(hidden, method=("tree", "scan")[number]).save(folder / f"index-{number}")
        with SqliteStore(folder / f"store-{number}", write=True) as store:
            store.add([made_up_row(trial, width=5 + trial % 3) for trial in range(30 * number, 30 * number + 30)])
            store.record_sweep(SweepRecord("a sweep", 0.1, {"trials": 30}))
            store.add_measurements([made_up_measurement(trial) for trial in range(10)])
    return {kind: [(folder / f"{kind}-{n}").read_bytes() for n in (0, 1)] for kind in ("network", "index", "store")}


def mutate(draw, content, others):
    """The bytes with a few things done to them."""
    content = bytearray(content)
    for _ in range(int(draw.integers(1, 4))):
        at, size = int(draw.integers(len(content) + 1)), int(2 ** draw.integers(0, 10))
        what = draw.integers(8)
        if what <= 1 and content:
            for place in draw.integers(len(content), size=int(draw.integers(1, 9))):
                content[place] ^= 1 << int(draw.integers(8))
        elif what == 2:
            del content[at:]
        elif what == 3:
            content[at : at + size] = draw.bytes(min(size, len(content) - at))
        elif what == 4:
            content[at : at + size] = bytes([int(draw.choice([0, 255]))]) * min(size, len(content) - at)
        elif what == 5:
            content[at:at] = draw.bytes(size)
        elif what == 6:
            other = others[int(draw.integers(len(others)))]
            start = int(draw.integers(len(other)))
            content[at : at + size] = other[start : start + size]
        else:
            del content[at : at + size]
    return bytes(content)


def mutate_inside(draw, content, others):
    """An archive whose checksums are right and whose arrays are not."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(out, "w") as changed:
        chosen = draw.choice(archive.namelist())
        for name in archive.namelist():
            part = archive.read(name)
            if name == chosen:
                part = mutate_header(draw, part) if draw.random() < 0.6 else mutate(draw, part, others)
            changed.writestr(name, part)
    return out.getvalue()


def mutate_header(draw, part):
    """Other numbers, types and orders in the header of an array."""
    end = 10 + int.from_bytes(part[8:10], "little")
    header, body = part[10:end].decode(), part[end:]
    for old in draw.choice([*"0123456789", "f4", "i8", "U", "<", "False", "(", ")", ","], size=2):
        new = str(
            draw.choice([*"0123456789-", "9" * 20, "f8", "O", "V", "S9", "c8", ">", "True", "None", "(", "L", ""])
        )
        header = header.replace(str(old), new, 1)
    return part[:8] + len(header).to_bytes(2, "little") + header.encode() + body


def read_network(path):
    net = networks.load(path)
    net(np.zeros((2, min(net.inputs, 10**6))) if net.inputs < 10**6 else np.zeros((0, net.inputs)))
    return (
        net.hidden.tobytes(),
        net.bias.tobytes(),
        net.output.tobytes(),
        np.array(net.offset).tobytes(),
        str(net.activation),
    )


def read_index(path):
    index = halfspace.load(path, threads=1)
    if index.dimension < 10**6:
        index.query(np.ones(index.dimension))
        index.insert(np.ones((1, index.dimension)))
        index.remove(index.ids[-1:])
    ids, points, offsets, _ = index._state()
    return ids.tobytes(), points.tobytes(), offsets.tobytes(), index.requested


def read_store(path):
    with SqliteStore(path) as store:
        rows = list(store.rows())
        store.columns(), store.counts(), store.finished(), store.sweeps(), cells(store, 0.1)
        for row in rows[:3]:
            store.history(row.hash)
        measured = sorted(found.hash for found in store.measurements() if found.table)
        texts = [setting.text for setting in store.settings() if setting.width and setting.problem]
        found = [row.outcome() for row in rows]
    with SqliteStore(path, write=True) as store:
        store.add([made_up_row(1000, width=11)])
    return found, measured, texts


READ = {"network": read_network, "index": read_index, "store": read_store}


def main():
    folder = Path(tempfile.mkdtemp(dir=sys.argv[1]))
    files = make(folder)
    contents = [content for both in files.values() for content in both]
    expected = {kind: [READ[kind](folder / f"{kind}-{n}") for n in (0, 1)] for kind in files}
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + ROOM, in_use + ROOM))
    for line in sys.stdin:
        draw, counts = np.random.default_rng([int(line), 77]), {}
        for number in range(TRIES):
            for kind in files:
                inside = kind != "store" and number % 2
                content = (mutate_inside if inside else mutate)(draw, files[kind][number % 2], contents)
                path = folder / f"mutant-{kind}"
                for helper in ("-wal", "-shm", "-journal"):
                    Path(f"{path}{helper}").unlink(missing_ok=True)
                path.write_bytes(content)
                try:
                    found = READ[kind](path)
                    outcome = "same" if found in expected[kind] else "other"
                    if outcome == "other" and not inside and (kind != "store" or not known(found, expected[kind])):
                        outcome = "wrong: read as something else"
                except FewfireError as error:
                    outcome = "refused" if "\n" not in str(error) else f"wrong: {error}"
                except BaseException:
                    outcome = f"wrong: {traceback.format_exc()}"
                if outcome.startswith("wrong"):
                    print(json.dumps({"wrong": f"{kind}, seed {line.strip()}, try {number}: {outcome}"}), flush=True)
                    return
                counts[f"{kind} {outcome}"] = counts.get(f"{kind} {outcome}", 0) + 1
        print(json.dumps(counts), flush=True)


def known(found, expected):
    """Whether what was read from a store has specs that were written, whatever became of its numbers."""
    rows, measured, texts = found
    hashes = {row[0] for both in expected for row in both[0]}
    return (
        {row[0] for row in rows} <= hashes
        and set(measured) <= set(expected[0][1])
        and set(texts) <= {text for both in expected for text in both[2]}
    )


if __name__ == "__main__":
    main()
