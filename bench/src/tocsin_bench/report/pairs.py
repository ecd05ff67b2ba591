"""Two methods file by file: which is better how often, and whether that is more than chance."""

import math
from collections.abc import Sequence

import numpy as np

from tocsin_bench.report.measures import BUDGET, MAIN, Measure, label
from tocsin_bench.report.sheet import Column, Number, Row, Sheet, count
from tocsin_bench.report.summaries import MethodGroup, Summary, summaries_of
from tocsin_bench.results import Floats

_COMPARED = (MAIN[0], MAIN[1], MAIN[5], BUDGET[0])


def signed_rank_p(differences: Floats) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test, exact also for ties; equal pairs are left out.

    >>> signed_rank_p(np.array([1.0, 2.0, 3.0, 4.0, -0.5]))
    0.125
    """
    known = differences[differences != 0]
    if not known.size:
        return 1.0
    _, place, times = np.unique(np.abs(known), return_inverse=True, return_counts=True)
    ranks = (2 * np.cumsum(times) - times + 1)[place]  # twice the mean rank of equal sizes, so that it is whole
    ways = np.ones(1)
    for rank in ranks:  # half of the sums are with it
        ways = 0.5 * (np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0)))
    positive = int(ranks[known > 0].sum())
    extreme = min(positive, int(ranks.sum()) - positive)
    return float(min(1.0, 2.0 * ways[: extreme + 1].sum()))


def paired_sheet(groups: Sequence[MethodGroup]) -> Sheet:
    """Every method beside the first one, on the files that both have."""
    first, *others = summaries_of(groups)
    blocks = []
    for other in others:
        rows = [row for measure in _COMPARED if (row := _row(first, other, measure)) is not None]
        blocks += [tuple(rows)] if rows else []
    columns = (
        *(Column(name, numeric=False) for name in ("method", "beside", "metric")),
        *(Column(name) for name in ("files", "better on", "worse on", "median difference", "p")),
    )
    note = (
        "The first method beside each other one, file by file. p is that of Wilcoxon's signed-rank test, two-sided, for"
        " this pair alone: with many pairs, some are small by chance."
    )
    return Sheet("paired", "File by file", columns, tuple(blocks), note)


def _row(one: Summary, other: Summary, measure: Measure) -> Row | None:
    values, beside = ({run.file: run.metrics.get(measure.key, math.nan) for run in of.runs()} for of in (one, other))
    both = np.array([values[file] - beside[file] for file in values.keys() & beside.keys()])
    both = measure.better * both[np.isfinite(both)]
    if not both.size:
        return None
    return (
        label(one.forecaster, one.method),
        label(other.forecaster, other.method),
        measure.heading,
        count(both.size),
        count(int(np.sum(both > 0))),
        count(int(np.sum(both < 0))),
        Number(float(np.median(both))),
        Number(signed_rank_p(both), decimals=4),
    )
