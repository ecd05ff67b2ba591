"""What can be found in a signal: compared with detectors that watched the faulty history from its start."""

import doctest
import math

import numpy as np
import pytest

from tests.cases import full
from tocsin import Detector
from tocsin.evaluation import Detectability, Finding, detectability, detectable, faults
from tocsin.evaluation.detectability import AFTER, SIZES, enough, wilson

LASTS = 30
WARM_UP = Detector(alarm_rate=0.001, preset="light").warm_up


def light(features=1, **more):
    return Detector(features, **{"alarm_rate": 0.001, "preset": "light", **more})


@pytest.fixture(scope="module")
def noise():
    return 20 + np.random.default_rng(0).normal(size=WARM_UP + 12 * (LASTS + AFTER))


@pytest.fixture(scope="module")
def measured(noise):
    return detectable(light(["temp [°C]"]), noise, cases=8, lasts=LASTS)


def found_by_whole_histories(values, starts, fault, size):
    """The slow way: for each case, a detector judges the whole history with the fault, another the one without."""
    delays = []
    clean = light().run(values).kept_verdicts
    for number, start in enumerate(starts):
        faulty, part = values.copy(), slice(start, start + LASTS)
        sign = -1.0 if number % 2 else 1.0
        if fault == "shift":
            faulty[part] += sign * size
        elif fault == "drift":
            faulty[part] += sign * np.linspace(0, size, LASTS)
        elif fault == "stuck":
            faulty[part] = values[start - 1]
        elif fault == "spike":
            faulty[start] += sign * size
        else:
            expected = clean.forecast[part, 0, 0]
            faulty[part] = expected + size * (values[part] - expected)
        verdicts = light().run(faulty[: start + LASTS + AFTER]).kept_verdicts
        new = [
            step - start + 1
            for step in range(start, start + LASTS + AFTER)
            if verdicts.opened[step, 0] and not (clean.open[step, 0] or clean.alarm[step, 0])
        ]
        delays.append(new[0] if new else math.inf)
    return delays


@pytest.mark.slow
@pytest.mark.parametrize("fault", [fault if fault in ("shift", "stuck") else full(fault) for fault in SIZES])
def test_cases_are_found_as_in_whole_histories(noise, measured, fault):
    window = LASTS + AFTER
    apart = max(window, (len(noise) - WARM_UP - window) // 8)
    places = sorted(len(noise) - window - number * apart for number in range(8))
    clean = light().run(noise).kept_verdicts
    free = [start for start in places if start >= WARM_UP and not clean.open[start - 1, 0]]
    starts = np.random.default_rng(0).permutation(free).tolist()
    for one in [one for one in measured.findings if one.fault == fault][:2]:
        delays = sorted(found_by_whole_histories(noise, starts, fault, one.size))
        assert one.cases == len(starts)
        assert one.found == sum(map(math.isfinite, delays))
        last = delays[enough(one.cases) - 1]
        assert one.within == (last if math.isfinite(last) else None)


def test_the_large_is_found_and_the_tiny_is_not(measured):
    by = {(one.fault, number): one for number, one in enumerate(measured.findings)}
    largest = [one for one in by.values() if one.fault == "shift"][-1]
    assert largest.within is not None
    assert largest.within <= 3
    least_spike = next(one for one in by.values() if one.fault == "spike")
    assert least_spike.within is None
    assert all(0 <= one.low <= one.found / one.cases <= one.high <= 1 for one in measured.findings)


def test_more_false_incidents_find_no_less_altogether(measured):
    assert measured.oftener_rate == "0.007"
    assert sum(one.found for one in measured.oftener) > sum(one.found for one in measured.findings)


def test_what_is_an_incident_anyway_is_not_found():
    """The signal jumps by itself at every place: nothing that is injected there may take the credit."""
    values = 20 + np.random.default_rng(1).normal(size=WARM_UP + 2 * (LASTS + AFTER))
    start = len(values) - LASTS - AFTER
    values[start:] += 30
    found = detectable(light(), values, cases=1, lasts=LASTS)
    assert {one.found for one in found.findings if one.fault in ("shift", "spike", "drift")} == {0}


@pytest.mark.parametrize(("preset", "more"), [("paper", {"alarm_rate": 0.05}), ("light", {"min_duration": 5})])
def test_other_detectors_are_measured_as_well(preset, more):
    values = np.random.default_rng(2).normal(size=1500)
    found = detectable(light(preset=preset, **more), values, cases=2, lasts=LASTS)
    largest = [one for one in found.findings if one.fault == "shift"][-1]
    assert largest.found == largest.cases
    assert largest.within >= more.get("min_duration", 1)


def test_one_feature_after_the_other_and_constant_ones_left_out():
    values = np.random.default_rng(3).normal(size=(WARM_UP + 300, 3)) * [1, 100, 0]
    values[::50, 0] = np.nan
    found = detectable(light(["a [bar]", "b", "c"]), values, cases=4, lasts=LASTS, seconds=0.01)
    assert {one.feature for one in found.findings} == {"a [bar]", "b"}
    sizes = {one.feature: one.size for one in found.findings if one.fault == "shift"}
    assert 50 < sizes["b"] / sizes["a [bar]"] < 200
    assert found.sentences[0].startswith("a: at an alarm rate of 0.001 a shift of ")
    assert " bar is found" in found.sentences[0]


def test_it_ends_in_time_and_says_how_far_it_came(noise):
    told = []
    found = detectable(light(), noise, cases=8, lasts=LASTS, seconds=1e-9, progress=lambda *done: told.append(done))
    assert found.cases == 1
    assert told[0][0] == 1 < told[0][1]


def test_errors_say_what_is_needed(noise):
    with pytest.raises(ValueError, match=f"values must have at least {WARM_UP + LASTS + AFTER} observations"):
        detectable(light(), noise[:WARM_UP], lasts=LASTS)
    with pytest.raises(ValueError, match="values must change"):
        detectable(light(), np.ones(len(noise)), lasts=LASTS)
    with pytest.raises(ValueError, match="seconds must be a number > 0, got 0"):
        detectable(light(), noise, seconds=0)


def sentence(own, other=None, **more):
    shown = {"alarm_rate": "1/week", "oftener_rate": "7/week", "lasts": 200, "interval": 60.0} | more
    return Detectability(findings=tuple(own), oftener=tuple(other or own), **shown).sentences


def finding(size, found, within, fault="shift", cases=30):
    return Finding("temp", fault, size, cases, found, *wilson(found, cases), within)


def test_sentences():
    sizes = [finding(0.8, 20, None), finding(1.6, 28, 20), finding(3.2, 30, 2)]
    assert sentence(sizes, unit="°C") == [
        "at 1/week a shift of 1.6 °C is found within 20 min in 27 of 30 cases (95% interval 74% to 97%)"
    ]
    better = [finding(0.8, 28, 30), *sizes[1:]]
    assert sentence(sizes, better)[0].endswith(
        "; at 7/week a shift of 0.8 is found within 30 min in 27 of 30 cases (95% interval 74% to 97%)"
    )
    assert sentence([finding(0, 3, None, "stuck")]) == [
        "at 1/week a stuck sensor is found in only 3 of 30 cases (95% interval 3% to 26%)"
    ]
    # A larger one that is missed says that the smaller one was luck.
    assert "a drift to 2 over 3.3 h" in sentence([finding(1, 30, 9, "drift"), finding(2, 9, None, "drift")])[0]


def test_wilson_covers_the_true_share():
    """In at least 93% of 4,000 draws, for shares in the middle: the method's known coverage, less four errors."""
    rng = np.random.default_rng(4)
    for share in (0.5, 0.75, 0.9):
        drawn = rng.binomial(30, share, 4000)
        inside = [low <= share <= high for low, high in (wilson(int(found), 30) for found in drawn)]
        assert np.mean(inside) > 0.93 - 4 * np.sqrt(0.07 * 0.93 / 4000)
    assert doctest.testmod(detectability).failed == 0


def test_faults_leave_what_they_are_given():
    values = np.arange(4.0)
    for made in (faults.shifted(values, 2), faults.drifting(values, 3), faults.stuck(values, 7)):
        assert made.shape == values.shape
    assert np.array_equal(values, np.arange(4.0))
    assert np.array_equal(faults.drifting(values, 3), 2 * values)
    assert np.array_equal(faults.noisier(values, np.ones(4), 3), values + 3)
