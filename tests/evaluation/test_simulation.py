"""The simulation: its truth is true, and its methods come out in the order that the docs state."""

import io
from functools import cache

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from tests import oracles
from tests.bands import certainly_less, margin
from tests.cases import full
from tocsin.conformal import W1ACAS, SlidingWindow
from tocsin.evaluation import METHODS, SCENARIOS, simulate, simulation_report
from tocsin.evaluation.simulation import CALIBRATION, CURVE, steps


@pytest.mark.slow
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


def test_switching_spells():
    drawn = SCENARIOS["switching"].draw(np.random.default_rng(0), 50_000, 10)
    assert set(np.unique(drawn.scale)) == {1.0, 3.0}
    switches = np.count_nonzero(np.diff(drawn.scale, axis=0))
    # 1,000 expected, Poisson: within 4 standard deviations.
    assert abs(switches - 1000) < 4 * np.sqrt(1000)


@pytest.mark.parametrize("period", [24, 96])
def test_periodic_scale(period):
    scale = SCENARIOS[f"period-{period}"].draw(np.random.default_rng(0), 1000, 2).scale
    np.testing.assert_allclose(scale[period:], scale[:-period])
    np.testing.assert_allclose(scale[[0, period // 4, 3 * period // 4]], [[1, 1], [np.e, np.e], [1 / np.e, 1 / np.e]])


def test_an_outcome_is_what_its_measures_say():
    """One small run, scored and judged again by hand, and followed into the CSV file and the tables."""
    scenario, method = SCENARIOS["iid"], METHODS["window-n_c"]
    (result,) = simulate([scenario], [method], realisations=3, seed=2, length=700)
    p = SlidingWindow(3, window=99).run(result.simulated.scores)[100:]
    true_p = result.simulated.true_p[100:]
    (outcome,) = result.outcomes
    np.testing.assert_allclose(outcome.gap, [oracles.wasserstein_to_uniform(p[:, k]) for k in range(3)])
    np.testing.assert_allclose(outcome.error, np.abs(p - true_p).mean(axis=0))
    for alpha in (0.01, 0.05, 0.1):
        np.testing.assert_allclose(outcome.rates[alpha], (p <= alpha).mean(axis=0))
    np.testing.assert_allclose(outcome.curve, [(p <= alpha).mean() for alpha in CURVE])
    for k in range(10):
        in_tenth = (true_p >= k / 10) & (true_p < (k + 1) / 10)
        assert outcome.decile_errors[k] == pytest.approx(np.abs(p - true_p)[in_tenth].mean())

    row = simulation_report._row(outcome, seed=2)
    assert row["gap"] == pytest.approx(outcome.gap.mean())
    assert row["rate_0.05"] == pytest.approx(outcome.rates[0.05].mean())
    assert row["window"] == 2000
    assert row["gap_sd"] == pytest.approx(outcome.gap.std(ddof=1))
    assert row["error_sd"] == pytest.approx(outcome.error.std(ddof=1))
    assert row["rate_0.05_sd"] == pytest.approx(outcome.rates[0.05].std(ddof=1))
    assert row["error_0.3-0.4"] == pytest.approx(outcome.decile_errors[3])

    console = Console(width=200, record=True, file=io.StringIO())
    console.print(simulation_report.summary_table([result]))
    console.print(simulation_report.decile_table([result]))
    lines = [line.split() for line in console.export_text().splitlines() if line.strip().startswith("window-n_c")]
    rates = [f"{outcome.rates[alpha].mean():.4f}" for alpha in (0.01, 0.05, 0.1)]
    gap = [f"{outcome.gap.mean():.4f}", "±", f"{outcome.gap.std(ddof=1):.4f}"]
    assert lines[0] == ["window-n_c", *gap, f"{outcome.error.mean():.4f}", *rates]
    assert lines[1] == ["window-n_c", *(f"{error:.3f}" for error in outcome.decile_errors)]


def test_the_figure_draws_each_outcome(monkeypatch, tmp_path):
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    results = list(
        simulate([SCENARIOS["iid"], SCENARIOS["switching"]], list(METHODS.values()), realisations=2, seed=0, length=400)
    )
    simulation_report.draw_figure(results, tmp_path / "unused.png")
    axes = drawn[0].axes
    assert len(axes) == 6
    for result, (signal, curve, error) in zip(results, (axes[:3], axes[3:]), strict=True):
        assert result.scenario.name in signal.get_title()
        np.testing.assert_array_equal(signal.lines[0].get_ydata(), result.simulated.errors[:, 0])
        lines = {line.get_label(): line for line in curve.lines}
        for outcome, line in zip(result.outcomes, error.lines, strict=True):
            np.testing.assert_array_equal(lines[outcome.method.name].get_ydata(), outcome.curve)
            np.testing.assert_array_equal(line.get_ydata(), outcome.decile_errors)


@cache
def outcomes(name):
    (result,) = simulate([SCENARIOS[name]], list(METHODS.values()), realisations=15, seed=1, threads=2)
    return {outcome.method.name: outcome for outcome in result.outcomes}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random-shift", full("jump-shift")])
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


@pytest.mark.full
@pytest.mark.parametrize("name", ["period-24", "period-96"])
def test_periodic_scale_is_learned(name):
    """Only learned weights see a period: a third to a half of every fixed weighting's error (error level 1e-4)."""
    error = {method: outcome.error for method, outcome in outcomes(name).items()}
    assert certainly_less(error["w1-acas-recent"], error["w1-acas-extend"])
    for fixed in ("window-2000", "window-n_c", "split-100", "decay-0.99"):
        assert certainly_less(error["w1-acas-extend"], 0.55 * error[fixed])
        assert certainly_less(error["w1-acas-recent"], 0.37 * error[fixed])


@pytest.mark.slow
def test_a_batch_as_long_as_the_period_learns_nothing():
    drawn = SCENARIOS["period-24"].draw(np.random.default_rng(0), 8000, 8)
    errors = {
        batch: np.abs(W1ACAS(8, batch=batch, learning_rate=0.005).run(drawn.scores) - drawn.true_p)[4000:].mean(axis=0)
        for batch in (10, 24)
    }
    assert errors[24].mean() > 0.12
    assert certainly_less(errors[10], errors[24] / 2)


@pytest.mark.full
def test_switching_scale():
    error = {method: outcome.error for method, outcome in outcomes("switching").items()}
    assert certainly_less(error["w1-acas-recent"], error["window-2000"])
    assert error["window-2000"].mean() < error["split-100"].mean()
    assert abs(error["w1-acas-recent"].mean() - error["window-n_c"].mean()) < 0.005


@pytest.mark.slow
@pytest.mark.parametrize("name", ["iid", full("heavy-tails")])
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
