"""Alarms that belong together, guards, and times."""

import datetime as dt
import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import full
from tests.detection.helpers import ARRAYS, LAST, SHOWN, SMALL, hard_values, same_as_stacked, stacked
from tocsin.data import LONGEST_GAP, DataWarning, signals_from_frame
from tocsin.detection import Detector, Fleet, Incident, ResolutionWarning, Verdicts
from tocsin.detection.incidents.incident import MOST_KEPT, IncidentLog
from tocsin.detection.incidents.rules import TIGHTENED
from tocsin.detection.incidents.verdict import MAY_END, ONGOING, RETURNED
from tocsin.detection.views import make_view

VIEWS = (make_view("error"), make_view("movement"))


def verdicts_from(alarms, p=None, severity=None, feature_p=None, error=None, period=None, cause=None, gap=10):
    """Verdicts on signals `alarms[T, S]` of which nothing but the alarms, p-values, causes and errors matters."""
    alarms = np.asarray(alarms, dtype=bool)
    p = np.where(alarms, 0.01, 0.5) if p is None else np.asarray(p, dtype=float)
    feature_p = p[..., np.newaxis] if feature_p is None else np.asarray(feature_p, dtype=float)
    error = np.ones(feature_p.shape) if error is None else np.asarray(error, dtype=float)
    nothing = np.full(feature_p.shape, np.nan)
    return Verdicts(
        value=error, p=p, alarm=alarms, forecast=np.zeros(feature_p.shape), low=nothing, high=nothing,
        rate=np.full(p.shape, np.nan) if period is None else 1 / np.asarray(period, dtype=float), feature_p=feature_p,
        feature_evidence=-np.log(feature_p), views=np.zeros((*p.shape, 2)), score=error[..., 0], opened=alarms,
        warm=np.ones(alarms.shape, dtype=bool),
        evidence=np.log(10) * (-np.log10(p) if severity is None else np.asarray(severity, dtype=float)),
        cause=np.zeros((*p.shape, 3), dtype=np.int16) if cause is None else np.asarray(cause, dtype=np.int16),
        state=states_of(alarms, gap), estimated=np.zeros(alarms.shape, dtype=bool),
        usual=np.full((*feature_p.shape, 2), np.nan), seasonal=np.zeros(feature_p.shape, dtype=bool),
        began=np.full((*p.shape, 2), -1, dtype=np.int16),
    )  # fmt: skip


def states_of(alarms, gap):
    """What a detector says where nothing but alarms holds an incident open."""
    states = np.zeros(alarms.shape, dtype=np.int16)
    for column in range(alarms.shape[1]):
        since = None
        for step, alarm in enumerate(alarms[:, column]):
            since = 0 if alarm else None if since is None else since + 1
            if since is not None:
                states[step, column] = ONGOING if alarm else MAY_END if since <= gap else RETURNED
                since = since if since <= gap else None
    return states


def log_of(names, features, shortest):
    return IncidentLog(names, features, VIEWS, shortest)


def grouped(alarms, gap):
    """Indices of alarms, in groups of which each is at most `gap` quiet observations after the one before."""
    groups = []
    for index in np.flatnonzero(alarms):
        if groups and index - groups[-1][-1] - 1 <= gap:
            groups[-1].append(int(index))
        else:
            groups.append([int(index)])
    return groups


@given(
    alarms=st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=40),
    gap=st.integers(0, 5),
    shortest=st.integers(1, 4),
    cuts=st.lists(st.integers(0, 40), max_size=5),
)
def test_alarms_are_grouped_by_their_gaps(alarms, gap, shortest, cuts):
    alarms = np.array(alarms)
    log = log_of(["a", "b", "c"], ["f"], shortest)
    numbers = 100 + np.arange(len(alarms))[:, np.newaxis] + [0, 10, 20]
    rows = np.array([2, 0, 1])
    edges = [0, *sorted(min(cut, len(alarms)) for cut in cuts), len(alarms)]
    verdicts = verdicts_from(alarms, gap=gap)
    for first, last in itertools.pairwise(edges):
        if last > first:
            log.add(_part(verdicts, first, last), numbers[first:last], rows, None)
    for column, row in enumerate(rows):
        expected = [group for group in grouped(alarms[:, column], gap) if group[-1] - group[0] + 1 >= shortest]
        found = log.incidents(int(row))
        start = 100 + 10 * column
        assert [(one.first - start, one.last - start, one.alarms, one.duration) for one in found] == [
            (group[0], group[-1], len(group), group[-1] - group[0] + 1) for group in expected
        ]
        assert [(one.start, one.end) for one in found] == [(one.first, one.last) for one in found]
        assert all(one.signal == "abc"[row] for one in found)
        over = [len(alarms) - 1 - group[-1] > gap for group in expected]
        assert [one.open for one in found] == [not one for one in over]
    everything = log.incidents()
    assert [one.open for one in everything] == sorted(one.open for one in everything)


def test_the_peak_says_what_was_strangest():
    log = log_of(["s"], ["a", "b"], 1)
    feature_p = [[[0.5, 0.02]], [[0.001, 0.4]], [[0.5, np.nan]], [[0.001, 0.3]]]
    error = [[[1.0, -2.0]], [[-7.0, 3.0]], [[1.0, np.nan]], [[5.0, 1.0]]]
    p, severity = [[0.04], [0.002], [0.5], [0.002]], [[1.5], [3.0], [0.3], [5.0]]
    period, cause = [[50], [190], [np.nan], [170]], [[[0, 0, 1]], [[0, 1, 0]], [[-1, -1, -1]], [[1, 0, 0]]]
    alarms = [[True], [True], [False], [True]]
    verdicts = verdicts_from(alarms, p, severity, feature_p, error, period, cause)
    log.add(verdicts, np.arange(4)[:, np.newaxis], np.array([0]), None)
    (incident,) = log.incidents()
    assert (incident.p, incident.peak, incident.return_period) == (0.002, 3, 190)
    assert (incident.direction, incident.deviation) == ("above", 5.0)
    assert (incident.view, incident.explanation[:11]) == ("movement", "a: moves by")
    assert incident.severity == pytest.approx(5.0)
    assert incident.contributions == pytest.approx({"a": -np.log10(0.001), "b": -np.log10(0.02)})
    assert incident.features == ["a", "b"]
    assert incident.feature_p == {"a": 0.001, "b": 0.3}  # those of the peak
    assert incident.alarms == 3
    assert incident.open


def test_features_come_in_the_order_of_their_contributions():
    log = log_of(["s"], ["a", "b", "c"], 1)
    feature_p = [[[0.5, 0.002, 0.01]], [[0.5, 0.4, 0.01]]]
    log.add(verdicts_from([[True]] * 2, [[0.01]] * 2, None, feature_p), np.array([[0], [1]]), np.array([0]), None)
    (incident,) = log.incidents()
    assert incident.features == ["b", "c", "a"]
    assert incident.suspects == ["b", "c"]  # 0.01 is less than 3 nats from 0.002, and 0.4 is more
    assert replace(incident, contributions={"a": 0.0, "b": 0.5}).suspects == ["b"]  # nothing is no suspicion
    assert replace(incident, contributions={}).suspects == []


def test_an_exact_hit_has_no_direction():
    log = log_of(["s"], ["a"], 1)
    log.add(verdicts_from([[True]], error=[[[0.0]]]), np.array([[0]]), np.array([0]), None)
    assert log.incidents()[0].direction is None


@pytest.mark.slow
def test_only_the_newest_incidents_are_kept():
    log = log_of(["s"], ["a"], 1)
    alarms = np.arange(2 * (MOST_KEPT + 50))[:, np.newaxis] % 2 == 0
    log.add(verdicts_from(alarms, gap=0), np.arange(len(alarms))[:, np.newaxis], np.array([0]), None)
    found = log.incidents()
    assert len(found) == MOST_KEPT
    assert found[-1].first == len(alarms) - 2
    assert found[0].first == 100


def shifted(seed=0, steps=900, at=700, size=9.0, features=1, feature=0):
    values = np.random.default_rng(seed).normal(size=(steps, features))
    values[at : at + 5, feature] += size
    return values


@pytest.mark.parametrize(("size", "direction"), [(9.0, "above"), (-9.0, "below")])
def test_direction_and_deviation_of_a_level_shift(size, direction):
    detector = Detector(["a", "b", "c"], window=250, forecaster="exponential-smoothing", alarm_rate=0.01, views="error")
    detector.run(shifted(size=size, features=3, feature=1))
    incident = min(detector.incidents, key=lambda one: abs(one.first - 700))
    assert incident.first == 700
    assert incident.direction == direction
    assert incident.deviation == pytest.approx(size, abs=4)
    assert incident.explanation.startswith("b: ")
    assert f" {direction} the forecast" in incident.explanation
    assert incident.features[0] == "b"
    assert incident.peak in range(700, 705)


def test_a_verdict_has_direction_and_severity():
    detector = Detector(**LAST)
    detector.run(np.random.default_rng(0).normal(size=700))
    verdict = detector.update(20.0)
    assert verdict.direction == "above"
    assert (verdict.view, verdict.feature) == ("level", "feature")
    assert verdict.explanation == "20.0, usually -1.6 to 1.6"
    assert verdict.usual_low < 0 < verdict.usual_high < verdict.value
    assert verdict.severity == pytest.approx(-np.log10(verdict.merged))
    assert max(verdict.views.values()) >= verdict.severity > 1
    assert verdict.return_period > 50
    assert verdict.p < 0.01
    assert detector.update(-20.0).direction == "below"
    missing = detector.update(None)
    assert missing.direction is None
    assert np.isnan([missing.severity, missing.return_period, missing.merged]).all()
    assert (missing.view, missing.feature, missing.explanation) == (None, None, None)
    with pytest.raises(AttributeError):
        missing.p = 0.5


@pytest.mark.slow
@pytest.mark.parametrize("features", [full(1), 3])
@pytest.mark.parametrize(
    "guards",
    [{"min_deviation": 5.5}, {"min_relative_deviation": 1.5}, {"min_deviation": 4.0, "min_relative_deviation": 1.0}],
    ids=str,
)
def test_guards_take_back_alarms_too_close_to_the_forecast(features, guards):
    """Every alarm is as far from its forecast as asked for, and nothing is open without an incident."""
    values = hard_values(5, 1100, features)
    free, guarded = Detector(features, **LAST), Detector(features, **LAST, **guards)
    one, other = free.run(values).verdicts, guarded.run(values).verdicts
    assert 0 < other.alarm.sum() < one.alarm.sum()
    for step in np.flatnonzero(other.alarm[:, 0]):
        strangest = int(np.nanargmax(other.feature_evidence[step, 0]))
        forecast = other.forecast[step, 0, strangest]
        away = abs(other.value[step, 0, strangest] - forecast)
        least = max(guards.get("min_deviation", 0), guards.get("min_relative_deviation", 0) * abs(forecast))
        assert away >= least
    opened = [incident.first for incident in guarded.incidents]
    assert opened == np.flatnonzero(other.opened[:, 0]).tolist()
    assert guarded.audit.alarms == len(opened)


def test_short_incidents_are_not_told_of():
    values = hard_values(6, 900)
    errors = {**LAST, "views": "error", "gap": 2}
    alarms = Detector(**errors).run(values).verdicts.alarm[:, 0]
    assert alarms.sum() > 6
    for shortest in (1, 2, 4):
        detector = Detector(**errors, min_duration=shortest)
        assert np.array_equal(detector.run(values).verdicts.alarm[:, 0], alarms)
        groups = [group for group in grouped(alarms, 2) if group[-1] - group[0] + 1 >= shortest]
        assert [(one.first, one.last) for one in detector.incidents] == [(group[0], group[-1]) for group in groups]


def test_an_incident_that_goes_on_comes_last_and_grows():
    detector = Detector(**{**SMALL, "forecaster": None}, gap=3)
    rng = np.random.default_rng(0)
    detector.run(np.concatenate([rng.random(690), np.full(10, 0.2)]))
    for size in (5.0, 6.0, 0.5, 7.0):
        detector.update(size)
    incident = detector.incidents[-1]
    assert incident.open
    assert (incident.first, incident.last, incident.alarms, incident.duration) == (700, 703, 3, 4)
    assert incident.peak == 703
    assert incident.direction is None
    assert (incident.view, incident.explanation) == ("score", "a score of 7")
    detector.run([0.5] * 3)
    assert detector.incidents[-1].open
    detector.update(0.5)
    assert not detector.incidents[-1].open
    assert detector.incidents[-1].last == 703


MINUTE = np.timedelta64(60, "s").astype("timedelta64[ns]")


def with_gaps(values, seed=0, longest=4):
    """Times of the values at one a minute, some minutes left out, none of them exact."""
    rng = np.random.default_rng(seed)
    steps = 1 + rng.integers(0, longest, size=len(values)) * (rng.random(len(values)) < 0.1)
    jitter = rng.integers(-5, 6, size=len(values)) * np.timedelta64(1, "s")
    return np.datetime64("2024-01-01", "ns") + np.cumsum(steps) * MINUTE + jitter


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["datetime64", full("numbers"), full("text"), full("datetime")])
def test_gaps_in_a_stream_are_missing_observations_as_in_a_file(kind):
    values = hard_values(3, 1100)[:, 0]
    values[[0, -1]] = 5.0
    times = with_gaps(values)
    shown = {
        "datetime64": times,
        "numbers": (times - times[0]) / np.timedelta64(1, "s"),
        "text": times.astype(str),
        "datetime": times.astype("datetime64[us]").astype(dt.datetime),
    }[kind]
    stream, file = (Detector(["value"], **LAST, interval=60) for _ in range(2))
    got = [stream.update(value, time) for value, time in zip(values, shown, strict=True)]
    column = shown if kind == "numbers" else times
    frame = pl.DataFrame({"time": column, "value": values})
    with signals_from_frame(frame, interval=60) as signals:
        signal = next(iter(signals))
    assert len(signal) > len(values) + 20
    verdicts = file.run_signal(signal).verdicts
    assert stream.observations == file.observations == len(signal)
    there = signal.lines > 0
    single = stacked(got)
    for name in SHOWN:
        np.testing.assert_array_equal(getattr(verdicts, name)[there, 0], single[name], err_msg=name)
    assert [one.time for one in got] == list(signal.times[there])
    assert repr(stream.audit) == repr(file.audit)
    assert [vars(one) for one in stream.incidents] == [vars(one) for one in file.incidents]
    assert stream.incidents
    for incident in stream.incidents:
        assert incident.start == signal.times[incident.first]
        assert incident.end == signal.times[incident.last]


def test_without_an_interval_times_are_only_kept():
    detector = Detector(**LAST)
    detector.update(1.0, 0.0)
    detector.update(1.0, 1000.0)
    detector.update(1.0)
    detector.update(1.0, 1001.0)
    assert detector.observations == 4


def test_an_observation_without_time_does_not_make_the_last_one_forgotten():
    detector = Detector(**LAST)
    detector.update(1.0, 5.0)
    detector.update(1.0)
    with pytest.raises(ValueError, match=r"time must be later than the last one, 5.0, got 4.0"):
        detector.update(1.0, 4.0)
    detector.run([1.0, 2.0], [6.0, 7.0])
    with pytest.raises(ValueError, match=r"time must be later than the last one, 7.0, got 7.0"):
        detector.update(1.0, 7.0)


def test_a_very_long_gap_is_cut():
    detector = Detector(**LAST, interval="1s")
    detector.update(1.0, "2024-01-01")
    detector.update(1.0, "2030-01-01")
    assert detector.observations == LONGEST_GAP + 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "then", "error"),
    [
        ("2024-01-02", "2024-01-01", ValueError),
        ("2024-01-02", "2024-01-02", ValueError),
        (5.0, 4.0, ValueError),
        (5.0, 5, ValueError),
        ("2024-01-02", 5.0, TypeError),
        (5.0, "2024-01-02", TypeError),
        (5.0, "soon", ValueError),
        (5.0, float("nan"), ValueError),
    ],
)
def test_a_time_out_of_order_is_refused_and_nothing_changes(first, then, error):
    detector, other = Detector(**LAST, interval="1h"), Detector(**LAST, interval="1h")
    for one in (detector, other):
        one.update(1.0, first)
    with pytest.raises(error, match="time must be"):
        detector.update(2.0, then)
    assert detector.observations == 1
    for name, array in other.state().items():
        np.testing.assert_array_equal(detector.state()[name], array, err_msg=name)


@pytest.mark.parametrize("times", ["datetime64", "numbers", "none"])
def test_times_of_incidents(times):
    values = hard_values(2, 800)
    given = {
        "datetime64": np.datetime64("2024-01-01", "ns") + np.arange(800) * MINUTE,
        "numbers": np.arange(800) * 0.25,
        "none": None,
    }[times]
    detector = Detector(**LAST)
    detector.run(values, given)
    assert detector.incidents
    for one in detector.incidents:
        at = np.arange(800) if given is None else given
        assert (one.start, one.end) == (at[one.first], at[one.last])
        assert one.start <= one.peak <= one.end
        kind = {"datetime64": np.datetime64, "numbers": float, "none": int}[times]
        assert type(one.start) is type(one.end) is type(one.peak) is kind


def test_a_fleet_takes_times_of_each_signal():
    values = np.stack([hard_values(seed, 800) for seed in (0, 1)], axis=1)
    times = np.arange(800)[:, np.newaxis] + [0.0, 10_000.0]
    at_once, one_by_one = Fleet(["a", "b"], **LAST), Fleet(["a", "b"], **LAST)
    at_once.run_arrays(values, times=times)
    for row, time in zip(values, times, strict=True):
        one_by_one.update(row, times=time)
    assert at_once.incidents() == one_by_one.incidents()
    assert all(one.start == one.first + (10_000 if one.signal == "b" else 0) for one in at_once.incidents())
    assert {one.signal for one in at_once.incidents()} == {"a", "b"}


FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "polars": lambda columns: pl.DataFrame(columns),
    "pyarrow": lambda columns: pa.table(columns),
}


def column_of(frame, name):
    return np.asarray(frame[name].to_numpy())


@pytest.mark.slow
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("features", [full(1), 2])
def test_frames_give_the_numbers_of_arrays(kind, features):
    values = np.where(np.isinf(hard_values(1, 800, features)), np.nan, hard_values(1, 800, features))
    times = np.datetime64("2024-01-01", "ns") + np.arange(800) * MINUTE
    names = ["a", "b"][:features]
    frame = FRAMES[kind]({"time": times, **{name: values[:, k] for k, name in enumerate(names)}})
    # A frame tells the interval, and with it when incidents began.
    detector, plain = Detector(names, **LAST), Detector(names, **LAST, interval="1min")
    result = detector.detect(frame, values=names)
    assert type(result) is type(frame)
    verdicts = plain.run(values, times).verdicts
    ending = [""] if features == 1 else [" a", " b"]
    for name in ("value", "forecast", "low", "high"):
        for k, end in enumerate(ending):
            np.testing.assert_array_equal(column_of(result, name + end), getattr(verdicts, name)[:, 0, k])
    for name in ("p", "severity", "alarm", "merged", "return_period", "warm"):
        np.testing.assert_array_equal(column_of(result, name), getattr(verdicts, name)[:, 0], err_msg=name)
    np.testing.assert_array_equal(column_of(result, "time"), times)
    if features > 1:
        np.testing.assert_array_equal(column_of(result, "p b"), verdicts.feature_p[:, 0, 1])
    assert detector.incidents == plain.incidents
    assert detector.audit == plain.audit


def test_a_frame_of_unsorted_times_with_a_gap_is_the_signal_in_order():
    values = np.arange(600.0) % 7
    times = np.arange(600)
    keep = np.r_[0:100, 104:600]
    order = np.random.default_rng(0).permutation(len(keep))
    frame = pd.DataFrame({"t": times[keep][order], "v": values[keep][order]})
    detector, plain = Detector(**LAST), Detector(**LAST)
    with pytest.warns(DataWarning, match="unsorted"):
        result = detector.detect(frame, time="t", values="v")
    expected = values.copy()
    expected[100:104] = np.nan
    verdicts = plain.run(expected).verdicts
    np.testing.assert_array_equal(result["value"], expected)
    np.testing.assert_array_equal(result["p"], verdicts.p[:, 0])
    np.testing.assert_array_equal(result["t"], times)


def test_a_second_frame_goes_on_after_the_first():
    values = np.arange(700.0) % 7
    detector, plain = Detector(**LAST, interval=1), Detector(**LAST)
    detector.detect(pd.DataFrame({"t": np.arange(600), "v": values[:600]}), time="t", values="v")
    later = pd.DataFrame({"t": np.arange(605, 700), "v": values[605:]})
    result = detector.detect(later, time="t", values="v")
    expected = values.copy()
    expected[600:605] = np.nan
    np.testing.assert_array_equal(result["p"], plain.run(expected).verdicts.p[605:, 0])
    with pytest.raises(ValueError, match="time must be later than the last one"):
        detector.detect(later, time="t", values="v")
    assert detector.observations == 700


def test_what_is_wrong_with_a_frame_is_told():
    frame = pd.DataFrame({"t": np.arange(600), "v": [*np.arange(599.0) % 7, np.inf]})
    with pytest.warns(DataWarning, match=r"infinite value \(1\): row 600"):
        result = Detector(**LAST).detect(frame, time="t", values="v")
    assert np.isnan(result["value"].iloc[-1])
    assert not result["alarm"].iloc[-1]


def test_a_frame_with_the_wrong_number_of_features_is_refused():
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    detector = Detector(1, **LAST)
    with pytest.raises(ValueError, match=r"signal 'signal' must have 1 feature like.*got 2: a, b"):
        detector.detect(frame)
    assert detector.observations == 0
    with pytest.raises(TypeError, match="frame must be an eager frame"):
        detector.detect([1.0, 2.0])


def test_a_detector_goes_on_from_frame_to_frame_and_to_single_observations():
    values = hard_values(1, 750)[:, 0]
    values[np.isinf(values)] = np.nan
    detector, plain = Detector(**LAST), Detector(**LAST)
    with pytest.warns(ResolutionWarning):
        detector.detect(pl.DataFrame({"v": values[:40]}))
    detector.detect(pl.DataFrame({"v": values[40:700]}))
    got = [detector.update(value) for value in values[700:]]
    same_as_stacked(_tail(plain.run(values).verdicts, 700), stacked(got))


def _tail(verdicts, first):
    return _part(verdicts, first, None)


def _part(verdicts, first, last):
    return Verdicts(**{name: getattr(verdicts, name)[first:last] for name in ARRAYS})


def test_columns_without_times_are_numbered():
    frame = pl.DataFrame({"v": np.zeros(600)})
    with signals_from_frame(frame) as signals:
        signal = next(iter(signals))
    columns = Detector(**LAST).run_signal(signal).columns
    names = "time value forecast low high usual_low usual_high p severity alarm merged return_period warm estimated"
    assert list(columns) == names.split()
    assert columns["time"].tolist() == list(range(600))


def test_an_incident_tells_itself():
    incident = Incident(
        "s", 1, 5, 3, 1, 5, 2, 0.001, 3.0, 900.0, "error", "4 above the forecast", "above", 4.0, {"a": 1.0, "b": 2.0}
    )  # fmt: skip
    assert (incident.duration, incident.severity, incident.features) == (5, 3.0, ["b", "a"])


def test_what_a_guard_cancels_opens_no_incident_and_leaves_the_threshold_as_it_is():
    """Shapes alarm where values are close to their forecasts: without the guard an incident, with it nothing at all."""
    values = np.random.default_rng(0).normal(size=(1500, 1)) * 0.1
    values[1300:1380] = np.sin(np.arange(80) / 2)[:, np.newaxis]
    settings = {"alarm_rate": 0.01, "forecaster": "last-value"}
    free, guarded = Detector(**settings), Detector(**settings, min_deviation=50.0)
    assert free.run(values).alarm.any()
    verdicts = guarded.run(values).verdicts
    assert not verdicts.alarm.any()
    assert not verdicts.open.any()
    assert guarded.incidents == []
    tightened = [one.fleet.pipeline.ranking._memory.levels[0, TIGHTENED] for one in (free, guarded)]
    assert tightened[1] > tightened[0]
    assert guarded.audit.alarms == 0
