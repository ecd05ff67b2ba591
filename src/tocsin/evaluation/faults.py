"""Faults put into signals, so that it is known where they are."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tocsin.evaluation.calibration import Floats


@dataclass(frozen=True)
class Fault:
    """One kind of fault. Call it with a signal, where it starts and how large it is in standard deviations of noise."""

    name: str
    about: str
    #: How many observations it lasts.
    length: int
    _inject: Callable[[Floats, Floats, float], Floats]

    def __call__(self, values: Floats, start: int, size: float, noise: float, rng: np.random.Generator) -> Floats:
        """A copy of the signal with the fault in it, from observation `start` on; `noise` is the size of its noise."""
        faulty = values.copy()
        stretch = slice(start, start + self.length)
        draws = rng.standard_normal(faulty[stretch].size)
        faulty[stretch] = self._inject(faulty[stretch], noise * draws, noise * size)
        return faulty


def _straightened(values: Floats, noise: Floats, size: float) -> Floats:
    return np.asarray(np.full(values.size, values.mean()) + noise)


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("spike", "one value far off", 1, lambda values, noise, size: values + size),
        Fault("level-shift", "all values higher for a while", 200, lambda values, noise, size: values + size),
        Fault(
            "drift",
            "values move away steadily",
            200,
            lambda values, noise, size: values + size * np.linspace(0, 2, values.size),
        ),
        Fault("stuck-value", "the first value is repeated", 200, lambda values, noise, size: 0 * values + values[0]),
        Fault("variance-change", "more noise", 200, lambda values, noise, size: values + size * noise / noise.std()),
        Fault("lost-seasonality", "the wave stops, the noise goes on", 200, _straightened),
    )
}
"""Every kind of fault by its name."""
