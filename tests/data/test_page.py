"""What the page on data must not leave out."""

import inspect
from pathlib import Path

import pytest

import tocsin.data
from tocsin.data.numbers import MISSING_TEXTS
from tocsin.data.sources import SUFFIXES
from tocsin.data.times import TIME_NAMES

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text()


def test_every_kind_of_problem_has_its_rule():
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `")
    ]
    rules = {row[0].strip("`"): row[1] for row in rows if len(row) == 3 and row[1] in ("note", "damage")}
    assert rules == dict(tocsin.data.KINDS)


@pytest.mark.parametrize("name", SUFFIXES)
def test_every_suffix_is_there(name):
    assert f"`{name}`" in PAGE


def test_words_are_there():
    row = next(line for line in PAGE.splitlines() if line.startswith("| `missing value`")).lower()
    assert all(word in row for word in MISSING_TEXTS)
    assert ", ".join(TIME_NAMES[:-1]) + f" or {TIME_NAMES[-1]}" in PAGE


def test_every_option_is_explained():
    for function in (tocsin.data.read_signals, tocsin.data.LineParser):
        for name in inspect.signature(function).parameters:
            assert (
                f"{name} :" in function.__doc__ or f"{name}, " in function.__doc__ or f", {name} :" in function.__doc__
            )
