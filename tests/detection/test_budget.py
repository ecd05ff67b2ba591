"""One budget for many signals."""

import io
import math

import numpy as np
import pytest

from tests.cases import full
from tocsin.detection import Detector, Fleet, Verdicts
from tocsin.detection.incidents.budget import POOL, FalseShare, IncidentBudget

HOURLY = {"interval": "1h", "forecaster": None}


def scores(signals, length, seed=0):
    return np.abs(np.random.default_rng(seed).normal(size=(length, signals)))


def proposals(count, rate, seed):
    """Peaks of incidents, `(rarity, now)`, that come at a rate and are as rare as they say."""
    rng = np.random.default_rng(seed)
    return zip(-np.log(rate * rng.uniform(size=count)), np.cumsum(rng.exponential(1 / rate, count)), strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("claimed", [full(1.0), 10.0, full(0.1)])
def test_the_budget_is_kept_whatever_the_signals_claim(claimed):
    """The signals' own rates may be wrong by a factor: what counts is which incident is rarer than which."""
    rate, proposed = 1e-4, 2e-3
    budget, told, now = IncidentBudget(rate), 0, 0.0
    for rarity, now in proposals(20_000, proposed, seed=3):
        told += budget.tells(rarity + math.log(claimed), now)
        budget.learn(rarity + math.log(claimed), now)
    # 1,000 are allowed. The loop makes the count vary less than a Poisson number would, whose 3 sigma these are.
    assert abs(told - rate * now) < 95


def test_how_often_something_comes_is_a_rank_among_the_newest_proposals():
    budget, kept = IncidentBudget(1e-4), []
    for rarity, now in proposals(POOL + 700, 2e-3, seed=4):
        budget.learn(rarity, now)
        kept.append((rarity, now))
    now = kept[-1][1] + 50.0
    newest = kept[-POOL:]
    for rarity in (6.5, 7.0, 8.0):
        reached = sum(other >= rarity for other, _ in newest)
        assert budget._how_often(rarity, now) == pytest.approx((1 + reached) / (now - newest[0][1]))
    # Rarer than all: by the fitted tail, a little shrunk to that of the prior.
    assert 0.5 < budget._how_often(18.0, now) / math.exp(-18.0) < 100
    assert budget._how_often(22.0, now) < 0.2 * budget._how_often(18.0, now)


def test_a_burst_of_faults_does_not_silence_the_next_one():
    rate = 1e-4
    budget, now = IncidentBudget(rate), 0.0
    for rarity, now in proposals(2000, 2e-3, seed=5):
        budget.tells(rarity, now)
        budget.learn(rarity, now)
    for _ in range(300):
        assert budget.tells(25.0, now)
    assert budget.tells(14.0, now + 1)


def test_a_share_of_false_incidents_is_benjamini_and_hochbergs_rule():
    share, chooser, pool, now = 0.2, FalseShare(0.2, 1e-3), [], 0.0
    rng = np.random.default_rng(6)
    for rarity, now in proposals(400, 1e-3, seed=6):
        rarity += 12.0 if rng.uniform() < 0.1 else 0.0
        rates = sorted([math.exp(-other) for other in pool] + [math.exp(-rarity)])
        limit = 0.0
        for rank, rate in enumerate(rates, 1):
            if rate * max(now, 100 / 1e-3) <= share * rank:
                limit = rate
        assert chooser.tells(rarity, now) == (math.exp(-rarity) <= limit)
        chooser.learn(rarity, now)
        pool.append(rarity)


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["2/week", full(0.2)])
def test_streamed_saved_and_taken_in_parts_it_is_the_same(budget):
    values = scores(30, 1600)
    values[1200:1210, 7] += 9
    values[1300:1310, 3] += 9
    whole = Fleet(30, budget=budget, **HOURLY)
    expected = whole.run_arrays(values)
    parts, fleet = [], Fleet(30, budget=budget, **HOURLY)
    for first, last in ((0, 700), (700, 701), (701, 1205), (1205, 1206), (1206, 1600)):
        parts.append(fleet.run_arrays(values[first:last]))
        file = io.BytesIO()
        fleet.save(file)
        file.seek(0)
        fleet = Fleet.load(file)
    found = Verdicts.joined(parts)
    for name in ("alarm", "opened", "state", "rate"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert repr(fleet.incidents()) == repr(whole.incidents())
    assert {incident.signal for incident in whole.incidents()} >= {"signal 8", "signal 4"}
    assert fleet.audit() == whole.audit()
    assert (fleet.budget, fleet.guarantee) == (budget, whole.guarantee)


@pytest.mark.slow
def test_incidents_are_some_of_those_that_the_signals_propose():
    values = scores(20, 1500, seed=2)
    values[1300:1320, 5] += 8
    fleet = Fleet(20, budget="1/week", **HOURLY)
    verdicts = fleet.run_arrays(values)
    alone = Fleet(20, alarm_rate=fleet.settings.rate, **HOURLY).run_arrays(values)
    assert not (verdicts.alarm & ~alone.alarm).any()
    assert not (verdicts.open & ~alone.open).any()
    assert verdicts.opened.sum() < 0.5 * alone.opened.sum()
    (fault,) = [incident for incident in fleet.incidents() if incident.signal == "signal 6" and incident.first >= 1300]
    assert (fault.first, fault.ended) == (1300, "returned")
    assert fleet.alarm_rate == pytest.approx(1 / 168 / 20)
    assert "1/week" in fleet.guarantee


@pytest.mark.full
def test_a_fleet_keeps_its_budget():
    """50 in 42 weeks; the loop keeps the number closer than Poisson's 2.6 sigma, which the band is."""
    fleet = Fleet(100, budget="1.2/week", preset="light", **HOURLY)
    values = scores(100, 168 * 45, seed=7)
    values[:, 50:] = np.abs(np.random.default_rng(8).standard_t(4, size=(len(values), 50)))
    verdicts = fleet.run_arrays(values)
    watched = (~np.isnan(verdicts.rate)).sum()
    assert abs(verdicts.opened.sum() - watched * fleet.alarm_rate) < 19


def test_another_signal_in_a_row_begins_without_an_incident():
    values = scores(5, 900)
    values[-3:, 2] += 12
    fleet = Fleet(5, budget="1/week", **HOURLY)
    assert fleet.run_arrays(values).open[-1, 2]
    fleet.put(2, Fleet.of(1, fleet.settings).signal_state(0), name="other")
    verdicts = fleet.update(values[0])
    assert not verdicts.open[0, 2]
    taken = Detector.from_state(fleet.signal_state(1))
    assert taken.alarm_rate == fleet.settings.rate


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": "5/fortnight"}, "budget must be a number between 0 and 1.*'1/day'.*got '5/fortnight'"),
        ({"budget": 1.5}, "budget must be a number > 0 and < 1, got 1.5"),
        ({"budget": "5/hour"}, "budget must be at most 1 incident per 200 observations, got '5/hour'"),
        ({"budget": "1/week", "alarm_rate": "1/day"}, "budget='1/week' replaces the alarm rate.*'1/day'"),
        ({"budget": "1/week", "interval": None}, "budget='1/week' is over time: set the sampling interval"),
    ],
)
def test_what_is_no_budget_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        _ = Fleet(3, **{**HOURLY, **given}).names


def test_a_saved_budget_does_not_change_with_the_running_one():
    budget = IncidentBudget(1e-4)
    for rarity, now in proposals(100, 2e-3, seed=6):
        budget.learn(rarity, now)
    saved = budget.state()
    kept = {name: array.copy() for name, array in saved.items()}
    budget._pool._rarities[:] = 0.0
    budget._pool._times[:] = 0.0
    assert all(np.array_equal(saved[name], kept[name]) for name in kept)


def test_equal_rarities_leave_a_finite_tail():
    """The mean of equal numbers may be rounded above all of them."""
    for rarity in np.random.default_rng(7).uniform(5, 20, size=300):
        budget = IncidentBudget(1e-4)
        for number in range(60):
            budget.learn(rarity if number % 4 == 0 else rarity - 2.0, 1000.0 * number)
        assert 0 < budget._how_often(rarity + 3, 60_000.0) <= budget._how_often(rarity, 60_000.0)
