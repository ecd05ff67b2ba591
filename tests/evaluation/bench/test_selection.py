"""The choice among combinations, beside one that is slow and obvious."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin_bench.results import MethodRun
from tocsin_bench.selection import (
    CRITERIA,
    Choice,
    Quality,
    best_overall,
    choice_sheet,
    chosen_quality,
    combination_sheet,
    compare,
    leave_one_out,
    mean_choice,
)

# By hand: without A, "x" has (.6 + .3) / 2 = .45, "y" (.2 + .8) / 2 = .5, "z" (.5 + .4) / 2 = .45; and so on.
MADE_UP = {
    "x": {"A": 0.9, "B": 0.6, "C": 0.3},
    "y": {"A": 0.1, "B": 0.2, "C": 0.8},
    "z": {"A": 0.7, "B": 0.5, "C": 0.4},
}


def test_made_up_numbers():
    a, b, c = leave_one_out(MADE_UP)
    assert (a.dataset, a.combination, a.left_out, a.hindsight) == ("A", "y", 0.1, 0.9)
    assert a.chosen_on == pytest.approx(0.5)
    assert (b.dataset, b.combination, b.left_out, b.hindsight) == ("B", "x", 0.6, 0.6)
    assert b.chosen_on == pytest.approx(0.6)
    assert (c.dataset, c.combination, c.left_out, c.hindsight) == ("C", "x", 0.3, 0.8)
    assert c.chosen_on == pytest.approx(0.75)
    mean = mean_choice([a, b, c])
    assert (mean.dataset, mean.combination) == ("mean", "")
    assert (mean.chosen_on, mean.left_out, mean.hindsight) == pytest.approx((1.85 / 3, 1 / 3, 2.3 / 3))
    assert best_overall(MADE_UP) == "x"


def slow_choice(values, left_out):
    best, best_mean = None, -math.inf
    for combination in values:
        total, number = 0.0, 0
        for dataset in values[combination]:
            if dataset == left_out:
                continue
            total += values[combination][dataset]
            number += 1
        if total / number > best_mean:
            best, best_mean = combination, total / number
    return best, best_mean


# Eighths are added without rounding, and often equal: the first of equals is chosen.
TABLES = st.tuples(st.integers(1, 5), st.integers(2, 5)).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(0, 8), min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
    )
)


def as_values(table):
    return {
        f"c{place}": {f"D{column}": value / 8 for column, value in enumerate(row)} for place, row in enumerate(table)
    }


@pytest.mark.slow
@given(TABLES)
def test_the_choice_is_the_obvious_one(table):
    values = as_values(table)
    choices = leave_one_out(values)
    assert [one.dataset for one in choices] == list(values["c0"])
    for one in choices:
        combination, mean = slow_choice(values, one.dataset)
        assert one.combination == combination
        assert one.chosen_on == pytest.approx(mean)
        assert one.left_out == values[combination][one.dataset]
        assert one.hindsight == max(row[one.dataset] for row in values.values())
        assert one.left_out <= one.hindsight


@given(TABLES, st.integers(0, 2**32 - 1))
def test_the_choice_never_looks_at_the_set_left_out(table, seed):
    values, rng = as_values(table), np.random.default_rng(seed)
    for one in leave_one_out(values):
        others = {name: {**row, one.dataset: rng.normal() * 100} for name, row in values.items()}
        again = next(choice for choice in leave_one_out(others) if choice.dataset == one.dataset)
        assert (again.combination, again.chosen_on) == (one.combination, one.chosen_on)


def test_criteria():
    quality = Quality(vus_pr=0.2, events=0.6)
    assert {name: quality.by(name) for name in CRITERIA} == pytest.approx({"vus-pr": 0.2, "events": 0.6, "both": 0.4})


def run(file, dataset, method, vus_pr, events, **more):
    metrics = {"vus_pr": vus_pr, "budget_events_found": events}
    return MethodRun(file, dataset, "", method, metrics=metrics, **more)


RUNS = [
    run("a1", "A", "x", 0.2, 0.4),
    run("a1", "A", "y", 0.3, 0.1),
    run("a2", "A", "x", 0.4, 1.0, features=2),
    run("a2", "A", "y", 0.5, 0.2, features=2),
    run("b1", "B", "x", 0.9, 0.8),
    run("b1", "B", "y", 0.7, 0.87),
    run("b2", "B", "x", 0.1, 0.1),
    run("b2", "B", "y", math.nan, math.nan, status="failed"),
    run("b3", "B", "x", math.nan, math.nan),
    run("b3", "B", "y", math.nan, math.nan),
    run("c1", "C", "x", 0.5, 0.5),
]


def test_means_are_over_series_that_all_combinations_have():
    found = compare(RUNS, ["x", "y"])
    assert found.series == {"A": 2, "B": 1}
    assert found.not_counted == ["b2", "b3", "c1"]
    assert found.means["x"]["A"] == pytest.approx((0.3, 0.7))
    assert found.means["y"]["A"] == pytest.approx((0.4, 0.15))
    assert found.means["x"]["B"] == (0.9, 0.8)
    # Data sets weigh the same, however many series they have.
    assert found.overall("x") == pytest.approx((0.6, 0.75))
    assert found.values("both")["y"] == pytest.approx({"A": 0.275, "B": 0.785})
    assert compare(RUNS, ["x"]).series == {"A": 2, "B": 2, "C": 1}


def test_what_the_choices_are_worth():
    found = compare(RUNS, ["x", "y"])
    choices = leave_one_out(found.values("vus-pr"))
    assert [one.combination for one in choices] == ["x", "y"]
    assert chosen_quality(found, choices) == pytest.approx(((0.3 + 0.7) / 2, (0.7 + 0.87) / 2))


def test_tables():
    found = compare(RUNS, ["x", "y"])
    sheet = combination_sheet(found)
    cells = [tuple(cell if isinstance(cell, str) else cell.text for cell in row) for row in sheet.rows]
    assert cells == [
        ("A", "x", "0.300", "0.700", "0.500", "2"),
        ("A", "y", "0.400", "0.150", "0.275", "2"),
        ("B", "x", "0.900", "0.800", "0.850", "1"),
        ("B", "y", "0.700", "0.870", "0.785", "1"),
        ("mean", "x", "0.600", "0.750", "0.675", "3"),
        ("mean", "y", "0.550", "0.510", "0.530", "3"),
    ]
    assert [cell.best for cell in sheet.rows[0][2:5]] == [False, True, True]
    sheet = choice_sheet([Choice("A", "x", 0.5, 0.25, 1.0), Choice("B", "y", 0.7, 0.75, 1.0)], "events")
    assert "by events found" in sheet.title
    assert [cell.value for cell in sheet.rows[-1][2:]] == pytest.approx([0.6, 0.5, 1.0])
