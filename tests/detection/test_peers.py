"""Signals that should behave alike: how far each is from the others, and what that shows."""

import numpy as np
import pytest
from scipy.stats import binom, poisson

from tests.cli.calling import invoke, words
from tocsin.data import Signal
from tocsin.detection import against_peers, detect_signal, peer_levels, with_peers

LENGTH, AT, LASTS = 2400, 1600, 600
SETTINGS = {"preset": "light", "views": "level", "alarm_rate": 0.001}


def signal(name, values, times=None, features=("flow [l/s]",)):
    return Signal(name, features, times, values, np.arange(1, len(values) + 1), None, ())


def pumps(seed, drift):
    """Ten pumps under a load that moves them far more than the drift moves the fourth; each has its own level."""
    rng = np.random.default_rng(seed)
    load = rng.normal(size=LENGTH)
    for one in range(1, LENGTH):
        load[one] += 0.97 * load[one - 1]
    values = load[:, np.newaxis] + rng.normal(size=(LENGTH, 10)) + 5 * rng.normal(size=10)
    values[AT:, 3] += drift * np.minimum(np.arange(LENGTH - AT) / LASTS, 1.0)
    return [signal(f"pump-{one}", values[:, [one]]) for one in range(10)]


def test_distances_are_those_of_the_oracle():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 5, 2)) + np.arange(5)[:, np.newaxis]
    values[rng.random(values.shape) < 0.3] = np.nan
    levels = peer_levels(values)
    apart = against_peers(values, levels)
    for feature in range(2):
        for one in range(5):
            far = []
            for row in values[:, :, feature]:
                known = [value for value in row if value == value]
                far += [row[one] - np.median(known)] if len(known) >= 3 and row[one] == row[one] else []
            assert levels[one, feature] == pytest.approx(np.median(far))
        for time, row in enumerate(values[:, :, feature]):
            known = [value - level for value, level in zip(row, levels[:, feature], strict=True) if value == value]
            for one in range(5):
                far = row[one] - levels[one, feature] - np.median(known or [np.nan])
                expected = far if len(known) >= 3 else np.nan
                np.testing.assert_allclose(apart[time, one, feature], expected, rtol=1e-12, atol=1e-12)
    # Each time by itself gives the same: what is streamed is what a history has.
    streamed = [against_peers(values[[time]], levels)[0] for time in range(60)]
    np.testing.assert_array_equal(streamed, apart)


def test_signals_are_compared_at_the_same_time_and_keep_their_own():
    times = np.arange(400.0)
    there = [times, times[::2], times[10:], times]
    values = np.random.default_rng(1).normal(size=(400, 4, 1))
    signals = [signal(f"s{one}", values[own.astype(int), one], own) for one, own in enumerate(there)]
    table = np.full((400, 4, 1), np.nan)
    for one, own in enumerate(there):
        table[own.astype(int), one] = values[own.astype(int), one]
    apart = against_peers(table, peer_levels(table[:200]))
    for one, found in enumerate(with_peers(signals)):
        assert found.features == ("flow [l/s]", "flow against peers [l/s]")
        np.testing.assert_array_equal(found.times, there[one])
        np.testing.assert_array_equal(found.values[:, 0], signals[one].values[:, 0])
        np.testing.assert_array_equal(found.values[:, 1], apart[there[one].astype(int), one, 0])


def found_alone_and_among_peers(seed):
    """Whether the drift was noticed in its first half: by the pump's values only, and with those of its peers."""
    alone = pumps(seed, drift=4.0)
    incidents = [detect_signal(group[3], SETTINGS, keep=False).incident_list for group in (alone, with_peers(alone))]
    return [any(AT <= one.first < AT + LASTS // 2 for one in found) for found in incidents]


def test_a_slow_drift_is_found_among_peers_and_not_alone():
    assert found_alone_and_among_peers(seed=2) == [False, True]


@pytest.mark.full
def test_slow_drifts_are_found_more_often_among_peers():
    """At the same alarm rate. If peers did not help, so many more would have a probability below 0.01: a sign test."""
    found = [found_alone_and_among_peers(seed) for seed in range(10)]
    better, worse = found.count([False, True]), found.count([True, False])
    assert binom.sf(better - 1, better + worse, 0.5) < 0.01


@pytest.mark.full
def test_peers_raise_no_more_false_incidents_than_tolerated():
    results = [detect_signal(one, SETTINGS, keep=False) for seed in range(4) for one in with_peers(pumps(seed, 0.0))]
    tolerated = sum(result.audit.promised * result.audit.observations for result in results)
    # More would have a probability below 1e-4, if incidents of different signals came independently.
    assert sum(len(result.incident_list) for result in results) <= poisson.isf(1e-4, tolerated)


def test_what_cannot_be_compared_is_refused():
    values = np.zeros((50, 1))
    three = [signal(f"s{one}", values, np.arange(50.0) + 0.1 * one) for one in range(3)]
    with pytest.raises(ValueError, match="at least 3 signals, got 2"):
        with_peers(three[:2])
    with pytest.raises(ValueError, match="the same times"):
        with_peers(three)
    other = signal("s", np.zeros((50, 2)), np.arange(50.0), ("flow", "heat"))
    with pytest.raises(ValueError, match="the same features"):
        with_peers([*three, other])
    with pytest.raises(ValueError, match=r"\(T, S\) or \(T, S, F\)"):
        against_peers(values[:, 0], 0.0)


def test_the_command_compares_the_signals_of_a_file(tmp_path):
    rng, rows = np.random.default_rng(2), ["pump,time,flow"]
    load = 5 * np.cumsum(rng.normal(size=900))
    for number in range(4):
        values = load + rng.normal(size=900) + (20 * (np.arange(900) >= 800) if number == 2 else 0)
        rows += [f"p{number},{time},{value}" for time, value in enumerate(values)]
    path = tmp_path / "pumps.csv"
    path.write_text("\n".join(rows))
    given = ["--preset", "light", "--views", "level", "--alarm-rate", "0.005"]
    said = words(invoke("detect", path, "--id", "pump", "--peers", *given))
    assert "flow against peers" in said
    assert "p2" in said
    path.write_text("time,flow,heat\n" + "\n".join(f"{time},{time % 7},{time % 5}" for time in range(900)))
    alone = invoke("detect", path, "--peers", *given)
    assert alone.exit_code == 1
    assert "--peers must be used with at least 3 signals, got 2" in words(alone)
