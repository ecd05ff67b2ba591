"""Faults: each changes its stretch and nothing else, and is labelled where the values show it."""

import pytest
import torch

from training.dice import Dice
from training.faults import KINDS, NORMAL_FROM, Stretch, kinds_of, put_in, scales_of

ROWS, LENGTH, START, DURATION = 10, 400, 200, 60


@pytest.fixture(scope="module")
def signals():
    """A wave with some noise, out of phase from row to row."""
    dice = Dice(seed=1)
    return torch.sin(torch.arange(LENGTH) / 5 + dice.uniform(0, 6, ROWS, 1)) + 0.1 * dice.normal(ROWS, LENGTH)


def stretch_of(signals, every=None):
    def column(number):
        return torch.full((signals.shape[0], 1), number)

    every = None if every is None else column(every)
    start = column(START if every is None else 10)
    return Stretch.of(LENGTH, scales_of(signals), start, column(DURATION if every is None else 12), every)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_changes_its_stretch_and_is_seen(signals, kind):
    turn = list(KINDS).index(kind)
    # Rows of one kind: as many copies of the signals as there are kinds.
    many = signals.repeat(len(KINDS), 1)
    made = put_in(Dice(seed=2), many, stretch_of(many), turn)
    mine = (kinds_of(many.shape[0], turn, many.device) == turn).squeeze(1)
    value, shown, unclear = (part[mine] for part in made)
    assert value.shape == (ROWS, LENGTH)
    inside = torch.zeros(LENGTH, dtype=torch.bool)
    inside[START : START + DURATION] = True
    assert torch.equal(value[:, ~inside], signals[:, ~inside])
    assert torch.isfinite(value).all()
    assert (value[:, inside] != signals[:, inside]).any(1).all()
    assert not (shown | unclear)[:, ~inside].any()
    assert not (shown & unclear).any()
    assert shown.any(1).float().mean() >= 0.5


def test_a_constant_signal_takes_every_fault():
    signals = torch.zeros(len(KINDS), LENGTH)
    made = put_in(Dice(seed=3), signals, stretch_of(signals))
    assert torch.isfinite(made.signals).all()


def test_what_recurs_is_normal_from_the_fifth_time_on(signals):
    many = signals.repeat(len(KINDS), 1)
    stretch = stretch_of(many, every=50)
    made = put_in(Dice(seed=4), many, stretch)
    assert int(stretch.occurrence.max()) > NORMAL_FROM
    assert not made.shown[stretch.occurrence > 0].any()
    assert not (made.shown | made.unclear)[stretch.occurrence >= NORMAL_FROM].any()
    again = stretch.inside & (stretch.occurrence > 0) & (stretch.occurrence < NORMAL_FROM)
    assert made.unclear[again].all()
    assert made.shown[stretch.occurrence == 0].any()


def test_no_rows_are_no_fault():
    made = put_in(Dice(seed=5), torch.zeros(0, LENGTH), stretch_of(torch.zeros(0, LENGTH)))
    assert made.signals.shape == made.shown.shape == made.unclear.shape == (0, LENGTH)
