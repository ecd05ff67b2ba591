"""Errors of 15-step forecasts at every origin of the files of TSB-AD-U, as the paper on W1-ACAS measures them."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tocsin.forecasting import make_forecaster
from tocsin.forecasting.forecaster import Floats
from training.judging.processes import in_processes
from training.judging.recipe import Recipe

HORIZON = 15
FIRST_ORIGIN = 52
SHORTEST = FIRST_ORIGIN + HORIZON
# How many contexts are given to the forecaster together.
BATCH = 256
# Shown beside the forecaster that is judged. They follow a file from its beginning: no context is cut for them.
REFERENCES = ("last-value", "seasonal-naive", "autoregression")

Origins = NDArray[np.intp]
Column = int | str
"""A length of the context, or the name of a reference."""


def origins_of(length: int, every: int) -> Origins:
    """Every origin (its forecast begins there), or every so many, that has 52 values before it and 15 from it on."""
    return np.arange(FIRST_ORIGIN, length - HORIZON + 1, every)


def mean_errors(
    series: Mapping[Path, Floats], recipe: Recipe, contexts: Sequence[int], every: int, jobs: int
) -> dict[tuple[Path, Column], float]:
    """The mean absolute error over steps and origins, for each file and column."""
    labels: list[tuple[Path, Column]] = []
    tasks: list[Callable[[], Floats]] = []
    for file, values in series.items():
        origins = origins_of(values.size, every)
        for context in contexts:
            for first in range(0, origins.size, BATCH):
                batch = origins[first : first + BATCH]
                start = max(0, batch[0] - context)
                piece = values[start : batch[-1] + HORIZON]
                labels.append((file, context))
                tasks.append(partial(_errors_from_contexts, recipe, piece, batch - start, context))
        for reference in REFERENCES:
            labels.append((file, reference))
            tasks.append(partial(_errors_of_reference, reference, values, origins))
    parts = defaultdict(list)
    for label, errors in zip(labels, in_processes(tasks, jobs, "forecasting"), strict=True):
        parts[label].append(errors)
    return {label: float(np.concatenate(errors).mean()) for label, errors in parts.items()}


def _errors_from_contexts(recipe: Recipe, values: Floats, origins: Origins, context: int) -> Floats:
    contexts = [values[max(0, origin - context) : origin] for origin in origins]
    return _errors(values, origins, recipe.forecaster().forecast(contexts, HORIZON).median)


def _errors_of_reference(name: str, values: Floats, origins: Origins) -> Floats:
    wanted = np.zeros((values.size, 1), dtype=np.bool_)
    wanted[origins - 1] = True
    medians = make_forecaster(name).open(1, HORIZON).run(values[:, np.newaxis], wanted=wanted).median
    return _errors(values, origins, medians[origins - 1, 0])


def _errors(values: Floats, origins: Origins, medians: Floats) -> Floats:
    """For each origin the mean absolute error over its steps."""
    truth = values[origins[:, np.newaxis] + np.arange(HORIZON)]
    return np.asarray(np.abs(medians - truth).mean(axis=1))
