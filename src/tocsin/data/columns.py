"""Choice of the time, value and id columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from tocsin.data.cells import TEXT, Cells, is_missing, read_numbers
from tocsin.data.clocks import find_clock, is_clock, is_dates
from tocsin.data.labels import why_no_feature
from tocsin.data.numerals import PLAIN, Numerals
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.times import choose_time_rule, is_time_name


@dataclass(frozen=True)
class Columns:
    """The columns in use; `clock` holds the times of day if `time` holds only dates."""

    time: str | None
    values: tuple[str, ...]
    id: str | None
    clock: str | None = None
    left_out: tuple[str, ...] = ()  # numeric, but labels or counters

    @property
    def used(self) -> tuple[str, ...]:
        """All of them, each once."""
        names = (self.time, self.clock, self.id, *self.values)
        return tuple(dict.fromkeys(name for name in names if name is not None))


def choose_columns(
    label: str,
    sample: Mapping[str, Cells],
    log: ProblemLog,
    *,
    time: str | None = None,
    values: str | Iterable[str] | None = None,
    id: str | None = None,  # noqa: A002
    ignore: Iterable[str] = (),
    numerals: Numerals = PLAIN,
    guess: bool = False,
) -> Columns:
    """The given columns; those not given are chosen by their names and first cells.

    The time is the first column with a name in `TIME_NAMES` (ignoring case), else the first whose cells are times. A
    column of times of day next to one of dates is joined with it. The values are all other columns in which at least
    half of the first non-missing cells are numbers; with `guess`, labels and counters are excluded. Excluded columns
    are logged.
    """
    names = list(sample)
    ignored = _as_names(ignore) or ()
    for role, given in (("time", [time]), ("id", [id]), ("ignore", ignored)):
        for name in given:
            if name is not None:
                _require(label, role, name, names)
    chosen = _as_names(values)
    taken = {id, *(chosen or ()), *ignored}
    if time is None:
        time = find_time(sample, taken)
    clock = None if time is None else find_clock(sample, time, taken)
    if chosen is not None:
        if not chosen:
            raise ValueError("values must name at least one column, got none")
        for name in chosen:
            _require(label, "values", name, names)
            if name in (time, id):
                raise ValueError(f"values must not include the time or id column, got {name!r}")
        return Columns(time, chosen, id, clock)
    others = [name for name in names if name not in (time, id, clock, *ignored)]
    numeric = [name for name in others if _is_numeric(sample[name], numerals)]
    if not numeric:
        besides = f" besides {time!r}" if time else ""
        held = f"; {others[0]!r} is {_described(sample[others[0]])}" if others else ""
        raise DataError(f"{label} has no numeric column{besides}; its columns: {_list(names)}{held}")
    reasons = {
        name: why
        for name in (numeric if guess else ())
        if (why := why_no_feature(name, sample[name], numerals, position=names.index(name) + 1))
    }
    if len(reasons) == len(numeric):
        reasons = {}  # there are no other columns
    for name in others:
        if name in reasons:
            log.add("column left out", 1, [f"column {name}: {reasons[name]}; to use it, add it to `values`"])
        elif name not in numeric and not _is_nothing(name, sample[name], names):
            log.add("column left out", 1, [f"column {name}: {_described(sample[name])}"])
    return Columns(
        time=time,
        values=tuple(name for name in numeric if name not in reasons),
        id=id,
        clock=clock,
        left_out=tuple(reasons),
    )


def find_time(sample: Mapping[str, Cells], taken: set[str | None]) -> str | None:
    """The time column, by its name or else by its cells; None if there is none.

    A column with only times of day does not count: the column of dates next to it does.
    """
    free = [name for name in sample if name not in taken]
    named = [name for name in free if is_time_name(name)]
    for name in named:
        if not is_clock(sample[name]) and choose_time_rule(sample[name]) is not None:
            return name
    if any(is_clock(sample[name]) for name in named):
        dates = next((name for name in free if is_dates(sample[name])), None)
        if dates is not None:
            return dates
    for position, name in enumerate(free):
        if _is_moments(sample[name], may_count=position == 0 and name == "1"):
            return name
    return named[0] if named else None


def shown(cell: Any) -> str:
    """A cell for a message, shortened."""
    text = repr(cell.item() if isinstance(cell, np.generic) else cell)
    return text if len(text) <= 40 else text[:37] + "..."


def _as_names(values: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if values is None or isinstance(values, str):
        return None if values is None else (values,)
    return tuple(dict.fromkeys(values))


def _require(label: str, role: str, name: str, names: Sequence[str]) -> None:
    if name in names:
        return
    close = get_close_matches(name.lower(), [known.lower() for known in names], n=1)
    hint = next((f"; did you mean {known!r}?" for known in names if [known.lower()] == close), "")
    raise DataError(f"{label} has no column {name!r} (given as `{role}`){hint or ';'} its columns: {_list(names)}")


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(map(repr, names[:20])) + more


def _is_moments(cells: Cells, *, may_count: bool) -> bool:
    """Whether cells are times. Numbers are only if they `may_count`, look like Unix time and never decrease."""
    rule = choose_time_rule(cells)
    if rule is None or not rule.of_numbers:
        return rule is not None
    steps = np.diff(read_numbers(cells)[0])
    return may_count and rule.dtype is np.int64 and steps.size > 0 and bool(np.all(steps >= 0))


def _is_numeric(cells: Cells, numerals: Numerals) -> bool:
    numbers, why = read_numbers(cells, numerals)
    text = 0 if why is None else np.count_nonzero(why == TEXT)
    count = np.count_nonzero(np.isfinite(numbers))
    return bool(count and count >= text)


def _is_nothing(name: str, cells: Cells, names: Sequence[str]) -> bool:
    """Whether a column has neither a name nor a cell, because of an extra delimiter."""
    return name == str(names.index(name) + 1) and all(map(is_missing, cells))


def _described(cells: Cells) -> str:
    full = next((cell for cell in cells if not is_missing(cell)), None)
    return "empty in the first rows" if full is None else f"text such as {shown(full)}"
