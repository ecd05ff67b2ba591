"""Loads the detector's compiled loops before the first observation needs them.

At the first start after an installation or an update they must be compiled, which takes about a minute and half a
gigabyte of memory that a process never gives back. So another process does it, and leaves the machine code on disk.
"""

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Mapping
from subprocess import DEVNULL, PIPE
from typing import Any

import numpy as np

from tocsin.compilation import NotCompiledError, compiling_nothing, telling_compilations
from tocsin_monitor.engine.block import Allocation, DetectorInput, SignalBlock

log = logging.getLogger("tocsin.engine")

# Enough observations for all loops: the last ones begin after the warm-up, and with an incident.
STEPS = 700
FEWEST_STEPS = 2
OWN = "tocsin.forecasting."
FAULT = slice(620, 660)
_COMMAND = (sys.executable, "-m", "tocsin_monitor.engine.loops")


def load_loops(detector: Mapping[str, Any], report: Callable[[str], None]) -> None:
    """Load all loops for detectors with these settings; `report` is told what it does, and may raise to stop it."""
    try:
        with compiling_nothing():
            judge(detector)
        return
    except NotCompiledError:
        _compile_apart(detector, report)
    judge(detector)


def judge(detector: Mapping[str, Any]) -> None:
    """Let detectors with these settings judge something."""
    settings = Allocation(sys.maxsize, sys.maxsize).settings(("value",), detector)
    # A large model could take minutes for all of them.
    large = (one.slow and not type(one).__module__.startswith(OWN) for one in settings.chosen_forecasters)
    steps = FEWEST_STEPS if any(large) else STEPS
    values = np.random.default_rng(0).standard_normal((steps, 1))
    values[FAULT] += 20
    times = np.arange(steps).astype("datetime64[m]").astype("datetime64[ns]")
    for rows in (1, 2):  # their arrays lie differently in memory
        block = SignalBlock(settings, rows)
        for some in (slice(None, -1), slice(-1, None)):
            block.run({row: DetectorInput(values[some], times[some]) for row in range(rows)})


def _compile_apart(detector: Mapping[str, Any], report: Callable[[str], None]) -> None:
    """Compile in another process. If that fails, this one compiles itself."""
    doing = "compiling the detector's loops, about a minute at the first start"
    log.info(doing)
    report(doing)
    try:
        # The same program with nothing from outside.
        child = subprocess.Popen(_COMMAND, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True)  # noqa: S603
    except (OSError, ValueError) as error:
        log.warning("loops are compiled here, because no other process can do it: %s", error)
        return
    try:
        with child.stdout as said:  # type: ignore[union-attr]
            with child.stdin as given:  # type: ignore[union-attr]
                json.dump(detector, given)
            for number, _ in enumerate(said, 1):
                report(f"{doing}: {number} so far")
    except BrokenPipeError:
        pass  # its exit status says what became of it
    except BaseException:
        child.kill()
        raise
    finally:
        child.wait()
    if child.returncode:
        log.warning("loops are compiled here, because the process that should do it ended with %s", child.returncode)


def _tell(name: str) -> None:
    sys.stdout.write(f"{name}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with telling_compilations(_tell):
        judge(json.load(sys.stdin))
