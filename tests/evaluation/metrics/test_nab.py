"""NAB's score, against a version that walks over rows and tries every threshold, and against values NAB publishes."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tocsin_bench.metrics.nab import PROFILES, Profile, ScoredFile, nab_score, probation

STANDARD = PROFILES["standard"]
PUBLISHED = json.loads(Path(__file__).with_name("nab_artime.json").read_text())


def raw(file, profile, threshold):
    """Our score as NAB's files of results have it: before it is normalised."""
    null, perfect = -profile.missed * len(file.windows), profile.found * len(file.windows)
    return null + nab_score([file], profile, threshold).score / 100 * (perfect - null)


def slow_sigmoid(position):
    return -1.0 if position > 3 else 2 / (1 + math.exp(5 * position)) - 1


def slow_raw(file, profile, threshold):
    """The score of one file at a threshold, before it is normalised, and how many windows count."""
    start = min(math.floor(0.15 * len(file.scores)), 750)
    alarms = [row for row in range(start, len(file.scores)) if file.scores[row] >= threshold]
    counted = [window for window in file.windows if window[1] >= start]
    total = 0.0
    for first, last in counted:
        inside = [row for row in alarms if first <= row <= last]
        if not inside:
            total -= profile.missed
        else:
            position = -(last - min(inside) + 1) / (last - first + 1)
            total += profile.found * slow_sigmoid(position) / slow_sigmoid(-1)
    for row in alarms:
        if any(first <= row <= last for first, last in file.windows):
            continue
        before = [window for window in file.windows if window[1] < row]
        if not before:
            total -= profile.false
        else:
            first, last = max(before, key=lambda window: window[1])
            total += profile.false * (slow_sigmoid((row - last) / (last - first)) if last > first else -1)
    return total, len(counted)


def slow_score(files, profile):
    thresholds = {math.inf, *(score for file in files for score in file.scores[probation(len(file.scores)) :])}
    best = -math.inf
    for threshold in thresholds:
        raws = [slow_raw(file, profile, threshold) for file in files]
        windows = sum(count for _, count in raws)
        null = -profile.missed * windows
        best = max(best, 100 * (sum(raw for raw, _ in raws) - null) / (profile.found * windows - null))
    return best


def random_files(rng):
    files = []
    for length in rng.integers(30, 120, size=3):
        edges = np.sort(rng.choice(np.arange(length // 5, length), size=4, replace=False)).reshape(2, 2)
        scores = rng.integers(0, 25, size=length) / 10.0  # with ties
        scores[rng.random(length) < 0.1] = -np.inf
        files.append(ScoredFile(scores, edges[: rng.integers(1, 3)]))
    return files


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("seed", range(3))
def test_the_score_is_that_of_the_slow_version(name, seed):
    files = random_files(np.random.default_rng(seed))
    assert nab_score(files, PROFILES[name]).score == pytest.approx(slow_score(files, PROFILES[name]), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_given_threshold_counts_scores_from_it_on(seed):
    files = random_files(np.random.default_rng(seed))
    for threshold in (0.0, 0.55, 1.0, 9.0):
        raws = [slow_raw(file, STANDARD, threshold) for file in files]
        windows = sum(count for _, count in raws)
        wanted = 100 * (sum(raw for raw, _ in raws) + windows) / (2 * windows)
        assert nab_score(files, STANDARD, threshold).score == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("profile", PROFILES.values())
def test_no_alarm_is_0_and_the_first_row_of_each_window_100(profile):
    windows = np.array([[40, 59], [80, 99]])
    nothing = ScoredFile(np.zeros(120), windows)
    assert nab_score([nothing], profile, threshold=1.0).score == 0
    perfect = np.zeros(120)
    perfect[windows[:, 0]] = 1
    assert nab_score([ScoredFile(perfect, windows)], profile) == (pytest.approx(100), 1.0)


def test_the_best_threshold_is_one_for_all_files():
    windows = np.array([[60, 79]])
    low, high = np.zeros(100), np.zeros(100)
    low[60], high[60], high[30:55] = 1.0, 3.0, 2.0  # each alone would be perfect, at thresholds of its own
    both = [ScoredFile(low, windows), ScoredFile(high, windows)]
    assert [nab_score([file], STANDARD).score for file in both] == [pytest.approx(100)] * 2
    assert nab_score(both, STANDARD) == (pytest.approx(50), 3.0)


# What follows are results that NAB publishes, of the detector that leads its scoreboard: ARTime on one file.


def published_file(scores):
    given = np.zeros(PUBLISHED["rows"])
    for row, score in scores.items():
        given[int(row)] = score
    return ScoredFile(given, np.array(PUBLISHED["windows"]))


@pytest.mark.parametrize("name", PROFILES)
def test_the_published_score_of_a_file(name):
    printed = PUBLISHED["published"][name]
    found = raw(published_file(PUBLISHED["scores"]), PROFILES[name], printed["threshold"])
    assert found == pytest.approx(printed["score"], abs=1e-12)


@pytest.mark.parametrize(("name", "column"), [("standard", 0), ("low FP", 1)])
def test_the_published_worth_of_single_observations(name, column):
    profile, windows = PROFILES[name], PUBLISHED["windows"]
    null = -profile.missed * len(windows)
    for row, printed in PUBLISHED["worth"].items():
        found = any(first <= int(row) <= last for first, last in windows)
        alone = raw(published_file({row: 1.0}), profile, 1.0)
        assert alone - null == pytest.approx(printed[column] + found * profile.missed, abs=1e-12), row


# What follows are the values of NAB's own unit tests.


@pytest.mark.parametrize(
    ("alarms", "windows", "wanted"),
    [
        ([2], [[1, 2]], 1.1 * 0.8482836399575131 / 0.9866142981514305),
        ([2], [[1, 2], [4, 5]], 1.1 * 0.8482836399575131 / 0.9866142981514305 - 1.2),
        ([4], [[4, 5]], 1.1),
        ([4, 5], [[4, 5]], 1.1),
        ([2, 4], [[1, 2], [4, 5]], 1.1 * (0.8482836399575131 / 0.9866142981514305 + 1)),
        ([], [[1, 2], [4, 5]], -2 * 1.2),
    ],
)
def test_the_scores_of_nabs_unit_tests(alarms, windows, wanted):
    scores = np.zeros(7)
    scores[alarms] = 1
    assert raw(ScoredFile(scores, np.array(windows)), Profile(1.1, 0.11, 1.2), 1.0) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("rows", "wanted"), [(100, 15), (5000, 750), (6000, 750)])
def test_the_probation_is_15_percent_of_at_most_5000(rows, wanted):
    assert probation(rows) == wanted


def test_normalised_as_nab_does():
    # Five windows, a raw score of 2 and one of -5 for the null detector: 70.
    windows = np.array([[first, first + 1] for first in (30, 45, 60, 75, 90)])
    scores = np.zeros(100)
    scores[windows[:, 0]] = 1
    scores[windows[0, 0]] = 0  # four found, one missed: 3 of 5
    found = nab_score([ScoredFile(scores, windows)], STANDARD).score
    assert found == pytest.approx(100 * (3 + 5) / (5 + 5))


def test_windows_gain_and_others_lose():
    windows = np.array([[30, 39], [75, 95]])
    for row in range(15, 100):
        scores = np.zeros(100)
        scores[row] = 1
        inside = any(first <= row <= last for first, last in windows)
        assert (nab_score([ScoredFile(scores, windows)], STANDARD, 1.0).score > 0) == inside


def test_a_window_in_the_probation_does_not_count():
    scores = np.zeros(100)
    scores[[5, 50]] = 1
    early = np.array([[3, 8], [50, 60]])
    assert nab_score([ScoredFile(scores, early)], STANDARD).score == pytest.approx(100)
    assert math.isnan(nab_score([ScoredFile(scores, early[:1])], STANDARD).score)


def test_a_file_without_windows_only_loses():
    scores = np.zeros(100)
    scores[50] = 1
    good = ScoredFile(scores, np.array([[50, 60]]))
    normal = ScoredFile(scores, np.empty((0, 2), dtype=np.int64))
    profile = Profile(1.0, 0.5, 1.0)
    assert nab_score([good, normal], profile, 1.0).score == pytest.approx(100 - 25)
