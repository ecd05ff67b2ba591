"""Faults and the signals they are put into: what they claim to be."""

import numpy as np
import pytest

from tocsin.evaluation import BASES, FAULTS
from tocsin.evaluation.faults import AMPLITUDE, noise_times, repeated, shift

START = 400


def drawn(name, signals=6, length=1000):
    return BASES[name](np.random.default_rng(0), signals, length)


def possible(fault, base):
    return not FAULTS[fault].seasonal or BASES[base].period is not None


@pytest.mark.parametrize("name", BASES)
def test_the_unit_is_the_deviation_of_the_noise(name):
    signals = drawn(name, 300, 2000)
    assert signals.noise.std() == pytest.approx(signals.sd, rel=0.02)
    assert signals.noise[0].std() == pytest.approx(signals.sd, rel=0.15)  # from the first observation on
    assert np.array_equal(signals.values, signals.season() + signals.noise)
    again = drawn(name, 300, 2000)
    assert np.array_equal(again.values, signals.values)


@pytest.mark.parametrize("name", ["season 48", "season 288"])
def test_seasons_repeat_and_differ_between_signals(name):
    signals = drawn(name)
    season, period = signals.season(), signals.period
    np.testing.assert_allclose(season[period:], season[:-period], atol=1e-9)
    assert np.abs(season).max() == pytest.approx(AMPLITUDE, rel=0.01)
    assert np.unique(season[0]).size == 6


@pytest.mark.parametrize(("fault", "base"), [(f, b) for f in FAULTS for b in BASES if possible(f, b)])
def test_a_fault_stays_in_its_place_and_is_in_every_signal(fault, base):
    signals = drawn(base)
    before = signals.noise.copy()
    changed = FAULTS[fault](signals, START) != signals.values
    assert np.array_equal(signals.noise, before)
    assert changed.any(axis=0).all()
    places = np.flatnonzero(changed.any(axis=1))
    assert START <= places.min() <= places.max() < START + FAULTS[fault].lasts(signals.period)


def difference(fault, base="white noise"):
    """What a fault adds while it lasts, in deviations of the noise."""
    signals = drawn(base)
    stretch = slice(START, START + fault.lasts(signals.period))
    return (fault(signals, START) - signals.values)[stretch] / signals.sd


def test_shifts_go_up_and_down_by_their_size():
    np.testing.assert_allclose(difference(FAULTS["spike 4 sd"]), [[4, -4, 4, -4, 4, -4]])
    np.testing.assert_allclose(difference(FAULTS["shift 1 sd"], "AR .9")[:, 1], -np.ones(100))
    drift = difference(FAULTS["drift to 3 sd"])
    assert (drift.shape, drift[0, 0], drift[-1, 0], drift[-1, 1]) == ((200, 6), 0, pytest.approx(3), pytest.approx(-3))


def test_stuck_repeats_the_value_before():
    signals = drawn("season 48")
    values = FAULTS["stuck"](signals, START)
    assert np.ptp(values[START - 1 : START + 200], axis=0).max() == 0
    assert np.array_equal(values[START - 1], signals.values[START - 1])


@pytest.mark.parametrize(("name", "factor", "length"), [("noise x 0.3", 0.3, 200), ("noise x 2", 2.0, 100)])
def test_noise_alone_is_scaled(name, factor, length):
    signals = drawn("season 48")
    stretch = slice(START, START + length)
    found = FAULTS[name](signals, START)[stretch] - signals.season()[stretch]
    np.testing.assert_allclose(found, factor * signals.noise[stretch])


def test_what_happens_to_seasons():
    signals = drawn("season 48")
    faster = FAULTS["frequency +10%"](signals, START) - signals.noise
    at = np.arange(200)
    expected = AMPLITUDE * np.sin(2 * np.pi * ((START + 1.1 * at)[:, np.newaxis] / 48 + signals.phase))
    np.testing.assert_allclose(faster[START : START + 200], expected, atol=1e-9)
    ahead = FAULTS["phase by 1/8"](signals, START) - signals.noise
    np.testing.assert_allclose(ahead[START : START + 200], signals.season()[START + 6 : START + 206], atol=1e-9)
    cut = FAULTS["peak cut off"](signals, START) - signals.noise
    assert cut[START : START + 48].max() == pytest.approx(2 / 3 * AMPLITUDE)
    assert cut[START : START + 48].min() == pytest.approx(-AMPLITUDE, rel=0.01)


def test_the_same_fault_several_times():
    signals = drawn("white noise")
    fault = repeated(shift(3, 10), 3, 50)
    assert fault.length == 110
    found = (fault(signals, START) - signals.values)[:, 0]
    expected = np.zeros(1000)
    for start in (400, 450, 500):
        expected[start : start + 10] = 3
    np.testing.assert_allclose(found, expected)


def test_what_is_wrong_is_said():
    signals = drawn("white noise")
    with pytest.raises(ValueError, match=r"phase by 1/8 needs a season: .* must have a period, got none"):
        FAULTS["phase by 1/8"](signals, START)
    with pytest.raises(ValueError, match="stuck must end within the signals, which have 1000 observations, got 1100"):
        FAULTS["stuck"](signals, 900)
    with pytest.raises(ValueError, match="start must be an integer >= 1, got 0"):
        noise_times(2, 10)(signals, 0)
