"""Scorers in files: their state as plain arrays in npz, never pickle."""

import zipfile
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from typing import IO, Any, cast

import numpy as np

from tocsin.conformal.decay import ExponentialDecay
from tocsin.conformal.gaussian import GaussianTail
from tocsin.conformal.scorer import Scorer
from tocsin.conformal.split import SplitConformal
from tocsin.conformal.w1acas import W1ACAS
from tocsin.conformal.window import SlidingWindow

File = str | PathLike[str] | IO[bytes]

SCORERS: dict[str, type[Scorer]] = {
    scorer.__name__: scorer for scorer in (W1ACAS, SplitConformal, SlidingWindow, ExponentialDecay, GaussianTail)
}
"""Every scorer by its name."""


def save_scorer(scorer: Scorer, file: File) -> None:
    """Write the scorer's state to a file (a path, or open for writing bytes)."""
    with _opened(file, "wb") as opened:
        np.savez(opened, **scorer.state())


def load_scorer(file: File, **resources: Any) -> Scorer:
    """The scorer that was saved, ready to continue exactly. `resources` are as for `Scorer.from_state`."""
    with _opened(file, "rb") as opened:
        try:
            with np.load(opened, allow_pickle=False) as archive:
                state = dict(archive)
        except (AttributeError, EOFError, OSError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise ValueError(f"file must hold a scorer saved by tocsin, got {file!r}: {error}") from error
    kind = str(state.get("scorer"))
    if kind not in SCORERS:
        raise ValueError(f"file must hold one of {', '.join(SCORERS)}, got {kind!r} in {file!r}")
    return SCORERS[kind].from_state(state, **resources)


def _opened(file: File, mode: str) -> AbstractContextManager[IO[bytes]]:
    """The file, opened and closed here if it is a path; numpy would add a suffix to it and leave it open on errors."""
    if isinstance(file, (str, PathLike)):
        return cast("IO[bytes]", open(file, mode))
    return nullcontext(file)
