"""Faults put into synthetic signals.

A kind of fault is a small function: given signals and a stretch of each, it says what would have been recorded had the
fault lasted all the time; only the stretch takes it over. `put_in` gives every row one kind, in equal parts. A stretch
may recur.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from training.dice import Dice

_FAR = 60.0


class Scales(NamedTuple):
    """Of each row, `(B, 1)`: the typical step from one value to the next, and the standard deviation."""

    step: Tensor
    deviation: Tensor

    def part(self, rows: slice) -> "Scales":
        """Those of some rows."""
        return Scales(self.step[rows], self.deviation[rows])


def scales_of(signals: Tensor, used: Tensor) -> Scales:
    """Those of the first `used (B, 1)` values of signals; a part of the steps is enough to tell."""
    unused = torch.arange(signals.shape[1], device=signals.device) >= used
    steps = (signals[:, 1:] - signals[:, :-1]).abs().masked_fill(unused[:, 1:], math.nan)[:, ::5]
    mean = signals.masked_fill(unused, 0.0).sum(1, keepdim=True) / used
    variance = (signals - mean).square().masked_fill(unused, 0.0).sum(1, keepdim=True) / used
    return Scales(steps.nanmedian(1, keepdim=True).values, variance.sqrt())


@dataclass
class Stretch:
    """Where a fault is in each row: `since (B, L)` steps after an occurrence began, `inside (B, L)` one, `(B, 1)` long.

    `scales` are those of the signals.
    """

    since: Tensor
    inside: Tensor
    duration: Tensor
    scales: Scales

    @classmethod
    def of(cls, length: int, scales: Scales, start: Tensor, duration: Tensor, every: Tensor | None = None) -> "Stretch":
        """Stretches that begin at `start (B, 1)`, and again after `every (B, 1)` steps if that is given."""
        since = torch.arange(length, device=start.device) - start
        if every is not None:
            since = torch.where(since >= 0, since % every, since)
        return cls(since, (since >= 0) & (since < duration), duration, scales)

    @property
    def first(self) -> Tensor:
        """The index of the first observation of the occurrence that each one belongs to."""
        place = torch.arange(self.since.shape[1], device=self.since.device)
        return (place - self.since.clamp(min=0)).clamp(min=0)

    def part(self, rows: slice) -> "Stretch":
        """That of some rows."""
        return Stretch(self.since[rows], self.inside[rows], self.duration[rows], self.scales.part(rows))


Kind = Callable[[Dice, Tensor, Stretch], Tensor]


def _either(dice: Dice, one: Tensor, other: Tensor) -> Tensor:
    return torch.where(dice.chance(0.5, one.shape[0], 1), one, other)


def _size(dice: Dice, stretch: Stretch) -> Tensor:
    """How large a fault is, of either sign: in deviations of the signal, or in its typical steps."""
    step, deviation = stretch.scales
    in_deviations = dice.log_uniform(0.3, 6, *step.shape) * deviation
    in_steps = dice.log_uniform(3, 30, *step.shape) * step.clamp(min=1e-3)
    sign = torch.where(dice.chance(0.5, *step.shape), 1.0, -1.0)
    return sign * _either(dice, in_deviations, in_steps)


def _before(signals: Tensor, stretch: Stretch, reach: int = 64) -> Tensor:
    """The mean of the values before each occurrence."""
    sums = functional.pad(signals.cumsum(1), (1, 0))
    end = stretch.first
    begin = (end - reach).clamp(min=0)
    count = (end - begin).clamp(min=1)
    mean = (sums.gather(1, end) - sums.gather(1, begin)) / count
    return torch.where(end > begin, mean, signals[:, :1])


def _read(signals: Tensor, place: Tensor) -> Tensor:
    return signals.gather(1, place.long().clamp(0, signals.shape[1] - 1))


def _place(signals: Tensor) -> Tensor:
    return torch.arange(signals.shape[1], device=signals.device).expand_as(signals)


def spike(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """One to three values far off, up or down."""
    return signals + _size(dice, stretch)


def spikes(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """Many spikes of both signs, with sound values between."""
    hit = dice.chance(dice.uniform(0.1, 0.6, signals.shape[0], 1), *signals.shape)
    return signals + (hit | (stretch.since == 0)) * dice.normal(*signals.shape) * 1.5 * _size(dice, stretch)


def shift(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """Another level."""
    return signals + _size(dice, stretch)


def stuck(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """The same value on and on."""
    return _read(signals, stretch.first)


def frozen(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """Stuck, but for the noise of the electronics."""
    noise = dice.log_uniform(0.005, 0.3, signals.shape[0], 1) * (stretch.scales.step + 0.01 * stretch.scales.deviation)
    return _read(signals, stretch.first) + noise * dice.normal(*signals.shape)


def dead(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """The lowest value ever, zero, or a level where the signal never is."""
    lowest = signals.amin(1, keepdim=True)
    level = _either(dice, lowest, _either(dice, torch.zeros_like(lowest), 2 * _size(dice, stretch)))
    return level.expand_as(signals)


def drift(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """A sensor that goes astray, evenly or ever faster."""
    share = stretch.since.clamp(min=0) / stretch.duration.clamp(min=1)
    return signals + 1.5 * _size(dice, stretch) * share ** dice.uniform(0.7, 2, signals.shape[0], 1)


def noise(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """More noise than there was."""
    return signals + _size(dice, stretch) * dice.normal(*signals.shape)


def smooth(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """Noise lost: a mean of neighbours (a filter gone wrong), or all movement but a little."""
    reach = 7
    padded = functional.pad(signals[:, None], (reach, reach), mode="replicate")
    filtered = functional.avg_pool1d(padded, 2 * reach + 1, 1)[:, 0]
    before = _before(signals, stretch)
    return _either(dice, filtered, before + dice.uniform(0.02, 0.2, signals.shape[0], 1) * (signals - before))


def gain(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """Larger or smaller swings around the same level."""
    rows = signals.shape[0]
    before = _before(signals, stretch)
    factor = _either(dice, dice.log_uniform(0.05, 0.6, rows, 1), dice.log_uniform(1.6, 5, rows, 1))
    return before + (signals - before) * factor


def frequency(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """The same movement, faster or slower."""
    rows = signals.shape[0]
    factor = _either(dice, dice.log_uniform(0.25, 0.75, rows, 1), dice.log_uniform(1.35, 4, rows, 1))
    return _read(signals, stretch.first + stretch.since.clamp(min=0) * factor)


def delayed(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """What was recorded some time before, once more."""
    return _read(signals, _place(signals) - dice.log_uniform(5, 400, signals.shape[0], 1))


def exchanged(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """Another signal in its place, near its level and of about its size."""
    other = signals.roll(1, 0)
    other = (other - other.mean(1, keepdim=True)) / (stretch.scales.deviation.roll(1, 0) + 1e-6)
    size = stretch.scales.deviation * dice.log_uniform(0.3, 1.5, signals.shape[0], 1)
    return _before(signals, stretch) + other * size


def mirrored(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """Backwards in time, or upside down."""
    backwards = _read(signals, stretch.first + stretch.duration - 1 - stretch.since)
    return _either(dice, backwards, 2 * _before(signals, stretch) - signals)


def cut(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """Peaks cut off on one side, as by a range that is too small."""
    edge = dice.uniform(0.0, 0.8, signals.shape[0], 1) * stretch.scales.deviation
    before = _before(signals, stretch)
    return _either(dice, torch.minimum(signals, before + edge), torch.maximum(signals, before - edge))


def hum(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """A wave on top that was not there."""
    turns = stretch.since / dice.log_uniform(2.5, 60, signals.shape[0], 1)
    return signals + _size(dice, stretch) * torch.sin(2 * math.pi * turns)


def shuffled(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """The right values in the wrong order."""
    return _read(signals, stretch.first + dice.uniform(0, 1, *signals.shape) * stretch.duration)


def phase_lost(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """One part of a turn falls to the bottom, again and again, as when one of three phases is lost."""
    rows = signals.shape[0]
    turns = stretch.since / torch.exp(dice.uniform(math.log(3), math.log(40), rows, 1))
    lost = turns % 1 < dice.pick((1 / 3, 1 / 3, 1 / 2, 2 / 3), rows, 1)
    lowest = signals.amin(1, keepdim=True)
    remains = dice.uniform(0, 0.6, rows, 1)
    return torch.where(lost, lowest + remains * (signals - lowest), signals)


def leak(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """Slow loss, refilled at once when it has gone too far."""
    turns = stretch.since / dice.log_uniform(8, 80, signals.shape[0], 1)
    return signals - _size(dice, stretch).abs() * (turns.clamp(min=0) % 1)


def doubled(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """Each value twice to six times, the ones between lost."""
    times = dice.whole(2, 7, signals.shape[0], 1)
    return _read(signals, stretch.first + stretch.since.clamp(min=0) // times * times)


def coarse(dice: Dice, signals: Tensor, stretch: Stretch) -> Tensor:
    """Rounded more coarsely than before."""
    step = dice.log_uniform(2, 30, signals.shape[0], 1) * (stretch.scales.step + 0.02 * stretch.scales.deviation + 1e-6)
    return torch.round(signals / step) * step


#: Every kind by its name.
KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        spike, spikes, shift, stuck, frozen, dead, drift, noise, smooth, gain, frequency, delayed, exchanged, mirrored,
        cut, hum, shuffled, phase_lost, leak, doubled, coarse,
    )
}  # fmt: skip
#: The place of the one that is over at once.
SPIKE = list(KINDS).index("spike")


def kinds_of(rows: int, turn: int, device: torch.device) -> Tensor:
    """The kind that `put_in` gives each row, `(rows, 1)`, as its place in `KINDS`; `turn` is which one comes first."""
    return ((torch.arange(rows, device=device) * len(KINDS) // rows + turn) % len(KINDS))[:, None]


def put_in(dice: Dice, signals: Tensor, stretch: Stretch, turn: int = 0) -> Tensor:
    """The signals with a fault in every row, of the kind that `kinds_of` says."""
    if not signals.shape[0]:
        return signals
    kinds, functions = kinds_of(signals.shape[0], turn, torch.device("cpu")).squeeze(1).tolist(), list(KINDS.values())
    parts, begin = [], 0
    for end in range(1, len(kinds) + 1):
        if end == len(kinds) or kinds[end] != kinds[begin]:
            rows = slice(begin, end)
            parts.append(functions[kinds[begin]](dice, signals[rows], stretch.part(rows)))
            begin = end
    return torch.where(stretch.inside, torch.nan_to_num(torch.cat(parts)).clamp(-_FAR, _FAR), signals)
