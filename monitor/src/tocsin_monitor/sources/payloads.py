"""What messages of sources say: values and times in a payload, and the names of signals."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tocsin.data import MISSING, read_numbers
from tocsin_monitor.config.section import NameTemplate
from tocsin_monitor.observations import LONGEST_NAME, moment_of

_DIGEST = 12  # characters


def topic_signal(template: NameTemplate, topic: str, value: str = "") -> str:
    """The name of the signal for a value in a message on a topic; ValueError if the topic has too few levels."""
    levels = topic.split("/")
    try:
        name = template.fill({"topic": topic, "value": value, **{str(i): level for i, level in enumerate(levels)}})
    except KeyError as error:
        raise ValueError(
            f"topic {topic!r} has {len(levels)} levels, but {template.text!r} asks for {error.args[0]}"
        ) from None
    return fitting(name)


def series_signal(template: NameTemplate | None, labels: Mapping[str, str], query: str) -> str:
    """The name of the signal for a series: without a template, the series as Prometheus writes it.

    The result of a function has no name, so the query is used instead. A missing label is empty, as in Prometheus.

    Examples
    --------
    >>> series_signal(None, {"__name__": "up", "job": "node", "instance": "a"}, "up")
    'up{instance="a", job="node"}'
    """
    if template is not None:
        return fitting(template.fill({**dict.fromkeys(template.fields, ""), **labels}))
    name = labels.get("__name__") or " ".join(query.split())
    rest = ", ".join(
        f"{label}={json.dumps(labels[label], ensure_ascii=False)}" for label in sorted(labels) if label != "__name__"
    )
    return fitting(f"{name}{{{rest}}}" if rest else name)


def fitting(name: str) -> str:
    """A valid name for a signal: printable, and not too long; names that are cut off get a digest, so they differ."""
    name = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in name).strip()
    if not name:
        raise ValueError("the name of the signal would be empty")
    if len(name) > LONGEST_NAME:
        digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
        name = name[: LONGEST_NAME - _DIGEST - 1].rstrip() + "~" + digest
    return name


LARGEST = 2**18  # bytes

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+|\*)\]")
_ABSENT = object()


class Path:
    """A path in JSON: names separated by dots, and positions in lists, such as "values[0].reading".

    A `*` instead of a name or a position matches all of them.
    """

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
            self._steps.append(int(match[2]) if match[2] and match[2] != "*" else match[1] or "*")
            place = match.end()
        if place < len(text) or not text or text.endswith("."):
            raise ValueError(f"a path must be like 'reading.value' or 'values[0]', got {text!r}")

    @property
    def is_pattern(self) -> bool:
        return "*" in self._steps

    def find_all(self, tree: Any) -> list[tuple[str, Any]]:
        """All values that it matches, each with its path."""
        ways: list[tuple[str, Any]] = [("", tree)]
        for step in self._steps:
            ways = [
                (f"{way}[{key}]" if isinstance(inside, list) else f"{way}.{key}".lstrip("."), inside[key])
                for way, inside in ways
                for key in _keys(inside, step)
            ]
        return ways

    def find(self, tree: Any) -> Any:
        """The first value that it matches, or _ABSENT."""
        return next((value for _, value in self.find_all(tree)), _ABSENT)


def _keys(tree: Any, step: str | int) -> list[Any]:
    """The keys or positions that a step matches."""
    if isinstance(tree, dict):
        return list(tree) if step == "*" else [step] if step in tree else []
    if isinstance(tree, list):
        return list(range(len(tree))) if step == "*" else [step] if step in range(len(tree)) else []
    return []


@dataclass(frozen=True, slots=True)
class Read:
    """The numbers of one observation in a message, its time in nanoseconds, and its path if there are several."""

    values: tuple[float, ...]
    time: int | None
    path: str = ""


class Payload:
    """Reads messages: a plain number, or JSON with numbers, and possibly a time, at given paths.

    Several numbers are the features of one observation, or one observation each with `each`. Features that are absent
    from a message, or null, are missing (NaN).
    """

    def __init__(self, value: tuple[str, ...], time: str | None, *, each: bool = False) -> None:
        self._values, self._each = [Path(one) for one in value], each
        patterns = [path.text for path in self._values if path.is_pattern]
        if patterns and not each:
            raise ValueError(f"value is {patterns[0]!r}, but signal has no {{value}} to tell the numbers apart")
        if each and not value:
            raise ValueError("signal has {value}, but value is empty: a plain number has no path")
        self._time = None if time is None else Path(time)
        if self._time is not None and not self._values:
            raise ValueError(f"time is {time!r}, but value is empty: a plain number has no time")
        #: The features' names, None if there is one.
        self.features = tuple(value) if len(value) > 1 and not each else None

    def read(self, data: bytes) -> list[Read]:
        """The observations in a message; ValueError says what is wrong with it."""
        if not data:
            raise ValueError("an empty message")
        if len(data) > LARGEST:
            raise ValueError(f"a message of {len(data)} bytes; at most {LARGEST} are read")
        if not self._values:
            return [Read((_number(data.decode("utf-8", errors="replace").strip(), "the message"),), None)]
        tree = _parsed(data)
        if self._each:
            return self._read_each(tree, data)
        found = [path.find(tree) for path in self._values]
        if all(one is _ABSENT for one in found):
            raise ValueError(f"no {' or '.join(path.text for path in self._values)} in {_shown(data)}")
        values = tuple(
            math.nan if one is _ABSENT else _number(one, path.text)
            for one, path in zip(found, self._values, strict=True)
        )
        return [Read(values, self._time_in(tree, data))]

    def _read_each(self, tree: Any, data: bytes) -> list[Read]:
        """One observation per number. A plain path must lead to a number; other matches of a pattern are ignored."""
        numbers = {
            way: _number(one, way)
            for path in self._values
            for way, one in path.find_all(tree)
            if not path.is_pattern or (isinstance(one, (int, float)) and not isinstance(one, bool))
        }
        if self._time is not None:
            numbers.pop(self._time.text, None)
        if not numbers:
            raise ValueError(f"no {' or '.join(path.text for path in self._values)} in {_shown(data)}")
        time = self._time_in(tree, data)
        return [Read((number,), time, way) for way, number in numbers.items()]

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
