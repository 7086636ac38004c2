"""Does a sweep notice that it is watched: does the live page take under 2% of its time?

The same sweep runs alone and watched, in turn, each time into a new store, in a process of its own with one thread. The
watcher is `fewfire report --watch` as it is; it is asked four times as often as one page asks. Its share is its
processor time after the start (imports and the first look, which any report takes) over the time of the sweep: what it
could take from a machine whose processors are all busy. The times of the sweeps themselves, alone and watched, are
printed beside it, with what they differ by chance. What is kept must be the same rows.

    python benchmarks/live_page.py [repeats]
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from fewfire.experiments import SqliteStore, Sweep

ASKED = {"share": 0.02}
EVERY = 0.5
SWEEP = {
    "name": "A sweep of many short runs",
    "problem": {"name": "parity", "n": 20, "k": 3},
    "network": {"start": ["dense", {"name": "sparse", "s": 2}], "width": [10, 30, 100]},
    "data": {"samples": [100, 300, 1000, 3000]},
    "training": {"steps": 1000, "learning_rate": [0.05, 0.1], "evaluate": 100},
    "trials": 30,
}
WATCH = """
import signal, sys, time
from fewfire.report import LivePage, PageServer
signal.signal(signal.SIGTERM, signal.default_int_handler)
page = LivePage({"watched": sys.argv[1]})
start = time.process_time()
with PageServer(page) as server:
    print(server.url, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print(time.process_time() - start, start, flush=True)
"""


def run_sweep(path: Path, answers: multiprocessing.SimpleQueue[tuple[float, float]]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    Sweep.from_dict(SWEEP).run(path, engine="cpu", executor="inline")
    answers.put((time.perf_counter() - wall, time.process_time() - cpu))


def ask(url: str, tags: dict[str, str]) -> int:
    """What the page asks for, with the tags of what it has; gives the number of runs it is told of."""
    host = re.sub(r"^http://|/$", "", url)
    connection = http.client.HTTPConnection(host, timeout=60)
    runs = 0
    for path in ("/progress.json", "/data.json"):
        connection.request("GET", path, headers={"If-None-Match": tags.get(path, "")})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == 200:
            tags[path] = answer.headers["ETag"]
            if path == "/progress.json":
                runs = json.loads(body)["stores"][0]["runs"]
    connection.close()
    return runs


def one(path: Path, watched: bool) -> dict[str, float]:
    """One sweep, with what it and its watcher took."""
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    with SqliteStore(path, write=True):
        pass  # the watcher wants a store
    watcher = None
    if watched:
        watcher = subprocess.Popen([sys.executable, "-c", WATCH, str(path)], stdout=subprocess.PIPE, text=True)
        url = watcher.stdout.readline().strip()
    process = context.Process(target=run_sweep, args=(path, answers))
    process.start()
    tags: dict[str, str] = {}
    told = 0
    while process.is_alive():
        time.sleep(EVERY)
        if watched:
            told = ask(url, tags) or told
    wall, cpu = answers.get()
    figures = {"wall": wall, "cpu": cpu}
    if watcher is not None:
        watcher.terminate()
        spent, start = map(float, watcher.communicate(timeout=60)[0].split())
        figures |= {"watcher": spent, "start": start, "told": told, "share": spent / wall}
    return figures


def rows_of(path: Path) -> dict[str, list[object]]:
    with SqliteStore(path) as store:
        return {name: values.tolist() for name, values in store.columns().items() if name not in ("setting",)}


def main() -> int:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    alone, watched = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(repeats):
            paths = Path(folder) / f"alone-{number}.sqlite", Path(folder) / f"watched-{number}.sqlite"
            alone.append(one(paths[0], False))
            watched.append(one(paths[1], True))
            first, second = map(rows_of, paths)
            if any(str(first[name]) != str(second[name]) for name in first):
                print("the watched sweep kept other rows")
                return 1
    runs, told = len(Sweep.from_dict(SWEEP)), min(one["told"] for one in watched)
    if told < runs / 2:
        print(f"the page was told of {told} runs only")
        return 1
    figures = {
        "share": median(one["share"] for one in watched),
        "watcher_seconds": median(one["watcher"] for one in watched),
        "start_seconds": median(one["start"] for one in watched),
        "sweep_seconds": median(one["wall"] for one in watched),
        "cpu_ratio": median(b["cpu"] / a["cpu"] for a, b in zip(alone, watched, strict=True)),
        "cpu_spread": max(one["cpu"] for one in alone) / min(one["cpu"] for one in alone),
    }
    print(
        f"{runs} runs in {figures['sweep_seconds']:.1f} s: the watcher takes {figures['watcher_seconds']:.3f} s, "
        f"{figures['share']:.2%} (and {figures['start_seconds']:.1f} s once, to start); the sweep's own processor time is "
        f"{figures['cpu_ratio']:.3f} times that alone, where sweeps alone differ by {figures['cpu_spread']:.3f}"
    )
    figures = {name: round(value, 4) for name, value in figures.items()}
    print(json.dumps({"name": "live_page", "figures": figures, "asked": ASKED, "threads": 1, "repeats": repeats}))
    return int(figures["share"] > ASKED["share"])


if __name__ == "__main__":
    sys.exit(main())
