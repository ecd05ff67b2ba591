"""One budget for many signals."""

import io
import math

import numpy as np
import pytest

from tests.cases import full
from tocsin.detection import Detector, Fleet, Verdicts
from tocsin.detection.incidents.budget import POOL, FalseShare, IncidentBudget, Proposal, rhythm

HOURLY = {"interval": "1h", "forecaster": None}


def scores(signals, length, seed=0):
    return np.abs(np.random.default_rng(seed).normal(size=(length, signals)))


def proposals(count, rate, seed):
    """Incidents `(proposal, now)` that come at a rate and are as rare as they say, each on a signal of its own."""
    rng = np.random.default_rng(seed)
    rarities, times = -np.log(rate * rng.uniform(size=count)), np.cumsum(rng.exponential(1 / rate, count))
    for signal, (rarity, now) in enumerate(zip(rarities.tolist(), times.tolist(), strict=True)):
        yield Proposal(rarity, signal), now


def less_rare(proposal, by):
    return proposal._replace(rarity=proposal.rarity - by)


@pytest.mark.slow
@pytest.mark.parametrize("claimed", [full(1.0), 10.0, full(0.1)])
def test_the_budget_is_kept_whatever_the_signals_claim(claimed):
    """The signals' own rates may be wrong by a factor: what counts is which incident is rarer than which."""
    rate, proposed = 1e-4, 2e-3
    budget, told, now = IncidentBudget(rate), 0, 0.0
    for proposal, now in proposals(20_000, proposed, seed=3):
        told += budget.tells(less_rare(proposal, -math.log(claimed)), now)
        budget.learn(less_rare(proposal, -math.log(claimed)), now)
    # 1,000 are allowed, and the certain ones, a twentieth more. The loop makes the count vary less than a Poisson
    # number would, whose 3 sigma these are.
    assert abs(told - 1.05 * rate * now) < 95


def test_how_often_something_comes_is_a_rank_among_the_newest_proposals():
    budget, kept = IncidentBudget(1e-4), []
    for proposal, now in proposals(POOL + 700, 2e-3, seed=4):
        budget.learn(proposal, now)
        kept.append((proposal.rarity, now))
    now = kept[-1][1] + 50.0
    newest = kept[-POOL:]
    certain = budget._certain(now)
    for rarity in (6.5, 7.0, 8.0):
        reached = sum(certain >= other >= rarity for other, _ in newest)
        assert budget._how_often(rarity, certain, now) == pytest.approx((1 + reached) / (now - newest[0][1]))
    # Rarer than all: by the fitted tail, a little shrunk to that of the prior.
    assert 0.5 < budget._how_often(18.0, certain, now) / math.exp(-18.0) < 100
    assert budget._how_often(22.0, certain, now) < 0.2 * budget._how_often(18.0, certain, now)


def seasoned(rate=1e-4, seed=5):
    """A budget that has seen 2,000 proposals by chance, and the time since."""
    budget, now = IncidentBudget(rate), 0.0
    for proposal, now in proposals(2000, 2e-3, seed=seed):
        budget.tells(proposal, now)
        budget.learn(proposal, now)
    return budget, now


def test_what_is_certain_is_told_whatever_was_told_before():
    """Nine faults of a week are told, and learned, and the tenth is told as they were."""
    budget, now = seasoned()
    for number in range(10):
        fault = Proposal(40.0, signal=10_000 + number)
        assert budget.tells(fault, now)
        budget.learn(fault, now)


def test_certain_incidents_do_not_use_up_the_budget():
    once, now = seasoned()
    often, _ = seasoned()
    for number in range(10):
        often.tells(Proposal(60.0, signal=10_000 + number), now)
        often.learn(Proposal(60.0, signal=10_000 + number), now)
    chance = [Proposal(rarity, signal=20_000 + at) for at, rarity in enumerate(np.linspace(6, 13, 50).tolist())]
    told = [budget.tells(one, now + at) for budget in (once, often) for at, one in enumerate(chance)]
    # 60 are between them only where one is a little rarer than what was certain before the ten.
    assert sum(told[:50]) == pytest.approx(sum(told[50:]), abs=1)
    assert sum(told[50:]) > 0


@pytest.mark.parametrize("rarity", [20.0, 100.0, 460.0])
def test_the_number_of_certain_incidents_is_limited(rarity):
    """Each asks for a tenth more of the next one than the first had to have; the others have to fit into the budget."""
    budget, now = seasoned()
    first, told = budget._certain(now), 0
    for number in range(2000):
        told += budget.tells(Proposal(rarity, signal=10_000 + number), now)
        budget.learn(Proposal(rarity, signal=10_000 + number), now)
    assert 5 < told < 10 * (rarity / first - 1) + 1 + budget.rate * now


def test_what_recurs_is_told_three_times():
    """Repairs, deploys, jobs: however rare each looks by itself, how often they came is how rare they are."""
    budget, now = seasoned()
    times = now + np.cumsum(np.random.default_rng(1).uniform(2e3, 5e3, size=8))
    told = []
    for number, time in enumerate(times.tolist()):
        deploy = Proposal(50.0 + number, signal=7, kind=2, evidence=40.0 + 3 * number, start=time)
        told.append(budget.tells(deploy, time))
        budget.learn(deploy, time + 30)
    assert told == [True] * 3 + [False] * 5
    # Another kind of incident on the same signal, a much severer one, and a much weaker one are news.
    for other in (deploy._replace(kind=3), deploy._replace(evidence=160.0), deploy._replace(evidence=12.0)):
        assert budget.tells(other._replace(start=time + 1234.5), time + 1234.5)
    assert not budget.tells(deploy._replace(start=time + 1234.5), time + 1234.5)


def test_what_comes_by_the_clock_is_known_when_it_begins():
    """At its first alarm an incident has little evidence, and is not yet like the earlier ones at their peaks."""
    budget, now = seasoned()
    for day in range(4):
        start = now + 1440.0 * day + (10 if day == 2 else 0)
        budget.learn(Proposal(70.0, signal=3, evidence=90.0, start=start), start + 600)
    on_time = Proposal(30.0, signal=3, evidence=20.0, start=now + 1440.0 * 4)
    assert not budget.tells(on_time, on_time.start)
    late = on_time._replace(start=now + 1440.0 * 4.2)
    assert budget.tells(late, late.start)


def test_how_often_something_recurs_is_in_the_time_of_its_signal():
    """Of a hundred signals that share the time, one has a hundredth of it."""
    together, alone = IncidentBudget(1e-4, alone=0.01), IncidentBudget(1e-4)
    for number in range(5):
        one = Proposal(90.0, signal=4, evidence=30.0, start=1e5 * number + 9e3 * (number % 2))
        together.learn(one, one.start)
        alone.learn(one._replace(start=one.start / 100), one.start / 100)
    later = one._replace(start=5.5e5)
    rarity = together._pool.rarity(later, later.start)
    assert rarity == pytest.approx(math.log(5.5e5 / 5 / 100))
    assert alone._pool.rarity(later._replace(start=5.5e3), 5.5e3) == pytest.approx(rarity)


def test_a_rhythm_needs_three_equal_times_before():
    starts = np.array([0.0, 1000.0, 2010.0])
    assert rhythm(starts, 3000.0) == pytest.approx(1000.0, rel=0.02)
    assert rhythm(starts, 3300.0) == 0.0
    assert rhythm(starts[1:], 3000.0) == 0.0
    assert rhythm(np.array([]), 3000.0) == 0.0
    # Others between them do not matter, and one that is known to come late is not on time early.
    assert rhythm(np.sort(np.append(starts, [170.0, 1411.0, 2888.0])), 3000.0) == pytest.approx(1000.0, rel=0.02)


def test_a_share_of_false_incidents_is_benjamini_and_hochbergs_rule():
    share, chooser, pool, now = 0.2, FalseShare(0.2, 1e-3), [], 0.0
    rng = np.random.default_rng(6)
    for proposal, now in proposals(400, 1e-3, seed=6):
        proposal = less_rare(proposal, -12.0 if rng.uniform() < 0.1 else 0.0)
        rarity = proposal.rarity
        rates = sorted([math.exp(-other) for other in pool] + [math.exp(-rarity)])
        limit = 0.0
        for rank, rate in enumerate(rates, 1):
            if rate * max(now, 100 / 1e-3) <= share * rank:
                limit = rate
        assert chooser.tells(proposal, now) == (math.exp(-rarity) <= limit)
        chooser.learn(proposal, now)
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
    for proposal, now in proposals(100, 2e-3, seed=6):
        budget.learn(proposal, now)
    saved = budget.state()
    kept = {name: array.copy() for name, array in saved.items()}
    for array in budget._pool._kept.values():
        array[:] = 0.0
    assert all(np.array_equal(saved[name], kept[name]) for name in kept)


def test_equal_rarities_leave_a_finite_tail():
    for rarity in np.random.default_rng(7).uniform(5, 20, size=300).tolist():
        budget = IncidentBudget(1e-4)
        for number in range(60):
            budget.learn(Proposal(rarity if number % 4 == 0 else rarity - 2.0, signal=number), 1000.0 * number)
        at, beyond = (budget._how_often(one, math.inf, 60_000.0) for one in (rarity, rarity + 3))
        assert 0 < beyond <= at
