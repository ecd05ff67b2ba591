"""Simulated forecast errors whose true p-values are known."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tocsin.conformal.merge import normal_cdf
from tocsin.evaluation.calibration import Floats


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
