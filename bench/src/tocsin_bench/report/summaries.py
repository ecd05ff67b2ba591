"""Means over files, and over data sets."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

import numpy as np

from tocsin_bench.report.measures import forecaster_order, method_order, ranked_by
from tocsin_bench.results import STATUSES, ForecastErrors, MethodRun

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


class Spread(NamedTuple):
    """A mean, the standard deviation (NaN for a single value), and of how many files."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """Of all values except NaN."""
        known = [value for value in values if math.isfinite(value)]
        if not known:
            return cls(math.nan, math.nan, 0)
        return cls(float(np.mean(known)), float(np.std(known, ddof=1)) if len(known) > 1 else math.nan, len(known))

    @classmethod
    def over_datasets(cls, spreads: Iterable["Spread"]) -> Self:
        """Both the mean and the standard deviation averaged, so that each data set weighs the same."""
        known = [spread for spread in spreads if spread.n]
        means, sds = (Spread.of(values).mean for values in ([s.mean for s in known], [s.sd for s in known]))
        return cls(means, sds, sum(spread.n for spread in known))


@dataclass(frozen=True)
class MethodGroup:
    """All runs of one method with one forecaster on one data set."""

    dataset: str
    forecaster: str
    method: str
    several_features: bool
    runs: tuple[MethodRun, ...]

    def spread(self, metric: str) -> Spread:
        return Spread.of(run.metrics.get(metric, math.nan) for run in self.runs if run.status == "ok")

    @property
    def ranked_by(self) -> str:
        """What its observations are ordered by."""
        return next((run.settings["column"] for run in self.runs if "column" in run.settings), ranked_by(self.method))

    def count(self, status: str) -> int:
        return sum(run.status == status for run in self.runs)

    def metrics(self) -> set[str]:
        return {name for run in self.runs for name in run.metrics}


@dataclass(frozen=True)
class Summary:
    """One method with one forecaster on all data sets that it was tried on."""

    forecaster: str
    method: str
    groups: tuple[MethodGroup, ...]

    def spread(self, metric: str) -> Spread:
        return Spread.over_datasets(group.spread(metric) for group in self.groups)

    def datasets(self, metric: str) -> int:
        """The number of data sets behind the mean."""
        return sum(group.spread(metric).n > 0 for group in self.groups)

    def runs(self) -> list[MethodRun]:
        """The runs that succeeded, on all data sets."""
        return [run for group in self.groups for run in group.runs if run.status == "ok"]

    @property
    def ranked_by(self) -> str:
        """What its observations are ordered by."""
        return self.groups[0].ranked_by

    def count(self, status: str) -> int:
        return sum(group.count(status) for group in self.groups)

    @property
    def tried(self) -> int:
        """How many files were tried."""
        return sum(len(group.runs) for group in self.groups)

    def metrics(self) -> set[str]:
        return {name for group in self.groups for name in group.metrics()}


def groups_of(runs: Sequence[MethodRun]) -> list[MethodGroup]:
    """The runs by data set, forecaster and method, in the order of the tables."""
    label = _dataset_labels(runs)
    found = grouped(runs, lambda run: (label(run), run.forecaster, run.method, run.features > 1))
    groups = [MethodGroup(*about, tuple(members)) for about, members in found.items()]
    return sorted(groups, key=lambda group: (group.several_features, group.dataset.lower(), *_order(group)))


def summaries_of(groups: Iterable[MethodGroup]) -> list[Summary]:
    """Groups by forecaster and method, in the order of the tables."""
    found = grouped(groups, lambda group: (group.forecaster, group.method))
    return sorted((Summary(*about, tuple(members)) for about, members in found.items()), key=_order)


@dataclass(frozen=True)
class ForecastGroup:
    """One forecaster's mean absolute and root mean squared errors on the files of one data set."""

    dataset: str
    forecaster: str
    several_features: bool
    mae: Spread
    rmse: Spread


def forecast_groups_of(forecasts: Sequence[ForecastErrors]) -> list[ForecastGroup]:
    """The errors by data set and forecaster, in the order of the tables."""
    label = _dataset_labels(forecasts)
    found = grouped(forecasts, lambda file: (label(file), file.forecaster, file.features > 1))
    groups = [
        ForecastGroup(*about, Spread.of(file.mae for file in files), Spread.of(file.rmse for file in files))
        for about, files in found.items()
    ]
    return sorted(groups, key=lambda group: (group.several_features, group.dataset.lower(), group.forecaster))


def status_counts(runs: Iterable[MethodRun]) -> dict[str, int]:
    """How many runs succeeded, failed and were skipped."""
    counts = Counter(run.status for run in runs)
    return {status: counts[status] for status in STATUSES}


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items that share a key, in their order."""
    found: defaultdict[Key, list[Item]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return dict(found)


def _dataset_labels(items: Sequence[MethodRun | ForecastErrors]) -> Callable[[MethodRun | ForecastErrors], str]:
    """Names a data set twice if it has both univariate and multivariate files."""
    single = {item.dataset for item in items if item.features == 1}

    def label(item: MethodRun | ForecastErrors) -> str:
        return f"{item.dataset} (multivariate)" if item.features > 1 and item.dataset in single else item.dataset

    return label


def _order(about: MethodGroup | Summary) -> tuple[tuple[bool, str], tuple[int, str]]:
    return forecaster_order(about.forecaster), method_order(about.method)
