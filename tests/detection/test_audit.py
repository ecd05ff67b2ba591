"""Whether a promised alarm rate is kept, and how sure one can be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betaln

from tests.detection.material import LAST, hard_values
from tocsin.detection import Audit, Detector, Fleet
from tocsin.detection.audit import BLOCK, LEAST_BLOCKS, AuditTrail, rate_bounds


def outside_ever(alarms, rate, level):
    """Whether the rate leaves its band at any time, for each row of `alarms[n, T]`: by the wealth of the bet itself."""
    count = np.cumsum(alarms, axis=1)
    steps = np.arange(1, alarms.shape[1] + 1)
    wealth = betaln(1 + count, 1 + steps - count) - count * np.log(rate) - (steps - count) * np.log1p(-rate)
    return np.any(wealth >= -np.log(1 - level), axis=1)


@pytest.mark.parametrize("rate", [0.003, 0.01, 0.1])
def test_bounds_hold_at_all_times_at_once(rate):
    """1,000 sequences of 4,000 observations at level 0.9: at most a tenth ever leave the band.

    The share that does is compared with a binomial band of error level 1e-4; that the bets stand for the bounds is
    the next test.
    """
    alarms = np.random.default_rng(3).random((1000, 4000)) < rate
    left = outside_ever(alarms, rate, 0.9)
    assert left.sum() <= stats.binom.isf(1e-4, left.size, 0.1)
    assert left.sum() > 0


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
                known[at] = rate_bounds(*at, level)
            low, high = known[at]
            left[sequence] |= not low <= rate <= high
    np.testing.assert_array_equal(left, outside_ever(alarms, rate, level))
    assert left.sum() <= stats.binom.isf(1e-4, 400, 1 - level)


@given(st.integers(0, 300), st.integers(0, 10**6), st.floats(0.01, 0.9999))
def test_bounds_are_where_the_bet_would_have_paid(alarms, quiet, level):
    low, high = rate_bounds(alarms, alarms + quiet, level)
    assert 0 <= low <= high <= 1
    if alarms + quiet == 0:
        assert (low, high) == (0, 1)
        return
    assert low <= alarms / (alarms + quiet) <= high

    def wealth(rate):
        return betaln(1 + alarms, 1 + quiet) - alarms * math.log(rate) - quiet * math.log1p(-rate)

    if alarms:
        assert wealth(low) == pytest.approx(-math.log(1 - level), abs=1e-3)
    else:
        assert low == 0
    if quiet and high < 1:
        assert wealth(high) == pytest.approx(-math.log(1 - level), abs=1e-3)
    if not quiet:
        assert high == 1


def test_bounds_narrow_with_observations_and_widen_with_the_level():
    widths = [np.diff(rate_bounds(n // 100, n, 0.99))[0] for n in (100, 1000, 10_000, 100_000)]
    assert np.all(np.diff(widths) < 0)
    widths = [np.diff(rate_bounds(10, 1000, level))[0] for level in (0.5, 0.9, 0.99, 0.9999)]
    assert np.all(np.diff(widths) > 0)


def counted_by_hand(exceeds, counted):
    """Observations and alarms, and alarms in whole blocks of a hundred."""
    seen = [bool(alarm) for alarm, counts in zip(exceeds, counted, strict=True) if counts]
    blocks = [sum(seen[first : first + BLOCK]) for first in range(0, len(seen) - BLOCK + 1, BLOCK)]
    return len(seen), sum(seen), blocks


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_the_oracle(seed):
    rng = np.random.default_rng(seed)
    signals, steps = 4, 3000
    exceeds = rng.random((steps, signals)) < [0.01, 0.1, 0.5, 0.0]
    exceeds[500:700, 1] = True
    counted = rng.random((steps, signals)) < [1.0, 0.9, 0.4, 1.0]
    trail, one_by_one = AuditTrail(signals), AuditTrail(signals)
    order = np.array([2, 0, 3, 1])
    for first, last in ((0, 0), (0, 1), (1, 977), (977, steps)):
        trail.add(exceeds[first:last][:, order], counted[first:last][:, order], order)
    for step in range(steps):
        one_by_one.add(exceeds[step : step + 1], counted[step : step + 1], np.arange(signals))
    np.testing.assert_array_equal(trail.counts, one_by_one.counts)
    for signal in range(signals):
        observations, alarms, blocks = counted_by_hand(exceeds[:, signal], counted[:, signal])
        audit = trail.audit(signal, 0.01, 0.95)
        dispersion = 1.0
        if len(blocks) >= LEAST_BLOCKS and sum(blocks):
            mean = np.mean(blocks)
            dispersion = max(1.0, np.var(blocks) / (mean * (1 - mean / BLOCK)))
        assert (audit.promised, audit.observations, audit.alarms, audit.level) == (0.01, observations, alarms, 0.95)
        assert audit.dispersion == pytest.approx(dispersion)
        assert audit.rate == alarms / observations
        expected = rate_bounds(alarms / dispersion, observations / dispersion, 0.95)
        assert (audit.low, audit.high) == pytest.approx(expected)


def audit_of(alarms, promised=0.01):
    trail = AuditTrail(1)
    column = np.asarray(alarms, dtype=bool)[:, np.newaxis]
    trail.add(column, np.ones_like(column), np.array([0]))
    return trail.audit(0, promised)


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
    [(0.0, 1.0, "as promised"), (0.02, 0.03, "too many"), (0.001, 0.009, "too few"), (0.01, 0.02, "as promised"),
     (0.001, 0.01, "as promised")],
)  # fmt: skip
def test_findings_in_words(low, high, words):
    assert Audit(0.01, 100, 1, 1.0, 0.99, low, high).finding == words


def test_findings_from_counts():
    rng = np.random.default_rng(1)
    assert audit_of(rng.random(20_000) < 0.01).finding == "as promised"
    assert audit_of(rng.random(20_000) < 0.03).finding == "too many"
    assert audit_of(rng.random(20_000) < 0.002).finding == "too few"
    nothing = AuditTrail(1).audit(0, 0.01)
    assert nothing.finding == "as promised"
    assert math.isnan(nothing.rate)
    assert (nothing.low, nothing.high) == (0.0, 1.0)


@pytest.mark.parametrize("promise", ["incidents", "observations"])
def test_a_detector_audits_what_is_warm_and_not_missing(promise):
    """What is promised is what is counted: incidents that began, or observations with a p-value under the rate."""
    values = hard_values(1, 1000)
    detector = Detector(**LAST, promise=promise)
    verdicts = detector.run(values)
    counts = verdicts.warm[:, 0] & ~np.isnan(verdicts.p[:, 0])
    found = verdicts.opened[:, 0] if promise == "incidents" else verdicts.p[:, 0] < 0.03
    observations, alarms, _ = counted_by_hand(found, counts)
    audit = detector.audit
    assert (audit.promised, audit.observations, audit.alarms) == (0.03, observations, alarms)
    assert alarms > 0
    assert 0 < audit.observations < 1000
    assert detector.fleet.audit(0, level=0.5).high < audit.high


def test_each_signal_has_its_own_audit():
    values = np.stack([hard_values(seed, 800) for seed in (1, 2)], axis=1)
    fleet = Fleet(2, **LAST)
    fleet.run(values)
    for signal in (0, 1):
        alone = Detector(**LAST)
        alone.run(values[:, signal])
        assert fleet.audit(signal) == alone.audit
