"""Rare budgets before a signal's own past can tell them."""

import numpy as np
import pytest

from tests.cases import full
from tests.detection.helpers import MovingMean, hard_values
from tests.detection.oracle import FromContext, OracleDetector
from tocsin.detection import Detector, Fleet

WEEKLY = {"alarm_rate": "1/week", "interval": "1min", "forecaster": "exponential-smoothing"}
DAY = 1440


def test_a_weekly_budget_is_useful_on_the_first_day():
    values = np.random.default_rng(1).normal(size=DAY + 60)
    values[DAY : DAY + 30] += 12
    detector = Detector(**WEEKLY)
    verdicts = detector.run(values).verdicts
    assert detector.warm_up <= DAY < detector.fleet.own_past_after
    assert verdicts.warm[DAY - 1, 0]
    assert verdicts.estimated[DAY, 0]
    (incident,) = detector.incidents
    assert (incident.first, incident.estimated) == (DAY, True)
    # It cannot be called rarer than a hundred times the past.
    assert 7 * DAY < incident.return_period <= 100 * 2 * DAY
    off = Detector(**WEEKLY, early=False)
    assert not off.run(values).warm.any()
    assert off.incidents == []


@pytest.mark.parametrize(
    ("budget", "interval"), [("1/day", "1s"), ("1/month", "1min"), ("1/week", "1min"), ("1/week", "10s")]
)
def test_rare_budgets_judge_within_a_few_thousand_observations(budget, interval):
    fleet = Fleet(1, alarm_rate=budget, interval=interval, forecaster="last-value")
    assert fleet.warm_up < 6_000
    assert fleet.own_past_after > 1 / fleet.alarm_rate
    assert fleet.memory_bytes < 1.05 * Fleet(1, forecaster="last-value").memory_bytes


def test_own_past_takes_over():
    fleet = Fleet(1, alarm_rate=0.002, forecaster="exponential-smoothing")
    verdicts = fleet.run_arrays(np.random.default_rng(2).normal(size=(2500, 1)))
    first, own = np.argmax(verdicts.warm[:, 0]), np.argmax(verdicts.warm[:, 0] & ~verdicts.estimated[:, 0])
    assert first + 1 == pytest.approx(fleet.warm_up, abs=1)
    assert own + 1 == pytest.approx(fleet.own_past_after, abs=1)
    assert not verdicts.estimated[own:].any()


@pytest.mark.slow
@pytest.mark.parametrize("signals", [150, full(1500)])
def test_estimated_incidents_are_not_many_more_than_promised(signals):
    """Of independent noise, over what is estimated: at most 1.5 times the promise with a band of 99%."""
    rate = 1 / 2000
    fleet = Fleet(signals, forecaster=None, alarm_rate=rate, window=250)
    verdicts = fleet.run_arrays(np.abs(np.random.default_rng(3).normal(size=(fleet.own_past_after, signals))))
    counted = verdicts.warm & verdicts.estimated
    expected = rate * counted.sum()
    assert expected > signals / 3
    ratio = (verdicts.opened & counted).sum() / expected
    assert 0.05 < ratio < 1.5 - 2.6 * np.sqrt(1.5 / expected)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.002, full(0.001)])
def test_estimates_agree_with_the_oracle(rate):
    settings = {"window": 250, "alarm_rate": rate, "views": ("error", "movement"), "gap": 4}
    values = np.random.default_rng(7).normal(size=(1400, 1))
    values[700:704] += 9
    values[1200:1230] += 14
    values[:300] = hard_values(1, 300)
    fleet = Fleet(1, forecaster=MovingMean(), **settings)
    oracle = OracleDetector(1, fleet.settings.sizes, forecaster=FromContext(MovingMean()), **settings)
    found, expected = fleet.run_arrays(values), oracle.run(values)
    for name in ("alarm", "opened", "estimated", "state", "warm"):
        np.testing.assert_array_equal(getattr(found, name)[:, 0], expected[name], err_msg=name)
    np.testing.assert_allclose(found.rate[:, 0], expected["rate"], rtol=1e-9)
    assert (found.opened & found.estimated).sum() > 0


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.05, 0.02, 0.01, 0.005])
def test_no_incident_opens_before_a_signal_is_warm(rate):
    """Twelve signals of white noise with spikes: at these rates some had alarms before the warm-up was over."""
    values = np.random.default_rng(3).normal(size=(900, 12))
    values[np.random.default_rng(4).random(values.shape) < 0.02] += 8
    fleet = Fleet(12, alarm_rate=rate, forecaster="last-value")
    verdicts = fleet.run_arrays(values)
    assert not (verdicts.opened & ~verdicts.warm).any()
    assert verdicts.opened.any()
    assert fleet.audit().alarms == verdicts.opened.sum()
