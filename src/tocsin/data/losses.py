"""How many rows may be lost before that is an error."""

from collections.abc import Iterable

from tocsin.data.problems import DataError, Problem

#: Each of these costs a row; what may help against it.
COSTLY = {
    "bad time": "`time` names the column of times, `time_format` how they are written",
    "duplicate time": "`id` names the column that tells signals apart, `every` puts together what is of one time",
    "no id": "`id` names the column that tells signals apart",
    "wrong number of fields": "`delimiter` is what separates fields, `skip` passes over lines at the start",
    "unclosed quote": "",
    "invalid JSON": "`format` is that of the file",
}
#: These cost a row where they leave it without any value.
SPOILING = {
    "not a number": "`decimal` is the decimal point, `missing` a word that means that nothing was measured",
    "infinite value": "",
}


def check_losses(rows: int, problems: Iterable[Problem], most_lost: float, spoilt: int = 0) -> None:
    """DataError if more than a share of all rows is lost.

    `rows` are those that are left; `spoilt` of them have no value, as all their cells are damaged.
    """
    found = [problem for problem in problems if problem.kind in COSTLY or (spoilt and problem.kind in SPOILING)]
    lost = sum(problem.count for problem in found if problem.kind in COSTLY)
    share = (lost + spoilt) / max(rows + lost, 1)
    if share > most_lost:
        reasons = ". ".join(map(str, found))
        raise DataError(
            f"{lost + spoilt:,} of {rows + lost:,} rows ({share:.0%}) would be lost. Found: {reasons}. "
            f"{_advice(found)}To go on with the rest, give `most_lost`, the share that may be (1 for all)"
        )


def nothing_read(label: str, problems: Iterable[Problem]) -> DataError:
    """The error for a source of which no row can be read at all."""
    found = list(problems)
    reasons = f". Found: {'. '.join(map(str, found))}. {_advice(found)}".rstrip(" .") if found else ""
    return DataError(f"{label} holds no rows{reasons}")


def _advice(found: Iterable[Problem]) -> str:
    hints = [hint for problem in found if (hint := {**COSTLY, **SPOILING}.get(problem.kind))]
    return f"What may help: {'; '.join(hints)}. " if hints else ""
