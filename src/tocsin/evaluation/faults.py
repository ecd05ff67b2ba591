"""Faults put into a stretch of values: what each kind does to them."""

import numpy as np
from numpy.typing import ArrayLike

from tocsin.conformal.scorer import Floats


def shifted(values: Floats, size: ArrayLike) -> Floats:
    """All values higher by `size`; of a single value, a spike."""
    return values + np.asarray(size)


def drifting(values: Floats, size: ArrayLike) -> Floats:
    """Values move away steadily, up to `size` at the last one."""
    return values + np.linspace(0.0, np.asarray(size), len(values))


def stuck(values: Floats, before: ArrayLike) -> Floats:
    """The value before the stretch, again and again."""
    return np.broadcast_to(before, values.shape)


def noisier(expected: Floats, noise: Floats, factor: float) -> Floats:
    """The noise around what is expected, so many times as large."""
    return expected + factor * noise
