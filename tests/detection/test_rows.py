"""Single signals, taken out of a running fleet and put into one."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import full
from tests.detection.helpers import ARRAYS, LAST, MovingMean, hard_values, same_verdicts
from tocsin.data import LONGEST_GAP
from tocsin.detection import Detector, Fleet
from tocsin.detection.frames import missing_times
from tocsin.detection.state.storage import arrays_from_bytes, arrays_to_bytes

SIGNALS, STEPS = 5, 760
KINDS = {
    "last-value": {},
    "embedded": {"forecaster": "embedded", "scaled": True, "views": "error,movement"},
    "light": {"forecaster": "auto", "preset": "light"},
    "seasonal": {"forecaster": "seasonal-naive", "min_duration": 2, "gap": 2, "views": "error,movement"},
    "own": {"forecaster": MovingMean(), "scaled": True, "refresh": 3},
    "by p": {"views": "error", "promise": "observations"},
    "high": {"nonconformity": "high", "views": "error"},
    "accepted": {"accept_after": 9, "gap": 2, "views": "error,shape"},
    "features": {"features": ["a", "b"]},
    "scores": {"forecaster": None},
}
every_kind = pytest.mark.parametrize("kind", KINDS)
FEW = ("features", "scores")
few_kinds = pytest.mark.parametrize("kind", [kind if kind in FEW else full(kind) for kind in KINDS])


def made(kind, signals=None):
    """A fleet of the kind, or a detector."""
    chosen = {**LAST, **KINDS[kind]}
    features = chosen.pop("features", 1)
    return Detector(features, **chosen) if signals is None else Fleet(signals, features, **chosen)


def material(kind, seed):
    """Values of five signals with gaps, spikes and missing stretches."""
    features = len(made(kind).features)
    return np.stack([hard_values(seed + row, STEPS, features) for row in range(SIGNALS)], axis=1)


def same_states(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
        assert one[name].dtype == other[name].dtype


def column(verdicts, row):
    return {name: getattr(verdicts, name)[:, row] for name in ARRAYS}


def same_column(verdicts, row, other, other_row=0):
    for name, array in column(verdicts, row).items():
        np.testing.assert_array_equal(array, getattr(other, name)[:, other_row], err_msg=name)


@pytest.mark.slow
@few_kinds
@settings(max_examples=3, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_signal_moves_between_fleets_at_any_moment(kind, data):
    """Row 2 goes into a row of a busy fleet: it goes on as an uninterrupted detector, and the others undisturbed."""
    at = data.draw(st.sampled_from([0, 1, 2, 17, 99, 100, 250, 391, 600, 601, 759]))
    to = data.draw(st.integers(0, SIGNALS - 1))
    values, elsewhere = material(kind, 0), material(kind, 50)
    detector, fleet, other, undisturbed = made(kind), made(kind, SIGNALS), made(kind, SIGNALS), made(kind, SIGNALS)
    detector.run(values[:at, 2])
    fleet.run_arrays(values[:at])
    busy = data.draw(st.sampled_from([0, 3, 120, 633]))
    other.run_arrays(elsewhere[:busy])
    undisturbed.run_arrays(elsewhere[:busy])
    state = fleet.signal_state(2)
    same_states(state, detector.state())
    assert other.put(to, arrays_from_bytes(arrays_to_bytes(state))) is None
    same_states(other.signal_state(to), state)
    kept = [row for row in range(SIGNALS) if row != to]
    after = elsewhere[busy:] if busy else elsewhere
    together = min(len(after), STEPS - at)
    mixed = after[:together].copy()
    mixed[:, to] = values[at : at + together, 2]
    moved, expected = other.run_arrays(mixed), undisturbed.run_arrays(after[:together])
    same_column(moved, to, detector.run(values[at : at + together, 2]).verdicts)
    for row in kept:
        same_column(moved, row, expected, row)
        same_states(other.signal_state(row), undisturbed.signal_state(row))
        assert repr(other.incidents(row)) == repr(undisturbed.incidents(row))
    same_states(other.signal_state(to), detector.state())
    assert other.audit(to) == detector.audit
    fleet_goes_on = fleet.run_arrays(values[at : at + together])
    same_column(fleet_goes_on, 2, moved, to)


@pytest.mark.slow
@few_kinds
def test_a_row_made_fresh_is_a_fresh_detector(kind):
    values, later = material(kind, 0), material(kind, 50)
    fleet, undisturbed, detector = made(kind, SIGNALS), made(kind, SIGNALS), made(kind)
    fleet.run_arrays(values)
    undisturbed.run_arrays(values)
    assert fleet.put(3, None) is None
    assert fleet.incidents(3) == []
    same_states(fleet.signal_state(3), detector.state())
    verdicts, expected = fleet.run_arrays(later), undisturbed.run_arrays(later)
    same_column(verdicts, 3, detector.run(later[:, 3]).verdicts)
    for row in (0, 1, 2, 4):
        same_column(verdicts, row, expected, row)
    same_states(fleet.signal_state(3), detector.state())


@pytest.mark.slow
@every_kind
def test_detectors_and_rows_are_exchanged_as_bytes(kind):
    """A detector with times becomes a row, and then a detector again."""
    values, times = material(kind, 7)[:, 0], 10.0 * np.arange(STEPS)
    detector, fleet = made(kind), made(kind, SIGNALS)
    forecaster = KINDS[kind].get("forecaster")
    own = {"forecaster": forecaster} if isinstance(forecaster, MovingMean) else {}
    detector.run(values[:500], times[:500])
    again = Detector.from_bytes(detector.to_bytes(), **own)
    same_states(again.state(), detector.state())
    last_time = fleet.put(4, detector.state(), name="pump")
    assert last_time == times[499]
    assert fleet.names == ["signal 1", "signal 2", "signal 3", "signal 4", "pump"]
    assert {incident.signal for incident in fleet.incidents(4)} <= {"pump"}
    verdicts = fleet.run_arrays(values[500:650, np.newaxis], rows=[4], times=times[500:650, np.newaxis])
    expected = detector.run(values[500:650], times[500:650]).verdicts
    same_verdicts(verdicts, expected)
    third = Detector.from_state(fleet.signal_state(4, last_time=times[649]), **own)
    same_states(third.state(), detector.state())
    same_verdicts(third.run(values[650:], times[650:]).verdicts, detector.run(values[650:], times[650:]).verdicts)
    assert repr(third.incidents) == repr(detector.incidents)


def test_dates_travel_along():
    fleet = Fleet(2, **LAST)
    start = np.datetime64("2024-02-28T23:00", "ns")
    assert fleet.put(0, fleet.signal_state(1, last_time=start)) == start
    assert Detector.from_state(fleet.signal_state(1, last_time=start)).update(1.0, start + np.timedelta64(1, "s"))
    with pytest.raises(TypeError, match="times must be numbers, datetimes or None to be saved"):
        fleet.signal_state(1, last_time=object())


def test_one_of_many_rows_is_taken_without_the_others():
    fleet = Fleet(64, **LAST)
    fleet.run_arrays(np.random.default_rng(0).normal(size=(300, 64)))
    state = fleet.signal_state(9)
    alone = Detector(**LAST).state()
    assert {name: array.nbytes for name, array in state.items() if name != "header"} == {
        name: array.nbytes for name, array in alone.items() if name != "header"
    }
    for array in state.values():  # nor are they kept alive by it
        assert array.base is None or array.base.nbytes <= 2 * array.nbytes


def test_a_state_taken_is_a_copy():
    values = material("last-value", 0)
    fleet = made("last-value", SIGNALS)
    fleet.run_arrays(values[:700])
    state = fleet.signal_state(2)
    before = {name: array.copy() for name, array in state.items()}
    fleet.put(0, state)
    fleet.run_arrays(values[700:])
    same_states(state, before)


OTHER_WAYS = {
    "alarm_rate": ({"alarm_rate": 0.04}, r"alarm_rate=0.04 instead of 0.03"),
    "settings": ({"scaled": False, "accept_after": 5, "gap": 3}, r"accept_after=5 instead of 600, gap=3 instead of 10"),
    "views": ({"views": "error"}, r"views=\['error'\] instead of None"),
    "preset": ({"preset": "light"}, r"preset='light' instead of 'full'"),
    "window": ({"window": 300}, r"window=300 instead of 250"),
    "features": ({"features": ["x"]}, r"features=\['x'\] instead of \['feature'\]"),
    "forecaster": (
        {"forecaster": "embedded"},
        r"forecasters=\[{'name': 'embedded'.* instead of \[{'name': 'last-value'",
    ),
    "its options": (
        {"forecaster": "seasonal-naive", "forecaster_options": {"period": 7}},
        r"forecasters=.*'seasonal-naive', 'parameters': {'period': 7.* instead of .*'last-value'",
    ),
    "none": ({"forecaster": None}, r"forecasters=\[\] instead of \[{'name': 'last-value'"),
}


def whole(fleet):
    return [fleet.signal_state(row) for row in range(len(fleet.names))], list(fleet.names), repr(fleet.incidents())


@pytest.fixture
def busy():
    fleet = made("last-value", SIGNALS)
    fleet.run_arrays(material("last-value", 0))
    return fleet


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "message"), OTHER_WAYS.values(), ids=OTHER_WAYS)
def test_signals_made_in_another_way_are_refused(busy, changes, message):
    states, names, incidents = whole(busy)
    other = Detector(**{**LAST, **changes})
    other.run(np.zeros(20))
    with pytest.raises(
        ValueError, match=f"^state must come from a signal with the settings of the fleet, got {message}"
    ):
        busy.put(1, other.state(), name="new")
    for row, state in enumerate(states):
        same_states(busy.signal_state(row), state)
    assert (busy.names, repr(busy.incidents())) == (names, incidents)


def test_a_fleet_without_forecaster_refuses_one_with():
    with pytest.raises(ValueError, match=r"forecasters=\[{'name': 'last-value', 'parameters': {}}\] instead of \[\]"):
        made("scores", 2).put(0, made("last-value").state())


@pytest.mark.slow
def test_damaged_states_leave_the_fleet_as_it_was(busy):
    states, names, incidents = whole(busy)
    good = busy.signal_state(2)
    header = json.loads(good["header"].tobytes())
    headers = [
        {**header, "format": 1}, {**header, "signals": ["a", "b"]}, {**header, "signals": 3}, {**header, "extra": 5},
        {**header, "settings": None}, {**header, "incidents": {"open": {}}},
    ]  # fmt: skip
    damaged = [{**good, "header": np.array(json.dumps(changed))} for changed in headers]
    damaged += [{other: good[other] for other in good if other != name} for name in good]
    damaged += [{**good, name: array[:-1]} for name, array in good.items() if array.ndim]
    damaged += [
        {**good, "pipeline/seen": good["pipeline/seen"] - 10**6},
        {**good, "audit/counts": good["audit/counts"] - 10**6},
    ]
    damaged += [{**good, "pipeline/ranking/scorer/weights": good["pipeline/ranking/scorer/weights"] + 1}, {}]
    for state in damaged:
        with pytest.raises(ValueError, match=r"not the state of a detector, or it is damaged|must have format \d"):
            busy.put(1, state, name="new")
    with pytest.raises(ValueError, match="expected the state of one signal, got 2"):
        busy.put(1, damaged[1])
    for row, state in enumerate(states):
        same_states(busy.signal_state(row), state)
    assert (busy.names, repr(busy.incidents())) == (names, incidents)


def test_damaged_bytes_are_refused():
    detector = made("last-value")
    detector.run(hard_values(0, 60))
    data = detector.to_bytes()
    for damaged in (
        b"",
        b"nonsense",
        data[:10],
        data[: len(data) // 2],
        data[:-1],
        data[:3000] + b"\0" * 99 + data[3099:],
    ):
        with pytest.raises(
            ValueError, match=rf"^data must be a detector saved by tocsin as bytes, got {len(damaged)} bytes: "
        ):
            Detector.from_bytes(damaged)
    for wrong in ("text", None, 5):
        with pytest.raises(TypeError, match="data must be bytes, got "):
            Detector.from_bytes(wrong)
    with pytest.raises(ValueError, match="'header' is missing"):
        Detector.from_bytes(arrays_to_bytes({"x": np.zeros(3)}))
    assert Detector.from_bytes(bytearray(data)).observations == 60


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda fleet: fleet.signal_state(5), ValueError, r"^row must be an integer from 0 to 4, got 5"),
        (lambda fleet: fleet.signal_state(-1), ValueError, r"^row must be an integer from 0 to 4, got -1"),
        (lambda fleet: fleet.put(5, None), ValueError, r"^row must be an integer from 0 to 4, got 5"),
        (lambda fleet: fleet.put("pump", None), TypeError, r"^row must be an integer from 0 to 4, got 'pump'"),
        (
            lambda fleet: fleet.put(0, None, name="signal 2"),
            ValueError,
            r"^name must not be that of another signal .*'signal 2'",
        ),
        (lambda fleet: fleet.put(0, None, name=3), ValueError, r"^name must not be that of another signal .*got 3"),
    ],
)
def test_wrong_rows_and_names_are_refused(busy, call, error, message):
    with pytest.raises(error, match=message):
        call(busy)
    assert busy.observations(0) == STEPS


def test_a_name_may_be_given_again(busy):
    busy.put(0, None, name="signal 1")
    busy.put(1, busy.signal_state(2), name="pump")
    busy.put(2, None, name="signal 2")  # the name that row 1 had
    assert busy.names[:3] == ["signal 1", "pump", "signal 2"]
    assert busy.incidents(2) == []
    assert {incident.signal for incident in busy.incidents(1)} == {"pump"}


def test_a_renamed_row_names_its_incidents(busy):
    kept = [vars(incident) for incident in busy.incidents(2)]
    busy.put(0, busy.signal_state(2), name="pump")
    assert kept
    assert [{**vars(incident), "signal": "signal 3"} for incident in busy.incidents(0)] == kept
    busy.run_arrays(np.full((4, SIGNALS), 99.0))
    assert busy.incidents(0)[-1].signal == "pump"
    assert repr(busy.incidents(2)) == repr(busy.incidents(0)).replace("pump", "signal 3")
    assert "signal 1" not in {incident.signal for incident in busy.incidents()}


def test_closed_incidents_can_be_taken_away(busy):
    open_ones = [busy.open_incident(row) for row in range(SIGNALS)]
    told = busy.incidents()
    taken = busy.take_closed_incidents()
    assert len(taken) > 2
    assert not any(incident.open for incident in taken)
    assert [*taken, *(incident for incident in open_ones if incident)] == told
    assert busy.take_closed_incidents() == []
    assert busy.incidents() == [incident for incident in open_ones if incident]
    assert json.loads(busy.signal_state(0)["header"].tobytes())["incidents"]["closed"] == []


def test_an_incident_too_short_is_not_told_of():
    fleet = Fleet(2, **LAST, gap=0, min_duration=3, views="error")
    fleet.run_arrays(np.random.default_rng(1).normal(size=(700, 2)))
    fleet.take_closed_incidents()
    lengths = []
    for step in range(4):
        fleet.update([1e6 * 3.0**step], rows=[1])
        incident = fleet.open_incident(1)
        lengths.append(None if incident is None else incident.duration)
    assert lengths == [None, None, 3, 4]
    assert fleet.open_incident(0) is None
    copied = Detector.from_state(fleet.signal_state(1))
    assert copied.incidents[0].duration == 4


def test_others_keep_their_incidents_where_there_are_too_many(busy, monkeypatch):
    theirs = busy.incidents(4)
    count = len(busy.incidents()) - len(busy.incidents(0))
    monkeypatch.setattr("tocsin.detection.incidents.incident.MOST_KEPT", count)
    busy.put(0, busy.signal_state(2))
    assert busy.incidents(4) == theirs
    assert len(busy.take_closed_incidents()) <= count


SECOND = np.timedelta64(1, "s")
NOON = np.datetime64("2024-01-01T12:00", "ns")


@pytest.mark.parametrize(
    ("last_time", "time", "interval", "expected"),
    [
        (None, 5.0, 1.0, []),
        (4.0, 5.0, 1.0, []),
        (4.0, 8.0, None, []),
        (4.0, 8.0, 1.0, [5.0, 6.0, 7.0]),
        (4.0, 8.0, 2.0, [6.0]),
        (NOON, NOON + 30 * SECOND, 10.0, [NOON + 10 * SECOND, NOON + 20 * SECOND]),
    ],
)
def test_missing_times(last_time, time, interval, expected):
    assert missing_times(last_time, time, interval).tolist() == np.array(expected).tolist()


def test_a_very_long_gap_is_cut_and_times_must_increase():
    assert missing_times(0.0, 1e12, 1.0).size == LONGEST_GAP
    with pytest.raises(ValueError, match=r"time must be later than the last one, 5.0, got 5.0"):
        missing_times(5.0, 5.0, None)
    with pytest.raises(TypeError, match=r"time must be of the same kind as the last one"):
        missing_times(5.0, NOON, 1.0)
