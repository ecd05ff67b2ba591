"""The choice among combinations of settings, and what it is worth on data that it has not seen."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple, Self

from tocsin_bench.report.sheet import Column, Number, Row, Sheet, best_of, count
from tocsin_bench.report.summaries import grouped
from tocsin_bench.results import MethodRun

CRITERIA = ("both", "vus-pr", "events")
"""What combinations are chosen by: VUS-PR, the events found, or the mean of the two."""

MEAN = "mean"
"""The row of the mean over data sets."""

Values = Mapping[str, Mapping[str, float]]
"""Numbers by combination and data set; more is better."""


class Quality(NamedTuple):
    """VUS-PR and the share of events found, the mean at 0.5, 1 and 2 false incidents in 1,000 normal observations."""

    vus_pr: float
    events: float

    @classmethod
    def of(cls, run: MethodRun) -> Self:
        """That of one run; NaN where it has none."""
        if run.status != "ok":
            return cls(math.nan, math.nan)
        return cls(run.metrics.get("vus_pr", math.nan), run.metrics.get("budget_events_found", math.nan))

    @classmethod
    def mean(cls, qualities: Iterable["Quality"]) -> Self:
        """The mean of each number."""
        return cls(*map(fmean, zip(*qualities, strict=True)))

    @property
    def known(self) -> bool:
        """Whether there are both numbers."""
        return math.isfinite(self.vus_pr) and math.isfinite(self.events)

    def by(self, criterion: str) -> float:
        """The number that decides."""
        return {"vus-pr": self.vus_pr, "events": self.events, "both": (self.vus_pr + self.events) / 2}[criterion]


@dataclass(frozen=True)
class Comparison:
    """The mean quality of each combination on each data set, over the same series for all combinations.

    `series` says how many these are. `not_counted` are series without events, or on which a combination failed.
    """

    means: Mapping[str, Mapping[str, Quality]]
    series: Mapping[str, int]
    not_counted: Sequence[str]

    def values(self, criterion: str) -> Values:
        """The numbers that decide."""
        return {
            combination: {dataset: quality.by(criterion) for dataset, quality in by_dataset.items()}
            for combination, by_dataset in self.means.items()
        }

    def overall(self, combination: str) -> Quality:
        """The mean over data sets, with equal weight."""
        return Quality.mean(self.means[combination].values())


def compare(runs: Sequence[MethodRun], labels: Sequence[str]) -> Comparison:
    """The runs of these combinations by data set: those of several features too, since it is the same data set."""
    by_file = {
        file: {run.method: Quality.of(run) for run in members}
        for file, members in grouped(runs, lambda run: run.file).items()
    }
    dataset_of = {run.file: run.dataset for run in runs}
    complete = [
        file for file, found in by_file.items() if all(label in found and found[label].known for label in labels)
    ]
    datasets = dict(sorted(grouped(complete, lambda file: dataset_of[file]).items()))
    means = {
        label: {dataset: Quality.mean(by_file[file][label] for file in files) for dataset, files in datasets.items()}
        for label in labels
    }
    series = {dataset: len(files) for dataset, files in datasets.items()}
    return Comparison(means, series, sorted(by_file.keys() - set(complete)))


@dataclass(frozen=True)
class Choice:
    """The combination that is best on all data sets except one.

    `chosen_on` is its mean over those, `left_out` is its number on the one, and `hindsight` the best number that any
    combination has there.
    """

    dataset: str
    combination: str
    chosen_on: float
    left_out: float
    hindsight: float


def leave_one_out(values: Values) -> list[Choice]:
    """The choice for each data set, made without looking at it. Of equally good combinations, the first is chosen.

    >>> leave_one_out({"small": {"A": 0.2, "B": 0.9}, "large": {"A": 0.4, "B": 0.7}})[0]
    Choice(dataset='A', combination='small', chosen_on=0.9, left_out=0.2, hindsight=0.4)
    """
    return [_without(dataset, values) for dataset in next(iter(values.values()))]


def _without(dataset: str, values: Values) -> Choice:
    on_others = {
        combination: fmean(value for other, value in by_dataset.items() if other != dataset)
        for combination, by_dataset in values.items()
    }
    chosen = max(on_others, key=on_others.__getitem__)
    hindsight = max(by_dataset[dataset] for by_dataset in values.values())
    return Choice(dataset, chosen, on_others[chosen], values[chosen][dataset], hindsight)


def best_overall(values: Values) -> str:
    """The combination with the best mean over all data sets."""
    return max(values, key=lambda combination: fmean(values[combination].values()))


def mean_choice(choices: Sequence[Choice]) -> Choice:
    """The means of the numbers."""
    numbers = ((one.chosen_on, one.left_out, one.hindsight) for one in choices)
    return Choice(MEAN, "", *map(fmean, zip(*numbers, strict=True)))


def chosen_quality(comparison: Comparison, choices: Sequence[Choice]) -> Quality:
    """The mean of what the choices give on the data sets that they have not seen."""
    return Quality.mean(comparison.means[one.combination][one.dataset] for one in choices)


def choice_sheet(choices: Sequence[Choice], criterion: str) -> Sheet:
    """A row for each data set left out, and their means."""
    rows: tuple[Row, ...] = tuple(
        (one.dataset, one.combination, Number(one.chosen_on), Number(one.left_out), Number(one.hindsight))
        for one in (*choices, mean_choice(choices))
    )
    columns = (
        Column("left out", numeric=False),
        Column("chosen combination", numeric=False),
        Column("on the others"),
        Column("on this one"),
        Column("best in hindsight"),
    )
    return Sheet("left-out", f"Chosen without the data set left out, by {_IN_WORDS[criterion]}", columns, (rows,))


def combination_sheet(comparison: Comparison) -> Sheet:
    """All combinations on each data set, and their means over data sets."""
    blocks = [
        _block(dataset, {label: means[dataset] for label, means in comparison.means.items()}, number)
        for dataset, number in comparison.series.items()
    ]
    overall = {label: comparison.overall(label) for label in comparison.means}
    blocks.append(_block(MEAN, overall, sum(comparison.series.values())))
    columns = (
        Column("data set", numeric=False),
        Column("combination", numeric=False),
        *(Column(heading) for heading in ("VUS-PR", "events found", "both", "series")),
    )
    return Sheet("combinations", "All combinations", columns, tuple(blocks))


def _block(dataset: str, qualities: Mapping[str, Quality], series: int) -> tuple[Row, ...]:
    columns = [[quality.by(criterion) for quality in qualities.values()] for criterion in ("vus-pr", "events", "both")]
    numbers = [
        [Number(value, best=best) for value, best in zip(column, best_of(column, 1, 3), strict=True)]
        for column in columns
    ]
    return tuple((dataset, label, *cells, count(series)) for label, *cells in zip(qualities, *numbers, strict=True))


_IN_WORDS = {"vus-pr": "VUS-PR", "events": "events found", "both": "the mean of VUS-PR and events found"}
