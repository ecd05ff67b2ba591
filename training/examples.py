"""From signals to training examples: contexts with faults and gaps, places to forecast from, and the truth.

Long contexts and short ones come from the same signals. A context begins with the first observation of its window, is
normalised by its first `normalised` observations, and is asked for forecasts there and up to an eighth later, as it
is when the forecaster follows a signal and renews the normalisation only now and then.
"""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from training import faults
from training.components import standard
from training.dice import Dice
from training.signals import grown

LIMIT = 12.0  # of values in units of the context, after asinh
CLIPS, CLIPPED_AT = 2, 4.0
AHEAD = 32
LONGEST = 1024
LONG, SHORT = LONGEST + LONGEST // 8, 224
SIGNAL_LENGTH = LONG + AHEAD
ASKED_LONG, ASKED_SHORT, WINDOWS = 16, 8, 3
MOST_APART = 4


@dataclass
class Examples:
    """Contexts `values` and `known (B, T)`, asked at `lengths (B, Q)`; the `truth (B, Q, AHEAD)` and its `weight`.

    Where a fault is under way the weight is 0: nobody can tell it from a change that stays.
    """

    values: Tensor
    known: Tensor
    lengths: Tensor
    truth: Tensor
    weight: Tensor

    def rows(self, which: slice) -> "Examples":
        """Some of them."""
        return Examples(*(getattr(self, field.name)[which].contiguous() for field in fields(self)))


def spiked(dice: Dice, signals: Tensor) -> Tensor:
    """The signals, some of them with spikes here and there."""
    rows, length = signals.shape
    hit = dice.chance(dice.log_uniform(0.001, 0.04, rows, 1), rows, length) & dice.chance(0.12, rows, 1)
    return signals + hit * dice.normal(rows, length) * dice.log_uniform(1, 15, rows, 1)


def recurrent(dice: Dice, signals: Tensor, scales: faults.Scales) -> Tensor:
    """The signals with something like a fault that comes again and again."""
    rows, length = signals.shape
    every = dice.log_uniform(12, length / 5, rows, 1).long()
    duration = torch.minimum(dice.log_uniform(1, 60, rows, 1).long(), every // 2)
    start = (dice.uniform(0, 1, rows, 1) * every).long()
    return faults.put_in(dice, signals, faults.Stretch.of(length, scales, start, duration, every), dice.turn())


# Which rows get what, as shares of all: rows are in no order. Some get both a fault that is over and a late one.
RECURRENT, OVER, LATE = (0.0, 0.06), (0.04, 0.22), (0.12, 0.40)
#: So many observations at least tell how much a signal moves, and so many that there is a fault.
LEAST_TYPICAL, LEAST_TOLD = 32, 24


def _block(rows: int, shares: tuple[float, float]) -> slice:
    return slice(*(int(share * rows) for share in shares))


def contaminated(dice: Dice, signals: Tensor, normalised: Tensor, scales: faults.Scales) -> tuple[Tensor, Tensor]:
    """Contexts, some with a fault that is over, some with one near the places from which forecasts are asked.

    The second tensor is true where one of the latter is under way.
    """
    rows, length = signals.shape
    contexts = spiked(dice, signals)
    under_way = torch.zeros_like(contexts, dtype=torch.bool)
    for shares in (OVER, LATE):
        block = _block(rows, shares)
        until, turn = normalised[block], dice.turn()
        count = until.shape[0]
        duration = torch.minimum(dice.log_uniform(3, 160, count, 1).long(), until // 4).clamp(min=1)
        is_spike = faults.kinds_of(count, turn, dice.device) == faults.SPIKE
        duration = torch.where(is_spike, dice.whole(1, 4, count, 1), duration)
        if shares is OVER:
            begin = (dice.uniform(0, 1, count, 1) * (0.9 * until - duration).clamp(min=1)).long()
        else:
            begin = until - until // 12 + (dice.uniform(0, 1, count, 1) * (until // 8 + until // 12)).long()
            # Of what is shorter nobody could tell; there it lies beyond the end.
            begin = torch.where(until >= LEAST_TOLD, begin, length)
        stretch = faults.Stretch.of(length, scales.part(block), begin, duration)
        contexts[block] = faults.put_in(dice, contexts[block], stretch, turn)
    under_way[block] = stretch.inside
    return contexts, under_way


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


def _examples(dice: Dice, signals: Tensor, normalised: Tensor, length: int, asked: int) -> Examples:
    """Examples from windows `signals (B, length + AHEAD)`, normalised by their first `normalised (B, 1)` values."""
    rows = signals.shape[0]
    known = known_values(dice, rows, length)
    # Of the context alone: a signal that grows is another one later.
    typical = normalised.clamp(min=LEAST_TYPICAL)
    scales = faults.scales_of(signals, typical)
    block = _block(rows, RECURRENT)
    clean = torch.cat([recurrent(dice, signals[block], scales.part(block)), signals[block.stop :]])
    context, under_way = contaminated(dice, clean[:, :length], normalised, scales)
    place = torch.arange(length, device=dice.device)
    centre, scale = centre_and_scale(context, known * (place < normalised))
    usable = scale > 1e-5
    scale = torch.where(usable, scale, 1.0)

    def units(numbers: Tensor) -> Tensor:
        return torch.asinh((numbers - centre) / scale).clamp(-LIMIT, LIMIT)

    lengths = normalised + (dice.uniform(0, 1, rows, asked) * (normalised // 8 + 1)).long()
    lengths = torch.minimum(lengths, normalised + normalised // 8)
    ahead = lengths[..., None] + torch.arange(AHEAD, device=dice.device)
    truth = units(clean).gather(1, ahead.flatten(1)).view(rows, asked, AHEAD)
    # Errors count in proportion to how well a signal of this kind can be forecast at all: quiet ones would otherwise
    # hardly count beside noisy ones.
    moves = (clean[:, 1:length] - clean[:, : length - 1]).abs() * (place[1:] < typical)
    roughness = moves.sum(1, keepdim=True) / (typical - 1) / scale
    weight = (usable / (roughness + 0.1)).clamp(0, 8) * ~under_way.gather(1, lengths - 1)
    return Examples(units(context) * known, known, lengths, truth, weight)


def make_examples(dice: Dice, signals: Tensor) -> tuple[Examples, Examples]:
    """Long and short examples from signals `(B, SIGNAL_LENGTH)`."""
    rows = signals.shape[0]
    some = dice.uniform(160, LONGEST + 1, rows, 1).long()
    normalised = torch.where(dice.chance(0.5, rows, 1), LONGEST, some)
    long = _examples(dice, signals, normalised, LONG, ASKED_LONG)
    # Some short contexts come from coarse records (months, years): every second to fourth value makes such ones.
    apart = torch.where(dice.chance(0.85, rows * WINDOWS, 1), 1, dice.whole(2, MOST_APART + 1, rows * WINDOWS, 1))
    reach = apart * (SHORT + AHEAD - 1) + 1
    start = (dice.uniform(0, 1, rows * WINDOWS, 1) * (SIGNAL_LENGTH - reach + 1)).long()
    window = start + apart * torch.arange(SHORT + AHEAD, device=dice.device)
    cut = signals.repeat(WINDOWS, 1).gather(1, window)
    normalised = dice.log_uniform(2, 193, rows * WINDOWS, 1).long()
    # Growth that shows within so few observations, and goes on in the steps ahead.
    last = normalised + normalised // 8 + AHEAD
    cut = grown(dice, standard(cut), 0.3, normalised.clamp(min=LEAST_TYPICAL), last)
    short = _examples(dice, cut, normalised, SHORT, ASKED_SHORT)
    return long, short
