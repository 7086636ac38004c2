"""An engine with two devices of its own, made up of the reference engine: tests and worker processes import it."""

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

from fewfire._errors import DeviceMemoryError
from fewfire.engines import ReferenceEngine
from fewfire.engines._protocol import Pace

TOO_WIDE = 500
"""Runs of this width and more do not fit."""

chosen = threading.local()


class TwoDevices(ReferenceEngine):
    """Notes in the file FAKE_DEVICE_LOG which device, process and thread trained what."""

    name = "two_devices"
    batch_runs = 3
    side_by_side = True
    prepared = ()

    def devices(self):
        return ["fake 0", "fake 1"]

    def use_device(self, number):
        chosen.device = number % 2

    def prepare(self, runs):
        TwoDevices.prepared = tuple(runs)

    def pace(self, run):
        return Pace(1e-6 * run.width, 1e-8)

    def train(self, runs, **options):
        if any(run.width >= TOO_WIDE for run in runs):
            raise DeviceMemoryError("a run is too wide")
        results = [replace(result, engine=self.name) for result in super().train(runs, **options)]
        if "FAKE_DEVICE_LOG" in os.environ:
            time.sleep(0.05)  # long enough for the other device to take the next
            with Path(os.environ["FAKE_DEVICE_LOG"]).open("a") as log:
                device = getattr(chosen, "device", "any")
                shapes = {(run.inputs, run.width, run.source is None) for run in runs}
                log.write(f"{device} {os.getpid()} {len(runs)} {len(shapes)}\n")
        return results


class OneDevice(TwoDevices):
    name = "one_device"

    def devices(self):
        return ["fake 0"]


class Endless(OneDevice):
    """Trains for ever, unless progress ends it."""

    name = "endless"

    def train(self, runs, *, progress=None, **options):
        while True:
            time.sleep(0.02)
            progress(0, 1)


def make_two(threads):
    return TwoDevices()


def make_one(threads):
    return OneDevice()


def make_endless(threads):
    return Endless()
