"""From nonconformity scores to p-values: W1-ACAS, reference scorers, and merges of p-values."""

from tocsin.conformal.contextual import ContextualScorer
from tocsin.conformal.gaussian import GaussianTail
from tocsin.conformal.merge import MERGES, Guarantee, Merge, available_merges, merge_p_values
from tocsin.conformal.scorer import Scorer
from tocsin.conformal.storage import SCORERS, load_scorer, save_scorer
from tocsin.conformal.weighted import W1ACAS, ExponentialDecay, SlidingWindow, SplitConformal, critical_size

__all__ = [
    "MERGES",
    "SCORERS",
    "W1ACAS",
    "ContextualScorer",
    "ExponentialDecay",
    "GaussianTail",
    "Guarantee",
    "Merge",
    "Scorer",
    "SlidingWindow",
    "SplitConformal",
    "available_merges",
    "critical_size",
    "load_scorer",
    "merge_p_values",
    "save_scorer",
]
