"""Signals that should behave alike: how far each is from the others, and what that shows."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, poisson

from tests.cli.calling import invoke, words
from tocsin import Detector, Fleet
from tocsin.data import Signal
from tocsin.detection import Verdicts, against_peers, detect_signal, with_peers
from tocsin.detection.peers import PeerLevels

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


def compared(table, learned=200):
    """The oracle: how far each signal is from the others, one time after another."""
    times, signals, features = table.shape
    first = {(one, feature): [] for one in range(signals) for feature in range(features)}
    apart = np.full(table.shape, np.nan)
    for time in range(times):
        for feature in range(features):
            row = {one: value for one, value in enumerate(table[time, :, feature]) if np.isfinite(value)}
            known = [value - np.median(far) for one, value in row.items() if len(far := first[one, feature]) == learned]
            if len(row) >= 3:
                middle = np.median(known if len(known) >= 3 else list(row.values()))
                for one, value in row.items():
                    apart[time, one, feature] = value - middle
        for (one, feature), far in first.items():
            if np.isfinite(apart[time, one, feature]) and len(far) < learned:
                far.append(apart[time, one, feature])
    return apart


def a_group(times=700, features=2):
    """Five signals, each with its own level, with missing values; the last one is there from time 300."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(times, 5, features)) + 3.0 * np.arange(5)[:, np.newaxis]
    values += 10 * rng.normal(size=(times, 1, 1))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[5, 1] = np.inf
    values[:300, 4] = np.nan
    return values


def test_distances_are_those_of_the_oracle():
    values = a_group()
    everyone = np.arange(5)
    apart = PeerLevels(5, 2).compare(values, everyone)
    assert np.isnan(apart).any()
    np.testing.assert_array_equal(apart, compared(values))
    for cuts in ([], [1, 150, 199, 450], range(1, 700)):
        levels, pieces = PeerLevels(5, 2), []
        for piece in np.split(values, cuts):
            state, levels = levels.state(everyone), PeerLevels(5, 2)
            levels.restore(state)
            pieces.append(levels.compare(piece, everyone))
        np.testing.assert_array_equal(np.concatenate(pieces), apart)


def test_levels_keep_a_signal_from_moving_the_median():
    """The third of five signals with levels of their own is always the median: without levels, its drift is lost."""
    values = np.add.outer(np.sin(np.arange(600.0)), 10 * np.arange(5.0))
    values[400:, 2] += np.linspace(0, 5, 200)
    apart = PeerLevels(5, 1).compare(values[..., np.newaxis], np.arange(5))[..., 0]
    np.testing.assert_allclose(apart[400:, 2], np.linspace(0, 5, 200), atol=1e-9)
    np.testing.assert_allclose(against_peers(values, np.full(5, np.nan))[400:, 2], 0.0)


def test_signals_are_compared_at_the_same_time_and_keep_their_own():
    times = np.arange(400.0)
    there = [times, times[::2], times[10:], times]
    values = np.random.default_rng(1).normal(size=(400, 4, 1))
    signals = [signal(f"s{one}", values[own.astype(int), one], own) for one, own in enumerate(there)]
    table = np.full((400, 4, 1), np.nan)
    for one, own in enumerate(there):
        table[own.astype(int), one] = values[own.astype(int), one]
    apart = compared(table)
    for one, found in enumerate(with_peers(signals)):
        assert found.features == ("flow [l/s]", "flow against peers [l/s]")
        np.testing.assert_array_equal(found.times, there[one])
        np.testing.assert_array_equal(found.values[:, 0], signals[one].values[:, 0])
        np.testing.assert_array_equal(found.values[:, 1], apart[there[one].astype(int), one, 0])


def fleet_of(signals=5, features=1, **settings):
    return Fleet([f"s{one}" for one in range(signals)], features, peers=True, **SETTINGS, **settings)


def test_a_fleet_judges_streams_histories_and_restored_states_alike(tmp_path):
    values = a_group(features=1)
    whole = fleet_of()
    verdicts = whole.run_arrays(values)
    assert whole.features == ["feature", "feature against peers"]
    np.testing.assert_array_equal(verdicts.value[..., 1:], compared(values))
    streamed = fleet_of()
    parts = [streamed.update(row[:, 0]) for row in values[:190]]
    streamed.save(tmp_path / "fleet.npz")
    streamed = Fleet.load(tmp_path / "fleet.npz")
    parts += [streamed.run_arrays(values[190:600]), *(streamed.update(row) for row in values[600:])]
    joined = Verdicts.joined(parts)
    for name in ("value", "p", "severity", "alarm", "feature_p"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(verdicts, name), err_msg=name)
    again, state = whole.clone(), streamed.state()
    again.run_arrays(values)
    assert state.keys() == again.state().keys()
    for name, array in again.state().items():
        np.testing.assert_array_equal(state[name], array, err_msg=name)


def test_those_of_one_call_are_compared():
    fleet = fleet_of()
    row = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    apart = fleet.update(row[:2], rows=[0, 1]).value[0, :, 1]
    np.testing.assert_array_equal(apart, [np.nan, np.nan])
    np.testing.assert_array_equal(fleet.update(row[:3], rows=[2, 0, 1]).value[0, :, 1], [-1.0, 0.0, 2.0])
    np.testing.assert_array_equal(fleet.update(row).value[0, :, 1], row - 4.0)


def test_a_signal_takes_its_level_along_to_another_row():
    values = a_group(features=1)
    one, other = fleet_of(), fleet_of()
    one.run_arrays(values[:500])
    states = one.signal_states(range(5), [None] * 5)
    other.put_all(range(5), states)
    np.testing.assert_array_equal(other.run_arrays(values[500:]).p, one.run_arrays(values[500:]).p)
    other.put(1, one.signal_state(1))
    other.put(2, None)
    assert np.isfinite(other.parts.peers.levels).ravel().tolist() == [True, True, False, True, True]
    with pytest.raises(ValueError, match=r"Fleet\.load"):
        Detector.from_state(states[0])
    with pytest.raises(ValueError, match="settings of the fleet"):
        Fleet(5, ["feature", "feature against peers"], **SETTINGS).put(0, states[0])


def test_a_fleet_compares_the_signals_of_a_frame():
    """Signals that are not all there at the same times are compared with those that are."""
    values = np.where(np.isinf(a_group(features=1)), np.nan, a_group(features=1))[..., 0]
    frame = pd.DataFrame(values, columns=[f"s{one}" for one in range(5)])
    fleet = fleet_of()
    results = fleet.run(frame[:400])
    assert results["s1"].features == ("feature", "feature against peers")
    np.testing.assert_array_equal(
        results["s1"].columns["value feature against peers"], compared(values[..., None])[:400, 1, 0]
    )
    more = fleet.run(frame[400:])
    np.testing.assert_array_equal(
        more["s4"].columns["value feature against peers"], compared(values[..., None])[400:, 4, 0]
    )
    long = pd.concat(
        [pd.DataFrame({"id": f"s{one}", "t": np.arange(one % 2, 300.0), "flow [l/s]": 1.0}) for one in range(4)]
    )
    of_frame = Fleet(peers=True, **SETTINGS)
    judged = of_frame.run(long, id="id", time="t")
    assert of_frame.features == ["flow [l/s]", "flow against peers [l/s]"]
    assert np.isnan(judged["s0"].columns["value flow against peers [l/s]"]).tolist() == [True] + [False] * 299
    assert of_frame.run(long.assign(t=long.t + 300), id="id", time="t").keys() == judged.keys()


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
    with pytest.raises(ValueError, match="at least 3 signals, got 2"):
        fleet_of(2)
    with pytest.raises(ValueError, match="no references"):
        fleet_of().learn_reference(np.zeros((2000, 2)))


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
    assert "--peers must be used with at least 3 signals, got 1" in words(alone)
