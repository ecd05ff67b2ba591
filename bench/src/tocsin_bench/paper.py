"""The numbers printed in the W1-ACAS paper (ICLR 2026), for comparison."""

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

SUMMARY = "all"
"""The data set under which means over all univariate data sets are found."""

FORECASTERS = ("chronos", "tirex", "ttm")
# Forecasters that are not in the paper are compared with its most accurate one.
MOST_ACCURATE = "tirex"
FORECAST_ERRORS = ("mae", "rmse")

Key = tuple[str, str, str, str, str]


class PaperValue(NamedTuple):
    """A printed mean and standard deviation (NaN where none is printed), and of which of the paper's rows."""

    mean: float
    sd: float
    forecaster: str
    method: str


def paper_value(
    dataset: str, forecaster: str, method: str, metric: str, *, several_features: bool | None = None
) -> PaperValue | None:
    """What the paper prints for a data set, `SUMMARY` for all of them, or None.

    The errors of forecasts, "mae" and "rmse", belong to no method. `several_features` asks for the multivariate table
    alone, or for the univariate one; None for whichever has the data set.

    >>> paper_value("NEK", "embedded-52", "w1-acas", "auc_pr")
    PaperValue(mean=0.421, sd=0.063, forecaster='tirex', method='w1-acas')
    """
    theirs = _forecaster(forecaster)
    for table in _tables(dataset, metric, several_features):
        found = _printed().get((table, dataset.lower(), theirs, method, metric))
        if found is not None:
            return PaperValue(*found, forecaster=theirs, method=method)
    return None


def _forecaster(label: str) -> str:
    """The paper's forecaster for a label such as "chronos", "tirex-512" or "embedded-52"."""
    if not label:
        return ""
    name = label.lower().split("-")[0]
    return name if name in FORECASTERS else MOST_ACCURATE


def _tables(dataset: str, metric: str, several_features: bool | None) -> tuple[str, ...]:
    if metric in FORECAST_ERRORS:
        return () if several_features else ("forecast",)
    if dataset == SUMMARY:
        return () if several_features else ("summary",)
    if several_features is None:
        return "univariate", "multivariate"
    return ("multivariate",) if several_features else ("univariate",)


@cache
def _printed() -> dict[Key, tuple[float, float]]:
    """The mean and standard deviation by table, data set in lower case, forecaster, method and metric."""
    printed = {}
    with resources.files("tocsin_bench").joinpath("paper.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["table"], row["dataset"].lower(), row["forecaster"], row["method"], row["metric"]
            printed[key] = float(row["mean"]), float(row["sd"] or "nan")
    return printed
