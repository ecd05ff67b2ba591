"""The report of a benchmark as files."""

import math
from collections.abc import Iterable
from pathlib import Path

from rich.table import Table

from tocsin_bench.paper import SUMMARY
from tocsin_bench.report.accounts import account_sheets, failures_sheet, runtime_sheet
from tocsin_bench.report.figures import draw_figures
from tocsin_bench.report.formats import comma_separated, csv_text, for_terminal, latex, markdown
from tocsin_bench.report.page import page
from tocsin_bench.report.pictures import file_name
from tocsin_bench.report.sheet import Sheet
from tocsin_bench.report.summaries import MethodGroup, Spread, groups_of, summaries_of
from tocsin_bench.report.tables import all_sheets
from tocsin_bench.results import BenchmarkResults

_COLUMNS = ["dataset", "forecaster", "method", "metric", "mean", "sd", "n"]
_FORMATS = {"md": markdown, "csv": comma_separated, "tex": latex}
# A terminal shows no tables of single data sets.
_PRINTED = (
    "summary", "incidents", "tsb-ad", "paired", "multivariate", "incidents-multivariate", "tsb-ad-multivariate",
    "forecasts",
)  # fmt: skip


def write_report(results: BenchmarkResults, out: Path, *, figures: bool = True) -> list[Path]:
    """Write all tables, figures and the page `report.html` into a folder; returns the files."""
    out.mkdir(parents=True, exist_ok=True)
    groups = groups_of(results.runs())
    texts = {out / "datasets.csv": dataset_rows(groups), out / "summary.csv": summary_rows(groups)}
    sheets = all_sheets(results) + account_sheets(results)
    for name, sheet in _named(sheets).items():
        texts |= {out / "tables" / f"{name}.{ending}": write(sheet) for ending, write in _FORMATS.items()}
    pictures = draw_figures(results, out / "figures") if figures else []
    texts[out / "report.html"] = page(results, sheets, pictures)
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return sorted([*texts, *(picture.path for picture in pictures)])


def summary_tables(results: BenchmarkResults) -> list[Table]:
    """The tables that fit a terminal: means over data sets, errors of forecasts, run time and failures."""
    runs = results.runs()
    sheets = [sheet for sheet in all_sheets(results) if sheet.name in _PRINTED]
    sheets += [runtime_sheet(runs, results.forecasts()), failures_sheet(runs)]
    return [for_terminal(sheet) for sheet in sheets if sheet.rows]


def dataset_rows(groups: Iterable[MethodGroup]) -> str:
    """Every metric of every method on every data set, for machines."""
    rows = [
        _row(group.dataset, group.forecaster, group.method, metric, group.spread(metric))
        for group in groups
        for metric in sorted(group.metrics())
    ]
    return csv_text([_COLUMNS, *rows])


def summary_rows(groups: Iterable[MethodGroup]) -> str:
    """Every metric of every method, averaged over the data sets with one feature, for machines."""
    rows = [
        _row(SUMMARY, summary.forecaster, summary.method, metric, summary.spread(metric))
        for summary in summaries_of(group for group in groups if not group.several_features)
        for metric in sorted(summary.metrics())
    ]
    return csv_text([_COLUMNS, *rows])


def _row(dataset: str, forecaster: str, method: str, metric: str, spread: Spread) -> list[str]:
    mean, sd = ("" if math.isnan(value) else repr(value) for value in (spread.mean, spread.sd))
    return [dataset, forecaster, method, metric, mean, sd, str(spread.n)]


def _named(sheets: Iterable[Sheet]) -> dict[str, Sheet]:
    """The sheets by file names that are distinct on any system."""
    named: dict[str, Sheet] = {}
    taken: set[str] = set()
    for sheet in sheets:
        plain = name = file_name(sheet.name)
        number = 1
        while name.lower() in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name.lower())
        named[name] = sheet
    return named
