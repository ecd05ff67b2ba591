"""The tables of a benchmark."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from tocsin_bench.paper import FORECAST_ERRORS, PaperValue, paper_value
from tocsin_bench.report.leaderboard import best_entries
from tocsin_bench.report.measures import AT_QUANTILES, BUDGET, MAIN, OPERATORS, TSB_AD, Measure
from tocsin_bench.report.pairs import paired_sheet
from tocsin_bench.report.sheet import Cell, Column, Number, Row, Sheet, best_of, count
from tocsin_bench.report.summaries import (
    ForecastGroup,
    MethodGroup,
    Spread,
    Summary,
    forecast_groups_of,
    grouped,
    groups_of,
    summaries_of,
)
from tocsin_bench.results import FILES_OF, BenchmarkResults

Rows = TypeVar("Rows", MethodGroup, Summary)

_EACH_DATASET = (*MAIN, AT_QUANTILES, *(measure for measure in BUDGET if "_at_" not in measure.key))

IN_PARENTHESES = "In parentheses, where there is one: the paper's mean, of the row that is named."
_OPERATORS_NOTE = (
    "Mean ± standard deviation over the files of a data set, both averaged over data sets with equal weight. A false"
    " positive rate should be .01 where p-values were given; scores of other kinds promise none. The delay, in"
    " observations, is that of detected events alone."
)
_BUDGET_NOTE = (
    "The share of events with an alarm in them, at the loosest thresholds with at most 0.5, 1 and 2 false incidents in"
    " 1,000 normal observations, and the mean of the three. Then the shares of anomalous and of normal observations"
    " under an incident: the method's own where it has any (tocsin, at its alarm rate), else those at 1. Mean ±"
    " standard deviation over the files of a data set, both averaged over data sets with equal weight."
)
_TSB_AD_NOTE = (
    "The part of a file that is evaluated here, after its first `tr` observations, beside the whole file, by which"
    " TSB-AD's leaderboard ranks. Where there is no p yet, an observation counts as normal. Mean ± standard deviation"
    " over the files of a data set, both averaged over data sets with equal weight."
)
_PUBLISHED_NOTE = (
    " Published: the entries of TSB-AD's leaderboard that are best on these files, chosen in hindsight, from the"
    " numbers of single files in its repository; most of them see a whole file before they judge it."
)
_FILES = Column("files ok")
_RANKED_BY = Column("ranked by", numeric=False, short="by")


def all_sheets(results: BenchmarkResults) -> list[Sheet]:
    """All tables that are not empty, in the order of the report, except those in `accounts.py`."""
    groups = groups_of(results.runs())
    single = [group for group in groups if not group.several_features]
    several = [group for group in groups if group.several_features]
    sheets = []
    if single:
        summaries = summaries_of(single)
        sheets.append(summary_sheet(summaries))
        sheets += _operation_sheets(summaries, "", "univariate data sets")
        sheets += _tsb_ad_sheets(single, "", "univariate data sets")
        if len(summaries) > 1:
            sheets.append(paired_sheet(single))
        sheets += [dataset_sheet(members) for members in grouped(single, lambda group: group.dataset).values()]
    if several:
        sheets.append(multivariate_sheet(several))
        sheets += _operation_sheets(summaries_of(several), "-multivariate", "multivariate data sets")
        sheets += _tsb_ad_sheets(several, "-multivariate", "multivariate data sets")
    forecasts = forecast_groups_of(results.forecasts())
    if forecasts:
        sheets.append(forecast_sheet(forecasts))
    part = _part_note(results)
    return [replace(sheet, note=sheet.note + part) for sheet in sheets if sheet.rows]


def _part_note(results: BenchmarkResults) -> str:
    """Which data sets were run in part: what the paper prints is of all of their files."""
    about = results.about()
    files = grouped({run.file: run.dataset for run in results.runs()}.items(), lambda item: item[1])
    wholes = {name: int(about.get(f"{FILES_OF}{name}", 0)) for name in files}
    parts = [f"{name} {len(run)} of {wholes[name]}" for name, run in files.items() if len(run) < wholes[name]]
    return f" Only a part was run: {', '.join(parts)} files; the paper's numbers are of all of them." if parts else ""


def summary_sheet(summaries: Sequence[Summary]) -> Sheet:
    """The mean over data sets of each metric."""
    return _summary_sheet(
        summaries,
        MAIN,
        "summary",
        "Summary over the univariate data sets",
        "Mean ± standard deviation over the files of a data set, both averaged over data sets with equal weight. Bold:"
        " the best of those that rest on all data sets. In parentheses: the mean of what the paper prints for the same"
        f" data sets, where it has them all, of the row that is named. Data sets: {_datasets(summaries)}.",
    )


def _datasets(summaries: Sequence[Summary]) -> str:
    return ", ".join(sorted({group.dataset for summary in summaries for group in summary.groups}, key=str.lower))


def _operation_sheets(summaries: Sequence[Summary], suffix: str, about: str) -> list[Sheet]:
    """What operators would see, as means over data sets: at a budget of false incidents, and at an alarm rate."""
    known = {name for summary in summaries for name in summary.metrics() if summary.spread(name).n}
    sheets = []
    for measures, name, title, note in (
        (BUDGET, "incidents", f"At the same number of false incidents: {about}", _BUDGET_NOTE),
        (OPERATORS, "operators", f"For operators: {about} at an alarm rate of .01", _OPERATORS_NOTE),
    ):
        shown = [measure for measure in measures if measure.key in known]
        if shown:
            sheets.append(_summary_sheet(summaries, shown, name + suffix, title, note))
    return sheets


def _tsb_ad_sheets(groups: Sequence[MethodGroup], suffix: str, about: str) -> list[Sheet]:
    """Whole files, beside what the leaderboard publishes for the same ones; nothing if no whole file was evaluated."""
    if not any(TSB_AD[1].key in group.metrics() for group in groups):
        return []
    published = best_entries(groups)
    note = _TSB_AD_NOTE + (_PUBLISHED_NOTE if published else "")
    title = f"By the protocol of TSB-AD: {about}"
    return [_summary_sheet([*summaries_of(groups), *published], TSB_AD, "tsb-ad" + suffix, title, note)]


def _summary_sheet(
    summaries: Sequence[Summary], measures: Sequence[Measure], name: str, title: str, note: str
) -> Sheet:
    columns = [_numbers(summaries, measure, _paper_mean) for measure in measures]
    rows: list[tuple[str, Row]] = []
    for place, summary in enumerate(summaries):
        datasets = max((summary.datasets(measure.key) for measure in measures), default=0)
        row: Row = (
            summary.forecaster,
            summary.method,
            summary.ranked_by,
            *(column[place] for column in columns),
            count(datasets),
            f"{summary.count('ok')}/{summary.tried}",
            _paper_row(_paper_mean(summary, measure.key) for measure in measures),
        )
        rows.append((summary.forecaster, row))
    headings = (
        *_headings("forecaster", "method"),
        _RANKED_BY,
        *(Column(measure.heading, short=measure.short) for measure in measures),
        Column("data sets", terminal=False),
        _FILES,
        Column("paper's row", numeric=False, terminal=False),
    )
    return _without_empty(Sheet(name, title, headings, _blocks(rows), note))


def _paper_mean(summary: Summary, metric: str) -> PaperValue | None:
    """The paper's mean over the same data sets, if it has all of them: its own summary includes more."""
    found = [_paper_cell(group, metric) for group in summary.groups if group.spread(metric).n]
    known = [value for value in found if value is not None]
    if not known or len(known) < len(found):
        return None
    return known[0]._replace(mean=Spread.of(value.mean for value in known).mean, sd=math.nan)


def dataset_sheet(groups: Sequence[MethodGroup]) -> Sheet:
    """One data set."""
    dataset = groups[0].dataset
    rows = [(group.forecaster, row[1:]) for group, row in zip(groups, _group_rows(groups), strict=True)]
    note = f"Mean ± standard deviation over files. Bold: the best. {IN_PARENTHESES}"
    return _without_empty(Sheet(f"dataset-{dataset}", dataset, _group_headings()[1:], _blocks(rows), note))


def multivariate_sheet(groups: Sequence[MethodGroup]) -> Sheet:
    """The files with several features, data set by data set."""
    rows = []
    for dataset, members in grouped(groups, lambda group: group.dataset).items():
        rows += [(dataset, row) for row in _group_rows(members)]
    note = f"Mean ± standard deviation over files. Bold: the best on a data set. {IN_PARENTHESES}"
    title = "Multivariate data sets"
    return _without_empty(Sheet("multivariate", title, _group_headings(), _blocks(rows), note))


def forecast_sheet(groups: Sequence[ForecastGroup]) -> Sheet:
    """The errors of the forecasts, data set by data set."""
    rows: list[tuple[str, Row]] = []
    for dataset, members in grouped(groups, lambda group: group.dataset).items():
        bests = zip(
            best_of([group.mae.mean for group in members], -1, None),
            best_of([group.rmse.mean for group in members], -1, None),
            strict=True,
        )
        for group, best in zip(members, bests, strict=True):
            printed = [
                paper_value(dataset, group.forecaster, "", metric, several_features=group.several_features)
                for metric in FORECAST_ERRORS
            ]
            errors = zip((group.mae, group.rmse), printed, best, strict=True)
            numbers = [_number(spread, None, value, is_best) for spread, value, is_best in errors]
            rows.append((dataset, (dataset, group.forecaster, *numbers, count(group.mae.n), _paper_row(printed))))
    headings = (
        *_headings("data set", "forecaster"),
        *(Column(heading) for heading in ("MAE", "RMSE", "files")),
        Column("paper's row", numeric=False, terminal=False),
    )
    note = f"Mean ± standard deviation over files, in the units of the data. {IN_PARENTHESES}"
    return _without_empty(Sheet("forecasts", "Errors of the forecasts", headings, _blocks(rows), note))


def _group_headings() -> tuple[Column, ...]:
    return (
        *_headings("data set", "forecaster", "method"),
        _RANKED_BY,
        *(Column(measure.heading, short=measure.short, terminal=measure in MAIN) for measure in _EACH_DATASET),
        _FILES,
        Column("paper's row", numeric=False, terminal=False),
    )


def _paper_cell(group: MethodGroup, metric: str) -> PaperValue | None:
    return paper_value(group.dataset, group.forecaster, group.method, metric, several_features=group.several_features)


def _group_rows(groups: Sequence[MethodGroup]) -> list[Row]:
    columns = [_numbers(groups, measure, _paper_cell) for measure in _EACH_DATASET]
    return [
        (
            group.dataset,
            group.forecaster,
            group.method,
            group.ranked_by,
            *(column[place] for column in columns),
            f"{group.count('ok')}/{len(group.runs)}",
            _paper_row(_paper_cell(group, measure.key) for measure in MAIN),
        )
        for place, group in enumerate(groups)
    ]


def _numbers(found: Sequence[Rows], measure: Measure, paper: Callable[[Rows, str], PaperValue | None]) -> list[Number]:
    """One column: the best is bold, unless it covers only some of the data sets."""
    spreads = [rows.spread(measure.key) for rows in found]
    datasets = [rows.datasets(measure.key) if isinstance(rows, Summary) else 1 for rows in found]
    compared = [
        spread.mean if covered == max(datasets) else math.nan for spread, covered in zip(spreads, datasets, strict=True)
    ]
    best = best_of(compared, measure.better, measure.decimals)
    return [
        _number(spread, measure.decimals, paper(rows, measure.key), is_best)
        for rows, spread, is_best in zip(found, spreads, best, strict=True)
    ]


def _number(spread: Spread, decimals: int | None, printed: PaperValue | None, best: bool) -> Number:
    return Number(
        value=spread.mean,
        sd=spread.sd,
        paper=math.nan if printed is None else printed.mean,
        decimals=decimals,
        best=best,
    )


def _paper_row(printed: Iterable[PaperValue | None]) -> str:
    known = [value for value in printed if value is not None]
    return f"{known[0].forecaster} {known[0].method}".strip() if known else ""


def _headings(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, numeric=False) for name in names)


def _blocks(rows: Sequence[tuple[str, Row]]) -> tuple[tuple[Row, ...], ...]:
    """The rows in blocks: one for each run of equal keys."""
    return tuple(tuple(row for _, row in members) for members in grouped(rows, lambda row: row[0]).values())


def _without_empty(sheet: Sheet) -> Sheet:
    """Without empty columns of text."""

    def says(cell: Cell) -> bool:
        return not isinstance(cell, str) or bool(cell)

    kept = [place for place in range(len(sheet.columns)) if any(says(row[place]) for row in sheet.rows)]
    blocks = tuple(tuple(tuple(row[place] for place in kept) for row in block) for block in sheet.blocks)
    return Sheet(sheet.name, sheet.title, tuple(sheet.columns[place] for place in kept), blocks, sheet.note)
