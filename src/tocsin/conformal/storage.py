"""Scorers in files: their state as plain arrays in npz, never pickle."""

import os
from os import PathLike
from pathlib import Path
from typing import IO

import numpy as np

from tocsin.conformal.decay import ExponentialDecay
from tocsin.conformal.gaussian import GaussianTail
from tocsin.conformal.scorer import Scorer, State
from tocsin.conformal.split import SplitConformal
from tocsin.conformal.w1acas import W1ACAS
from tocsin.conformal.window import SlidingWindow

File = str | PathLike[str] | IO[bytes]

SCORERS: dict[str, type[Scorer]] = {
    scorer.__name__: scorer for scorer in (W1ACAS, SplitConformal, SlidingWindow, ExponentialDecay, GaussianTail)
}
"""Every scorer by its name."""


def save_scorer(scorer: Scorer, file: File) -> None:
    """Write the scorer's state to a file (a path, or open for writing bytes).

    A path is replaced in one step, so that an interrupted save leaves what was there before.
    """
    state = scorer.state()
    if not isinstance(file, (str, PathLike)):
        _write(file, state)
        return
    path = Path(file)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        with unfinished.open("wb") as opened:
            _write(opened, state)
            opened.flush()
            os.fsync(opened.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def load_scorer(file: File, *, threads: int = 1) -> Scorer:
    """The scorer that was saved (to a path, or open for reading bytes), ready to continue exactly."""
    if isinstance(file, (str, PathLike)):
        # Opened here, because numpy would leave it open where it finds damage.
        with Path(file).open("rb") as opened:
            state = _read(opened, file)
    else:
        state = _read(file, file)
    kind = str(state.get("scorer"))
    if kind not in SCORERS:
        raise ValueError(f"file must hold one of {', '.join(SCORERS)}, got {kind!r} in {file!r}")
    return SCORERS[kind].from_state(state, threads=threads)


def _write(opened: IO[bytes], state: State) -> None:
    np.savez(opened, **state)  # type: ignore[arg-type]  # no array is called allow_pickle


def _read(opened: IO[bytes], file: File) -> State:
    try:
        with np.load(opened, allow_pickle=False) as archive:
            return dict(archive)
    except Exception as error:  # zip and npy readers meet damage with exceptions of a dozen kinds
        raise ValueError(f"file must hold a scorer saved by tocsin, got {file!r}: {error}") from error
