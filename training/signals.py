"""The synthetic signals that the forecaster is trained on.

    python -m training.signals samples.png

draws samples of every family. A family is a function that makes `rows` signals of `length` steps; `make_signals` mixes
the families in their shares, gives some signals level shifts, and passes some through what sensors and counters do to
signals (rounding, clipping, counting). No real data is used anywhere.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from training import components as part
from training.dice import Dice

Family = Callable[[Dice, int, int], Tensor]


def seasons(dice: Dice, rows: int, length: int) -> Tensor:
    """Up to three waves, a trend, and coloured and white noise, added or multiplied."""
    count = dice.whole(1, 4, rows, 1)
    waves = torch.zeros(rows, length, device=dice.device)
    for number in range(3):
        waves = waves + dice.log_uniform(0.1, 2, rows, 1) * (count > number) * part.season(dice, rows, length)
    trend = dice.log_uniform(0.1, 2, rows, 1) * part.trend(dice, rows, length)
    colour = dice.log_uniform(0.02, 1.5, rows, 1) * dice.chance(0.6, rows, 1) * part.power_law(dice, rows, length)
    white = dice.log_uniform(0.01, 1, rows, 1) * dice.chance(0.85, rows, 1) * part.shocks(dice, rows, length)
    grows = (1 + 0.5 * trend.clamp(-1.8, 6)) * (waves + white) + trend + 0.3 * colour
    return torch.where(dice.chance(0.25, rows, 1), grows, waves + trend + colour + white)


def calendar(dice: Dice, rows: int, length: int) -> Tensor:
    """Days with a profile, in weeks whose days differ, as of traffic, loads and sales."""
    day = torch.where(
        dice.chance(0.5, rows, 1), 24.0, dice.pick((48.0, 48.0, 96.0, 96.0, 144.0, 144.0, 288.0), rows, 1)
    )
    days = torch.arange(length, device=dice.device) / day + dice.uniform(0, 7, rows, 1)
    weekday = (days.long() % 7).clamp(0, 6)
    workday, restday = part.shapes(dice, rows), part.shapes(dice, rows)
    likeness = dice.uniform(0, 1, rows, 1)
    restday = likeness * workday + (1 - likeness) * restday
    # Weekends come later in the night than at midnight, and elsewhere in the week for some.
    shift = dice.whole(0, 7, rows, 1)
    rests = ((weekday + shift) % 7 >= 5) & dice.chance(0.7, rows, 1)
    profile = torch.where(rests, part.read(restday, days), part.read(workday, days))
    spread = dice.log_uniform(0.02, 0.5, rows, 1)
    by_weekday = torch.exp(spread * dice.normal(rows, 7)).gather(1, weekday)
    # Some calendars are kept so well that hardly anything else is seen.
    quiet = torch.where(dice.chance(0.3, rows, 1), dice.log_uniform(0.03, 1, rows, 1), 1.0)

    def by_day(sizes: Tensor) -> Tensor:
        return torch.exp(quiet * sizes * dice.normal(rows, length // 24 + 9)).gather(1, days.long())

    edge = torch.where(dice.chance(0.5, rows, 1), profile.amax(1, keepdim=True), profile.amin(1, keepdim=True))
    depth = by_day(dice.log_uniform(0.05, 0.8, rows, 1) * dice.chance(0.4, rows, 1))
    height = dice.uniform(0.8, 4, rows, 1)
    load = (edge + (profile - edge) * depth + height) * by_weekday * by_day(dice.log_uniform(0.003, 0.3, rows, 1))
    weather = part.power_law(dice, rows, length, 1.2, 3.5)
    load = load * torch.exp(quiet * dice.log_uniform(0.005, 0.5, rows, 1) * weather)
    colour = dice.log_uniform(0.005, 0.5, rows, 1) * part.autoregressive(dice, rows, length)
    white = dice.log_uniform(0.003, 0.5, rows, 1) * part.shocks(dice, rows, length)
    proportional = torch.where(dice.chance(0.5, rows, 1), load.abs() / height, 1.0)
    return load + quiet * (colour + white) * proportional + 0.3 * part.trend(dice, rows, length)


def structural(dice: Dice, rows: int, length: int) -> Tensor:
    """A level and a slope that wander, or growth, and a season of few steps: what offices and shops record."""
    season = dice.chance(0.75, rows, 1) * part.season(dice, rows, length, 60.0)
    noise, steps = part.shocks(dice, rows, length), part.shocks(dice, rows, length)
    # Much of what is recorded over years grows.
    direction = dice.normal(rows, 1).abs() * torch.where(dice.chance(0.8, rows, 1), 1.0, -1.0)
    bends = part.held(dice, part.events(dice, rows, length, 0.002, 0.03), 4)
    direction = direction * dice.chance(0.8, rows, 1) * torch.where(dice.chance(0.4, rows, 1), bends, 1.0)
    level = (dice.log_uniform(0.003, 0.5, rows, 1) * steps + dice.log_uniform(0.0005, 0.2, rows, 1) * direction).cumsum(
        1
    )
    added = level + dice.log_uniform(0.05, 2, rows, 1) * season + dice.log_uniform(0.01, 0.5, rows, 1) * noise
    growth = (
        dice.log_uniform(0.002, 0.1, rows, 1) * steps + dice.log_uniform(0.001, 0.05, rows, 1) * direction
    ).cumsum(1)
    swings = dice.log_uniform(0.02, 0.6, rows, 1) * season + dice.log_uniform(0.01, 0.3, rows, 1) * noise
    grown = torch.exp((growth - growth.amax(1, keepdim=True)).clamp(min=-9) + swings.clamp(-4, 4))
    return torch.where(dice.chance(0.5, rows, 1), grown, added)


def noises(dice: Dice, rows: int, length: int) -> Tensor:
    """No pattern but memory: white, coloured, decaying or ringing noise."""
    colour = torch.where(
        dice.chance(0.5, rows, 1), part.power_law(dice, rows, length, 0.0, 2.0), part.autoregressive(dice, rows, length)
    )
    share = torch.where(dice.chance(0.3, rows, 1), 0.0, dice.uniform(0, 1, rows, 1))
    return (1 - share) * colour + share * part.shocks(dice, rows, length)


def walks(dice: Dice, rows: int, length: int) -> Tensor:
    """Sums of shocks, with drift, seasons or noise on top; also their exponentials, and sums of sums."""
    steps = part.shocks(dice, rows, length)
    lasting = 0.7 * part.autoregressive(dice, rows, length) + 0.7 * steps
    steps = torch.where(dice.chance(0.3, rows, 1), lasting, steps)
    drift = dice.log_uniform(0.002, 0.2, rows, 1) * dice.normal(rows, 1) * dice.chance(0.4, rows, 1)
    walk = (steps + drift).cumsum(1)
    smooth = (walk - walk.mean(1, keepdim=True)).cumsum(1)
    walk = part.standard(torch.where(dice.chance(0.12, rows, 1), smooth, walk))
    season = dice.log_uniform(0.02, 0.5, rows, 1) * dice.chance(0.3, rows, 1) * part.season(dice, rows, length)
    noise = dice.log_uniform(0.003, 0.3, rows, 1) * dice.chance(0.3, rows, 1) * part.shocks(dice, rows, length)
    walk = walk + season + noise
    return torch.where(
        dice.chance(0.2, rows, 1), torch.exp(dice.log_uniform(0.1, 1, rows, 1) * walk.clamp(-4, 4)), walk
    )


def states(dice: Dice, rows: int, length: int) -> Tensor:
    """Levels that are held, switched or approached; ramps between resets; each state with its own noise."""
    happened = part.events(dice, rows, length, 0.001, 0.15)
    turns = torch.arange(length, device=dice.device) / part.periods(dice, rows) + dice.uniform(0, 1, rows, 1)
    turns = turns + dice.log_uniform(0.001, 0.3, rows, 1) * dice.chance(0.5, rows, 1) * part.slow(dice, rows, length)
    clock = (turns % 1 < dice.uniform(0.03, 0.97, rows, 1)).float()
    ticks = functional.pad(clock[:, 1:] != clock[:, :-1], (1, 0))
    happened = torch.where(dice.chance(0.4, rows, 1), ticks, happened)
    level = part.held(dice, happened, 2)
    several = part.held(dice, happened, 5)
    pulses = (part.since(happened) < dice.log_uniform(1, 30, rows, 1)).float()
    kind = dice.uniform(0, 1, rows, 1)
    level = torch.where(kind < 0.35, several, level)
    level = torch.where((kind > 0.55) & (kind < 0.7), clock, level)
    level = torch.where((kind > 0.7) & (kind < 0.85), pulses, level)
    ramp = 0.02 * part.since(happened) * torch.where(dice.chance(0.5, rows, 1), 1.0, several)
    level = torch.where(kind > 0.85, ramp, level)
    level = torch.where(dice.chance(0.25, rows, 1), part.standard(part.fading(dice, level, 1, 60)), level)
    own_noise = torch.where(dice.chance(0.3, rows, 1), part.held(dice, happened, 3).abs(), 1.0)
    amount = dice.log_uniform(0.003, 0.5, rows, 1) * dice.chance(0.7, rows, 1)
    noise = torch.where(
        dice.chance(0.5, rows, 1), part.shocks(dice, rows, length), part.autoregressive(dice, rows, length)
    )
    wave = dice.log_uniform(0.05, 1, rows, 1) * dice.chance(0.2, rows, 1) * part.season(dice, rows, length)
    return level + amount * own_noise * noise + wave


def bursts(dice: Dice, rows: int, length: int) -> Tensor:
    """A quiet base and bursts that fade: latencies, queues, request rates."""
    happened = part.events(dice, rows, length, 0.002, 0.15)
    wave = part.season(dice, rows, length)
    happened = happened & (dice.chance(torch.sigmoid(2 * wave), rows, length) | dice.chance(0.5, rows, 1))
    height = torch.exp(dice.uniform(0.1, 1.2, rows, 1) * dice.normal(rows, length))
    burst = part.fading(dice, happened * height, 0.3, 30)
    base = dice.log_uniform(0.01, 0.5, rows, 1) * part.shocks(dice, rows, length)
    base = base + dice.log_uniform(0.05, 1, rows, 1) * dice.chance(0.6, rows, 1) * wave
    latency = torch.exp(dice.uniform(0.2, 1.2, rows, 1) * part.shocks(dice, rows, length).clamp(-6, 3) + 0.5 * wave)
    burst = torch.where(dice.chance(0.25, rows, 1), -burst, burst)
    return torch.where(dice.chance(0.25, rows, 1), latency, burst + base)


def machines(dice: Dice, rows: int, length: int) -> Tensor:
    """Turning and swinging parts: waves whose speed and size wander, beats, filling and draining."""
    period = dice.log_uniform(3, 400, rows, 1)
    wander = dice.log_uniform(0.003, 0.3, rows, 1) * dice.chance(0.7, rows, 1) * part.slow(dice, rows, length)
    turns = ((1 + wander).clamp(min=0.1) / period).cumsum(1) + dice.uniform(0, 1, rows, 1)
    wave = part.read(part.shapes(dice, rows), turns)
    overtone = part.read(part.shapes(dice, rows), turns * dice.pick((0.5, 1 / 3, 2.0, 3.0, 7.0), rows, 1))
    size = 1 + dice.uniform(0, 0.8, rows, 1) * dice.chance(0.5, rows, 1) * part.slow(dice, rows, length)
    ringing = dice.log_uniform(0.02, 1, rows, 1) * dice.chance(0.5, rows, 1) * part.autoregressive(dice, rows, length)
    white = dice.log_uniform(0.003, 0.5, rows, 1) * dice.chance(0.8, rows, 1) * part.shocks(dice, rows, length)
    drift = dice.log_uniform(0.05, 1, rows, 1) * dice.chance(0.4, rows, 1) * part.slow(dice, rows, length)
    return size * (wave + dice.uniform(0, 0.7, rows, 1) * overtone) + ringing + white + drift


def expansion(dice: Dice, rows: int, length: int) -> Tensor:
    """Growth or decline for as long as anybody records: visitors, sales, stocks. At a rate that holds or changes
    slowly, by so much a step, in proportion, or until all is taken; with a season and noise in proportion."""
    time = torch.arange(length, device=dice.device) / length
    changes = dice.log_uniform(0.02, 0.8, rows, 1) * dice.chance(0.6, rows, 1) * part.slow(dice, rows, length)
    shocks = dice.log_uniform(0.05, 1.5, rows, 1) * dice.chance(0.6, rows, 1) * part.shocks(dice, rows, length)
    path = ((1 + changes) / length).cumsum(1) + shocks.cumsum(1) / length
    path = path * torch.where(dice.chance(0.85, rows, 1), 1.0, -1.0)
    amount = dice.log_uniform(0.4, 15, rows, 1)
    logarithm = amount * path
    multiplied = torch.exp((logarithm - logarithm.amax(1, keepdim=True)).clamp(min=-12))
    added = path - path.amin(1, keepdim=True) + dice.log_uniform(0.03, 3, rows, 1)
    steepness = dice.log_uniform(3, 40, rows, 1)
    filled = torch.sigmoid(steepness * (time + 0.2 * (path - time) - dice.uniform(0.1, 1.1, rows, 1))) + 0.02
    kind = dice.uniform(0, 1, rows, 1)
    level = torch.where(kind < 0.45, multiplied, torch.where(kind < 0.85, added, filled))
    season = dice.log_uniform(0.02, 0.7, rows, 1) * dice.chance(0.75, rows, 1) * part.season(dice, rows, length, 60.0)
    rough = torch.where(
        dice.chance(0.5, rows, 1), part.shocks(dice, rows, length), part.autoregressive(dice, rows, length)
    )
    swings = season + dice.log_uniform(0.003, 0.3, rows, 1) * rough
    return level * torch.exp(swings.clamp(-4, 4))


#: Every family with its share of the signals.
FAMILIES: dict[str, tuple[Family, float]] = {
    "seasons": (seasons, 0.20),
    "calendar": (calendar, 0.22),
    "structural": (structural, 0.14),
    "expansion": (expansion, 0.04),
    "noises": (noises, 0.06),
    "walks": (walks, 0.09),
    "states": (states, 0.12),
    "bursts": (bursts, 0.07),
    "machines": (machines, 0.06),
}


def grown(dice: Dice, signals: Tensor, share: float, over: Tensor, until: Tensor) -> Tensor:
    """That share of the standard signals with growth or decline that goes on and on: a third of them by so much a step,
    the others in proportion; the rate is constant or not. How much it is in all is reached after `over (B, 1)` steps,
    and it ends after `until (B, 1)`."""
    rows, length = signals.shape
    wander = dice.log_uniform(0.03, 0.5, rows, 1) * dice.chance(0.5, rows, 1)
    place = torch.arange(length, device=dice.device)
    path = place / over + wander * dice.normal(rows, length).cumsum(1) / over.sqrt()
    path = path.gather(1, torch.minimum(place, until.clamp(max=length - 1)))
    path = path * torch.where(dice.chance(0.8, rows, 1), 1.0, -1.0)
    added = signals + dice.log_uniform(0.5, 40, rows, 1) * path
    logarithm = dice.log_uniform(0.2, 4, rows, 1) * path
    lifted = signals - signals.amin(1, keepdim=True) + dice.log_uniform(0.1, 20, rows, 1)
    multiplied = lifted * torch.exp((logarithm - logarithm.amax(1, keepdim=True)).clamp(min=-12))
    kind = dice.uniform(0, 1, rows, 1)
    return torch.where(kind < share / 3, added, torch.where(kind < share, multiplied, signals))


def shifted(dice: Dice, signals: Tensor) -> Tensor:
    """Some of the signals with lasting shifts of their level, as regimes change."""
    rows, length = signals.shape
    moments = part.events(dice, rows, length, 0.0005, 0.01)
    size = dice.log_uniform(0.2, 3, rows, 1) * dice.chance(0.16, rows, 1)
    return signals + (moments * dice.normal(rows, length)).cumsum(1) * size


def exceptional(dice: Dice, signals: Tensor) -> Tensor:
    """Some of the signals with exceptional values that belong to them: holidays, outages, rushes."""
    rows, length = signals.shape
    days = part.events(dice, rows, length, 0.002, 0.04) & dice.chance(0.08, rows, 1)
    low = signals.amin(1, keepdim=True)
    other = torch.where(dice.chance(0.5, rows, 1), low, signals + 4 * dice.normal(rows, 1) * dice.normal(rows, length))
    return torch.where(days, other, signals)


def recorded(dice: Dice, signals: Tensor) -> Tensor:
    """Some of the standard signals as instruments would give them: rounded, clipped, counted, never below zero."""
    rows, _ = signals.shape
    kind = dice.uniform(0, 1, rows, 1)
    step = dice.log_uniform(0.03, 1, rows, 1)
    low, high = -dice.uniform(0.3, 1.8, rows, 1), dice.uniform(0.3, 1.8, rows, 1)
    counted = dice.poisson(dice.log_uniform(0.1, 100, rows, 1) * torch.exp(0.6 * signals.clamp(-3, 3)))
    choices = (
        (0.05, torch.exp(dice.uniform(0.3, 1.3, rows, 1) * signals.clamp(-4, 4))),
        (0.05, (signals - dice.uniform(-0.5, 1, rows, 1)).clamp(min=0)),
        (0.04, torch.maximum(torch.minimum(signals, high), low)),
        (0.08, torch.round(signals / step) * step),
        (0.07, counted),
        (0.02, torch.sign(signals) * signals.abs().sqrt()),
    )
    value, reached = signals, 0.0
    for share, other in choices:
        value = torch.where((kind >= reached) & (kind < reached + share), other, value)
        reached += share
    return value


def make_signals(dice: Dice, rows: int, length: int) -> Tensor:
    """Signals of all families in their shares, in no order, each with mean 0 and standard deviation 1."""
    ends = torch.tensor([share for _, share in FAMILIES.values()]).cumsum(0).mul(rows).round().int().tolist()
    ends[-1] = rows
    made = [
        family(dice, end - start, length)
        for (family, _), start, end in zip(FAMILIES.values(), [0, *ends[:-1]], ends, strict=True)
        if end > start
    ]
    signals = part.standard(torch.nan_to_num(torch.cat(made)).clamp(-1e4, 1e4))
    whole = torch.full((rows, 1), length, device=dice.device)
    signals = part.standard(grown(dice, signals, 0.15, whole, whole))
    signals = part.standard(exceptional(dice, shifted(dice, signals)))
    signals = part.standard(recorded(dice, signals)).clamp(-50, 50)
    return signals[torch.randperm(rows, device=dice.device, generator=dice.generator)]


def draw(path: Path, seed: int, length: int = 1024, columns: int = 4) -> None:
    """A picture with a row of samples for each family, and one of finished signals."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    dice = Dice(seed=seed)
    rows: dict[str, Tensor] = {name: family(dice, columns, length) for name, (family, _) in FAMILIES.items()}
    rows["all, as recorded"] = make_signals(dice, columns, length)
    figure, axes = plt.subplots(len(rows), columns, figsize=(5 * columns, 1.6 * len(rows)), layout="constrained")
    for line, (name, signals) in zip(axes, rows.items(), strict=True):
        for place, signal in zip(line, signals, strict=True):
            place.plot(signal.numpy(), linewidth=0.6)
            place.set(xticks=[], yticks=[])
        line[0].set_ylabel(name)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Draw samples of every family."""
    parser = argparse.ArgumentParser(description="Draw samples of the synthetic signals, a row for each family.")
    parser.add_argument("picture", type=Path, help="where to write the picture, such as samples.png")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw(given.picture, given.seed)


if __name__ == "__main__":
    main()
