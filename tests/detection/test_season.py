"""The season of a signal: found where there is one, seldom where there is none."""

import numpy as np
import pytest
from scipy.signal import lfilter

from tests.detection.oracle import BLOCK
from tocsin.detection.views.level import Correlations, find_season

HOURLY, FIVE_MINUTES = (24, 168), (288, 2016)


def season_of(values, calendar=(), present=0):
    blocks = values[: values.size // BLOCK * BLOCK].reshape(-1, BLOCK)
    there = np.isfinite(blocks)
    known = there.sum(axis=1)
    means = np.where(there, blocks, 0.0).sum(axis=1) / np.maximum(known, 1)
    return find_season(values, np.where(2 * known >= BLOCK, means, np.nan), BLOCK, calendar, present)


def days(period, steps, noise=0.5, seed=1):
    wave = np.sin(2 * np.pi * np.arange(steps) / period)
    return wave + noise * np.random.default_rng(seed).normal(size=steps)


def weeks(seed=2, count=8):
    """Hours of working days, and of quieter weekends."""
    hours = np.arange(24 * 7 * count)
    wave = np.sin(2 * np.pi * hours / 24) * np.where(hours // 24 % 7 < 5, 1.0, 0.2)
    return wave + 0.2 * np.random.default_rng(seed).normal(size=hours.size)


@pytest.mark.parametrize("seed", range(5))
def test_a_day_is_found_to_a_percent_and_to_the_observation_by_the_calendar(seed):
    values = days(288, 2000, seed=seed)
    assert abs(season_of(values) - 288) <= 0.02 * 288
    assert season_of(values, FIVE_MINUTES) == 288


@pytest.mark.parametrize(("period", "expected"), [(285, 288), (288, 288), (291, 288), (270, 270)])
def test_what_is_close_to_a_day_is_a_day(period, expected):
    assert abs(season_of(days(period, 3000, noise=0.2), FIVE_MINUTES) - expected) <= (0 if expected == 288 else 3)


@pytest.mark.parametrize("seed", range(5))
def test_a_week_is_a_season_of_its_own(seed):
    assert season_of(weeks(seed), HOURLY) == season_of(weeks(seed)) == 168
    assert season_of(days(24, 1344, seed=seed), HOURLY) == 24


@pytest.mark.parametrize("missing", [0.1, 0.3, 0.45])
def test_missing_values_hide_no_season(missing):
    values = weeks()
    values[np.random.default_rng(3).random(values.size) < missing] = np.nan
    assert season_of(values, HOURLY) == 168


def test_nothing_known_has_no_season():
    assert season_of(np.full(960, np.nan), HOURLY) == 0
    assert season_of(np.full(960, 5.0), HOURLY) == 0
    assert season_of(days(24, 80)) == 0


@pytest.mark.parametrize(("memory", "share"), [(0.0, 0.0), (0.5, 0.0), (0.9, 0.02), (0.99, 0.1)])
def test_noise_seldom_has_a_season(memory, share):
    """White noise and autoregressions, 100 of each: in noise of a long memory one in ten looks like cycles."""
    noise = (lfilter([1], [1, -memory], np.random.default_rng(seed).normal(size=2000)) for seed in range(100))
    assert np.mean([season_of(values, FIVE_MINUTES) > 0 for values in noise]) <= share


def test_a_season_stays_unless_another_is_clearly_better():
    values = days(24, 1200)
    assert season_of(values, present=24) == 24
    assert season_of(values, present=48) == 48  # two days are as good as one
    assert season_of(weeks(), present=24) == 168
    assert season_of(np.random.default_rng(0).normal(size=1200), present=24) in (0, *range(20, 29))


def test_correlations_agree_with_plain_sums():
    """Fine ones up to half of the values, then those of means."""
    values, means = days(24, 200), days(6, 180, seed=3)
    curves = Correlations(values, means, BLOCK)

    def plain(series, lag):
        ends = np.sort(np.abs(series - np.median(series)))[-3]
        inside = np.clip(series - np.median(series), -ends, ends)
        at = np.arange(series.size)
        inside = inside - np.polyval(np.polyfit(at, inside, 1), at)
        earlier, later = inside[: series.size - lag], inside[lag:]
        return 2 * np.sum(earlier * later) / (np.sum(earlier**2) + np.sum(later**2))

    assert curves.at(24) == pytest.approx(plain(values, 24))
    assert curves.at(100) == pytest.approx(plain(values, 100))
    assert curves.at(480) == pytest.approx(plain(means, 60))
    assert curves.at(8 * 180) == 0.0
