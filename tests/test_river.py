"""Tocsin as an anomaly detector of River."""

import importlib
import random
import sys

import pytest
import river.datasets
from river import anomaly, checks

import tocsin.river
from tests.cases import full
from tocsin import Detector
from tocsin.river import RiverDetector

QUICK = {"forecaster": "last-value", "views": "error", "window": 250}


class MadeUp:
    """In the place of the stream that River fetches for its checks, 150 MB from a server: numbers, one in 200 odd."""

    def take(self, count):
        rng = random.Random(0)
        for number in range(min(count, 3000)):
            odd = number % 200 == 199
            x = {f"V{k}": rng.gauss(0, 1) + 9 * odd for k in range(5)}
            yield x, int(odd)


def river_checks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(river.datasets, "CreditCard", MadeUp)
        return list(checks.yield_checks(RiverDetector(**QUICK)))


CHECKS = river_checks()
#: They take many times as long as the others.
LONG = {
    "check_emerging_features",
    "check_disappearing_features",
    "check_predict_one_pure",
    "check_bounded_memory_growth",
}


def test_the_checks_are_those_of_river():
    names = {check.__name__ for check in CHECKS}
    assert {"check_learn_one", "check_emerging_features", "check_pickling", "check_roc_auc"} <= names
    assert len(CHECKS) > 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [full(number) if check.__name__ in LONG else number for number, check in enumerate(CHECKS)],
    ids=lambda number: CHECKS[number].__name__,
)
def test_river_finds_nothing_wrong(number):
    fresh = river_checks()[number]  # a stream can be gone through once
    model = RiverDetector(**QUICK)
    assert fresh.__name__ not in model._unit_test_skips()
    fresh(model.clone())


@pytest.mark.slow
def test_scores_are_those_of_a_detector():
    rng = random.Random(1)
    model, detector = RiverDetector(**QUICK), Detector(2, **QUICK)
    for step in range(700):
        x = {"b": rng.gauss(0, 1), "a": rng.gauss(5, 1) + 20 * (step == 650)}
        found = model.score_one(x)
        severity = detector.update([x["a"], x["b"]]).severity
        model.learn_one(x)
        assert step < 1 or found == (0.0 if severity != severity else severity)


@pytest.mark.slow
def test_what_is_scored_and_not_learned_leaves_no_trace():
    rng = random.Random(2)
    values = [rng.gauss(0, 1) for _ in range(400)]
    plain, disturbed = RiverDetector(**QUICK), RiverDetector(**QUICK)
    for value in values:
        plain.learn_one({"v": value})
        disturbed.score_one({"v": 50.0})
        assert disturbed.score_one({"v": 60.0}) == disturbed.score_one({"v": 60.0})
        disturbed.learn_one({"v": value})
    assert plain.score_one({"v": 4.0}) == disturbed.score_one({"v": 4.0})


def test_scoring_copies_the_state_rarely(monkeypatch):
    copies, copied = [], Detector.state
    monkeypatch.setattr(Detector, "state", lambda detector: copies.append(1) or copied(detector))
    model = RiverDetector(**QUICK)
    for number in range(640):
        model.score_one({"a": number % 7})
        model.learn_one({"a": number % 7})
    assert len(copies) == 1 + 640 // tocsin.river.COPY_EVERY


def test_features_are_those_of_the_first_that_is_learned():
    model = RiverDetector(**QUICK)
    assert model.score_one({"a": 1.0}) == 0.0
    assert model.verdict_one({"a": 1.0}) is None
    model.learn_one({"a": 1.0, "b": 2.0})
    assert model.verdict_one({"b": 3.0, "c": 9.0}).value[1] == 3.0
    assert model.verdict_one({"b": 3.0, "c": 9.0}).value[0] != model.verdict_one({"b": 3.0}).value[0]  # NaN: missing


def test_it_goes_into_filters():
    model = anomaly.ThresholdFilter(RiverDetector(**QUICK), threshold=2)
    for _ in range(600):
        model.learn_one({"v": random.Random(_).gauss(0, 1)})
    assert model.classify(model.score_one({"v": 30.0}))


def test_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    with pytest.raises(ImportError, match=r"tocsin\.river needs river: pip install 'tocsin\[river\]'"):
        importlib.reload(tocsin.river)
