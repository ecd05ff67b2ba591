"""JSON lines: one object per line."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.data.blocks import NOTHING, SAMPLE, Expected, RowBlock
from tocsin.data.cells import Cells
from tocsin.data.problems import DataError, ProblemLog
from tocsin.data.text import TextChunks

Objects = tuple[list[dict[str, Any]], NDArray[np.int64]]


class JsonLinesReader:
    """Reads one object per line. The columns are the keys of the first rows; an absent key is a missing value.

    Blank lines are skipped. A line that is not an object is skipped and reported. Keys that appear only later are
    ignored and reported.
    """

    unit = "line"
    notes: Sequence[str] = ()

    def __init__(self, chunks: TextChunks, label: str, log: ProblemLog) -> None:
        self.label = label
        self._log = log
        self._objects = self._read(chunks)
        start = next(((objects, numbers) for objects, numbers in self._objects if objects), None)
        if start is None:
            raise DataError(f"{label} has no JSON objects: expected one on every line")
        self._objects = chain([start], self._objects)
        self._first = start[0][:SAMPLE]
        self.names: Sequence[str] = list(dict.fromkeys(chain.from_iterable(self._first)))

    def sample(self) -> Mapping[str, Cells]:
        return {name: [row.get(name) for row in self._first] for name in self.names}

    def blocks(self, columns: Sequence[str], expected: Expected = NOTHING) -> Iterator[RowBlock]:
        known = set(self.names)
        for objects, numbers in self._objects:
            unknown = set().union(*objects) - known
            for key in sorted(unknown):
                self._log.add("column left out", 1, [f"column {key}: not among the keys of the first {SAMPLE} rows"])
            known |= unknown
            yield RowBlock(numbers, {name: [row.get(name) for row in objects] for name in columns})

    def _read(self, chunks: TextChunks) -> Iterator[Objects]:
        for chunk in chunks:
            lines = chunk.lines
            numbers = np.arange(chunk.first, chunk.first + len(lines))
            try:
                objects = list(map(json.loads, lines))
            except (RecursionError, ValueError):
                objects = [None]
            if set(map(type, objects)) != {dict}:
                objects, numbers = self._read_carefully(lines, numbers)
            yield objects, numbers

    def _read_carefully(self, lines: list[str], numbers: NDArray[np.int64]) -> Objects:
        objects, kept = [], []
        for line, number in zip(lines, numbers, strict=True):
            if not line.strip():
                continue
            try:
                row = parse_object(line)
            except ValueError as error:
                self._log.add("invalid JSON", 1, [f"line {number}: {error}"])
                continue
            objects.append(row)
            kept.append(number)
        return objects, np.array(kept, dtype=np.int64)


def parse_object(line: str) -> dict[str, Any]:
    """The JSON object on one line, or ValueError with what was found instead."""
    shown = line.strip()
    shown = repr(shown if len(shown) <= 40 else shown[:37] + "...")
    try:
        row = json.loads(line)
    except RecursionError:
        raise ValueError(f"nested too deeply: {shown}") from None
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise ValueError(f"{reason}: {shown}") from None
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, got {shown}")
    return row
