"""The synthetic signals: every family is finite, varied, reproducible, and what it says it is."""

import subprocess
import sys

import pytest
import torch
from training import components as part
from training.dice import Dice
from training.signals import FAMILIES, exceptional, grown, make_signals, recorded, shifted

LENGTH = 1216


def roughness(signals):
    """Mean absolute step in units of the standard deviation."""
    signals = part.standard(signals)
    return (signals[:, 1:] - signals[:, :-1]).abs().mean(1)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_finite_varied_and_reproducible(name):
    family, _ = FAMILIES[name]
    signals = family(Dice(seed=1), 64, LENGTH)
    assert signals.shape == (64, LENGTH)
    assert torch.isfinite(signals).all()
    assert torch.equal(signals, family(Dice(seed=1), 64, LENGTH))
    assert not torch.equal(signals, family(Dice(seed=2), 64, LENGTH))
    moving = signals.std(1) > 1e-6
    assert moving.float().mean() > 0.9, "a constant signal teaches nothing"
    spread = roughness(signals[moving])
    assert spread.max() > 3 * spread.min(), "quiet ones and rough ones"


def test_families_are_mixed_in_their_shares_and_in_no_order():
    assert sum(share for _, share in FAMILIES.values()) == pytest.approx(1)
    signals = make_signals(Dice(seed=3), 256, LENGTH)
    assert signals.shape == (256, LENGTH)
    assert torch.isfinite(signals).all()
    assert signals.mean(1).abs().max() < 0.5
    deviation = signals.std(1)
    assert ((deviation > 0.5) | (deviation < 1e-3)).all()
    # A walk is far quieter than noise: in shuffled rows the first half is as rough as the second.
    halves = roughness(signals).view(2, -1).mean(1)
    assert halves.max() < 1.3 * halves.min()


def test_waves_repeat_after_their_period():
    dice = Dice(seed=4)
    wave = part.shapes(dice, 8)
    turns = torch.arange(480).expand(8, -1) / 24.0
    repeated = part.read(wave, turns)
    torch.testing.assert_close(repeated[:, 24:], repeated[:, :-24], atol=2e-3, rtol=0)


def test_autoregressive_noise_has_its_memory():
    noise = part.autoregressive(Dice(seed=5), 256, 2048)
    lagged = (noise[:, 1:] * noise[:, :-1]).mean(1)
    assert lagged.min() < 0.2
    assert lagged.max() > 0.95
    white = part.power_law(Dice(seed=5), 256, 2048, 0.0, 0.001)
    assert (white[:, 1:] * white[:, :-1]).mean().abs() < 0.01


def test_levels_are_held_from_event_to_event():
    dice = Dice(seed=6)
    happened = part.events(dice, 16, 500, 0.01, 0.05)
    level = part.held(dice, happened, 3)
    changed = level[:, 1:] != level[:, :-1]
    assert not (changed & ~happened[:, 1:]).any()
    ages = part.since(happened)
    assert (ages[happened] == 0).all()
    assert (ages[:, 1:] - ages[:, :-1] <= 1).all()


def test_what_comes_in_fades_out():
    impulse = torch.zeros(4, 100)
    impulse[:, 10] = 1
    faded = part.fading(Dice(seed=7), impulse, 2, 20)
    assert faded[:, :10].abs().max() < 1e-5
    assert (faded[:, 10:].diff() < 1e-5).all()


def test_instruments_round_clip_and_count():
    signals = part.standard(Dice(seed=8).normal(4000, 300))
    given = recorded(Dice(seed=9), signals)
    untouched = (given == signals).all(1).float().mean()
    assert 0.6 < untouched < 0.78
    counts = ((given == given.round()) & (given >= 0)).all(1).float().mean()
    assert 0.04 < counts < 0.1


def growing(dice, signals, share=0.3, over=300, until=300):
    return grown(dice, signals, share, *(torch.full((signals.shape[0], 1), steps) for steps in (over, until)))


def test_only_some_signals_grow_shift_or_have_exceptional_values():
    signals = part.standard(Dice(seed=10).normal(4000, 300))
    for change, share in ((growing, 0.3), (shifted, 0.16), (exceptional, 0.08)):
        touched = (change(Dice(seed=11), signals) != signals).any(1).float().mean()
        assert 0.4 * share < touched < 1.1 * share, change


def test_growth_goes_on():
    flat = torch.zeros(2000, 300)
    grows = growing(Dice(seed=12), flat, share=1.0)
    ends = (grows[:, -1] - grows[:, 150]).sign()
    assert (ends == (grows[:, 150] - grows[:, 0]).sign()).float().mean() > 0.85, "the second half goes on as the first"
    assert 0.7 < (ends > 0).float().mean() < 0.9, "most of what grows or declines grows"


def test_growth_shows_within_a_short_context_and_ends_where_nobody_looks():
    flat = torch.zeros(2000, 300)
    whole, short = (growing(Dice(seed=13), flat, 1.0, over, until) for over, until in ((300, 300), (50, 120)))
    # What is reached after 50 steps is what else takes 300; it goes on to step 120.
    assert (short[:, 50] - short[:, 0]).abs().median() > 2 * (whole[:, 50] - whole[:, 0]).abs().median()
    assert (short[:, 119] != short[:, 118]).float().mean() > 0.95
    assert (short[:, 120:] == short[:, 120:121]).all()


def test_samples_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "samples.png"
    subprocess.run([sys.executable, "-m", "training.signals", str(picture)], check=True)
    assert picture.read_bytes().startswith(b"\x89PNG")
