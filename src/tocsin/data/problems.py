"""Problems in data: counted and located, never dropped silently."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Literal

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

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.where) else ""
        return f"{self.kind} ({self.count}): {'; '.join(self.where)}{more}"


class ProblemLog:
    """Collects problems by kind, in order of first occurrence. Its size is bounded."""

    def __init__(self) -> None:
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
