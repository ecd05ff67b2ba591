"""Sorting, duplicates, gaps: against a slow and obvious version, for files and for streams."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.data import LONGEST_GAP, DataError, infer_interval, missing_steps, parse_duration
from tocsin.data.problems import ProblemLog
from tocsin.data.timeline import Timeline, as_interval, regularize

STEPS = st.lists(st.integers(0, 70), min_size=1, max_size=40)


def steps_missing(step, interval, longest_gap):
    """How many whole intervals fit into a step, rounded half up, less the one that is there."""
    return min(max(math.floor(Fraction(step) / Fraction(interval) + Fraction(1, 2)) - 1, 0), longest_gap)


def oracle(times, lines, interval, longest_gap):
    """(time, line) of every row, with line 0 for those put in."""
    kept = {}
    for time, line in zip(times, lines, strict=True):
        kept.setdefault(time, line)
    rows = []
    for time in sorted(kept):
        if rows:
            before = rows[-1][0]
            rows += [
                (before + j * interval, 0) for j in range(1, steps_missing(time - before, interval, longest_gap) + 1)
            ]
        rows.append((time, kept[time]))
    return rows


@given(times=STEPS, interval=st.integers(1, 12), longest_gap=st.integers(0, 6), dated=st.booleans())
def test_against_the_oracle(times, interval, longest_gap, dated):
    lines = np.arange(2, len(times) + 2)
    values = np.column_stack([lines * 1.0, -lines * 1.0])
    if dated:
        given_times, step = np.array(times).astype("datetime64[ns]"), np.timedelta64(interval, "ns")
    else:
        given_times, step = np.array(times, dtype=float), float(interval)
    laid = regularize(Timeline(given_times, values, lines), ProblemLog(), step, longest_gap)
    expected = oracle(times, lines.tolist(), interval, longest_gap)
    assert laid.times.astype(np.int64).tolist() == [time for time, _ in expected]
    assert laid.lines.tolist() == [line for _, line in expected]
    assert laid.times.dtype == given_times.dtype
    assert np.array_equal(laid.values[:, 0], [line or np.nan for _, line in expected], equal_nan=True)
    assert np.array_equal(laid.values[:, 1], -laid.values[:, 0], equal_nan=True)


@given(times=STEPS, interval=st.integers(1, 12), longest_gap=st.integers(0, 6), dated=st.booleans())
def test_a_stream_misses_what_a_file_misses(times, interval, longest_gap, dated):
    if dated:
        moments, step = np.array(times).astype("datetime64[ns]"), np.timedelta64(interval, "ns")
    else:
        moments, step = np.array(times) / 7, interval / 7
    ordered = np.unique(moments)
    read = Timeline(moments, np.zeros((len(moments), 1)), np.arange(1, len(moments) + 1))
    laid = regularize(read, ProblemLog(), step, longest_gap)
    streamed = [missing_steps(before, now, step, longest_gap) for before, now in pairwise(ordered)]
    assert len(laid.times) == len(ordered) + sum(streamed)
    places = np.flatnonzero(laid.lines)
    assert (np.diff(places) - 1).tolist() == streamed


@pytest.mark.parametrize("now", [5.0, 4.0, -1e300])
def test_no_step_back_misses_anything(now):
    assert missing_steps(5.0, now, 1.0) == 0


@given(step=st.floats(1e-300, 1e300), interval=st.floats(1e-300, 1e300))
def test_any_finite_step_gives_a_count(step, interval):
    assert 0 <= missing_steps(0.0, step, interval) <= LONGEST_GAP


def test_times_too_far_apart_for_nanoseconds():
    times = np.array(["1678-01-01", "2261-12-31"], dtype="datetime64[ns]")
    assert missing_steps(*times, np.timedelta64(10**9, "ns")) == LONGEST_GAP
    log = ProblemLog()
    read = Timeline(times, np.zeros((2, 1)), np.array([1, 2]))
    laid = regularize(read, log, np.timedelta64(10**9, "ns"), longest_gap=7)
    assert len(laid.times) == 9
    assert [problem.kind for problem in log] == ["gap", "gap shortened"]


def problems_of(times, **options):
    log = ProblemLog()
    times = np.array(times, dtype=float)
    regularize(Timeline(times, np.zeros((len(times), 1)), np.arange(2, len(times) + 2)), log, **options)
    return {problem.kind: problem for problem in log}


def test_a_regular_timeline_has_no_problems():
    assert problems_of([0, 1, 2, 3, 4.05]) == {}


def test_what_is_done_is_said():
    found = problems_of([0, 1, 3, 2, 2, 7, 8, 8.3, 9], interval=1.0, longest_gap=2)
    assert {kind: problem.count for kind, problem in found.items()} == {
        "unsorted": 2,
        "duplicate time": 1,
        "gap": 1,
        "gap shortened": 1,
        "irregular step": 2,
    }
    assert found["unsorted"].where == ("line 5: earlier than before", "line 6: earlier than before")
    assert found["duplicate time"].where == ("line 6: same time as line 5",)
    assert found["gap"].where == ("after line 4: 2 missing",)
    assert found["gap shortened"].where == ("after line 4: to 2 missing",)
    assert found["irregular step"].where == ("after line 8: 0.3 intervals", "after line 9: 0.7 intervals")


@given(
    regular=st.integers(3, 60),
    gaps=st.lists(st.integers(2, 1000), max_size=60),
    interval=st.integers(1, 10**12),
    seed=st.integers(0, 99),
)
def test_the_interval_survives_gaps(regular, gaps, interval, seed):
    """As long as gaps are fewer than the regular steps, and beyond that as long as those are a fifth and agree."""
    steps = np.random.default_rng(seed).permutation([1] * regular + gaps[: regular - 1])
    times = np.cumsum(steps * interval)
    assert infer_interval(times.astype("datetime64[ns]")) == np.timedelta64(interval, "ns")
    assert infer_interval(times.astype(float)) == interval


def test_the_interval_where_gaps_outnumber_the_regular_steps():
    steps = [1] * 40 + [2] * 24 + [3] * 14 + [4] * 22  # three in five observations lost
    assert infer_interval(np.cumsum(np.random.default_rng(0).permutation(steps)).astype(float)) == 1.0


def test_the_interval_of_jittered_times_is_the_median_step():
    times = np.arange(1000) + np.random.default_rng(0).uniform(-0.05, 0.05, 1000)
    assert infer_interval(times) == np.median(np.diff(times))


def test_months_are_regular():
    months = np.arange("2020-01", "2024-01", dtype="datetime64[M]").astype("datetime64[ns]")
    log = ProblemLog()
    laid = regularize(Timeline(months, np.zeros((48, 1)), np.arange(48)), log)
    assert len(laid.times) == 48
    assert not list(log)


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_times_have_no_interval(count):
    assert infer_interval(np.arange(count) * 1.0) is None
    assert infer_interval(np.arange(count).astype("datetime64[ns]")) is None


def test_an_absurd_interval_is_refused_before_it_eats_the_memory():
    times = np.cumsum(np.where(np.arange(5000) % 5 < 3, 1.0, 1e9))
    read = Timeline(times, np.zeros((5000, 1)), np.arange(5000))
    with pytest.raises(DataError, match=r"observations would be missing among 5000.*set `interval`"):
        regularize(read, ProblemLog(), 1.0, longest_gap=20_000)


def test_an_interval_that_the_times_do_not_show_is_refused():
    times = np.datetime64("2024-01-01") + np.arange(20) * np.timedelta64(3, "h")
    read = Timeline(times.astype("datetime64[ns]"), np.zeros((20, 1)), np.arange(20))
    with pytest.raises(DataError, match=r"are 3 h apart, but the interval is 1 s.*omit `interval`"):
        regularize(read, ProblemLog(), np.timedelta64(1, "s"))


def test_a_given_interval():
    assert as_interval("5min", dated=True) == np.timedelta64(300, "s")
    assert as_interval(0.5, dated=True) == np.timedelta64(500, "ms")
    assert as_interval(0.5, dated=False) == 0.5
    with pytest.raises(ValueError, match=r"interval must be a number.*got '5min'"):
        as_interval("5min", dated=False)
    with pytest.raises(ValueError, match=r"interval must be a number > 0"):
        as_interval(0, dated=True)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("5min", 300e9), ("5 m", 300e9), ("1h", 3600e9), ("30s", 30e9), ("1d", 86400e9), ("0.5s", 5e8),
        ("2 weeks", 1209600e9), ("1h 30min", 5400e9), ("1h30m", 5400e9), (".25 seconds", 25e7), ("Hour", 3600e9),
        ("10ms", 10e6), ("3 us", 3000), ("3 µs", 3000), ("7ns", 7), ("2 days", 172800e9), ("1 hr", 3600e9),
    ],
)  # fmt: skip
def test_durations(text, nanoseconds):
    assert parse_duration(text) == np.timedelta64(int(nanoseconds), "ns")


@pytest.mark.parametrize(
    "text", ["", " ", "5", "s5", "-5s", "1 month", "1e3s", "5 min x", "0s", "20000 weeks", 5, None]
)
def test_no_durations(text):
    with pytest.raises(ValueError, match=r"expected a duration such as '30s'.*got"):
        parse_duration(text)
