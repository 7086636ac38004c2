"""`fewfire doctor`: what is installed, what is used, and how to get what is missing."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING

import fewfire as ff
from fewfire._extension import MESSAGE, load
from fewfire.cli._output import PlainConsole, plain_table

if TYPE_CHECKING:
    from fewfire.engines import Engine

PACKAGES = ("numpy", "scipy", "scikit-learn", "threadpoolctl", "typer", "rich")


def doctor() -> None:
    """Print versions, the CPU features in use, the engines available and how to get the missing ones."""
    console = PlainConsole()
    table = plain_table()
    for name, value in facts():
        table.add_row(name, value)
    console.print(table)


def facts() -> list[tuple[str, str]]:
    """The lines of the report: (subject, finding)."""
    lines = [
        ("fewfire", ff.__version__),
        ("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("cores", str(os.cpu_count())),
    ]
    lines += [(package, version(package)) for package in PACKAGES]
    core = load()
    if core is None:
        lines.append(("C++ part", f"missing. {MESSAGE}"))
    else:
        others = [isa for isa in core.available_isas() if isa != core.isa()]
        lines.append(("C++ part", f"uses {core.isa()} (also compiled and usable: {', '.join(others) or 'none'})"))
    from fewfire.engines._protocol import ENGINES  # late: the help text needs no engines

    lines += [(f"engine {name}", available(make(None))) for name, make in ENGINES.items()]
    return lines + [(f"extra {extra}", state) for extra, state in sorted(extras().items())]


def available(engine: Engine) -> str:
    """Whether an engine can run, and on which devices."""
    from fewfire.engines._protocol import DEVICE_WORK, DeviceEngine

    reason = engine.unusable()
    if reason is not None:
        return f"not available: {reason}"
    if not isinstance(engine, DeviceEngine):
        return "available"
    least, devices = f"{DEVICE_WORK:.0e} multiply-adds", ", ".join(engine.devices())
    return f"available, and used by sweeps of {least} and more: {devices}"


def extras() -> dict[str, str]:
    """For each optional extra of fewfire, what it brings or how to get it."""
    found: dict[str, list[str]] = {}
    missing: set[str] = set()
    for line in requires("fewfire") or []:
        requirement, _, marker = line.partition(";")
        if "extra ==" not in marker:
            continue
        extra = marker.split("extra ==")[1].strip().strip("\"'")
        package = requirement.split("[")[0].split(">")[0].split("=")[0].strip()
        try:
            found.setdefault(extra, []).append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.setdefault(extra, []).append(f"{package} missing")
            missing.add(extra)
    return {
        extra: ", ".join(packages) + (f" (pip install 'fewfire[{extra}]')" if extra in missing else "")
        for extra, packages in found.items()
    }
