"""Faults and the signals they are put into: what they claim to be."""

import numpy as np
import pytest

from tocsin_bench.faults import AMPLITUDE, BASES, EARLY, FAULTS, LASTING, QUIET, noise_times, repeated, shift
from tocsin_bench.quiet import LASTS, QUIET_BASES, QUIET_FAULTS

START = 400


ALL = FAULTS | LASTING


def drawn(name, signals=6, length=1000):
    return BASES[name](np.random.default_rng(0), signals, length)


@pytest.mark.parametrize("name", [name for name in BASES if name != "walk"])
def test_the_unit_is_the_deviation_of_the_noise(name):
    signals = drawn(name, 300, 2000)
    assert signals.noise.std() == pytest.approx(signals.sd, rel=0.02)
    assert signals.noise[0].std() == pytest.approx(signals.sd, rel=0.15)  # from the first observation on
    assert np.array_equal(signals.values, signals.season() + signals.noise)
    again = drawn(name, 300, 2000)
    assert np.array_equal(again.values, signals.values)


def test_the_unit_of_a_walk_is_its_step():
    signals = drawn("walk", 100, 1000)
    assert np.diff(signals.noise, axis=0).std() == pytest.approx(signals.sd, rel=0.02)


@pytest.mark.parametrize("name", [name for name, base in BASES.items() if base.period])
def test_seasons_repeat_and_differ_between_signals(name):
    signals = drawn(name, length=5000)
    season, period = signals.season(), signals.period
    np.testing.assert_allclose(season[period:], season[:-period], atol=1e-9)
    assert np.abs(season).max() == pytest.approx(AMPLITUDE, rel=0.01)
    assert np.unique(season[0]).size == 6


@pytest.mark.parametrize(("fault", "base"), [(f, b) for f in ALL for b in BASES if ALL[f].fits(BASES[b])])
def test_a_fault_stays_in_its_place_and_is_in_every_signal(fault, base):
    signals = drawn(base, length=5000)
    before = signals.noise.copy()
    changed = ALL[fault](signals, START) != signals.values
    assert np.array_equal(signals.noise, before)
    assert changed.any(axis=0).all()
    places = np.flatnonzero(changed.any(axis=1))
    assert START <= places.min() <= places.max() < START + ALL[fault].lasts(signals)


@pytest.mark.parametrize("name", EARLY)
def test_the_unit_of_the_first_signals_is_the_deviation_of_their_noise(name):
    signals = EARLY[name](np.random.default_rng(0), 200, 2400)
    noise = signals.noise
    if name == "counts":  # around the profile, which has another phase in each signal
        noise = noise - noise.reshape(100, 24, 200).mean(axis=0)[np.arange(2400) % 24]
    assert noise.std() == pytest.approx(signals.sd, rel=0.02)
    assert (signals.values.min() >= 0) == signals.positive
    up = shift(4, 60)(signals, START) - signals.values
    assert (up.min() < 0) != signals.positive


@pytest.mark.parametrize("name", QUIET_BASES)
def test_quiet_signals_are_quiet_where_faults_come(name):
    """The noise there is of the size that they say, and less than half of what it is elsewhere."""
    signals = QUIET_BASES[name](np.random.default_rng(0), 600, START, LASTS + 15)
    place = slice(START, START + LASTS)
    there = np.sqrt((signals.noise[place] ** 2).mean(axis=0))
    assert 0.6 < there.mean() / signals.sd.mean() < 1.05
    assert there.mean() < 0.5 * signals.noise.std()
    assert np.array_equal(signals.values, signals.season() + signals.noise)
    for fault in QUIET_FAULTS:
        values = fault(signals, START)
        changed = np.flatnonzero((values != signals.values).any(axis=1))
        assert START <= changed.min() <= changed.max() < START + fault.length
        if signals.positive:
            assert np.array_equal(values, np.rint(values))
            assert values.min() >= 0
    size = (QUIET_FAULTS[0](signals, START) - signals.values)[START]
    np.testing.assert_allclose(np.abs(size), 8 * signals.sd)


def difference(fault, base="white noise"):
    """What a fault adds while it lasts, in deviations of the noise."""
    signals = drawn(base, length=5000)
    stretch = slice(START, START + fault.lasts(signals))
    return (fault(signals, START) - signals.values)[stretch] / signals.sd


def test_shifts_go_up_and_down_by_their_size():
    np.testing.assert_allclose(difference(FAULTS["spike 4 sd"]), [[4, -4, 4, -4, 4, -4]])
    np.testing.assert_allclose(difference(FAULTS["shift 1 sd"], "AR .9")[:, 1], -np.ones(100))
    drift = difference(FAULTS["drift to 3 sd"])
    assert (drift.shape, drift[0, 0], drift[-1, 0], drift[-1, 1]) == ((200, 6), 0, pytest.approx(3), pytest.approx(-3))
    leak = difference(LASTING["leak"])
    assert (len(leak), leak[-1, 0], leak[1000, 0]) == (2000, pytest.approx(4), pytest.approx(2, abs=0.01))
    assert len(difference(LASTING["slow drift"])) == 4000
    np.testing.assert_allclose(difference(LASTING["lasting shift .5 sd"])[:, 0], np.full(2000, 0.5))


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


def test_a_cycle_that_is_missing():
    for name, length in (("season 48", 48), ("week 2016", 288)):
        signals = drawn(name)
        stretch = slice(START, START + length)
        found = FAULTS["missing cycle"](signals, START)
        assert np.array_equal(found[stretch], signals.noise[stretch])
        assert np.array_equal(found[START + length :], signals.values[START + length :])


def test_a_week_has_two_quiet_days():
    signals = drawn("week 2016", 1, 2 * 2016)
    # The first whole week, day by day, observation 0 at midnight.
    midnight = 2016 - round(signals.phase[0] * 2016)
    days = signals.season()[midnight : midnight + 2016, 0].reshape(7, 288)
    np.testing.assert_allclose(days.min(axis=1), -AMPLITUDE, atol=0.01)
    np.testing.assert_allclose(days[:5].max(axis=1), AMPLITUDE, atol=0.01)
    np.testing.assert_allclose(days[5:].max(axis=1), AMPLITUDE * (2 * QUIET - 1), atol=0.01)


@pytest.mark.parametrize(
    ("name", "weekend", "height"), [("weekend as weekday", True, 1.0), ("weekday as holiday", False, 2 * QUIET - 1)]
)
def test_one_whole_day_is_like_one_of_the_other_kind(name, weekend, height):
    signals = drawn("week 2016", 40, 5000)
    found = FAULTS[name](signals, START) - signals.noise
    for row in range(40):
        places = np.flatnonzero(np.abs(found[:, row] - signals.season()[:, row]) > 1e-9)
        days = signals.cycles()[places, row]
        assert np.unique(np.floor(days)).size == 1
        assert 285 <= places.size <= 288  # midnight, when all days are alike, may be one of them
        assert (days[0] % 7 >= 5) == weekend
        assert found[places, row].max() == pytest.approx(AMPLITUDE * height, abs=0.01)


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
    with pytest.raises(ValueError, match="weekend as weekday needs a week, got none"):
        FAULTS["weekend as weekday"](drawn("season 48"), START)
    with pytest.raises(ValueError, match="fault must last a number of observations, got missing cycle, which lasts a"):
        repeated(FAULTS["missing cycle"], 2, 10)
    with pytest.raises(ValueError, match="stuck must end within the signals, which have 1000 observations, got 1100"):
        FAULTS["stuck"](signals, 900)
    with pytest.raises(ValueError, match="start must be an integer >= 1, got 0"):
        noise_times(2, 10)(signals, 0)
