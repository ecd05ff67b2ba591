"""The simulation experiment: every method on every scenario, judged by the truth."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tocsin.conformal import W1ACAS, ExponentialDecay, Scorer, SlidingWindow, SplitConformal, critical_size
from tocsin.evaluation.calibration import Floats, alarm_rate, calibration_gap, error_by_decile
from tocsin.evaluation.scenarios import Scenario, Simulated

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
