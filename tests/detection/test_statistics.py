"""What is promised of a detector, and what it must find, tested with stated error levels and fixed seeds."""

import numpy as np
import pytest
from scipy import stats

from tests.bands import margin
from tests.cases import full
from tocsin.detection import Detector, Fleet
from tocsin.detection.settings.alarm_rate import most_beyond

ALPHA = 0.02
# Beside chance: learned weights and dependence of neighbours may move a rate by this share of itself.
SYSTEMATIC = 0.15


def noise(steps, signals, seed):
    return np.random.default_rng(seed).normal(size=(steps, signals))


def rates_of(verdicts, alpha=ALPHA):
    """For each signal the share of p-values under alpha among those that are as good as they get."""
    good = verdicts.warm & ~np.isnan(verdicts.p)
    return ((verdicts.p < alpha) & good).sum(axis=0) / good.sum(axis=0)


def lies_around(rates, alpha, level=1e-3):
    band = margin(rates, level) + SYSTEMATIC * alpha
    assert abs(rates.mean() - alpha) <= band, (rates.mean(), alpha, band)


@pytest.mark.slow
def test_p_values_of_independent_scores_are_calibrated():
    """Scores of a heavy-tailed law, 24 signals of 4,000: the rate at three levels; error level 1e-3 each."""
    scores = np.abs(np.random.default_rng(5).standard_cauchy(size=(4000, 24)))
    fleet = Fleet(24, alarm_rate=ALPHA, forecaster=None, window=300, promise="observations")
    verdicts = fleet.run_arrays(scores)
    assert verdicts.warm.sum() > 24 * 3400
    for alpha in (ALPHA, 0.1, 0.5):
        lies_around(rates_of(verdicts, alpha), alpha)
    np.testing.assert_array_equal(verdicts.alarm, (verdicts.p < ALPHA) & verdicts.warm)
    assert sum(fleet.audit(signal).finding in ("too many", "too few") for signal in range(24)) <= 1
    assert fleet.audit().finding == "as promised"


@pytest.mark.slow
@pytest.mark.parametrize("features", [1, full(3)])
def test_p_values_of_all_views_are_calibrated(features):
    """16 signals of independent noise, 3,500 observations: evidence of overlapping stretches is close enough to
    exchangeable for P(p < alpha) to lie within a third of alpha; error level 1e-3."""
    values = np.random.default_rng(1).normal(size=(3500, 16, features))
    fleet = Fleet(16, features, alarm_rate=ALPHA, forecaster="last-value", window=500, promise="observations")
    rates = rates_of(fleet.run_arrays(values))
    assert abs(rates.mean() - ALPHA) <= margin(rates, 1e-3) + ALPHA / 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forecaster", "more"),
    [
        full("last-value", {"views": "error"}),
        full("last-value", {}),
        full("exponential-smoothing", {"nonconformity": "high"}),
        full("exponential-smoothing", {"views": "error"}),
        (None, {}),
    ],
)
def test_incidents_of_independent_signals_come_as_often_as_promised(forecaster, more):
    """24 signals of 5,000 independent observations: incidents after warm-up over what is tolerated, between a half and
    once and a quarter of it, beside a Poisson band of error level 1e-3."""
    fleet = Fleet(24, alarm_rate=0.01, forecaster=forecaster, window=500, **more)
    verdicts = fleet.run_arrays(noise(5000, 24, seed=1) if forecaster else np.abs(noise(5000, 24, seed=1)))
    counted = verdicts.warm & ~np.isnan(verdicts.p)
    incidents, tolerated = int(verdicts.opened[counted].sum()), 0.01 * counted.sum()
    assert stats.poisson.isf(1 - 1e-3, 0.5 * tolerated) <= incidents <= stats.poisson.isf(1e-3, 1.25 * tolerated)
    log = fleet.incidents()
    assert len(log) == verdicts.opened.sum()


def nasty(kind, steps):
    """Signals made to alarm, without any chance in them."""
    at = np.arange(steps)
    wave = np.sin(at * 0.7) + np.sin(at * 1.93)
    return {
        "growing steps": np.floor(at / 50) ** 3.0 + wave,
        "regimes": np.where(at // 50 % 2 == 0, wave, 30 + 7 * wave),
        "growing regimes": wave * 1.2 ** np.floor(at / 50) * (1 - 2 * (at // 50 % 2)),
        "growing spikes": wave + np.where(at % 40 == 0, 1.05 ** (at / 10), 0.0),
        "bursts": np.where(at % 97 < 3, at * 1.0, wave),
        "stops": np.where(at // 60 % 3 == 2, 0.0, wave * (1 + at // 180)),
    }[kind]


@pytest.mark.slow
@pytest.mark.parametrize("alarm_rate", [full(0.005), 0.03, full(0.2)])
@pytest.mark.parametrize("kind", ["growing steps", "regimes", "growing regimes", "growing spikes", "bursts", "stops"])
def test_no_signal_has_more_incidents_than_the_long_run_bound(kind, alarm_rate):
    """An inequality without any chance in it, at every length of the signal."""
    for settings in ({}, {"gap": 0, "accept_after": 0}):
        detector = Detector(alarm_rate=alarm_rate, forecaster="last-value", window=250, **settings)
        verdicts = detector.run(nasty(kind, 3000)).verdicts
        beyond = most_beyond(detector.fleet.settings.sizes, alarm_rate, early=True)
        assert f"+ {beyond};" in detector.guarantee
        incidents = np.cumsum(verdicts.opened[:, 0])
        assert np.all(incidents <= alarm_rate * np.arange(1, 3001) + beyond)
        assert len(detector.incidents) == incidents[-1]
        # A step in two of five blocks is no more than usual.
        assert incidents[-1] > 0 or kind in ("stops", "growing steps") or alarm_rate < 0.01


def test_scores_that_grow_for_ever_have_no_more_incidents_than_the_bound():
    """Every score the largest so far: all that stops the alarms is what was tolerated."""
    scores = np.exp(85 * np.linspace(0, 1, 4000) ** 2)
    scores[::2] = 0.0
    detector = Detector(alarm_rate=0.01, forecaster=None, window=250, gap=0)
    incidents = np.cumsum(detector.run(scores).verdicts.opened[:, 0])
    beyond = most_beyond(detector.fleet.settings.sizes, 0.01, early=True)
    assert np.all(incidents <= 0.01 * np.arange(1, 4001) + beyond)
    assert incidents[-1] > 10


@pytest.mark.slow
@pytest.mark.parametrize("features", [full(1), 3])
def test_during_warm_up_p_is_a_bound(features):
    """300 signals of independent noise at three levels; error level 1e-3 each."""
    fleet = Fleet(300, features, alarm_rate=0.01, forecaster="last-value", window=300)
    # After the first evidence, p is a bound until there is enough evidence to rank it among.
    first = fleet.warm_up + fleet.settings.sizes.min_calibration
    verdicts = fleet.run_arrays(np.random.default_rng(4).normal(size=(first - 1, 300, features)))
    cold = ~np.isnan(verdicts.p)
    assert cold.sum() > 300 * 200
    for alpha in (0.02, 0.05, 0.2):
        rates = ((verdicts.p < alpha) & cold).sum(axis=0) / cold.sum(axis=0)
        assert rates.mean() <= alpha + margin(rates, 1e-3)


def test_missing_values_never_alarm():
    """Whatever is missing: the value, one feature of it or all; and what is there is judged all the same."""
    rng = np.random.default_rng(6)
    for nonconformity in ("absolute", "high", "low"):
        values = rng.normal(size=(900, 4, 2))
        values[rng.random(values.shape) < 0.3] = np.nan
        values[rng.random(values.shape) < 0.05] = np.inf
        values[rng.random(values.shape) < 0.02] = 40.0
        fleet = Fleet(4, 2, alarm_rate=0.03, forecaster="last-value", window=250, nonconformity=nonconformity)
        verdicts = fleet.run_arrays(values)
        missing = ~np.isfinite(values)
        gone = missing.all(axis=2)
        assert not verdicts.alarm[gone].any()
        for name in ("p", "evidence", "merged", "rate", "score"):
            assert np.isnan(getattr(verdicts, name)[gone]).all(), name
        assert (verdicts.cause[gone] == -1).all()
        assert np.isnan(verdicts.feature_p[missing]).all()
        assert np.isnan(verdicts.p[~gone][20:]).mean() < 0.02
        assert verdicts.alarm.any()


@pytest.mark.slow
@pytest.mark.parametrize("nonconformity", ["high", "low"])
def test_one_sided_detectors_alarm_on_one_side_only(nonconformity):
    """Spikes of twelve deviations, seldom enough for the long run to tolerate them all."""
    rng = np.random.default_rng(7)
    values = rng.normal(size=(2500, 8))
    spikes = np.zeros(values.shape, dtype=bool)
    spikes[1000::130] = True
    values[spikes] += np.where(rng.random(values.shape) < 0.5, 12, -12)[spikes]
    settings = {"alarm_rate": 0.01, "window": 500, "forecaster": "exponential-smoothing", "views": "error"}
    verdicts = Fleet(8, nonconformity=nonconformity, **settings).run_arrays(values)
    side = 1 if nonconformity == "high" else -1
    away = side * (values - verdicts.forecast[..., 0])
    assert verdicts.alarm[spikes & (away > 8)].mean() > 0.9
    assert not verdicts.alarm[spikes & (away < -8)].any()
    ends = (verdicts.low, verdicts.high) if nonconformity == "high" else (verdicts.high, verdicts.low)
    assert np.all(np.isinf(ends[0][10:]))
    assert np.isfinite(ends[1][-1]).all()


@pytest.mark.slow
def test_the_band_is_where_the_error_alone_alarms():
    """Of twelve signals with spikes of all sizes: what lies far beyond the band alarms, and little within it does."""
    rng = np.random.default_rng(9)
    values = rng.normal(size=(3000, 12))
    spikes = np.zeros(values.shape, dtype=bool)
    spikes[1000::150] = True
    values[spikes] *= rng.uniform(2, 15, size=spikes.sum())
    settings = {"alarm_rate": 0.01, "window": 500, "forecaster": "exponential-smoothing", "views": "error"}
    verdicts = Fleet(12, **settings).run_arrays(values)
    forecast, high, low = (getattr(verdicts, name)[..., 0] for name in ("forecast", "high", "low"))
    np.testing.assert_allclose(high - forecast, forecast - low)
    reach = np.abs(values - forecast) / (high - forecast)
    judged = np.isfinite(high) & verdicts.warm
    assert judged[1000:].mean() > 0.95
    assert verdicts.alarm[spikes & judged & (reach > 1.5)].mean() > 0.95
    assert verdicts.alarm[judged & (reach < 0.8)].mean() < 0.01


MASKS = {
    "outliers": lambda values: values.__setitem__(slice(1400, 1425, 5), 12.0),
    "noise": lambda values: values.__setitem__(slice(1400, 1500), 3 * values[1400:1500]),
}
FINDERS = {
    "smoothing": {"forecaster": "exponential-smoothing", "window": 1000},
    "light": {"preset": "light"},
}


@pytest.mark.slow
@pytest.mark.parametrize("finder", ["smoothing", full("light")])
@pytest.mark.parametrize("mask", MASKS)
def test_what_was_strange_before_does_not_hide_what_comes_after(mask, finder):
    """Eight signals of white noise with five outliers, or a hundred observations of threefold noise. Six hundred
    observations later a spike of six deviations is found in at least six of them, and a shift by three in seven: what
    belongs to an incident is not learned."""
    values = noise(2600, 8, seed=11)
    MASKS[mask](values)
    values[2025] += 6 * np.sign(values[2025])
    values[2400:] += 3
    verdicts = Fleet(8, alarm_rate=0.01, **FINDERS[finder]).run_arrays(values)
    assert verdicts.alarm[1400:1500].any(axis=0).sum() >= 7
    assert verdicts.alarm[2025].sum() >= 6
    assert verdicts.alarm[2400:2500].any(axis=0).sum() >= 7


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stuck", "quieter"])
def test_a_signal_that_moves_too_little_is_found(kind):
    """Eight signals of white noise; the sensor sticks, or the noise falls to .3 of what it was, for 150 observations.

    At least seven are found, by the view that looks for it."""
    values = noise(2300, 8, seed=12)
    values[2000:2150] = values[1999] if kind == "stuck" else 0.3 * values[2000:2150]
    fleet = Fleet(8, alarm_rate=0.01, preset="light")
    verdicts = fleet.run_arrays(values)
    names = [view.name for view in fleet.views]
    alarms = verdicts.alarm[2010:2150]
    assert alarms.any(axis=0).sum() >= 7
    causes = verdicts.cause[2010:2150][..., 0][alarms]
    assert np.mean(causes == names.index("movement")) > 0.5
    told = [one.explanation for one in fleet.incidents() if one.view == "movement" and one.last >= 2010]
    wanted = "has not moved for 48 observations" if kind == "stuck" else " a step, for 48 observations"
    assert any(one.endswith(wanted) for one in told)


def seldom(rng, shape, share):
    moves = np.where(rng.random(shape) < share, rng.normal(size=shape), 0.0)
    return np.cumsum(moves, axis=0)


TIED = {
    "constant": lambda rng, shape: np.full(shape, 3.7),
    "seldom moving": lambda rng, shape: seldom(rng, shape, 0.03),
    "rounded": lambda rng, shape: np.round(rng.normal(size=shape)),
    "counts": lambda rng, shape: rng.poisson(0.5, size=shape).astype(float),
    "on and off": lambda rng, shape: (np.sin(np.arange(shape[0])[:, np.newaxis] / 40) > 0).astype(float) + shape[1] * 0,
}


@pytest.mark.slow
@pytest.mark.parametrize("preset", [{"preset": "light"}, full({"forecaster": "last-value", "window": 1000})], ids=str)
@pytest.mark.parametrize("kind", [kind if kind in ("rounded", "counts") else full(kind) for kind in TIED])
def test_signals_with_many_ties_alarm_no_more_than_promised(kind, preset):
    """Eight signals of 3,000 observations; incidents under those tolerated and a Poisson band of error level 1e-3."""
    values = np.broadcast_to(TIED[kind](np.random.default_rng(13), (3000, 8)), (3000, 8))
    fleet = Fleet(8, alarm_rate=0.01, **preset)
    verdicts = fleet.run_arrays(values)
    counted = verdicts.warm & ~np.isnan(verdicts.p)
    assert counted.mean() > 0.6
    assert verdicts.opened.sum() <= stats.poisson.isf(1e-3, 1.1 * 0.01 * counted.sum())
    if kind == "constant":
        assert not verdicts.alarm.any()


@pytest.mark.slow
def test_a_shift_that_lasts_is_one_incident_and_accepted_in_the_end():
    """Eight signals, scores from outside, so that no forecaster gets used to it: alarms while it is not learned, and
    none any more once it is."""
    values = np.abs(noise(2600, 8, seed=14))
    values[2000:] += 6
    fleet = Fleet(8, alarm_rate=0.01, forecaster=None, window=1000, accept_after=100)
    verdicts = fleet.run_arrays(values)
    assert verdicts.alarm[2000:2090].mean() > 0.98
    assert verdicts.opened[2001:2100].sum() == 0
    assert verdicts.alarm[2400:].mean() < 0.05
    never = Fleet(8, alarm_rate=0.01, forecaster=None, window=1000, accept_after=10**6).run_arrays(values)
    assert never.alarm[2000:].mean() > 0.98
