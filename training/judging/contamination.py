"""Anomalies put into contexts, which a good forecaster does not take for the signal."""

import numpy as np

from tocsin.forecasting.forecaster import Floats

SPIKE_SHARE = 0.02
SPIKE_SIZE = 10.0
SHIFT_LENGTH = 30
SHIFT_SIZE = 3.0
# How many undisturbed points follow the shift: enough for a good forecaster to see that it is over.
AFTER_SHIFT = 50
# So that at least half of a context with a shift is undisturbed.
LEAST_CONTEXT = 2 * (SHIFT_LENGTH + AFTER_SHIFT)


def with_spikes(context: Floats, rng: np.random.Generator) -> Floats:
    """The context with 2% of its points, at least one, moved up or down by 10 standard deviations of the context."""
    spiked = context.copy()
    places = rng.choice(context.size, max(1, round(SPIKE_SHARE * context.size)), replace=False)
    spiked[places] += SPIKE_SIZE * context.std() * rng.choice([-1.0, 1.0], places.size)
    return spiked


def with_shift(context: Floats, rng: np.random.Generator) -> Floats:
    """The context with 30 points moved together, by 3 of its standard deviations up or down; 50 more follow them."""
    shifted = context.copy()
    end = context.size - AFTER_SHIFT
    shifted[end - SHIFT_LENGTH : end] += SHIFT_SIZE * context.std() * rng.choice([-1.0, 1.0])
    return shifted


CONTAMINATIONS = {"spikes": with_spikes, "shift": with_shift}
"""Every kind of contamination by its name."""
