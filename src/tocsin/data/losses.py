"""How many rows may be lost before that is an error."""

from collections.abc import Iterable

from tocsin.data.problems import DataError, Problem

#: Each of these costs a row.
COSTLY = frozenset({"bad time", "duplicate time", "no id", "wrong number of fields", "unclosed quote", "invalid JSON"})
#: These cost a row where they leave it without any value.
SPOILING = frozenset({"not a number", "infinite value"})


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
            "To go on with the rest, give `most_lost`, the share that may be (1 for all)"
        )
