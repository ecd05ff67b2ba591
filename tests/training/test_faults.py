"""Faults: each changes its stretch and nothing else, and is labelled where the values show it."""

import numpy as np
import pytest
import torch

from tests.forecasting.embedded_oracle import random_arrays
from tocsin.arrays import write_arrays
from training.dice import Dice
from training.faults import KINDS, NORMAL_FROM, Stretch, kinds_of, put_in, scales_of
from training.judging.faults import BATCH, Judged, judge_faults
from training.judging.recipe import Recipe

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


def test_no_rows_are_no_fault(signals):
    made = put_in(Dice(seed=5), signals[:0], stretch_of(signals).part(slice(0, 0)))
    assert made.signals.shape == made.shown.shape == made.unclear.shape == (0, LENGTH)


def test_a_network_is_judged_by_kind(tmp_path):
    write_arrays(random_arrays(), tmp_path / "weights.npz")
    judged = judge_faults(Recipe("embedded", (("weights", str(tmp_path / "weights.npz")),)), 2, seed=1)
    assert judged.odds.shape == judged.faulty.shape == judged.counts.shape == (BATCH, 2)
    assert judged.counts.mean() > 0.7
    for which in range(2):
        assert 0 <= judged.power(which) <= 1
        assert judged.loss(which) > 0
    with pytest.raises(ValueError, match=r"^forecaster must give odds of faults, got LastValue\(\)$"):
        judge_faults(Recipe("last-value", ()), 2, seed=1)


def test_power_and_loss_by_hand():
    odds = np.column_stack([np.r_[np.linspace(-5, 0, 100), 1.0, 2.0, -3.0]] * 2)
    faulty = np.zeros((103, 2), dtype=bool)
    faulty[100:] = True
    kind = np.r_[np.zeros(101, dtype=int), 1, 1]
    judged = Judged(odds, faulty, np.ones((103, 2), dtype=bool), kind)
    assert judged.power(0) == pytest.approx(2 / 3)
    assert judged.power(0, 1) == 0.5
    assert np.isnan(judged.power(0, 2))
    chance = 1 / (1 + np.exp(-odds[:, 0]))
    assert judged.loss(0) == pytest.approx(-np.log(np.where(faulty[:, 0], chance, 1 - chance)).mean())
