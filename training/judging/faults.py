"""How well a forecaster's network tells faults of every kind, on fresh synthetic signals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.forecasting.forecaster import Floats
from training.judging.recipe import Recipe

#: The share of sound observations that are taken for faulty.
FALSE = 0.01
#: Signals made together.
BATCH = 210
#: What is judged, in the order of `Forecast.faults`.
JUDGEMENTS = ("newest", "under way")


@dataclass(frozen=True)
class Judged:
    """Odds `(N, 2)`, what is true and what can be judged at all, `(N, 2)` each, and the kind of fault, `(N,)`."""

    odds: Floats
    faulty: NDArray[np.bool_]
    counts: NDArray[np.bool_]
    kind: NDArray[np.int64]

    def loss(self, which: int) -> float:
        """The mean cross-entropy."""
        some = self.counts[:, which]
        odds, faulty = self.odds[some, which], self.faulty[some, which]
        return float(np.logaddexp(0, np.where(faulty, -odds, odds)).mean())

    def power(self, which: int, kind: int | None = None) -> float:
        """The share of the faulty observations of a kind, or of all, that are found at `FALSE`; NaN without any."""
        some = self.counts[:, which]
        threshold = np.quantile(self.odds[some & ~self.faulty[:, which], which], 1 - FALSE)
        some = some & self.faulty[:, which]
        if kind is not None:
            some = some & (self.kind == kind)
        return float((self.odds[some, which] > threshold).mean()) if some.any() else float("nan")


def judge_faults(recipe: Recipe, signals: int, seed: int) -> Judged:
    """Judge one place of each of some long contexts, drawn as in training but from a seed of their own."""
    from training.dice import Dice
    from training.examples import SIGNAL_LENGTH, make_examples
    from training.signals import make_signals

    forecaster = recipe.forecaster()
    dice = Dice(seed=seed)
    parts: list[tuple[Floats, ...]] = []
    for _ in range(0, signals, BATCH):
        long, _ = make_examples(dice, make_signals(dice, BATCH, SIGNAL_LENGTH))
        # Undone are the units of the network, which the forecaster takes by itself.
        values = np.where(long.known.numpy() > 0, np.sinh(long.values.numpy().astype(np.float64)), np.nan)
        lengths = long.lengths[:, 0].numpy()
        contexts = [row[:length] for row, length in zip(values, lengths, strict=True)]
        told = np.array([np.isfinite(context).any() for context in contexts])
        faults = forecaster.forecast([context for context, some in zip(contexts, told, strict=True) if some], 1).faults
        if faults is None:
            raise ValueError(f"forecaster must give odds of faults, got {forecaster!r}")
        odds = np.full((len(contexts), len(JUDGEMENTS)), np.nan)
        odds[told] = faults
        counts = (long.judged[:, 0].numpy() > 0) & np.isfinite(odds)
        parts.append((odds, long.faulty[:, 0].numpy() > 0, counts, long.kind[:, 0].numpy()))
    return Judged(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
