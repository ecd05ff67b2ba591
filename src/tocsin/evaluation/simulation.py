"""Simulated errors whose true p-values are known, and how well calibrated each method is on them."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal import W1ACAS, ExponentialDecay, Scorer, SlidingWindow, SplitConformal, critical_size
from tocsin.conformal.merge import normal_cdf

Floats = NDArray[np.float64]


def calibration_gap(p: Floats) -> Floats:
    """The 1-Wasserstein distance of the p-values from the uniform distribution: the mean of |P(p <= a) - a| over a.

    Computed exactly, for each column of `p[T, ...]`.

    >>> calibration_gap(np.array([0.25, 0.75])).tolist(), calibration_gap(np.array([0.0, 0.0])).tolist()
    (0.125, 0.5)
    """
    count = p.shape[0]
    edges = np.linspace(0.0, 1.0, count + 1).reshape((-1,) + (1,) * (p.ndim - 1))
    ordered = np.sort(p, axis=0)

    def integral_of_distance(to: Floats) -> Floats:
        return np.copysign((to - ordered) ** 2 / 2, to - ordered)

    return np.sum(integral_of_distance(edges[1:]) - integral_of_distance(edges[:-1]), axis=0)


def alarm_rate(p: Floats, alpha: float) -> Floats:
    """The share of p-values of at most `alpha`, for each column of `p[T, ...]`."""
    return np.mean(p <= alpha, axis=0)


def error_by_decile(p: Floats, true_p: Floats) -> Floats:
    """The mean of |p - true p| over the p-values whose true p lies in each tenth of [0, 1]; NaN for an empty tenth."""
    decile = np.minimum((true_p * 10).astype(np.int64), 9).ravel()
    counts = np.bincount(decile, minlength=10)
    with np.errstate(invalid="ignore"):
        return np.bincount(decile, weights=np.abs(p - true_p).ravel(), minlength=10) / counts


@dataclass(frozen=True)
class Simulated:
    """The draws of a simulation, `[T, realisations]` each: the observed errors and their mean and scale at each time.

    `true_p` is the probability of an |error| at least as large under the true distribution at that time.
    """

    errors: Floats
    mean: Floats
    scale: Floats
    true_p: Floats

    @property
    def scores(self) -> Floats:
        """The nonconformity scores: absolute errors."""
        return np.abs(self.errors)


@dataclass(frozen=True)
class Scenario:
    """A law for the errors of a forecaster, and the settings that W1-ACAS is run with on it.

    `draw(rng, length, realisations)` simulates it; `shown` is how many steps of it make a picture one can read.
    """

    name: str
    description: str
    draw: Callable[[np.random.Generator, int, int], Simulated]
    length: int = 6000
    batch: int = 10
    learning_rate: float = 0.001
    shown: int = 6000


def _normal(rng: np.random.Generator, mean: Floats, scale: Floats) -> Simulated:
    errors = mean + scale * rng.standard_normal(mean.shape)
    size = np.abs(errors)
    true_p = normal_cdf((mean - size) / scale) + normal_cdf((-mean - size) / scale)
    return Simulated(errors, mean, scale, true_p)


def _random_shift(rng: np.random.Generator, length: int, realisations: int) -> Simulated:
    """The mean drifts: mu' = mu + (mu - mu_before)/2 + e/2 with e ~ N(0, 0.05).

    Read as a standard deviation, 0.05 gives the curves the paper shows; read as a variance, the mean runs away so fast
    that no method stays calibrated.
    """
    shocks = rng.normal(0.0, 0.05, (length, realisations))
    mean = np.zeros((length, realisations))
    for t in range(1, length):
        momentum = mean[t - 1] - mean[t - 2] if t > 1 else 0.0
        mean[t] = mean[t - 1] + momentum / 2 + shocks[t - 1] / 2
    return _normal(rng, mean, np.ones_like(mean))


def _jump_shift(rng: np.random.Generator, length: int, realisations: int) -> Simulated:
    """The mean climbs by 1 every 500 steps, fifteen times, then descends likewise (the printed formula falls to 0)."""
    level = (np.arange(length) // 500) % 30
    mean = np.minimum(level, 30 - level).astype(np.float64)
    return _same_law(rng, mean, np.ones(length), realisations)


def _same_law(rng: np.random.Generator, mean: Floats, scale: Floats, realisations: int) -> Simulated:
    """The same mean and scale over time in every realisation."""
    each = np.ones(realisations)
    return _normal(rng, np.outer(mean, each), np.outer(scale, each))


def _periodic_scale(period: int) -> Callable[[np.random.Generator, int, int], Simulated]:
    def draw(rng: np.random.Generator, length: int, realisations: int) -> Simulated:
        phase = 2 * np.pi * np.arange(length) / period
        return _same_law(rng, np.zeros(length), np.exp(np.sin(phase)), realisations)

    return draw


def _switching_scale(rng: np.random.Generator, length: int, realisations: int) -> Simulated:
    """Calm (scale 1) and rough (scale 3) spells of 500 steps on average, each of random length."""
    switches = rng.random((length, realisations)) < 1 / 500
    rough = np.cumsum(switches, axis=0) % 2 == 1
    return _normal(rng, np.zeros((length, realisations)), np.where(rough, 3.0, 1.0))


def _heavy_tails(rng: np.random.Generator, length: int, realisations: int) -> Simulated:
    """Independent errors of Student's law with 2 degrees of freedom, which has no variance."""
    errors = rng.standard_t(2, (length, realisations))
    size = np.abs(errors)
    root = np.sqrt(2 + size**2)
    true_p = 2 / (root * (root + size))  # 1 - size / root, without the loss of digits
    return Simulated(errors, np.zeros_like(errors), np.ones_like(errors), true_p)


def _independent(rng: np.random.Generator, length: int, realisations: int) -> Simulated:
    return _same_law(rng, np.zeros(length), np.ones(length), realisations)


def _periodic(period: int) -> Scenario:
    return Scenario(
        f"period-{period}",
        f"the scale has a period of {period}",
        _periodic_scale(period),
        length=20_000,
        learning_rate=0.005,
        shown=8 * period,
    )


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("random-shift", "the mean drifts (paper, appendix)", _random_shift, batch=99),
        Scenario("jump-shift", "the mean jumps every 500 steps (paper, appendix)", _jump_shift, batch=99),
        _periodic(24),
        _periodic(96),
        Scenario("switching", "calm and rough spells of random length", _switching_scale),
        Scenario("heavy-tails", "independent errors without a variance", _heavy_tails),
        Scenario("iid", "independent normal errors", _independent),
    )
}
"""Every scenario by its name. The paper's own run with its batch of n_c = 99; a period needs a far shorter batch."""


ALPHA_C = 0.01
WINDOW = 2000
CALIBRATION = 100
RATES = (0.01, 0.05, 0.1)
CURVE = np.linspace(0.0, 1.0, 201)
CHUNK = 500  # steps between two reports of progress


@dataclass(frozen=True)
class SimulationMethod:
    """A scorer to compare; `make(scenario, streams, threads)` sets it up."""

    name: str
    description: str
    make: Callable[[Scenario, int, int], Scorer]


def _w1_acas(prior: str) -> Callable[[Scenario, int, int], Scorer]:
    def make(scenario: Scenario, streams: int, threads: int) -> Scorer:
        return W1ACAS(
            streams,
            alpha_c=ALPHA_C,
            window=WINDOW,
            batch=scenario.batch,
            learning_rate=scenario.learning_rate,
            prior=prior,
            threads=threads,
        )

    return make


METHODS = {
    method.name: method
    for method in (
        SimulationMethod("w1-acas-recent", "W1-ACAS, prior recent (Algorithm 1 as printed)", _w1_acas("recent")),
        SimulationMethod("w1-acas-extend", "W1-ACAS, prior extend", _w1_acas("extend")),
        SimulationMethod(
            "window-2000",
            f"the newest {WINDOW} scores",
            lambda _, streams, threads: SlidingWindow(streams, window=WINDOW, threads=threads),
        ),
        SimulationMethod(
            "window-n_c",
            f"the newest n_c = {critical_size(ALPHA_C)} scores",
            lambda _, streams, threads: SlidingWindow(streams, window=critical_size(ALPHA_C), threads=threads),
        ),
        SimulationMethod(
            "split-100",
            f"the first {CALIBRATION} scores",
            lambda _, streams, threads: SplitConformal(streams, calibration=CALIBRATION, threads=threads),
        ),
        SimulationMethod(
            "decay-0.99",
            "weights 0.99^lag",
            lambda _, streams, threads: ExponentialDecay(streams, decay=1 - ALPHA_C, window=WINDOW, threads=threads),
        ),
    )
}
"""Every method by its name."""


@dataclass(frozen=True)
class MethodOutcome:
    """The result of one method on one scenario, over all realisations, after the first `CALIBRATION` scores.

    `gap`, `error` and the rates have one entry a realisation; `curve` is P(p <= a) at each a of `CURVE`.
    """

    scenario: Scenario
    method: SimulationMethod
    length: int
    gap: Floats
    error: Floats
    rates: dict[float, Floats]
    decile_errors: Floats
    curve: Floats


@dataclass(frozen=True)
class ScenarioResult:
    """The simulation of a scenario, and the result of each method."""

    scenario: Scenario
    simulated: Simulated
    outcomes: list[MethodOutcome]


def steps(scenarios: list[Scenario], methods: list[SimulationMethod], length: int | None) -> int:
    """How many times `simulate` will report progress."""
    return sum(-(-(length or scenario.length) // CHUNK) for scenario in scenarios) * len(methods)


def simulate(
    scenarios: list[Scenario],
    methods: list[SimulationMethod],
    *,
    realisations: int,
    seed: int,
    length: int | None = None,
    threads: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[ScenarioResult]:
    """Run every method on every scenario, all on the same draws; yields each scenario when it is done.

    A scenario's draws depend on the seed and its own name only, not on which others are run. `progress` is called
    `steps(...)` times, with what is being done.
    """
    for scenario in scenarios:
        rng = np.random.default_rng([seed, zlib.crc32(scenario.name.encode())])
        simulated = scenario.draw(rng, length or scenario.length, realisations)
        outcomes = []
        for method in methods:
            scorer = method.make(scenario, realisations, threads)
            parts = []
            for start in range(0, simulated.scores.shape[0], CHUNK):
                parts.append(scorer.run(simulated.scores[start : start + CHUNK]))
                progress(f"{scenario.name}, {method.name}")
            outcomes.append(_judge(scenario, method, np.concatenate(parts), simulated.true_p))
        yield ScenarioResult(scenario, simulated, outcomes)


def _judge(scenario: Scenario, method: SimulationMethod, p: Floats, true_p: Floats) -> MethodOutcome:
    length = p.shape[0]
    p, true_p = p[CALIBRATION:], true_p[CALIBRATION:]
    return MethodOutcome(
        scenario=scenario,
        method=method,
        length=length,
        gap=calibration_gap(p),
        error=np.mean(np.abs(p - true_p), axis=0),
        rates={alpha: alarm_rate(p, alpha) for alpha in RATES},
        decile_errors=error_by_decile(p, true_p),
        curve=np.searchsorted(np.sort(p, axis=None), CURVE, side="right") / p.size,
    )
