"""Faults: each changes its stretch and nothing else."""

import pytest
import torch
from training.dice import Dice
from training.faults import KINDS, Stretch, kinds_of, put_in, scales_of

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
    scales = scales_of(signals, column(LENGTH))
    return Stretch.of(LENGTH, scales, start, column(DURATION if every is None else 12), every)


def test_scales_are_those_of_the_values_that_are_used(signals):
    louder = torch.cat([signals, 1000 * signals], 1)
    used = torch.full((ROWS, 1), LENGTH)
    torch.testing.assert_close(scales_of(louder, used), scales_of(signals, used))
    deviation = signals.std(1, correction=0, keepdim=True)
    torch.testing.assert_close(scales_of(signals, used).deviation, deviation)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_changes_its_stretch_and_nothing_else(signals, kind):
    turn = list(KINDS).index(kind)
    # Rows of one kind: as many copies of the signals as there are kinds.
    many = signals.repeat(len(KINDS), 1)
    made = put_in(Dice(seed=2), many, stretch_of(many), turn)
    value = made[(kinds_of(many.shape[0], turn, many.device) == turn).squeeze(1)]
    assert value.shape == (ROWS, LENGTH)
    inside = torch.zeros(LENGTH, dtype=torch.bool)
    inside[START : START + DURATION] = True
    assert torch.equal(value[:, ~inside], signals[:, ~inside])
    assert torch.isfinite(value).all()
    assert (value[:, inside] != signals[:, inside]).any(1).all()


def test_a_constant_signal_takes_every_fault():
    signals = torch.zeros(len(KINDS), LENGTH)
    assert torch.isfinite(put_in(Dice(seed=3), signals, stretch_of(signals))).all()


def test_a_fault_may_recur(signals):
    many = signals.repeat(len(KINDS), 1)
    made = put_in(Dice(seed=4), many, stretch_of(many, every=50))
    place = torch.arange(LENGTH)
    inside = (place >= 10) & ((place - 10) % 50 < 12)
    assert torch.equal(made[:, ~inside], many[:, ~inside])
    for first in range(10, LENGTH, 50):
        assert (made[:, first : first + 12] != many[:, first : first + 12]).any(1).float().mean() > 0.9


def test_no_rows_are_no_fault(signals):
    assert put_in(Dice(seed=5), signals[:0], stretch_of(signals).part(slice(0, 0))).shape == (0, LENGTH)
