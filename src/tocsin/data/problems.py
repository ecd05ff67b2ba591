"""Problems in data: counted and located, never dropped silently, and fatal if too many rows are lost."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Literal

from tocsin.checks import Argument, Message

MOST_PLACES = 5  # places named per kind of problem; all are counted

Severity = Literal["note", "damage"]

KINDS = MappingProxyType[str, Severity](
    {
        "missing value": "note",
        "sentinel": "note",
        "gap": "note",
        "zone": "note",
        "column left out": "note",
        "not a number": "damage",
        "infinite value": "damage",
        "bad time": "damage",
        "duplicate time": "damage",
        "unsorted": "damage",
        "irregular step": "damage",
        "gap shortened": "damage",
        "no id": "damage",
        "wrong number of fields": "damage",
        "unclosed quote": "damage",
        "invalid JSON": "damage",
        "undecodable text": "damage",
        "cut short": "damage",
    }
)

_ID, _TIME = Argument("id"), Argument("time")
#: Each of these loses a row; the text says what may help.
LOSES_ROW = {
    "bad time": Message(_TIME, " names the time column, ", Argument("time_format"), " gives the format of times"),
    "duplicate time": Message(
        _ID, " names the column that tells signals apart, ", Argument("every"), " aggregates rows of the same time"
    ),
    "no id": Message(_ID, " names the column that tells signals apart"),
    "wrong number of fields": Message(
        Argument("delimiter"), " is the field separator, ", Argument("skip"), " skips lines at the start"
    ),
    "unclosed quote": Message(),
    "invalid JSON": Message(Argument("format"), " is the file's format"),
}
#: These lose a row if they leave it without any value.
LOSES_VALUE = {
    "not a number": Message(
        Argument("decimal"), " is the decimal point, ", Argument("missing"), " a word that marks a missing measurement"
    ),
    "infinite value": Message(),
}


class DataError(ValueError):
    """Data that cannot be read at all. The message names the source and what is wrong with it."""


class DataWarning(UserWarning):
    """A problem in the data; the rest is used."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of problem (a key of `KINDS`): how often it occurred, and where first."""

    kind: str
    count: int
    where: tuple[str, ...]

    @property
    def severity(self) -> Severity:
        """ "note" for what is normal in live data, "damage" for what needs attention."""
        return KINDS[self.kind]

    @property
    def message(self) -> Message:
        """The text, in which arguments are marked."""
        more = ", ..." if self.count > len(self.where) else ""
        return Message(f"{self.kind} ({self.count}): ", Message.joined("; ", self.where), more)

    def __str__(self) -> str:
        return str(self.message)


class ProblemLog:
    """Collects problems by kind, in order of first occurrence. Its size is bounded.

    `unit` is the word for a row in places: "line" or "row".
    """

    def __init__(self, unit: str = "line") -> None:
        self.unit = unit
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[str]] = {}

    def add(self, kind: str, count: int, places: Iterable[str]) -> None:
        """Count more problems of a kind; `places` is consumed only as far as needed."""
        self._counts[kind] = self._counts.get(kind, 0) + int(count)
        kept = self._places.setdefault(kind, [])
        if len(kept) < MOST_PLACES:
            kept.extend(islice(places, MOST_PLACES - len(kept)))

    def __iter__(self) -> Iterator[Problem]:
        for kind, count in self._counts.items():
            yield Problem(kind, count, tuple(self._places[kind]))


def merge_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """One problem per kind, with the counts summed and the first places kept.

    Examples
    --------
    >>> for problem in merge_problems([Problem("gap", 1, ("after line 7",)), Problem("gap", 2, ("after line 3",))]):
    ...     print(problem)
    gap (3): after line 7; after line 3, ...
    """
    log = ProblemLog()
    for problem in problems:
        log.add(problem.kind, problem.count, problem.where)
    return tuple(log)


def check_losses(rows: int, problems: Iterable[Problem], most_lost: float, damaged_rows: int = 0) -> None:
    """Raise DataError if more than this share of all rows is lost.

    `rows` is the number left; `damaged_rows` of them have no value because all their cells are damaged.
    """
    found = [
        problem for problem in problems if problem.kind in LOSES_ROW or (damaged_rows and problem.kind in LOSES_VALUE)
    ]
    lost = sum(problem.count for problem in found if problem.kind in LOSES_ROW)
    share = (lost + damaged_rows) / max(rows + lost, 1)
    if share > most_lost:
        lost_text = f"{lost + damaged_rows:,} of {rows + lost:,} rows ({share:.0%}) would be lost"
        anyway = Message(
            "To read the rest anyway, set ", Argument("most_lost"), ", the share that may be lost (1 for all)"
        )
        raise DataError(Message.joined(". ", [lost_text, *_explained(found), anyway]))


def no_rows_error(label: str, problems: Iterable[Problem]) -> DataError:
    """The error for a source without a single readable row."""
    return DataError(Message.joined(". ", [f"{label} has no rows", *_explained(list(problems))]))


def _explained(found: Sequence[Problem]) -> Iterator[Message]:
    """What was found, and what may help."""
    if found:
        yield Message("Found: ", Message.joined(". ", found))
    hints = [hint for problem in found if (hint := {**LOSES_ROW, **LOSES_VALUE}.get(problem.kind))]
    if hints:
        yield Message("What may help: ", Message.joined("; ", hints))
