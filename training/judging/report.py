"""Tables for people, and lines of name=value for scripts."""

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from training.judging.comparison import COVERAGE, ERRORS, Scores, mean_ratios, means
from training.judging.every_origin import REFERENCES, Column
from training.judging.metrics import rank


def errors_table(title: str, errors: Mapping[str, Mapping[Column, float]], files: Mapping[str, int]) -> Table:
    """Errors at every origin, a row for each data set."""
    columns = list(next(iter(errors.values())))
    headings = [str(column) if column in REFERENCES else f"context {column}" for column in columns]
    table = _table(title, ["data set", "files", *headings])
    table.caption = f"for reference {', '.join(REFERENCES)}, following each file from its beginning"
    for data_set, row in errors.items():
        table.add_row(data_set, str(files[data_set]), *(f"{row[column]:.4g}" for column in columns))
    return table


def ranked_table(
    title: str, scores: Scores, windows: Mapping[str, int], models: Sequence[str], reference: str
) -> Table:
    """One metric, a row for each data set and the means; the last column is the rank of the first model."""
    ours = models[0]
    table = _table(title, ["data set", "windows", *models, f"rank of {ours}"])
    for data_set, row in scores.items():
        table.add_row(data_set, str(windows[data_set]), *_cells(row, models), _rank(row, ours))
    table.add_section()
    averages = {"mean": means(scores), f"relative to {reference}": mean_ratios(scores, reference)}
    for name, row in averages.items():
        table.add_row(name, "", *_cells(row, models), _rank(row, ours))
    return table


def plain_table(title: str, scores: Scores, windows: Mapping[str, int], models: Sequence[str]) -> Table:
    """The same for what is not ranked."""
    table = _table(title, ["data set", "windows", *models])
    for data_set, row in scores.items():
        table.add_row(data_set, str(windows[data_set]), *_cells(row, models))
    table.add_section()
    table.add_row("mean", "", *_cells(means(scores), models))
    return table


def comparison_line(by_horizon: Mapping[int, Mapping[str, Scores]], ours: str, reference: str) -> str:
    """For each horizon and error ours has: its worst rank on a data set, its ranks by the averages, these themselves.

    `_mean` is the plain mean over data sets, `_ratio` the geometric mean relative to the reference. Coverage is the
    least and the most of all data sets and horizons.
    """
    pairs: dict[str, int | float] = {}
    covered = []
    for horizon, metrics in by_horizon.items():
        for metric in ERRORS:
            scores = metrics[metric]
            if not all(ours in row for row in scores.values()):
                continue
            name = f"{horizon}_{metric.lower()}"
            mean, ratio = means(scores), mean_ratios(scores, reference)
            pairs[f"rank{name}_worst"] = max(_rank_of(row, ours) for row in scores.values())
            pairs[f"rank{name}_mean"] = _rank_of(mean, ours)
            pairs[f"rank{name}_ratio"] = _rank_of(ratio, ours)
            pairs[f"mean{name}"] = mean[ours]
            pairs[f"ratio{name}"] = ratio[ours]
        covered += [row[ours] for row in metrics[COVERAGE].values() if ours in row]
    if covered:
        pairs["coverage_least"] = min(covered)
        pairs["coverage_most"] = max(covered)
    return line(pairs)


def line(pairs: Mapping[str, int | float]) -> str:
    """Names and values, to be read by a script."""
    return " ".join(f"{name}={value:.4g}" for name, value in pairs.items())


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", caption_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "data set" else "right")
    return table


def _cells(row: Mapping[str, float], models: Sequence[str]) -> list[str]:
    """Empty where a model has nothing to be judged by."""
    return [f"{row[model]:.4f}" if model in row else "" for model in models]


def _rank(row: Mapping[str, float], ours: str) -> str:
    return str(_rank_of(row, ours)) if ours in row else ""


def _rank_of(row: Mapping[str, float], ours: str) -> int:
    return rank(row[ours], (score for model, score in row.items() if model != ours))
