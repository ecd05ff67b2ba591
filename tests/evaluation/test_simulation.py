"""The simulation: its truth is true, and its methods come out in the order that the docs state."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from tests.bands import certainly_less, margin
from tocsin import W1ACAS
from tocsin.evaluation import METHODS, SCENARIOS, simulate
from tocsin.evaluation.simulation import CALIBRATION, steps


@pytest.mark.parametrize("name", SCENARIOS)
def test_true_p_values_are_uniform_at_every_time(name):
    """Kolmogorov-Smirnov over 3,000 independent realisations at several times; error level 1e-3 each."""
    drawn = SCENARIOS[name].draw(np.random.default_rng(4), 700, 3000)
    for time in (0, 1, 13, 250, 699):
        assert stats.kstest(drawn.true_p[time], "uniform").pvalue > 1e-3


def test_true_p_is_the_tail_of_the_score():
    drawn = SCENARIOS["jump-shift"].draw(np.random.default_rng(0), 3000, 2)
    law = stats.norm(drawn.mean, drawn.scale)
    np.testing.assert_allclose(drawn.true_p, law.sf(drawn.scores) + law.cdf(-drawn.scores), atol=1e-12)


def test_jump_shift_climbs_and_descends():
    mean = SCENARIOS["jump-shift"].draw(np.random.default_rng(0), 20_000, 1).mean[:, 0]
    assert mean[[0, 499, 500, 5999, 7499, 7500, 8000, 14_999, 15_000]].tolist() == [0, 0, 1, 11, 14, 15, 14, 1, 0]


def test_random_shift_follows_its_recursion():
    mean = SCENARIOS["random-shift"].draw(np.random.default_rng(0), 5000, 20).mean
    steps = np.diff(mean, axis=0)
    shocks = 2 * (steps[1:] - steps[:-1] / 2)
    assert shocks.std() == pytest.approx(0.05, rel=0.02)
    assert abs(np.corrcoef(shocks[1:].ravel(), shocks[:-1].ravel())[0, 1]) < 0.02


@cache
def outcomes(name):
    (result,) = simulate([SCENARIOS[name]], list(METHODS.values()), realisations=15, seed=1, threads=2)
    return {outcome.method.name: outcome for outcome in result.outcomes}


@pytest.mark.parametrize("name", ["random-shift", "jump-shift"])
def test_the_papers_experiments(name):
    """W1-ACAS far ahead of the long window and of split conformal; the short window as good (error level 1e-4 each).

    Compared by ratio, since realisations differ in how far they drift.
    """
    by = outcomes(name)
    for measure in ("gap", "error"):
        value = {method: getattr(outcome, measure) for method, outcome in by.items()}
        assert certainly_less(np.log(value["w1-acas-recent"]), np.log(value["window-2000"] / 1.5))
        assert certainly_less(np.log(value["window-2000"]), np.log(value["split-100"] / 1.2))
        assert abs(np.mean(value["w1-acas-recent"]) - np.mean(value["window-n_c"])) < 0.005
        # The other prior starts from the long window and has no time to leave it.
        assert abs(np.mean(value["w1-acas-extend"]) - np.mean(value["window-2000"])) < 0.005
    assert np.mean(by["w1-acas-recent"].gap) < 0.025


@pytest.mark.parametrize("name", ["period-24", "period-96"])
def test_periodic_scale_is_learned(name):
    """Only learned weights see a period: a third to a half of every fixed weighting's error (error level 1e-4)."""
    error = {method: outcome.error for method, outcome in outcomes(name).items()}
    assert certainly_less(error["w1-acas-recent"], error["w1-acas-extend"])
    for fixed in ("window-2000", "window-n_c", "split-100", "decay-0.99"):
        assert certainly_less(error["w1-acas-extend"], 0.55 * error[fixed])
        assert certainly_less(error["w1-acas-recent"], 0.37 * error[fixed])


def test_a_batch_as_long_as_the_period_learns_nothing():
    drawn = SCENARIOS["period-24"].draw(np.random.default_rng(0), 8000, 8)
    errors = {
        batch: np.abs(W1ACAS(8, batch=batch, learning_rate=0.005).run(drawn.scores) - drawn.true_p)[4000:].mean(axis=0)
        for batch in (10, 24)
    }
    assert errors[24].mean() > 0.12
    assert certainly_less(errors[10], errors[24] / 2)


def test_switching_scale():
    error = {method: outcome.error for method, outcome in outcomes("switching").items()}
    assert certainly_less(error["w1-acas-recent"], error["window-2000"])
    assert error["window-2000"].mean() < error["split-100"].mean()
    assert abs(error["w1-acas-recent"].mean() - error["window-n_c"].mean()) < 0.005


@pytest.mark.parametrize("name", ["iid", "heavy-tails"])
def test_nothing_to_adapt_to(name):
    """The more past, the better, and no rate above its level (error level 1e-4 each)."""
    by = outcomes(name)
    error = {method: outcome.error for method, outcome in by.items()}
    assert certainly_less(error["window-2000"], error["w1-acas-recent"])
    assert certainly_less(error["w1-acas-recent"], error["window-n_c"])
    assert abs(error["w1-acas-extend"].mean() - error["window-2000"].mean()) < 0.001
    for outcome in by.values():
        for alpha, rates in outcome.rates.items():
            assert rates.mean() <= alpha + margin(rates, 1e-4)


def test_results_depend_on_the_seed_and_the_scenario_alone():
    chosen = [METHODS["window-n_c"], METHODS["w1-acas-recent"]]
    together = list(simulate(list(SCENARIOS.values()), chosen, realisations=2, seed=3, length=400))
    (alone,) = simulate([SCENARIOS["switching"]], chosen[1:], realisations=2, seed=3, length=400, threads=2)
    (other,) = simulate([SCENARIOS["switching"]], chosen[1:], realisations=2, seed=4, length=400)
    (same,) = [result for result in together if result.scenario.name == "switching"]
    np.testing.assert_array_equal(alone.outcomes[0].gap, same.outcomes[1].gap)
    assert not np.array_equal(alone.outcomes[0].gap, other.outcomes[0].gap)


def test_progress_is_reported_as_announced():
    scenarios, methods = [SCENARIOS["iid"], SCENARIOS["period-24"]], list(METHODS.values())[:2]
    seen = []
    list(simulate(scenarios, methods, realisations=1, seed=0, length=1200, progress=seen.append))
    assert len(seen) == steps(scenarios, methods, 1200) == 12
    assert seen[0] == "iid, w1-acas-recent"


def test_scores_before_calibration_are_not_judged():
    (result,) = simulate([SCENARIOS["iid"]], [METHODS["split-100"]], realisations=1, seed=0, length=300)
    outcome = result.outcomes[0]
    assert outcome.length == 300
    assert outcome.rates[0.1][0] * (300 - CALIBRATION) == pytest.approx(round(outcome.rates[0.1][0] * 200))
