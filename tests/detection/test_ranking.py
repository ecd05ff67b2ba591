"""From scores to verdicts: what has to hold beside the numbers of the oracle."""

import numpy as np
import pytest

from tests.cases import full
from tests.detection.helpers import LAST, SMALL, hard_values, same_verdicts
from tocsin.constants import changed
from tocsin.detection import Detector, Fleet
from tocsin.forecasting import LastValue

VIEWS = ("error", "shape", "movement")
every_view = pytest.mark.parametrize("view", VIEWS)


def noise(steps, signals, seed=0):
    return np.random.default_rng(seed).normal(size=(steps, signals))


@pytest.mark.parametrize("settings", [{"views": "error"}, {"forecaster": None}], ids=str)
def test_a_detector_whose_views_keep_nothing_can_be_restored(settings):
    values = np.abs(hard_values(0, 200))
    detector = Detector(**{**LAST, **settings})
    detector.run(values[:120])
    restored = Detector.from_bytes(detector.to_bytes())
    same_verdicts(restored.run(values[120:]).verdicts, detector.run(values[120:]).verdicts)


@every_view
def test_no_observations_give_no_verdicts(view):
    fleet = Fleet(2, 3, **LAST, views=view)
    assert fleet.run_arrays(np.empty((0, 2, 3))).p.shape == (0, 2)
    assert fleet.run_arrays(np.empty((4, 0, 3)), rows=[]).feature_p.shape == (4, 0, 3)
    assert fleet.pipeline.seen.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("views", "streams"),
    [("movement", 1), ("shape", 1), ("error", 2), ("error,shape,movement", 3)],
)
def test_each_feature_has_the_weights_of_its_own_streams(views, streams):
    """Zeros where a detector learns none."""
    detector = Detector(2, **LAST, views=views)
    values = noise(150, 2)
    values[:, 0] = 3.0
    values[100:, 1] = np.nan
    detector.run(values)
    weights = detector.weights
    assert weights.shape == (2, streams, 250)
    learned = detector.fleet.pipeline.ranking._columns.length.min() == 1
    lags = np.count_nonzero(weights, axis=2)
    assert (lags[0].min() >= 100) == learned
    assert (lags[1] <= 99).all()
    with pytest.raises(ValueError, match="row must be an integer from 0 to 0, got 1"):
        detector.fleet.weights(1)


@every_view
def test_a_view_by_itself_is_evidence_enough(view):
    """Whatever it would count beside others: each alone raises the alarm of a signal that changes altogether."""
    values = noise(2000, 1, seed=1)[:, 0]
    values[1900:] = 0.0 if view == "movement" else 40 + 9 * values[1900:]
    detector = Detector(window=1000, alarm_rate=0.01, forecaster="exponential-smoothing", views=view)
    verdicts = detector.run(values).verdicts
    assert verdicts.warm[-1, 0]
    assert verdicts.alarm[1900:, 0].any()


@pytest.mark.slow
@pytest.mark.parametrize("alarm_rate", [0.034, full(0.05), full(0.2), 0.49])
@pytest.mark.parametrize("kind", ["noise", "constant"])
def test_incidents_end_whatever_is_tolerated(alarm_rate, kind):
    """Also where a block is no shorter than the time between two incidents that are tolerated."""
    values = noise(1500, 4, seed=2) if kind == "noise" else np.full((1500, 4), 2.0)
    verdicts = Fleet(4, forecaster="last-value", window=250, alarm_rate=alarm_rate).run_arrays(values)
    warm = verdicts.warm.all(axis=1)
    assert warm.sum() > 500
    assert verdicts.alarm[warm].mean() < (0.25 if kind == "noise" else 1e-9)
    opened = verdicts.opened[warm].mean()
    assert opened > 0.01 if kind == "noise" else opened == 0


def test_guards_can_do_without_the_p_values_of_features():
    """A view of all features may alarm where no single one has a p-value; what is close is taken back then too."""
    values = noise(1000, 2, seed=3)
    values[900:] *= 20
    settings = {**SMALL, "forecaster": "exponential-smoothing", "views": "shape"}
    free = Detector(2, **settings).run(values).verdicts
    guarded = Detector(2, **settings, min_deviation=15.0).run(values).verdicts
    assert np.isnan(free.feature_p).all()
    away = np.abs(free.value - free.forecast).max(axis=2)
    np.testing.assert_array_equal(guarded.alarm, free.alarm & (away >= 15))
    assert 0 < guarded.alarm.sum() < free.alarm.sum()


@pytest.mark.parametrize("promise", ["incidents", "observations"])
@pytest.mark.parametrize("forecaster", ["last-value", "autoregression"])
@every_view
def test_warm_up_is_that_of_the_view_that_is_heard_first(view, forecaster, promise):
    """Of a signal with nothing missing, all verdicts after warm-up say so, and the first do not."""
    detector = Detector(**SMALL, forecaster=forecaster, views=view, promise=promise)
    warm = detector.run(noise(detector.warm_up + 120, 1)[:, 0]).verdicts.warm[:, 0]
    first = int(np.argmax(warm))
    assert warm[first:].all()
    # An incident that is open holds back the end of a block.
    assert detector.warm_up - 1 <= first <= detector.warm_up + (100 if promise == "incidents" else 0)


def test_a_single_verdict_has_the_bits_of_many():
    values = hard_values(3, 150)
    verdicts = Detector(**LAST).run(values).verdicts
    single = [Detector(**LAST)]
    shown = [single[0].update(value) for value in values]
    for name in ("merged", "severity", "return_period"):
        np.testing.assert_array_equal([getattr(one, name) for one in shown], getattr(verdicts, name)[:, 0])


def test_the_band_of_scaled_errors_has_no_end_where_nothing_alarms_yet():
    """Also where the forecaster has no spread: nothing is made of no number times infinity."""
    detector = Detector(**SMALL, forecaster="embedded", scaled=True, views="error")
    verdicts = detector.run(np.full(60, 4.0)).verdicts
    assert (verdicts.high[1:] == np.inf).all()
    assert (verdicts.low[1:] == -np.inf).all()


def test_both_forecasters_recover_from_gaps_by_the_same_rule():
    """Two missing values silence neither; more than 15 silence both."""
    values = np.random.default_rng(0).normal(size=900)
    values[600:602] = np.nan
    detector = Detector(forecaster=(LastValue(), LastValue()), views="error", alarm_rate=0.01)
    after = detector.run(values).verdicts.views[602:620, 0, 0]
    assert np.isfinite(after).all()
    stages = detector.fleet.pipeline._stages
    assert [(stage._gaps.longest, stage._gaps.recovers) for stage in stages] == [(15, 15)] * 2


@pytest.mark.parametrize("changes", [{"short": 20}, {"long": 36}, {"short": 5, "long": 90}])
def test_stretches_may_have_any_length(changes):
    """Distances are summed in parts of eight values."""
    values = np.random.default_rng(1).normal(size=1200)
    with changed(**changes):
        evidence = Detector(forecaster=LastValue(), views="shape", alarm_rate=0.01).run(values).evidence
    assert np.isfinite(evidence[-200:]).all()


def test_no_return_period_is_told_before_p_is_calibrated():
    values = np.random.default_rng(2).normal(size=700)
    verdicts = Detector(forecaster=LastValue(), alarm_rate=0.01, promise="observations").run(values).verdicts
    assert np.isnan(verdicts.rate[~verdicts.warm]).all()
    assert np.isfinite(verdicts.rate[verdicts.warm]).all()


def test_beyond_the_band_p_is_below_the_alarm_rate():
    """Also where a closed loop holds p: the band is the score at which p reaches the alarm rate."""
    rng = np.random.default_rng(3)
    detector = Detector(forecaster=None, alarm_rate=0.02, promise="observations", window=500)
    verdicts = detector.run(rng.exponential(size=3000) * (1 + np.arange(3000) / 1500)).verdicts
    warm = verdicts.warm[:, 0] & np.isfinite(verdicts.high[:, 0, 0])
    beyond = verdicts.value[warm, 0, 0] > verdicts.high[warm, 0, 0]
    assert warm.sum() > 1500
    # The band is drawn anew every 50 observations, and both move in between.
    assert np.mean(beyond == verdicts.alarm[warm, 0]) > 0.98
