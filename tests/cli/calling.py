"""Calling the command as a user does."""

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from typer.testing import CliRunner

from tests.preloaded import ForkedTocsin
from tocsin.cli import app


def invoke(*arguments, stdin=None):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def run_process(*arguments, stdin="", env=None):
    """A process of its own, with real streams."""
    with TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "err")]
        for path in streams:
            path.write_text(stdin if path.name == "in" else "")
        given, output, errors = streams
        code = ForkedTocsin([*map(str, arguments)], env or os.environ, output, errors, given).wait()
        return subprocess.CompletedProcess(arguments, code, output.read_text(), errors.read_text())


def words(result):
    """What was said, however wide the screen was."""
    return " ".join(result.output.replace("│", " ").split())


def noisy_values(length=1200, seed=0, fault=900):
    values = 20 + np.random.default_rng(seed).normal(size=length)
    if fault is not None:
        values[fault : fault + 3] += 12
    return values


def csv_text(values, start="2026-01-01T00:00:00"):
    times = np.datetime64(start) + np.arange(len(values)) * np.timedelta64(300, "s")
    return "time,value\n" + "".join(f"{time},{value}\n" for time, value in zip(times, values, strict=True))
