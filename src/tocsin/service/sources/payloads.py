"""What a message says: numbers, and perhaps a time."""

import json
import math
import re
from typing import Any

from tocsin.data.cells import MISSING, read_numbers
from tocsin.service.observations import moment_of

LARGEST = 2**18  # bytes

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_ABSENT = object()


class Path:
    """A way into JSON: names with dots between them, and places in lists, such as "values[0].reading"."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps: list[str | int] = []
        place = 0
        while place < len(text):
            if self._steps and text[place] == ".":
                place += 1
            match = _STEP.match(text, place)
            if match is None or (match[1] and self._steps and text[place - 1] != "."):
                break
            self._steps.append(int(match[2]) if match[2] else match[1])
            place = match.end()
        if place < len(text) or not text or text.endswith("."):
            raise ValueError(f"a path must be like 'reading.value' or 'values[0]', got {text!r}")

    def find(self, tree: Any) -> Any:
        """What is there, or _ABSENT."""
        for step in self._steps:
            there = step in tree if isinstance(tree, dict) else isinstance(tree, list) and step in range(len(tree))
            if not there:
                return _ABSENT
            tree = tree[step]
        return tree


class Payload:
    """Reads messages: a plain number, or JSON with numbers, and perhaps a time, at given paths.

    Of several numbers some may not be in a message, or null: they are missing (NaN).
    """

    def __init__(self, value: tuple[str, ...], time: str | None) -> None:
        self._values = [Path(one) for one in value]
        self._time = None if time is None else Path(time)
        if self._time is not None and not self._values:
            raise ValueError(f"time is {time!r}, but value is empty: a plain number has no time")
        #: The features' names, None if there is one.
        self.features = tuple(value) if len(value) > 1 else None

    def read(self, data: bytes) -> tuple[tuple[float, ...], int | None]:
        """The numbers and the time (ns), or ValueError with what is wrong."""
        if not data:
            raise ValueError("an empty message")
        if len(data) > LARGEST:
            raise ValueError(f"a message of {len(data)} bytes; at most {LARGEST} are read")
        if not self._values:
            return (_number(data.decode("utf-8", errors="replace").strip(), "the message"),), None
        tree = _parsed(data)
        found = [path.find(tree) for path in self._values]
        if all(one is _ABSENT for one in found):
            raise ValueError(f"no {' or '.join(path.text for path in self._values)} in {_shown(data)}")
        values = tuple(
            math.nan if one is _ABSENT else _number(one, path.text)
            for one, path in zip(found, self._values, strict=True)
        )
        return values, self._time_in(tree, data)

    def _time_in(self, tree: Any, data: bytes) -> int | None:
        if self._time is None:
            return None
        time = self._time.find(tree)
        if time is _ABSENT:
            raise ValueError(f"no {self._time.text} in {_shown(data)}")
        return moment_of(time)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError(f"nested too deeply: {_shown(data)}") from None
    except ValueError as error:
        raise ValueError(f"no JSON ({error}): {_shown(data)}") from None


def _number(cell: Any, place: str) -> float:
    numbers, why = read_numbers([cell])
    if why is not None and why[0] > MISSING:
        shown = repr(cell)
        raise ValueError(
            f"{place}: expected a finite number, or null, NaN or NA for a missing one, got "
            f"{shown if len(shown) <= 60 else shown[:57] + '...'}"
        )
    return float(numbers[0])


def _shown(data: bytes) -> str:
    return repr(data if len(data) <= 60 else data[:57] + b"...")[1:]
