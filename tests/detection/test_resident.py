"""What nobody has written to takes no memory: a young signal takes less than one with a long past."""

import os
import subprocess
import sys

import pytest

#: Prints how many bytes of memory a signal takes after so many observations: as it is, and saved and restored.
PROGRAM = """
import numpy as np
from tocsin.detection import DetectorSettings, Fleet

def anonymous():
    lines = open("/proc/self/smaps_rollup").read().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))

values = np.random.default_rng(0).normal(size=(150, 64))
fleets = []

def taken(states=()):
    before = anonymous()
    fleets.append(Fleet.of([str(row) for row in range(64)], DetectorSettings()))
    if states:
        fleets[-1].put_all(range(64), states)
    for row in values:
        fleets[-1].update(row)
    return (anonymous() - before) // 64

taken()  # loads what fleets share
print(taken(), end=" ")
states = fleets[0].signal_states(range(64), [None] * 64)
print(taken(states))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux says what is resident")
def test_a_young_signal_takes_little_memory() -> None:
    # As in the monitor: arrays come from the system, which gives memory when it is written to.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(128 * 1024)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=600
    )
    fresh, restored = map(int, done.stdout.split())
    assert fresh < 130_000
    assert restored < 300_000
