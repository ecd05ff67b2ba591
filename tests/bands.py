"""Confidence bands for means over independent streams, so that a statistical test says how sure it is."""

import numpy as np
from scipy.stats import t


def margin(values, level, comparisons=1):
    """Half-width of a band that holds the mean of each column of `values[n, ...]` with the given error level.

    Student's band over independent rows; with Bonferroni's correction when several columns are judged at once.
    """
    count = values.shape[0]
    return t.isf(level / (2 * comparisons), count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)


def certainly_less(one, other, level=1e-4):
    """Whether the mean of `one` is below that of `other`, paired, beyond a band of the given error level."""
    difference = np.asarray(other) - np.asarray(one)
    return difference.mean() > margin(difference, level)
