"""The limit on lost rows beyond which reading fails."""

from collections.abc import Iterable

from tocsin.data.problems import DataError, Problem

#: Each of these loses a row; the text says what may help.
COSTLY = {
    "bad time": "`time` names the time column, `time_format` gives the format of times",
    "duplicate time": "`id` names the column that tells signals apart, `every` aggregates rows of the same time",
    "no id": "`id` names the column that tells signals apart",
    "wrong number of fields": "`delimiter` is the field separator, `skip` skips lines at the start",
    "unclosed quote": "",
    "invalid JSON": "`format` is the file's format",
}
#: These lose a row if they leave it without any value.
SPOILING = {
    "not a number": "`decimal` is the decimal point, `missing` a word that marks a missing measurement",
    "infinite value": "",
}


def check_losses(rows: int, problems: Iterable[Problem], most_lost: float, spoilt: int = 0) -> None:
    """Raise DataError if more than this share of all rows is lost.

    `rows` is the number left; `spoilt` of them have no value because all their cells are damaged.
    """
    found = [problem for problem in problems if problem.kind in COSTLY or (spoilt and problem.kind in SPOILING)]
    lost = sum(problem.count for problem in found if problem.kind in COSTLY)
    share = (lost + spoilt) / max(rows + lost, 1)
    if share > most_lost:
        reasons = ". ".join(map(str, found))
        raise DataError(
            f"{lost + spoilt:,} of {rows + lost:,} rows ({share:.0%}) would be lost. Found: {reasons}. "
            f"{_advice(found)}To read the rest anyway, set `most_lost`, the share that may be lost (1 for all)"
        )


def nothing_read(label: str, problems: Iterable[Problem]) -> DataError:
    """The error for a source without a single readable row."""
    found = list(problems)
    reasons = f". Found: {'. '.join(map(str, found))}. {_advice(found)}".rstrip(" .") if found else ""
    return DataError(f"{label} has no rows{reasons}")


def _advice(found: Iterable[Problem]) -> str:
    hints = [hint for problem in found if (hint := {**COSTLY, **SPOILING}.get(problem.kind))]
    return f"What may help: {'; '.join(hints)}. " if hints else ""
