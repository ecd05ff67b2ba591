"""The portfolio of charts: what its level means, and that it holds on signals it has not seen."""

import numpy as np
import pytest

from tocsin_bench.faults import BASES, shift
from tocsin_bench.metrics import in_operation
from tocsin_bench.portfolio import GAP, Portfolio, chart_scores

HISTORY, COUNTED, RATE = 1000, 2000, 1 / 300


def drawn(base, seed, signals=60):
    return BASES[base](np.random.default_rng(seed), signals, HISTORY + COUNTED)


def incidents(alarm):
    return sum(in_operation(np.zeros(len(alarm)), column, gap=GAP).incidents for column in alarm.T)


@pytest.fixture(scope="module", params=["white noise", "AR .9", "season 48"])
def portfolio(request):
    """`(name of the base, portfolio, common level, levels it was chosen with)`."""
    made = Portfolio(drawn(request.param, 0), HISTORY)
    levels = made.levels(drawn(request.param, 1).values)
    return request.param, made, made.level_for(RATE, levels), levels


def test_levels_are_the_share_of_clean_observations_as_strange():
    """Against counting, chart by chart, at every 20th observation."""
    clean, other = drawn("season 48", 0, 5), drawn("season 48", 1, 2)
    expected = np.ones((COUNTED // 20, 2))
    seen = dict(chart_scores(clean.values, clean.period, HISTORY))
    for name, scores in chart_scores(other.values, other.period, HISTORY):
        known = seen[name][HISTORY:].ravel()
        for row in range(2):
            for t, score in enumerate(scores[HISTORY::20, row]):
                share = (1 + (known >= score).sum()) / (1 + known.size)
                expected[t, row] = min(expected[t, row], share)
    levels = Portfolio(clean, HISTORY).levels(other.values)[::20]
    # Only the largest scores are kept: all others have the level of the smallest kept.
    kept = expected < 0.02
    np.testing.assert_allclose(levels[kept], expected[kept])
    assert (levels[~kept] >= 0.02).all()


def test_the_number_of_incidents_is_the_one_asked_for(portfolio):
    """Or a few less: observations of one level alarm together."""
    _, _, level, levels = portfolio
    assert 0.98 * RATE * levels.size <= incidents(levels <= level) <= RATE * levels.size
    assert 0 < level < RATE


def test_it_holds_on_other_signals(portfolio):
    """60 signals that neither the thresholds nor the level have seen: 400 incidents, 4 deviations of both counts."""
    base, made, level, _ = portfolio
    levels = made.levels(drawn(base, 2).values)
    expected = RATE * levels.size
    assert abs(incidents(levels <= level) - expected) < 4 * np.sqrt(2 * expected)


def test_it_sees_no_future_and_finds_faults(portfolio):
    base, made, level, _ = portfolio
    signals = drawn(base, 3, 20)
    values = shift(6, 1)(signals, HISTORY + 500)
    levels = made.levels(values)
    assert (levels[500] <= level).mean() > 0.9
    np.testing.assert_allclose(made.levels(values[: HISTORY + 400]), levels[:400])


def test_a_history_is_needed():
    with pytest.raises(ValueError, match="history must be an integer >= 2, got 1"):
        Portfolio(drawn("white noise", 0, 2), 1)
