"""From signals to training examples: contexts with faults and gaps, places to forecast from, and the truth.

Long contexts and short ones come from the same signals. A context begins with the first observation of its window, is
normalised by its first `normalised` observations, and is asked for forecasts there and up to an eighth later, as it
is when the forecaster follows a signal and renews the normalisation only now and then.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from training.components import standard
from training.dice import Dice
from training.signals import grown

LIMIT = 12.0  # of values in units of the context, after asinh
CLIPS, CLIPPED_AT = 2, 4.0
AHEAD = 64
LONGEST = 1024
LONG, SHORT = LONGEST + LONGEST // 8, 224
SIGNAL_LENGTH = LONG + AHEAD
ASKED_LONG, ASKED_SHORT, WINDOWS = 16, 8, 3
MOST_APART = 4


@dataclass
class Examples:
    """Contexts `values` and `known (B, T)`, asked at `lengths (B, Q)`; the `truth (B, Q, AHEAD)`; `weight (B,)`."""

    values: Tensor
    known: Tensor
    lengths: Tensor
    truth: Tensor
    weight: Tensor


def contaminated(dice: Dice, signals: Tensor, until: Tensor) -> Tensor:
    """Some of the signals with faults in them: spikes, and stretches that are shifted, stuck, noisy or dead.

    A stretch is over at the latest `until (B, 1)`: while one lasts, nobody can tell it from a change that stays.
    """
    rows, length = signals.shape
    place = torch.arange(length, device=dice.device)
    kind = dice.uniform(0, 1, rows, 1)
    hit = dice.chance(dice.log_uniform(0.001, 0.04, rows, 1), rows, length)
    spikes = hit * dice.normal(rows, length) * dice.log_uniform(1, 15, rows, 1)
    duration = torch.minimum(dice.log_uniform(2, 100, rows, 1), 0.5 * until)
    start = (dice.uniform(0, 1, rows, 1) * (until - duration)).long()
    stretch = (place >= start) & (place < start + duration)
    size = dice.normal(rows, 1) * dice.log_uniform(0.5, 5, rows, 1)
    value = torch.where(kind < 0.16, signals + spikes, signals)
    for low, high, faulty in (
        (0.14, 0.24, signals + size),
        (0.24, 0.28, signals.gather(1, start).expand_as(signals)),
        (0.28, 0.31, signals + size * dice.normal(rows, length)),
        (0.31, 0.34, size.expand_as(signals)),
    ):
        value = torch.where((kind >= low) & (kind < high) & stretch, faulty, value)
    return value


def known_values(dice: Dice, rows: int, length: int) -> Tensor:
    """1 where a value is known; some signals miss single values, some whole stretches."""
    place = torch.arange(length, device=dice.device)
    kind = dice.uniform(0, 1, rows, 1)
    single = dice.chance(dice.uniform(0, 0.4, rows, 1), rows, length) & (kind < 0.1)
    start = dice.whole(0, length, rows, 1)
    stretch = (place >= start) & (place < start + dice.log_uniform(2, 120, rows, 1)) & (kind > 0.06) & (kind < 0.16)
    return (~(single | stretch)).float()


def centre_and_scale(values: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the used values, then of those values clipped to a few deviations, twice."""
    count = used.sum(1, keepdim=True).clamp(min=1)

    def moments(numbers: Tensor) -> tuple[Tensor, Tensor]:
        mean = (numbers * used).sum(1, keepdim=True) / count
        return mean, (((numbers - mean) ** 2 * used).sum(1, keepdim=True) / count).sqrt()

    centre, scale = moments(values)
    for _ in range(CLIPS):
        low, high = centre - CLIPPED_AT * scale, centre + CLIPPED_AT * scale
        centre, scale = moments(torch.maximum(torch.minimum(values, high), low))
    return centre, scale


def _examples(dice: Dice, clean: Tensor, normalised: Tensor, length: int, asked: int) -> Examples:
    """Examples from windows `clean (B, length + AHEAD)`, normalised by their first `normalised (B, 1)` values."""
    rows = clean.shape[0]
    known = known_values(dice, rows, length)
    seen = contaminated(dice, clean[:, :length], normalised)
    place = torch.arange(length, device=dice.device)
    centre, scale = centre_and_scale(seen, known * (place < normalised))
    usable = scale > 1e-5
    scale = torch.where(usable, scale, 1.0)

    def units(numbers: Tensor) -> Tensor:
        return torch.asinh((numbers - centre) / scale).clamp(-LIMIT, LIMIT)

    older = (dice.uniform(0, 1, rows, asked) * (normalised // 8 + 1)).long()
    lengths = normalised + older
    ahead = lengths[..., None] + torch.arange(AHEAD, device=dice.device)
    truth = units(clean).gather(1, ahead.flatten(1)).view(rows, asked, AHEAD)
    # Errors count in proportion to how well a signal of this kind can be forecast at all: quiet ones would otherwise
    # hardly count beside noisy ones.
    roughness = (clean[:, 1:] - clean[:, :-1]).abs().mean(1, keepdim=True) / scale
    weight = (usable / (roughness + 0.1)).clamp(0, 8).squeeze(1)
    return Examples(units(seen) * known, known, lengths, truth, weight)


def make_examples(dice: Dice, signals: Tensor) -> tuple[Examples, Examples]:
    """Long and short examples from signals `(B, SIGNAL_LENGTH)`."""
    rows = signals.shape[0]
    some = dice.uniform(160, LONGEST + 1, rows, 1).long()
    long = _examples(dice, signals, torch.where(dice.chance(0.5, rows, 1), LONGEST, some), LONG, ASKED_LONG)
    # Some short contexts come from coarse records (months, years): every second to fourth value makes such ones.
    apart = torch.where(dice.chance(0.85, rows * WINDOWS, 1), 1, dice.whole(2, MOST_APART + 1, rows * WINDOWS, 1))
    reach = apart * (SHORT + AHEAD - 1) + 1
    start = (dice.uniform(0, 1, rows * WINDOWS, 1) * (SIGNAL_LENGTH - reach + 1)).long()
    window = start + apart * torch.arange(SHORT + AHEAD, device=dice.device)
    cut = signals.repeat(WINDOWS, 1).gather(1, window)
    # Growth that shows within so few observations.
    cut = grown(dice, standard(cut), 0.3)
    short = _examples(dice, cut, dice.log_uniform(2, 193, rows * WINDOWS, 1).long(), SHORT, ASKED_SHORT)
    return long, short
