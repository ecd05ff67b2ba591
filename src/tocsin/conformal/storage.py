"""Storage of scorers: their state as plain arrays in npz files, never pickle."""

from tocsin.arrays import File, read_arrays, write_arrays
from tocsin.conformal.gaussian import GaussianTail
from tocsin.conformal.scorer import Scorer
from tocsin.conformal.weighted import W1ACAS, ExponentialDecay, SlidingWindow, SplitConformal

SCORERS: dict[str, type[Scorer]] = {
    scorer.__name__: scorer for scorer in (W1ACAS, SplitConformal, SlidingWindow, ExponentialDecay, GaussianTail)
}
"""Every scorer by its name."""


def save_scorer(scorer: Scorer, file: File) -> None:
    """Write the scorer's state to a file (a path, or open for writing bytes).

    A path is replaced atomically: an interrupted save leaves the previous file.
    """
    write_arrays(scorer.state(), file)


def load_scorer(file: File, *, threads: int = 1) -> Scorer:
    """Load a saved scorer (from a path, or a file open for reading bytes), ready to continue exactly."""
    state = read_arrays(file, "a scorer")
    kind = str(state.get("scorer"))
    if kind not in SCORERS:
        raise ValueError(f"file must hold one of {', '.join(SCORERS)}, got {kind!r} in {file!r}")
    return SCORERS[kind].from_state(state, threads=threads)
