"""From signals to examples: the truth stays clean, and what is asked lies where it may."""

import numpy as np
import pytest
import torch
from training import faults
from training.dice import Dice
from training.examples import (
    AHEAD,
    LONG,
    LONGEST,
    RECURRENT,
    SHORT,
    SIGNAL_LENGTH,
    WINDOWS,
    centre_and_scale,
    contaminated,
    known_values,
    make_examples,
)


@pytest.fixture(scope="module")
def examples():
    """Of a straight line: what a value is says where it is."""
    signals = torch.linspace(-1, 1, SIGNAL_LENGTH).expand(400, -1).contiguous()
    return make_examples(Dice(seed=1), signals)


def test_shapes_and_places(examples):
    for part, rows, length in zip(examples, (400, 400 * WINDOWS), (LONG, SHORT), strict=True):
        assert part.values.shape == part.known.shape == (rows, length)
        assert part.truth.shape == (*part.lengths.shape, AHEAD)
        assert part.lengths.min() >= 2
        assert part.lengths.max() <= length
        assert (part.values[part.known == 0] == 0).all()
        assert torch.isfinite(part.truth).all()
    long, _ = examples
    assert (long.lengths >= LONGEST).all(1).float().mean() > 0.4


def test_the_truth_follows_the_context_and_is_clean(examples):
    def rising(part):
        usable = (part.weight > 0).any(1)
        usable[: int(RECURRENT[1] * usable.size(0))] = False  # what recurs there goes on to
        truth = part.truth[usable]
        return (truth[..., 1:] > truth[..., :-1]).all(-1).all(-1).float().mean()

    long, short = examples
    assert rising(long) == 1, "a rising line goes on rising, whatever happened to the context"
    # Of the short ones three in ten are given growth or decline of their own, of which the most rise too.
    assert 0.7 < rising(short) < 0.97


@pytest.fixture(scope="module")
def faulty():
    """Faults in sines, near the 400th observation and before."""
    signals = torch.sin(torch.arange(600) / 9).expand(3000, -1).contiguous()
    until = torch.full((3000, 1), 400)
    return signals, contaminated(Dice(seed=2), signals, until, faults.scales_of(signals, until))


def test_faults_touch_some_signals(faulty):
    signals, (contexts, under_way) = faulty
    different = (contexts - signals).abs() > 1e-4
    assert 0.35 < different.any(1).float().mean() < 0.55
    # The latest ones begin near the places from which forecasts are asked.
    late = under_way.any(1)
    assert 0.25 < late.float().mean() < 0.3
    assert (different & under_way).any(1)[late].float().mean() > 0.9
    began = under_way[late].int().argmax(1)
    assert began.min() >= 400 - 400 // 12
    assert began.max() < 450


def test_a_fault_under_way_is_no_truth(examples):
    for part in examples:
        nothing_counts = (part.weight == 0).float().mean()
        assert 0.02 < nothing_counts < 0.3


def test_most_values_are_known():
    known = known_values(Dice(seed=3), 2000, 400)
    assert set(known.unique().tolist()) == {0.0, 1.0}
    assert 0.8 < (known == 1).all(1).float().mean() < 0.9


def test_centre_and_scale_by_hand():
    values = np.array([0.0, 1.0, 2.0, 3.0, 1000.0])
    used = np.array([1.0, 1.0, 1.0, 1.0, 1.0])
    clipped = values
    centre, scale = values.mean(), values.std()
    for _ in range(2):
        clipped = np.clip(values, centre - 4 * scale, centre + 4 * scale)
        centre, scale = clipped.mean(), clipped.std()
    got = centre_and_scale(torch.tensor(values)[None], torch.tensor(used)[None])
    assert [float(number) for number in got] == pytest.approx([centre, scale])


def test_one_spike_hardly_changes_the_scale():
    values = Dice(seed=4).normal(1, 1000).double()
    quiet = float(centre_and_scale(values, torch.ones_like(values))[1])
    values[0, 500] = 1e4
    assert float(centre_and_scale(values, torch.ones_like(values))[1]) < 10 * quiet
    assert float(values.std()) > 300 * quiet
