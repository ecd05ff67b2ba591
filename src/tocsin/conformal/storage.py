"""Scorers in files: their state as plain arrays in npz, never pickle."""

import zipfile
from os import PathLike
from typing import IO, Any

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
    if isinstance(file, (str, PathLike)):
        # Through an open file, because numpy would add .npz to a bare path.
        with open(file, "wb") as opened:
            np.savez(opened, allow_pickle=False, **scorer.state())
    else:
        np.savez(file, allow_pickle=False, **scorer.state())


def load_scorer(file: File, **resources: Any) -> Scorer:
    """The scorer that was saved, ready to continue exactly. `resources` are as for `Scorer.from_state`."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            state = dict(archive)
    except (ValueError, EOFError, zipfile.BadZipFile, TypeError, AttributeError) as error:
        raise ValueError(f"file must hold a scorer saved by tocsin, got {file!r}: {error}") from error
    kind = str(state.get("scorer"))
    if kind not in SCORERS:
        raise ValueError(f"file must hold one of {', '.join(SCORERS)}, got {kind!r} in {file!r}")
    return SCORERS[kind].from_state(state, **resources)
