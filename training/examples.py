"""From signals to training examples: contexts with faults and gaps, places to forecast from, and the truth.

Long contexts and short ones come from the same signals. A context begins with the first observation of its window, is
normalised by its first `normalised` observations, and is asked for forecasts there and up to an eighth later, as it
is when the forecaster follows a signal and renews the normalisation only now and then.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from training import faults
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


#: How far back the second label of faults looks, and how long a context must be for a judgement.
UNDER_WAY, LEAST_JUDGED = 32, 24


@dataclass
class Examples:
    """Contexts `values` and `known (B, T)`, asked at `lengths (B, Q)`; the `truth (B, Q, AHEAD)` and its `weight`.

    `faulty (B, Q, 2)` says of each place whether its newest observation belongs to a fault and whether one was under
    way within the newest `UNDER_WAY`, as far as `judged (B, Q, 2)` is 1. `kind (B, 1)` is that of the latest fault.
    Where a fault is under way the weight of the forecast is 0: nobody can tell it from a change that stays.
    """

    values: Tensor
    known: Tensor
    lengths: Tensor
    truth: Tensor
    weight: Tensor
    faulty: Tensor
    judged: Tensor
    kind: Tensor


def spiked(dice: Dice, signals: Tensor) -> tuple[Tensor, Tensor]:
    """Some of the signals with spikes here and there, and where these are: so many are neither faults nor normal."""
    rows, length = signals.shape
    hit = dice.chance(dice.log_uniform(0.001, 0.04, rows, 1), rows, length) & dice.chance(0.12, rows, 1)
    return signals + hit * dice.normal(rows, length) * dice.log_uniform(1, 15, rows, 1), hit


def recurrent(dice: Dice, signals: Tensor) -> faults.Faulty:
    """Some of the signals with something like a fault that comes again and again."""
    rows, length = signals.shape
    every = dice.log_uniform(12, length / 5, rows, 1).long()
    duration = torch.minimum(dice.log_uniform(1, 60, rows, 1).long(), every // 2)
    start = (dice.uniform(0, 1, rows, 1) * every).long()
    some = dice.chance(0.08, rows, 1)
    made = faults.put_in(dice, signals, faults.Stretch.of(length, start, duration, every), _turn(dice))
    return faults.Faulty(torch.where(some, made.signals, signals), made.shown & some, made.unclear & some)


def _turn(dice: Dice) -> int:
    return int(dice.whole(0, len(faults.KINDS), 1))


@dataclass
class _Contaminated:
    """Contexts with faults: where these are seen, where it is open, where the latest one is, and its kind."""

    values: Tensor
    shown: Tensor
    unclear: Tensor
    latest: Tensor
    begin: Tensor
    duration: Tensor
    kind: Tensor


def contaminated(dice: Dice, signals: Tensor, normalised: Tensor) -> _Contaminated:
    """Some of the contexts with a fault that is over, some with one near the places from which forecasts are asked."""
    rows, length = signals.shape
    value, unclear = spiked(dice, signals)
    shown = torch.zeros_like(unclear)

    def durations(kind: Tensor) -> Tensor:
        long = torch.minimum(dice.log_uniform(3, 160, rows, 1).long(), normalised // 4).clamp(min=1)
        return torch.where(kind == faults.SPIKE, dice.whole(1, 4, rows, 1), long)

    def add(on: Tensor, begin: Tensor, duration: Tensor, turn: int) -> Tensor:
        nonlocal value, shown, unclear
        stretch = faults.Stretch.of(length, begin, duration)
        made = faults.put_in(dice, value, stretch, turn)
        value = torch.where(on, made.signals, value)
        shown, unclear = shown | (made.shown & on), unclear | (made.unclear & on)
        return stretch.inside & on

    turn = _turn(dice)
    duration = durations(faults.kinds_of(rows, turn, dice.device))
    begin = (dice.uniform(0, 1, rows, 1) * (0.9 * normalised - duration).clamp(min=1)).long()
    add(dice.chance(0.25, rows, 1), begin, duration, turn)
    turn = _turn(dice)
    kind = faults.kinds_of(rows, turn, dice.device)
    duration = durations(kind)
    begin = normalised - normalised // 12 + (dice.uniform(0, 1, rows, 1) * (normalised // 8 + normalised // 12)).long()
    begin = begin.clamp(0, length - 1)
    on = dice.chance(0.5, rows, 1) & (normalised >= LEAST_JUDGED)
    latest = add(on, begin, duration, turn)
    return _Contaminated(value, shown, unclear, latest, begin, torch.where(on, duration, 0), kind)


def within(marks: Tensor, reach: int) -> Tensor:
    """True where one of the newest `reach` marks is."""
    total = functional.pad(marks.int().cumsum(1), (reach, 0))
    return total[:, reach:] > total[:, :-reach]


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
    clean, again, open_again = recurrent(dice, signals)
    context = contaminated(dice, clean[:, :length], normalised)
    shown, unclear = context.shown | again[:, :length], context.unclear | open_again[:, :length]
    place = torch.arange(length, device=dice.device)
    centre, scale = centre_and_scale(context.values, known * (place < normalised))
    usable = scale > 1e-5
    scale = torch.where(usable, scale, 1.0)

    def units(numbers: Tensor) -> Tensor:
        return torch.asinh((numbers - centre) / scale).clamp(-LIMIT, LIMIT)

    # Some of the places lie in the fault, if there is one.
    room = normalised // 8 + 1
    anywhere = normalised + (dice.uniform(0, 1, rows, asked) * room).long()
    inside = context.begin + 1 + (dice.uniform(0, 1, rows, asked) * context.duration).long()
    lengths = torch.where(dice.chance(0.35, rows, asked) & (context.duration > 0), inside, anywhere)
    lengths = torch.minimum(torch.maximum(lengths, normalised), normalised + room - 1)
    ahead = lengths[..., None] + torch.arange(AHEAD, device=dice.device)
    truth = units(clean).gather(1, ahead.flatten(1)).view(rows, asked, AHEAD)
    # Errors count in proportion to how well a signal of this kind can be forecast at all: quiet ones would otherwise
    # hardly count beside noisy ones.
    roughness = (clean[:, 1:] - clean[:, :-1]).abs().mean(1, keepdim=True) / scale
    weight = (usable / (roughness + 0.1)).clamp(0, 8) * ~context.latest.gather(1, lengths - 1)
    seen, open_question = (shown & (known > 0)), (unclear & (known > 0))
    labels = torch.stack([seen, within(seen, UNDER_WAY)], -1)
    doubts = torch.stack([open_question | (known == 0), within(open_question, UNDER_WAY)], -1) & ~labels
    newest = (lengths - 1)[..., None].expand(-1, -1, labels.shape[-1])
    judged = ~doubts.gather(1, newest) & usable[..., None] & (lengths >= LEAST_JUDGED)[..., None]
    return Examples(
        units(context.values) * known, known, lengths, truth, weight,
        labels.gather(1, newest).float(), judged.float(), context.kind,
    )  # fmt: skip


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
    # Growth that shows within so few observations.
    cut = grown(dice, standard(cut), 0.4)
    short = _examples(dice, cut, dice.log_uniform(2, 193, rows * WINDOWS, 1).long(), SHORT, ASKED_SHORT)
    return long, short
