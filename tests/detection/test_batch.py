"""A history at once, in pieces and one by one; many signals together and each alone: the same bits."""

import io

import numpy as np
import pytest

from tests.cases import full
from tests.detection.helpers import ARRAYS, SMALL, MovingMean, hard_values, same_as_stacked, same_verdicts, stacked
from tocsin.data import Signal
from tocsin.detection import NONCONFORMITIES, Detector, Fleet
from tocsin.detection.batch import detect_signal
from tocsin.detection.incidents.verdict import verdict_on
from tocsin.forecasting import make_forecaster

STEPS = 640
# The period is looked for several times on the way.
FORECASTERS = {
    "last-value": {},
    "seasonal-naive": {"search": 320},
    "exponential-smoothing": {},
    "autoregression": {"lags": 6, "search": 320},
}
VIEWS = ("error", "shape", "movement")
every_forecaster = pytest.mark.parametrize("forecaster", FORECASTERS)


def values_for(settings, seed, features=1):
    """Long enough for p-values to be believed, whatever the time that the forecaster takes to settle."""
    warm_up = 0 if settings["forecaster"] is None else settings["forecaster"].warm_up
    return hard_values(seed, STEPS + warm_up, features)


def settings_of(forecaster, **more):
    return {**SMALL, "forecaster": make_forecaster(forecaster, FORECASTERS[forecaster]), **more}


def with_none(values):
    """The same observations as plain lists, with None for some of what is missing."""
    rows = values.tolist()
    for number, row in enumerate(rows):
        for feature, value in enumerate(row):
            if np.isnan(value) and (number + feature) % 2:
                row[feature] = None
    return rows


def same_state(one, other):
    one, other = one.state(), other.state()
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def check_batch_is_stream(settings, features, seed, offset=0.0):
    values = offset + values_for(settings, seed, features)
    whole, single, pieces = (Detector(features, **settings) for _ in range(3))
    verdicts = whole.run(values).verdicts
    same_as_stacked(verdicts, stacked([single.update(row) for row in with_none(values)]))
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(values), size=9))
    parts = [pieces.run(part).verdicts for part in np.split(values, cuts)]
    for name in ARRAYS:
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(verdicts, name), err_msg=name)
    for other in (single, pieces):
        same_state(whole, other)
        assert repr(other.incidents) == repr(whole.incidents)  # which takes NaN for equal
        assert other.audit == whole.audit
    return whole


@pytest.mark.slow
@every_forecaster
def test_batch_is_stream_for_every_forecaster(forecaster):
    """With all views and several features."""
    settings = settings_of(forecaster, views=VIEWS)
    assert check_batch_is_stream(settings, features=3, seed=1).audit.observations > 10


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_batch_is_stream_for_every_view(view):
    """By itself; of signals as they are, and a billion away from nothing."""
    settings = settings_of("exponential-smoothing", views=view)
    check_batch_is_stream(settings, features=2, seed=2)
    check_batch_is_stream(settings, features=1, seed=3, offset=1e9)


@pytest.mark.slow
@pytest.mark.parametrize("nonconformity", [full(one) if one == "high" else one for one in NONCONFORMITIES])
def test_batch_is_stream_for_every_nonconformity(nonconformity):
    check_batch_is_stream(settings_of("autoregression", nonconformity=nonconformity), 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        full({"accept_after": 0}),
        {"accept_after": 7, "gap": 2},
        {"promise": "observations"},
        full({"refresh": 4}),
        {"refresh": 7, "views": "error"},
        {"preset": "light"},
        {"min_deviation": 3.0, "min_duration": 2, "gap": 0},
        full({"min_relative_deviation": 0.3}),
    ],
    ids=str,
)
@pytest.mark.parametrize("forecaster", ["last-value", full("mean"), full("mean, scaled"), full(None)])
def test_batch_is_stream_for_every_policy(forecaster, more):
    if forecaster is None:
        more = {name: value for name, value in more.items() if name in ("accept_after", "gap", "promise")}
        settings = {**SMALL, "forecaster": None, **more}
    elif forecaster == "last-value":
        settings = settings_of(forecaster, **more)
    else:
        settings = {**SMALL, "forecaster": MovingMean(), "scaled": "scaled" in forecaster, **more}
    check_batch_is_stream(settings, features=1, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forecaster", "more"),
    [
        full("last-value", {}),
        ("autoregression", {"preset": "light"}),
        full("exponential-smoothing", {"refresh": 2}),
    ],
)
def test_a_fleet_is_its_signals_each_alone(forecaster, more):
    """Of random signals at each tick, some of them twice as often as others, in random order."""
    signals = 4
    settings = settings_of(forecaster, **more)
    rng = np.random.default_rng(7)
    values = np.stack([values_for(settings, seed, 2) for seed in range(signals)], axis=1)
    fleet = Fleet(signals, 2, **settings)
    alone = [Detector(2, **settings) for _ in range(signals)]
    given = [[] for _ in range(signals)]
    got = [[] for _ in range(signals)]
    for step in range(len(values)):
        rows = np.flatnonzero(rng.random(signals) < [1.0, 0.9, 0.95, 0.5])
        rng.shuffle(rows)
        verdicts = fleet.update(values[step, rows], rows=rows)
        for column, row in enumerate(rows):
            given[row].append(values[step, row])
            got[row].append(verdict_on(verdicts, 0, column, None, fleet.views, fleet.features))
    for row, detector in enumerate(alone):
        same_as_stacked(detector.run(given[row]).verdicts, stacked(got[row]))
        assert fleet.audit(row) == detector.audit
        assert [replaced(incident) for incident in fleet.incidents(row)] == detector.incidents
        np.testing.assert_array_equal(fleet.weights(row), detector.weights)
    assert any(one.warm for row in got for one in row)


def replaced(incident):
    incident.signal = "signal"
    return incident


def test_rows_in_any_order_are_the_same_signals():
    settings = settings_of("autoregression")
    values = np.stack([values_for(settings, seed) for seed in range(3)], axis=1)
    plain, permuted = Fleet(3, **settings), Fleet(3, **settings)
    order = [2, 0, 1]
    one, other = plain.run_arrays(values), permuted.run_arrays(values[:, order], rows=order)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name)[:, order], getattr(other, name), err_msg=name)


@pytest.mark.slow
def test_threads_do_not_change_the_numbers():
    settings = settings_of("autoregression")
    values = np.stack([values_for(settings, seed, 3) for seed in range(3)], axis=1)
    one, two = Fleet(3, 3, **settings), Fleet(3, 3, threads=2, **settings)
    same_verdicts(one.run_arrays(values), two.run_arrays(values))
    file = io.BytesIO()
    one.save(file)
    file.seek(0)
    three = Fleet.load(file, threads=3)
    same_verdicts(two.run_arrays(values), three.run_arrays(values))


@pytest.mark.slow
@pytest.mark.parametrize("gap", [full(0), 3])
def test_incidents_of_a_fleet_come_in_the_same_order_at_once_and_one_by_one(gap):
    """Also where those of one signal end between those of another, and where some are not over."""
    settings = settings_of("last-value", gap=gap, views="error")
    values = np.stack([hard_values(seed, STEPS + 700) for seed in range(5)], axis=1)
    at_once, one_by_one, in_pieces = (Fleet(5, **settings) for _ in range(3))
    at_once.run_arrays(values)
    for row in values:
        one_by_one.update(row)
    for part in np.split(values, [13, 500, 577]):
        in_pieces.run_arrays(part)
    expected = one_by_one.incidents()
    assert len({incident.signal for incident in expected}) == 5
    assert at_once.incidents() == expected
    assert in_pieces.incidents() == expected
    assert at_once.log.state() == one_by_one.log.state()


@pytest.mark.slow
@pytest.mark.parametrize("forecaster", [*FORECASTERS, None])
def test_nothing_given_changes_nothing(forecaster):
    settings = {**SMALL, "forecaster": None} if forecaster is None else settings_of(forecaster)
    detector, other = Detector(**settings), Detector(**settings)
    for _ in range(2):
        empty = detector.run([]).verdicts
        assert empty.p.shape == (0, 1)
        assert empty.views.shape == (0, 1, 1 if forecaster is None else 4)
        assert detector.run(np.empty((0, 1))).verdicts.forecast.shape == (0, 1, 1)
        detector.run(hard_values(0, 60))
        other.run(hard_values(0, 60))
        same_state(detector, other)
    fleet = Fleet(2, **settings)
    assert fleet.run_arrays(np.empty((3, 0)), rows=[]).p.shape == (3, 0)
    assert fleet.update([], rows=[]).alarm.shape == (1, 0)
    assert fleet.pipeline.seen.tolist() == [0, 0]


def test_values_are_not_changed_and_not_kept():
    values = hard_values(0, 60)
    before = values.copy()
    detector = Detector(**settings_of("last-value"))
    verdicts = detector.run(values).verdicts
    np.testing.assert_array_equal(values, before)
    values[:] = 0.0
    assert not np.array_equal(verdicts.value[:, 0], values)
    state = detector.state()
    for name in ARRAYS:
        getattr(verdicts, name)[...] = 1
    for name, array in detector.state().items():
        np.testing.assert_array_equal(array, state[name], err_msg=name)


def test_what_a_mask_hides_is_missing():
    values = hard_values(0, 80, 2)
    hidden = np.random.default_rng(0).random(values.shape) < 0.2
    masked, plain = np.ma.masked_array(values, hidden), np.where(hidden, np.nan, values)
    detectors = [Detector(2, **settings_of("last-value")) for _ in range(3)]
    expected = detectors[0].run(plain).verdicts
    same_verdicts(detectors[1].run(masked).verdicts, expected)
    same_as_stacked(expected, stacked([detectors[2].update(row) for row in masked]))
    fleet = Fleet(1, 2, **settings_of("last-value"))
    for step in range(3):
        np.testing.assert_array_equal(fleet.update(masked[step : step + 1]).value[0, 0], expected.value[step, 0])


def test_memory_does_not_grow():
    detector = Detector(**settings_of("autoregression"))

    def size():
        return sum(array.nbytes for name, array in detector.state().items() if name != "header")

    detector.run(hard_values(0, 100))
    before = size()
    detector.run(hard_values(0, 1000))
    assert size() == before


def numbered(values):
    """A signal without times."""
    return Signal("a", ("value",), None, values[:, np.newaxis], np.arange(1, len(values) + 1), None, ())


def test_it_is_told_since_when_a_signal_is_judged_and_by_what():
    settings = {"alarm_rate": 0.001, "forecaster": "last-value", "views": "error"}
    values = np.random.default_rng(3).normal(size=2000)
    result = detect_signal(numbered(values), settings, keep=True)
    verdicts = Detector(**settings).run(values).verdicts
    warm, own = verdicts.warm[:, 0], (verdicts.warm & ~verdicts.estimated)[:, 0]
    assert (result.judged_since, result.own_past_since) == (np.argmax(warm), np.argmax(own))
    assert result.judged_since < result.own_past_since
    np.testing.assert_array_equal(result.columns["estimated"], verdicts.estimated[:, 0])
    short = detect_signal(numbered(values[:900]), settings, keep=False)
    assert short.own_past_since is None
