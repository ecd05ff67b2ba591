"""The compiled inner loops of every scorer that keeps a history of scores."""

from tocsin.conformal.kernels.p_values import (
    SMALLEST,
    conformal_p,
    fit_tail,
    quantile,
    smoothed_p,
    surprise,
    uniform,
    weight_at_least,
)
from tocsin.conformal.kernels.streams import (
    COUNTERS,
    HEAD,
    LEARNED,
    SEEN,
    TOTAL,
    FixedStreams,
    LearnedStreams,
    P,
    advance_fixed,
    advance_learned,
    learn_score,
    push,
)
from tocsin.conformal.kernels.weights import GRID, batch_gradient, project, wasserstein_slopes

__all__ = [
    "COUNTERS",
    "GRID",
    "HEAD",
    "LEARNED",
    "SEEN",
    "SMALLEST",
    "TOTAL",
    "FixedStreams",
    "LearnedStreams",
    "P",
    "advance_fixed",
    "advance_learned",
    "batch_gradient",
    "conformal_p",
    "fit_tail",
    "learn_score",
    "project",
    "push",
    "quantile",
    "smoothed_p",
    "surprise",
    "uniform",
    "wasserstein_slopes",
    "weight_at_least",
]
