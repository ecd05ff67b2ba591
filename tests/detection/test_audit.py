"""Whether a promised alarm rate is kept, and how sure one can be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from tests.cases import full
from tests.detection.helpers import LAST, hard_values
from tocsin.detection import Audit, Detector, Fleet
from tocsin.detection.incidents.audit import (
    BLOCK,
    LEAST_BLOCKS,
    LOG_RATIOS,
    OF_STRETCHES,
    AuditTrail,
    audit_together,
    rate_bounds,
)
from tocsin.detection.incidents.audit_kernels import FORGIVEN_IN, MOST_WON, RATIOS
from tocsin_bench.families import FAMILIES


def log_mixture(alarms, quiet, promised):
    """What bets on rates around the promised one say of counts: their likelihood on average."""
    shares = stats.norm.pdf(LOG_RATIOS)
    rates = np.minimum(promised * np.exp(LOG_RATIOS), (1 + promised) / 2)
    logs = np.multiply.outer(alarms, np.log(rates)) + np.multiply.outer(quiet, np.log1p(-rates))
    return logsumexp(logs, b=shares / shares.sum(), axis=-1)


def outside_ever(alarms, rate, level, promised):
    """Whether the rate leaves its band at any time, for each row of `alarms[n, T]`: by the wealth of the bet itself."""
    count = np.cumsum(alarms, axis=1)
    quiet = np.arange(1, alarms.shape[1] + 1) - count
    wealth = np.empty(alarms.shape)
    for many in np.unique(count):
        at = count == many
        quiets, where = np.unique(quiet[at], return_inverse=True)
        wealth[at] = (log_mixture(many, quiets, promised) - quiets * np.log1p(-rate))[where] - many * np.log(rate)
    return (wealth >= -np.log(1 - level)).any(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.01, full(0.03), full(0.1)])
def test_bounds_hold_at_all_times_at_once(rate):
    """300 sequences of 1,000 observations at level 0.9, promised half of it: at most a tenth ever leave the band.

    The share that does is compared with a binomial band of error level 1e-4; that the bets stand for the bounds is
    the next test.
    """
    alarms = np.random.default_rng(3).random((300, 1000)) < rate
    left = outside_ever(alarms, rate, 0.9, rate / 2)
    assert left.sum() <= stats.binom.isf(1e-4, left.size, 0.1)
    assert left.sum() > 0


@pytest.mark.slow
def test_a_band_that_is_left_is_left_by_the_bounds():
    """The bounds themselves, at every step of 400 sequences of 120 observations; error level 1e-4."""
    rate, level = 0.08, 0.8
    alarms = np.random.default_rng(4).random((400, 120)) < rate
    count = np.cumsum(alarms, axis=1)
    known = {}
    left = np.zeros(400, dtype=bool)
    for sequence in range(400):
        for step in range(120):
            at = (int(count[sequence, step]), step + 1)
            if at not in known:
                known[at] = rate_bounds(*at, 0.05, level)
            low, high = known[at]
            left[sequence] |= not low <= rate <= high
    np.testing.assert_array_equal(left, outside_ever(alarms, rate, level, 0.05))
    assert left.sum() <= stats.binom.isf(1e-4, 400, 1 - level)


@given(st.integers(0, 300), st.integers(0, 10**6), st.floats(1e-5, 0.4), st.floats(0.01, 0.9999))
def test_bounds_are_where_the_bet_would_have_paid(alarms, quiet, promised, level):
    low, high = rate_bounds(alarms, alarms + quiet, promised, level)
    assert 0 <= low <= high <= 1
    if alarms + quiet == 0:
        assert (low, high) == (0, 1)
        return
    assert low <= alarms / (alarms + quiet) <= high

    def wealth(rate):
        return log_mixture(alarms, quiet, promised) - alarms * math.log(rate) - quiet * math.log1p(-rate)

    if low == high:  # so far from all that is bet on that even the rate that was seen is given up
        return
    if alarms:
        assert wealth(low) == pytest.approx(-math.log(1 - level), abs=1e-3)
    else:
        assert low == 0
    if quiet and high < 1:
        assert wealth(high) == pytest.approx(-math.log(1 - level), abs=1e-3)
    if not quiet:
        assert high == 1


def test_bounds_narrow_with_observations_and_widen_with_the_level():
    widths = [np.diff(rate_bounds(n // 100, n, 0.01, 0.99))[0] for n in (100, 1000, 10_000, 100_000)]
    assert np.all(np.diff(widths) < 0)
    widths = [np.diff(rate_bounds(10, 1000, 0.01, level))[0] for level in (0.5, 0.9, 0.99, 0.9999)]
    assert np.all(np.diff(widths) > 0)


def test_bounds_are_narrow_where_the_promise_is_small():
    """100 incidents at a promise of one in 10,000: the true rate is known within a factor of 1.5."""
    low, high = rate_bounds(100, 1_000_000, 1e-4, 0.99)
    assert 1e-4 / 1.5 < low < 1e-4 < high < 1.5e-4


def counted_by_hand(exceeds, counted):
    """Observations and alarms, and alarms in whole blocks of a hundred."""
    seen = [bool(alarm) for alarm, counts in zip(exceeds, counted, strict=True) if counts]
    blocks = [sum(seen[first : first + BLOCK]) for first in range(0, len(seen) - BLOCK + 1, BLOCK)]
    return len(seen), sum(seen), blocks


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, full(2), full(3), full(4)])
def test_counts_are_those_of_the_oracle(seed):
    rng = np.random.default_rng(seed)
    signals, steps = 4, 3000
    exceeds = rng.random((steps, signals)) < [0.01, 0.1, 0.5, 0.0]
    exceeds[500:700, 1] = True
    counted = rng.random((steps, signals)) < [1.0, 0.9, 0.4, 1.0]
    trail, one_by_one = AuditTrail(signals, 0.01), AuditTrail(signals, 0.01)
    numbers = np.repeat(7 + np.arange(steps)[:, np.newaxis], signals, axis=1)
    order = np.array([2, 0, 3, 1])
    for first, last in ((0, 0), (0, 1), (1, 977), (977, steps)):
        trail.add(exceeds[first:last][:, order], counted[first:last][:, order], numbers[first:last], order)
    for step in range(steps):
        one_by_one.add(exceeds[step : step + 1], counted[step : step + 1], numbers[step : step + 1], np.arange(signals))
    for name, array in trail.state().items():
        np.testing.assert_array_equal(array, one_by_one.state()[name], err_msg=name)
    for signal in range(signals):
        observations, alarms, blocks = counted_by_hand(exceeds[:, signal], counted[:, signal])
        audit = trail.audit(signal, 0.95)
        dispersion = 1.0
        if len(blocks) >= LEAST_BLOCKS and sum(blocks):
            mean = np.mean(blocks)
            dispersion = max(1.0, np.var(blocks) / (mean * (1 - mean / BLOCK)))
        assert (audit.promised, audit.observations, audit.alarms, audit.level) == (0.01, observations, alarms, 0.95)
        assert audit.dispersion == pytest.approx(dispersion)
        assert audit.rate == alarms / observations
        assert audit.first == 7 + int(np.argmax(counted[:, signal]))
        expected = rate_bounds(alarms / dispersion, observations / dispersion, 0.01, 0.975)
        assert (audit.low, audit.high) == pytest.approx(expected)


def bets_by_hand(alarms, promised, clustering):
    """What bets on bursts have won, and since which observation, how often they were right, step by step."""
    reserve, stakes, turned = 1.0, dict.fromkeys(RATIOS, 0.0), 1.0
    since, right, wealth = 0, 0, 1.0
    for number, alarm in enumerate(alarms):
        begun = reserve * promised / (1 + promised * number)
        reserve -= begun
        for ratio in RATIOS:
            rate = min(promised * ratio, (1 + promised) / 2)
            odds = rate / promised if alarm else (1 - rate) / (1 - promised)
            stake = (stakes[ratio] + begun / len(RATIOS)) * odds ** (1 / clustering)
            reserve += promised * stake
            stakes[ratio] = (1 - promised) * stake
        was, wealth = wealth, reserve + sum(stakes.values())
        kept = 1.0
        if wealth > 1:
            kept = min(MOST_WON, max(1.0, wealth * (1 - promised / FORGIVEN_IN))) / wealth
        reserve, stakes = reserve * kept, {ratio: stake * kept for ratio, stake in stakes.items()}
        wealth *= kept
        right += alarm
        if wealth <= turned or wealth <= 1 < was:
            turned, since, right = wealth, number + 1, 0
    return wealth, since, right / (promised * (len(alarms) - since)) if since < len(alarms) else 0.0


def trail_of(alarms, promised=0.01, *, clustering=1.0):
    trail = AuditTrail(1, promised, clustering=clustering)
    column = np.asarray(alarms, dtype=bool)[:, np.newaxis]
    trail.add(column, np.ones_like(column), np.arange(len(column))[:, np.newaxis], np.array([0]))
    return trail


def audit_of(alarms, promised=0.01, *, clustering=1.0):
    return trail_of(alarms, promised, clustering=clustering).audit(0)


@pytest.mark.parametrize("clustering", [1.0, OF_STRETCHES])
@pytest.mark.parametrize("seed", [0, full(1), full(2), full(3)])
def test_bets_on_bursts_are_those_of_the_oracle(seed, clustering):
    rng = np.random.default_rng(seed)
    alarms = rng.random(3000) < rng.choice([0.002, 0.02, 0.2], p=[0.6, 0.3, 0.1], size=30).repeat(100)
    audit = audit_of(alarms, 0.02, clustering=clustering)
    wealth, since, ratio = bets_by_hand(alarms, 0.02, clustering)
    assert audit.bursts == pytest.approx(wealth)
    assert (audit.bursts_since, audit.bursts_ratio) == (since, pytest.approx(ratio))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [full(0.002), 0.01, full(0.1)])
def test_independent_alarms_seldom_win_bets_on_bursts(rate):
    """1,000 sequences of 3,000 observations: at most a twentieth ever has twenty times its stake; error level 1e-4."""
    alarms = np.random.default_rng(8).random((3000, 1000)) < rate
    trail = AuditTrail(1000, rate)
    numbers = np.repeat(np.arange(3000)[:, np.newaxis], 1000, axis=1)
    best = np.zeros(1000)
    for step in range(0, 3000, 5):
        part = slice(step, step + 5)
        trail.add(alarms[part], np.ones((5, 1000), dtype=bool), numbers[part], np.arange(1000))
        best = np.maximum(best, trail.money[:, 0] + trail.money[:, 2:].sum(axis=1))
    assert (best >= 20).sum() <= stats.binom.isf(1e-4, 1000, 1 / 20)


def test_a_burst_is_told_with_its_start_and_forgiven_in_time():
    rng = np.random.default_rng(2)
    alarms = rng.random(30_000) < 0.01
    alarms[3000:3200] = rng.random(200) < 0.2
    told = audit_of(alarms[:3200])
    assert told.finding == "too many"
    assert 2900 <= told.since <= 3050
    assert told.ratio > 8
    assert (
        told.in_words() == f"too many: {told.ratio:.1f} times the promised incidents since observation {told.since:,}"
    )
    assert audit_of(alarms[:3000]).finding == "cannot tell yet"
    later = audit_of(alarms)
    assert later.finding != "too many"
    assert later.first == later.since == 0
    assert 0.9 < later.ratio < 1.2


def test_clustered_alarms_widen_the_band():
    """The same number of alarms, alone and in clusters of twenty."""
    alone, together = np.zeros(20_000, dtype=bool), np.zeros(20_000, dtype=bool)
    alone[::100] = True
    for start in range(0, 20_000, 2000):
        together[start : start + 20] = True
    one, other = audit_of(alone), audit_of(together)
    assert one.alarms == other.alarms == 200
    assert one.dispersion == 1.0
    assert other.dispersion > 10
    assert other.low < one.low < one.rate < one.high < other.high


def test_dispersion_of_independent_alarms_is_about_one():
    """Over 200 audits of 10,000 observations, the mean lies within a fifth of one."""
    rng = np.random.default_rng(0)
    found = [audit_of(rng.random(10_000) < 0.02).dispersion for _ in range(200)]
    assert 1.0 <= np.mean(found) < 1.2


@pytest.mark.parametrize("alarms", [np.ones(3000), np.zeros(3000), np.repeat([1, 0], 1500), [1], [0], [1] * 999 + [0]])
def test_extreme_counts_have_bounds(alarms):
    audit = audit_of(alarms)
    assert 0 <= audit.low <= audit.rate <= audit.high <= 1
    assert audit.dispersion >= 1


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(0.0, 1.0, "cannot tell yet"), (0.02, 0.03, "too many"), (0.001, 0.009, "too few"),
     (0.01, 0.02, "cannot tell yet"), (0.001, 0.01, "cannot tell yet"), (0.007, 0.0149, "as promised"),
     (0.011, 0.014, "as promised"),
     (0.011, 0.016, "too many"), (0.007, 0.009, "as promised"), (0.006, 0.009, "too few")],
)  # fmt: skip
def test_findings_in_words(low, high, words):
    assert Audit(0.01, 100, 1, 1.0, 0.99, low, high).finding == words


def test_findings_from_counts():
    rng = np.random.default_rng(1)
    assert audit_of(rng.random(2000) < 0.01).finding == "cannot tell yet"
    assert audit_of(rng.random(30_000) < 0.01).finding == "as promised"
    assert audit_of(rng.random(20_000) < 0.03).finding == "too many"
    assert audit_of(rng.random(20_000) < 0.002).finding == "too few"
    nothing = AuditTrail(1, 0.01).audit(0)
    assert nothing.finding == "cannot tell yet"
    assert nothing.in_words() == "cannot tell yet: no observations since warm-up"
    assert math.isnan(nothing.rate)
    assert (nothing.low, nothing.high, nothing.since) == (0.0, 1.0, None)


def test_faults_do_not_count_against_the_promise():
    """Three times too many alarms, two thirds of them faults that somebody knows of."""
    alarms = np.random.default_rng(1).random(20_000) < 0.03
    trail = trail_of(alarms)
    before = trail.audit(0)
    assert before.finding == "too many"
    trail.label_fault(0, 2 * before.alarms // 3)
    after = trail.audit(0)
    assert (after.finding, after.alarms, after.faults) == ("as promised", before.alarms, 2 * before.alarms // 3)
    assert after.ratio == pytest.approx(before.rate / 0.03, rel=0.01)
    trail.label_fault(0, -after.faults)
    assert trail.audit(0).finding == "too many"
    trail.label_fault(0, 10**6)
    assert trail.audit(0).rate == 0.0


def test_a_labelled_burst_is_no_reason_to_object():
    rng = np.random.default_rng(2)
    alarms = rng.random(3200) < 0.01
    alarms[3000:] = rng.random(200) < 0.2
    trail = trail_of(alarms)
    assert trail.audit(0).finding == "too many"
    trail.label_fault(0, int(alarms[3000:].sum()))
    assert trail.audit(0).finding == "cannot tell yet"
    assert trail.audit(0).bursts <= 1


@pytest.mark.parametrize("promise", ["incidents", "observations"])
def test_a_fleet_is_told_of_faults_and_keeps_them(promise):
    fleet = Fleet(2, **LAST, promise=promise)
    fleet.run_arrays(np.stack([hard_values(seed, 1000) for seed in (1, 2)], axis=1))
    fleet.label_fault(1, 2)
    assert [fleet.audit(row).faults for row in (0, 1)] == [0, 1 if promise == "incidents" else 2]
    assert fleet.audit().faults == fleet.audit(1).faults
    assert Fleet.from_state(fleet.state()).audit(1) == fleet.audit(1)
    other = Fleet(1, **LAST, promise=promise)
    other.put(0, fleet.signal_state(1))
    assert other.audit(0) == fleet.audit(1)
    fleet.label_fault(1, 2, taken_back=True)
    assert fleet.audit(1).faults == 0
    with pytest.raises(ValueError, match="alarms must be an integer >= 1, got 0"):
        fleet.label_fault(1, 0)


def test_a_fleet_knows_sooner_than_its_signals():
    alarms = np.random.default_rng(0).random((2000, 30)) < 0.01
    trail = AuditTrail(30, 0.01)
    numbers = np.repeat(np.arange(2000)[:, np.newaxis], 30, axis=1)
    trail.add(alarms, np.ones_like(alarms), numbers, np.arange(30))
    audits = [trail.audit(signal) for signal in range(30)]
    assert {audit.finding for audit in audits} == {"cannot tell yet"}
    together = audit_together(audits)
    assert (together.finding, together.observations, together.alarms) == ("as promised", 60_000, alarms.sum())
    assert together.in_words().endswith("times the promised incidents since warm-up")
    assert audit_together(audits[:1]) == audits[0]


def test_signals_that_differ_widen_the_band_of_a_fleet():
    alike, different = (
        [Audit(0.01, 1000, alarms, 1.0, 0.99, 0.0, 1.0) for alarms in counts] for counts in ([10] * 20, [1, 19] * 10)
    )
    one, other = audit_together(alike), audit_together(different)
    assert (one.alarms, one.dispersion) == (other.alarms, 1.0)
    assert other.dispersion > 8
    assert other.low < one.low < one.high < other.high


def ever_objects(family, signals, seed, **settings):
    """Whether the audit of each signal, read after every 100 of 5,000 observations, ever said "too many", "too few"."""
    scores = np.abs(FAMILIES[family](np.random.default_rng(seed), signals, 5000))
    fleet = Fleet(signals, alarm_rate=0.01, promise="observations", **settings)
    objects = np.zeros((2, signals), dtype=bool)
    for first in range(0, 5000, 250):
        fleet.run_arrays(scores[first : first + 250])
        found = [fleet.audit(signal).finding for signal in range(signals)]
        objects |= [[finding == words for finding in found] for words in ("too many", "too few")]
    return objects


@pytest.mark.slow
def test_the_audit_objects_to_volatility():
    """A closed loop holds the frequency of p, but not within bursts: "too many" on some of 20 signals, not on most."""
    assert 2 <= ever_objects("stochastic-volatility", 20, 0, forecaster=None)[0].sum() <= 12


@pytest.mark.slow
@pytest.mark.parametrize("signals", [30, full(200)])
def test_the_audit_seldom_objects_to_independent_signals(signals):
    """At any time, on at most 1 in 100 of 200 signals, or one of 30 (error level 0.04)."""
    assert ever_objects("independent", signals, 0, forecaster=None).any(axis=0).sum() <= max(1, signals // 100)


@pytest.mark.parametrize("promise", ["incidents", "observations"])
def test_a_detector_audits_what_is_warm_and_not_missing(promise):
    """What is promised is what is counted: incidents that began, or observations with a p-value under the rate."""
    values = hard_values(1, 1000)
    detector = Detector(**LAST, promise=promise)
    verdicts = detector.run(values).verdicts
    counts = verdicts.warm[:, 0] & ~np.isnan(verdicts.p[:, 0])
    found = verdicts.opened[:, 0] if promise == "incidents" else verdicts.p[:, 0] < 0.03
    observations, alarms, _ = counted_by_hand(found, counts)
    audit = detector.audit
    assert (audit.promised, audit.observations, audit.alarms) == (0.03, observations, alarms)
    assert audit.unit == ("incidents" if promise == "incidents" else "alarms")
    assert alarms > 0
    assert 0 < audit.observations < 1000
    assert detector.fleet.audit(0, level=0.5).high < audit.high


def test_each_signal_has_its_own_audit():
    values = np.stack([hard_values(seed, 800) for seed in (1, 2)], axis=1)
    fleet = Fleet(2, **LAST)
    fleet.run_arrays(values)
    for signal in (0, 1):
        alone = Detector(**LAST)
        alone.run(values[:, signal])
        assert fleet.audit(signal) == alone.audit
