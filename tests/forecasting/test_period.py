"""The search for a period: what it finds, and what it lets alone."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom

from tests.cases import full
from tocsin.forecasting import find_period

SIGNALS = 30


def waves(period, rng):
    return lambda time: np.sin(2 * np.pi * time / period + rng.uniform(0, 6)) + 0.5 * rng.normal(size=time.size)


def pulses(period, rng):
    return lambda time: 5.0 * ((time + rng.integers(period)) % period < 1 + period // 10) + rng.normal(size=time.size)


def most_failures(rate, level=1e-3):
    """How many of `SIGNALS` may fail if each does with this probability; more come with probability `level`."""
    return int(binom.isf(level, SIGNALS, rate))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [waves, pulses])
@pytest.mark.parametrize("period", [5, 24, 100, 200, *map(full, (7, 12, 50, 168))])
@pytest.mark.parametrize("disturbance", ["nothing", "trend", "missing", "spike"])
def test_periods_are_found_within_noise(kind, period, disturbance):
    """In at least 9 of 10 signals the period or, now and then, a multiple of it, up to 3%; error level 1e-3."""
    rng = np.random.default_rng(period)
    time = np.arange(max(1000, 12 * period))
    wrong = 0
    for _ in range(SIGNALS):
        values = kind(period, rng)(time)
        if disturbance == "trend":
            values += rng.choice([-20, 20]) * time / time.size
        if disturbance == "missing":
            values[rng.random(time.size) < 0.2] = np.nan
        if disturbance == "spike":
            values[rng.integers(0, time.size, 2)] = 1e3
        found = find_period(values) or 0
        multiple = max(1, round(found / period))
        wrong += abs(found - multiple * period) > max(1, 0.03 * period) * multiple or multiple > time.size / period / 3
    assert wrong <= most_failures(0.1)


@pytest.mark.parametrize("period", [5, 24, 100, 200])
def test_it_is_the_period_and_not_a_multiple_where_there_is_little_noise(period):
    rng = np.random.default_rng(0)
    time = np.arange(5 * period)
    for _ in range(10):
        shape = np.tile(np.cumsum(rng.normal(size=period)), 5)
        assert find_period(shape + 0.02 * shape.std() * rng.normal(size=time.size)) == period


@pytest.mark.parametrize("size", [3, 5, 24, 100])
def test_what_repeats_exactly_is_found_from_three_times_on(size):
    rng = np.random.default_rng(size)
    shape = rng.normal(size=size)
    assert find_period(np.tile(shape, 3)) in (None, size)
    assert find_period(np.tile(shape, 4)) == size
    assert find_period(np.tile(shape, 4) + 3 * np.arange(4 * size)) == size
    assert find_period(-1e200 * np.tile(shape, 4)) == size
    assert find_period(1e-300 * np.tile(shape, 4)) == size
    assert find_period(1e9 + np.tile(shape, 4)) == size


def test_a_third_of_the_length_is_the_longest():
    pulses = np.zeros(300)
    pulses[[10, 110, 210]] = 1.0
    assert find_period(pulses) == 100
    assert find_period(pulses[:299]) is None


NOTHING = {
    # (how it is made, how many of 200 may be mistaken for periodic)
    "white noise": (lambda rng: rng.normal(size=600), 0),
    "heavy tails": (lambda rng: rng.standard_cauchy(size=600), 0),
    "coins": (lambda rng: rng.integers(0, 2, size=600).astype(float), 0),
    "white noise with gaps": (lambda rng: np.where(rng.random(600) < 0.4, np.nan, rng.normal(size=600)), 0),
    "AR(1), 0.5": (lambda rng: lfilter([1], [1, -0.5], rng.normal(size=600)), 0.01),
    "AR(1), -0.5": (lambda rng: lfilter([1], [1, 0.5], rng.normal(size=600)), 0.01),
    "AR(1), 0.9": (lambda rng: lfilter([1], [1, -0.9], rng.normal(size=1200)), 0.05),
    "random walk": (lambda rng: np.cumsum(rng.normal(size=600)), 0.03),
    "random walk with drift": (lambda rng: np.cumsum(rng.normal(size=600) + 0.3), 0.03),
    "random walk with gaps": (
        lambda rng: np.where(rng.random(600) < 0.2, np.nan, np.cumsum(rng.normal(size=600))),
        0.03,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("make", "rate"), NOTHING.values(), ids=NOTHING.keys())
def test_what_has_no_period_is_let_alone(make, rate):
    """Of 200 signals none, or a small share, is mistaken for periodic; band around the share, error level 1e-3.

    A random walk has broad humps in its autocorrelation, and now and then they lie like those of a period.
    """
    rng = np.random.default_rng(7)
    mistaken = sum(find_period(make(rng)) is not None for _ in range(200))
    assert mistaken <= (binom.isf(1e-3, 200, rate) if rate else 0)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [1.0, 2.0] * 4,
        np.zeros(500),
        np.full(500, 0.1),
        np.full(500, 1e300),
        np.arange(500.0),
        0.1 - 1e7 * np.arange(500),
        np.exp(np.arange(500) / 50),
        np.full(500, np.nan),
        np.full(500, np.inf),
        [np.nan] * 60 + [0.0, 1.0, 2.0] * 15,  # more than half of it is missing
        np.repeat([0.0, 1.0], 250),
        np.eye(1, 500, 250)[0],
        np.eye(1, 500, 250)[0] - np.eye(1, 500, 400)[0],
        np.where(np.arange(500) % 2, 1.7e308, -1.7e308),
    ],
)
def test_what_is_short_constant_or_straight_has_no_period(values):
    assert find_period(values) is None


def test_values_are_not_modified_and_infinities_are_missing():
    values = np.tile([1.0, 5.0, 2.0, 0.0], 30)
    values[[7, 50]] = np.inf, -np.inf
    given = values.copy()
    assert find_period(given) == find_period(np.where(np.isinf(values), np.nan, values)) == 4
    np.testing.assert_array_equal(given, values)
    assert find_period(values.tolist()) == 4
    assert type(find_period(values)) is int


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((4, 4)), r"values must have one dimension, got shape \(4, 4\)"),
        (3.0, r"values must have one dimension, got shape \(\)"),
        (["a", "b"], r"values must be numbers, got \['a', 'b'\]"),
    ],
)
def test_bad_values_are_named(values, message):
    with pytest.raises((TypeError, ValueError), match=message):
        find_period(values)
