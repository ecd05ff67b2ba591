"""What signals are made of: waves, trends, noises, events. Every function gives `rows` signals of `length` steps."""

import math

import torch
from torch import Tensor

from training.dice import Dice

# Periods of calendars and clocks, at the sampling rates that people use.
USUAL_PERIODS = (
    4.0, 5.0, 6.0, 7.0, 7.0, 8.0, 10.0, 12.0, 12.0, 14.0, 20.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 28.0,
    30.0, 36.0, 48.0, 48.0, 48.0, 50.0, 52.0, 60.0, 60.0, 72.0, 84.0, 96.0, 96.0, 100.0, 120.0, 144.0, 144.0, 168.0,
    168.0, 168.0, 180.0, 200.0, 240.0, 288.0, 288.0, 288.0, 336.0, 336.0, 360.0, 365.0, 480.0, 504.0,
)  # fmt: skip
POINTS = 256  # on one turn of a wave


def standard(signals: Tensor) -> Tensor:
    """The same with mean 0 and standard deviation 1."""
    centred = signals - signals.mean(1, keepdim=True)
    return centred / (centred.std(1, keepdim=True) + 1e-6)


def periods(dice: Dice, rows: int, longest: float = 500.0) -> Tensor:
    """Mostly those of calendars and clocks, else any."""
    usual = dice.pick(tuple(period for period in USUAL_PERIODS if period <= longest), rows, 1)
    return torch.where(dice.chance(0.65, rows, 1), usual, dice.log_uniform(2.5, longest, rows, 1))


def shapes(dice: Dice, rows: int) -> Tensor:
    """One turn of a wave, `(rows, POINTS)`: sums of harmonics, their distortions, pulses, ramps, rough profiles.

    Any of them may stand upside down.
    """
    order = torch.arange(1, 33, device=dice.device)
    fall = order ** -dice.uniform(0.3, 2.5, rows, 1) * (order <= dice.log_uniform(1, 33, rows, 1))
    angle = 2 * math.pi * torch.arange(POINTS, device=dice.device) / POINTS
    cosines, sines = torch.cos(order[:, None] * angle), torch.sin(order[:, None] * angle)
    smooth = standard((dice.normal(rows, 32) * fall) @ cosines + (dice.normal(rows, 32) * fall) @ sines)
    turn = torch.arange(POINTS, device=dice.device) / POINTS
    duty = dice.uniform(0.03, 0.97, rows, 1)
    steps = dice.pick((4.0, 7.0, 12.0, 24.0, 48.0), rows, 1)
    rough = dice.normal(rows, 64).gather(1, (turn * steps).long())
    kind = dice.whole(0, 12, rows, 1)
    wave = smooth
    for number, other in {
        5: torch.exp(0.8 * smooth.clamp(-3, 3)),
        6: smooth.clamp(min=0),
        7: (turn < duty).float(),
        8: torch.where(turn < duty, turn / duty, (1 - turn) / (1 - duty)),
        9: torch.exp(-(((turn - 0.5) / dice.log_uniform(0.005, 0.1, rows, 1)) ** 2)),
        10: rough,
        11: rough,
    }.items():
        wave = torch.where(kind == number, other, wave)
    return standard(wave) * torch.where(dice.chance(0.4, rows, 1), -1.0, 1.0)


def read(wave: Tensor, turns: Tensor) -> Tensor:
    """The waves at the given numbers of turns, between their points in proportion."""
    place = (turns % 1) * POINTS
    before = place.long() % POINTS
    share = place - place.floor()
    return wave.gather(1, before) * (1 - share) + wave.gather(1, (before + 1) % POINTS) * share


def season(dice: Dice, rows: int, length: int, longest: float = 500.0) -> Tensor:
    """A wave of one period, whose size and shape may change slowly."""
    time = torch.arange(length, device=dice.device)
    turns = time / periods(dice, rows, longest) + dice.uniform(0, 1, rows, 1)
    shape = shapes(dice, rows)
    wave = read(shape, turns)
    drift = slow(dice, rows, length)
    # No turn is quite like the last one: here they differ in height, measured from where a turn begins.
    turn = turns.long().clamp(max=length)
    height = torch.exp(dice.log_uniform(0.03, 0.6, rows, 1) * dice.normal(rows, length + 1)).gather(1, turn)
    wave = torch.where(dice.chance(0.2, rows, 1), shape[:, :1] + (wave - shape[:, :1]) * height, wave)
    changing = torch.sigmoid(2 * drift)
    other = read(shapes(dice, rows), turns)
    wave = torch.where(dice.chance(0.15, rows, 1), changing * wave + (1 - changing) * other, wave)
    return wave * (1 + torch.where(dice.chance(0.3, rows, 1), dice.uniform(0, 0.6, rows, 1), 0.0) * drift)


def spectral(dice: Dice, gain: Tensor, length: int) -> Tensor:
    """Stationary noise with that gain at each frequency of twice the length, standardised."""
    spectrum = torch.fft.rfft(dice.normal(gain.shape[0], 2 * length)) * gain
    return standard(torch.fft.irfft(spectrum, n=2 * length)[:, length // 2 : length // 2 + length])


def frequencies(dice: Dice, length: int) -> Tensor:
    """Those that `spectral` knows, in turns per step; never 0."""
    return torch.arange(length + 1, device=dice.device).clamp(min=0.5) / (2 * length)


def power_law(dice: Dice, rows: int, length: int, least: float = 0.0, most: float = 3.0) -> Tensor:
    """Noise whose power falls with the frequency to a power: white, pink, brown and smoother."""
    exponent = dice.uniform(least, most, rows, 1)
    return spectral(dice, frequencies(dice, length) ** (-exponent / 2), length)


def slow(dice: Dice, rows: int, length: int) -> Tensor:
    """Something that wanders smoothly."""
    return power_law(dice, rows, length, 2.0, 3.5)


def autoregressive(dice: Dice, rows: int, length: int) -> Tensor:
    """Noise with one or two memories: decaying (real roots) or ringing (a pair of complex ones)."""
    angle = 2 * math.pi * frequencies(dice, length)
    once, twice = torch.exp(-1j * angle), torch.exp(-2j * angle)
    first, second = (1 - dice.log_uniform(0.002, 1.0, rows, 1) for _ in range(2))
    second = second * dice.chance(0.5, rows, 1) * torch.where(dice.chance(0.3, rows, 1), -1.0, 1.0)
    decaying = 1 / ((1 - first * once) * (1 - second * once)).abs()
    radius, turn = 1 - dice.log_uniform(0.003, 0.5, rows, 1), 2 * math.pi / dice.log_uniform(2.5, 300, rows, 1)
    ringing = 1 / (1 - 2 * radius * torch.cos(turn) * once + radius**2 * twice).abs()
    return spectral(dice, torch.where(dice.chance(0.4, rows, 1), ringing, decaying), length)


def shocks(dice: Dice, rows: int, length: int) -> Tensor:
    """Independent noise: normal, heavy-tailed or lopsided, of constant, periodic or slowly changing size."""
    noise = dice.normal(rows, length)
    heavy = torch.sign(noise) * noise.abs() ** dice.uniform(1.0, 2.3, rows, 1)
    lopsided = torch.exp(dice.uniform(0.3, 1.0, rows, 1) * noise) - 1
    kind = dice.uniform(0, 1, rows, 1)
    noise = torch.where(kind < 0.3, heavy, torch.where(kind < 0.38, lopsided, noise))
    size = dice.uniform(0, 1, rows, 1)
    periodic = torch.exp(0.7 * season(dice, rows, length).clamp(-2, 2))
    changing = torch.exp(0.7 * power_law(dice, rows, length, 1.0, 3.0).clamp(-3, 3))
    noise = noise * torch.where(size < 0.15, periodic, torch.where(size < 0.35, changing, 1.0))
    return noise / (noise.std(1, keepdim=True) + 1e-6)


def trend(dice: Dice, rows: int, length: int) -> Tensor:
    """None, or a line, a bend, a curve, or a passage from one level to another; fast or slow."""
    time = torch.arange(length, device=dice.device) / dice.log_uniform(30, 3000, rows, 1)
    start = dice.uniform(0, 1, rows, 1) * time[:, -1:]
    line = dice.normal(rows, 1) * time
    bend = line + 2 * dice.normal(rows, 1) * (time - start).clamp(min=0)
    curve = line + dice.normal(rows, 1) * ((time - start) ** 2).clamp(max=50)
    passage = 3 * dice.normal(rows, 1) * torch.sigmoid((time - start) * dice.log_uniform(1, 30, rows, 1))
    kind = dice.whole(0, 7, rows, 1)
    value = torch.zeros(rows, length, device=dice.device)
    for number, other in enumerate((line, bend, curve, passage)):
        value = torch.where(kind == number, other, value)
    return value.clamp(-30, 30)


def events(dice: Dice, rows: int, length: int, least: float, most: float) -> Tensor:
    """True where something happens, at random moments; each signal has its own rate."""
    return dice.chance(dice.log_uniform(least, most, rows, 1), rows, length)


def since(happened: Tensor) -> Tensor:
    """How many steps ago something happened last (or the signal began)."""
    time = torch.arange(happened.shape[1], device=happened.device).expand_as(happened)
    return time - torch.where(happened, time, 0).cummax(1).values


def held(dice: Dice, happened: Tensor, choices: int) -> Tensor:
    """Levels that stay from one event to the next; drawn from a few `choices` in half of the signals, else new."""
    rows, length = happened.shape
    number = happened.long().cumsum(1)
    known = dice.normal(rows, choices).gather(1, dice.whole(0, choices, rows, length + 1).gather(1, number))
    fresh = dice.normal(rows, length + 1).gather(1, number)
    return torch.where(dice.chance(0.5, rows, 1), known, fresh)


def fading(dice: Dice, signals: Tensor, least: float, most: float) -> Tensor:
    """The signals passed through a first-order lag: what comes in fades out again."""
    length = signals.shape[1]
    time = torch.arange(length, device=dice.device)
    kernel = torch.exp(-time / dice.log_uniform(least, most, signals.shape[0], 1))
    return torch.fft.irfft(torch.fft.rfft(signals, n=2 * length) * torch.fft.rfft(kernel, n=2 * length))[:, :length]
