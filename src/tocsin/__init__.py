"""Tocsin: alarms on signals whose threshold is the false-alarm rate."""

from tocsin.conformal import (
    MERGES,
    SCORERS,
    W1ACAS,
    ExponentialDecay,
    GaussianTail,
    Guarantee,
    Merge,
    Scorer,
    SlidingWindow,
    SplitConformal,
    load_scorer,
    merge_p_values,
    save_scorer,
)

__all__ = [
    "MERGES",
    "SCORERS",
    "W1ACAS",
    "ExponentialDecay",
    "GaussianTail",
    "Guarantee",
    "Merge",
    "Scorer",
    "SlidingWindow",
    "SplitConformal",
    "load_scorer",
    "merge_p_values",
    "save_scorer",
]

__version__ = "0.1.0"
