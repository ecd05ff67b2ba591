"""The metrics against what TSB-AD made of the same cases (`record_tsb_ad.py` says how it was asked)."""

from pathlib import Path

import numpy as np
import pytest

from tocsin_bench.metrics import (
    affiliation,
    average_precision,
    event_based,
    find_window,
    point_adjusted,
    pointwise,
    range_based,
    roc_auc,
    volume_under_surface,
)

RECORDED = dict(np.load(Path(__file__).with_name("tsb_ad.npz")))
ENDS = np.cumsum(RECORDED["lengths"])
LABELS = np.split(np.unpackbits(RECORDED["labels"])[: ENDS[-1]], ENDS[:-1])
SCORES = np.split(RECORDED["scores"].astype(float), ENDS[:-1])
SIGNALS = np.split(RECORDED["signals"].astype(float), np.cumsum(RECORDED["signal_lengths"])[:-1])

close = {"rtol": 0, "atol": 1e-9}
each_case = pytest.mark.parametrize(
    "case",
    range(len(LABELS)),
    ids=[f"{kind}, {length}" for kind, length in zip(RECORDED["kinds"], RECORDED["lengths"], strict=True)],
)


def alarms_of(case):
    """The alarms at each recorded threshold."""
    return [SCORES[case] > threshold for threshold in RECORDED["thresholds"][case]]


def test_there_is_something_of_everything():
    assert len(LABELS) > 40
    assert {*RECORDED["lengths"]} >= {50, 1000, 5000}
    assert {*RECORDED["windows"]} >= {0, 1, 2, 125, 200}
    assert {*RECORDED["signal_windows"]} >= {24, 48, 125}


@each_case
def test_rankings(case):
    labels, scores = LABELS[case], SCORES[case]
    volume = volume_under_surface(labels, scores, int(RECORDED["windows"][case]))
    found = average_precision(labels, scores), roc_auc(labels, scores), volume.pr, volume.roc
    np.testing.assert_allclose(found, RECORDED["rankings"][case], **close)


@each_case
def test_affiliation(case):
    for alarms, recorded in zip(alarms_of(case), RECORDED["of_alarms"][case], strict=True):
        found = affiliation(LABELS[case], alarms)
        np.testing.assert_allclose(found, recorded[4:6], **close)
        # Where nothing alarms TSB-AD's F is NaN; here it is 0.
        expected = recorded[6] if alarms.any() else 0.0
        np.testing.assert_allclose(found.f1, expected, **close)


@each_case
def test_metrics_that_count(case):
    labels = LABELS[case]
    nothing_at_the_ends = not labels[0] and not labels[-1]
    for alarms, recorded, between in zip(
        alarms_of(case), RECORDED["of_alarms"][case], RECORDED["between"][case], strict=True
    ):
        np.testing.assert_allclose(pointwise(labels, alarms).f1, recorded[0], **close)
        found = [metric(labels, alarms).f1 for metric in (point_adjusted, event_based, range_based)]
        np.testing.assert_allclose(found, between, **close)
        if nothing_at_the_ends:
            np.testing.assert_allclose(found[:2], recorded[1:3], **close)
        if not alarms.all():
            np.testing.assert_allclose(found[2], recorded[3], **close)


def test_tsb_ad_still_slips_at_the_ends():
    """The reasons for recording between normal observations: see docs/metrics.md."""
    of_alarms, between = RECORDED["of_alarms"][:, :, 1:4], RECORDED["between"]
    assert ((of_alarms - between) < -1e-9).any(axis=(0, 1)).all()
    assert not ((of_alarms - between) > 1e-9).any()


@pytest.mark.parametrize("number", range(len(SIGNALS)))
def test_window(number):
    assert find_window(SIGNALS[number]) == RECORDED["signal_windows"][number]
