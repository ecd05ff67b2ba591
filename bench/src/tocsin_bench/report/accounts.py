"""Tables about the others: how long everything took, what failed, and how many files are behind each mean."""

import math
from collections.abc import Iterable, Sequence

from tocsin_bench.report.measures import MAIN, forecaster_order, method_order
from tocsin_bench.report.sheet import Cell, Column, Number, Row, Sheet, count
from tocsin_bench.report.summaries import MethodGroup, grouped, groups_of
from tocsin_bench.results import STATUSES, BenchmarkResults, ForecastErrors, MethodRun

_FORECASTS = "(the forecasts)"

PAPER_SECONDS = 0.025
"""What the paper says of its method with 15 horizons, for an observation of one feature on a V100."""


def account_sheets(results: BenchmarkResults) -> list[Sheet]:
    """Those of the tables that are not empty."""
    runs = results.runs()
    sheets = [
        runtime_sheet(runs, results.forecasts()),
        failures_sheet(runs),
        coverage_sheet(groups_of(runs)),
    ]
    return [sheet for sheet in sheets if sheet.rows]


def runtime_sheet(runs: Sequence[MethodRun], forecasts: Sequence[ForecastErrors]) -> Sheet:
    """How long the methods took, and the forecasters."""
    timed: list[tuple[tuple[str, str, bool], MethodRun | ForecastErrors]] = []
    timed += [((file.forecaster, _FORECASTS, file.features > 1), file) for file in forecasts]
    timed += [((run.forecaster, run.method, run.features > 1), run) for run in runs if run.status == "ok"]
    found = grouped(timed, lambda item: item[0])
    rows: list[Row] = []
    for forecaster, method, several in sorted(found, key=_runtime_order):
        files = [file for _, file in found[forecaster, method, several]]
        observations = sum(file.observations for file in files)
        each = [_microseconds(file.seconds, file.observations) for file in files]
        rows.append(
            (
                forecaster,
                method,
                "several" if several else "one",
                Number(_microseconds(sum(file.seconds for file in files), observations), decimals=None),
                Number(max((time for time in each if not math.isnan(time)), default=math.nan), decimals=None),
                count(len(files)),
                count(observations),
            )
        )
    columns = (
        *(Column(name, numeric=False) for name in ("forecaster", "method", "features")),
        *(Column(name) for name in ("µs per observation", "slowest file", "files")),
        Column("observations", terminal=False),
    )
    note = "The time of all files over their observations; a method's own, without its forecasts and the metrics."
    if any(run.method.startswith("w1-acas") for run in runs):
        note += f" The paper's takes {PAPER_SECONDS * 1e6:,.0f} µs for an observation of a feature, on a V100."
    return Sheet("runtime", "Run time", columns, _block(rows), note)


def failures_sheet(runs: Iterable[MethodRun]) -> Sheet:
    """Every run that gave no result, and why."""
    rows: list[Row] = [
        (run.dataset, run.file, run.forecaster, run.method, run.status, run.problem or "no reason was given")
        for run in sorted(runs, key=lambda run: (STATUSES.index(run.status), run.dataset.lower(), run.key))
        if run.status != "ok"
    ]
    names = ("data set", "file", "forecaster", "method", "status", "reason")
    columns = tuple(Column(name, numeric=False, terminal=name not in ("data set", "forecaster")) for name in names)
    return Sheet("failures", "Failed and skipped", columns, _block(rows), "These runs are in no mean.")


def coverage_sheet(groups: Iterable[MethodGroup]) -> Sheet:
    """The number of files behind each mean."""
    rows: list[Row] = []
    for group in groups:
        counts: list[Cell] = [count(group.count(status)) for status in STATUSES]
        counts += [count(group.spread(measure.key).n) for measure in MAIN]
        rows.append((group.dataset, group.forecaster, group.method, *counts))
    columns = (
        *(Column(name, numeric=False) for name in ("data set", "forecaster", "method")),
        *(Column(name) for name in STATUSES),
        *(Column(measure.heading, short=measure.short) for measure in MAIN),
    )
    note = (
        "Files that were run, by what came of them, and how many of them each mean rests on. A metric can say nothing"
        " of a run that is ok: most need an anomaly in the evaluated part."
    )
    return Sheet("coverage", "What the means rest on", columns, _block(rows), note)


def _microseconds(seconds: float, observations: int) -> float:
    return 1e6 * seconds / observations if observations else math.nan


def _runtime_order(about: tuple[str, str, bool]) -> tuple[bool, tuple[bool, str], bool, tuple[int, str]]:
    forecaster, method, several = about
    return several, forecaster_order(forecaster), method != _FORECASTS, method_order(method)


def _block(rows: list[Row]) -> tuple[tuple[Row, ...], ...]:
    return (tuple(rows),) if rows else ()
