"""What is found at so many false incidents, against slow versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.evaluation.metrics import oracles
from tocsin_bench.metrics import (
    BUDGETS,
    events_found,
    loosest_threshold,
    threshold_at,
    time_under_incidents,
    within_budget,
)

# Few different scores, so that many are tied.
scored = st.integers(1, 60).flatmap(
    lambda length: st.tuples(
        hnp.arrays(np.int64, length, elements=st.integers(0, 1)),
        hnp.arrays(np.float64, length, elements=st.sampled_from([*range(12), np.nan])),
    )
)


@given(both=scored, allowed=st.integers(0, 4), gap=st.integers(0, 5))
def test_the_loosest_threshold(both, allowed, gap):
    labels, scores = both
    assert loosest_threshold(labels, scores, allowed, gap=gap) == oracles.loosest_threshold(
        labels, scores, allowed, gap
    )


@given(both=scored, budget=st.sampled_from([1.0, 20.0, 100.0]), gap=st.integers(0, 5))
def test_events_found(both, budget, gap):
    labels, scores = both
    p = 1 - scores / 12  # the smallest score becomes 1, which is never an alarm
    found = events_found(labels, p, budget, gap=gap)
    np.testing.assert_equal(found, oracles.events_found(labels, p, budget, gap))


@given(
    labels=hnp.arrays(np.int64, st.integers(1, 30), elements=st.integers(0, 1)),
    incidents=st.lists(st.tuples(st.integers(-5, 35), st.integers(0, 10)), max_size=5),
)
def test_time_under_incidents(labels, incidents):
    pairs = [(first, first + length) for first, length in incidents]
    found = time_under_incidents(labels, pairs)
    np.testing.assert_equal(found, oracles.time_under_incidents(labels, pairs))
    spans = [range(max(first, 0), min(last + 1, labels.size)) for first, last in pairs]
    false = sum(len(span) > 0 and not any(labels[number] for number in span) for span in spans)
    normal = int((labels == 0).sum())
    over = within_budget(labels, np.full(labels.size, 0.5), incidents=pairs).false_over_budget
    np.testing.assert_allclose(over, false / (normal / 1000) if normal else np.nan)


def many_false(length=10_000):
    """Single false alarms 100 apart, each less strange than the one before, and one event that is seen faintly."""
    labels, p = np.zeros(length), np.ones(length)
    labels[5050:5060] = 1
    strange = np.arange(0, length, 100)
    p[strange] = np.linspace(0.001, 0.1, strange.size)
    p[5055] = 0.0155  # fourteen or fifteen are stranger
    return labels, p


@pytest.mark.parametrize(("budget", "found"), [(0.5, 0.0), (1.0, 0.0), (2.0, 1.0)])
def test_a_larger_budget_finds_more(budget, found):
    labels, p = many_false()
    assert events_found(labels, p, budget) == found
    # 9990 normal observations: 4, 9 and 19 false incidents.
    assert np.sum(p <= threshold_at(labels, p, budget)) == int(budget * 9.99) + found


def test_short_signals_allow_no_false_incident():
    labels, p = np.zeros(900), np.ones(900)
    labels[500:510] = 1
    p[100], p[505] = 0.01, 0.02
    assert threshold_at(labels, p, 1.0) == -np.inf
    assert events_found(labels, p, 1.0) == 0
    assert events_found(labels, p, 2.0) == 1


def test_who_finds_nothing_strange_finds_no_event():
    labels = np.zeros(2000)
    labels[500:600] = 1
    for p in (np.ones(2000), np.full(2000, np.nan)):
        assert events_found(labels, p, 2.0) == 0
        assert time_under_incidents(labels, []) == (0, 0)


def test_a_false_incident_that_reaches_into_an_event_is_none():
    labels, scores = np.zeros(100), np.full(100, np.nan)
    labels[50:60] = 1
    scores[45], scores[52] = 2, 1
    assert loosest_threshold(labels, scores, 0) == np.inf
    assert loosest_threshold(labels, scores, 1) == 1


def test_everything_at_once():
    labels, p = many_false()
    found = within_budget(labels, p)
    each = [events_found(labels, p, budget) for budget in BUDGETS]
    assert [found.events_found_at_half, found.events_found_at_1, found.events_found_at_2] == each
    assert found.events_found == pytest.approx(np.mean(each))
    # Nine single alarms, none of them in the event.
    assert (found.fault_time, found.normal_time) == (0, 9 / 9990)
    own = within_budget(labels, p, incidents=[[5050, 5054], [6000, 6000]])
    assert (own.fault_time, own.normal_time) == (0.5, 1 / 9990)
    assert own.events_found == found.events_found
    assert (own.false_over_budget, found.false_over_budget) == (1 / 9.99, 9 / 9.99)


def test_without_events_and_without_normal_observations():
    normal = within_budget(np.zeros(3000), np.full(3000, 0.5))
    assert np.isnan([normal.events_found, normal.events_found_at_1, normal.fault_time]).all()
    assert normal.normal_time == 1  # one incident that never ends
    anomalous = within_budget(np.ones(30), np.full(30, 0.5))
    assert (anomalous.events_found, anomalous.fault_time) == (1, 1)
    assert np.isnan(anomalous.normal_time)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: events_found([0, 1], [0.5, 0.5], 0), ValueError, "budget must be a number > 0 and <= 1000, got 0"),
        (lambda: events_found([0, 1], [0.5, 0.5], gap=-1), ValueError, "gap must be an integer >= 0, got -1"),
        (lambda: loosest_threshold([0, 1], [1, 2], 1.5), TypeError, r"allowed must be an integer >= 0, got 1\.5"),
        (lambda: loosest_threshold([0, 1], [1, 2, 3], 1), ValueError, "scores must be as many as the labels, 2, got 3"),
        (lambda: time_under_incidents([0, 1], [1, 2]), ValueError, r"incidents must be pairs .* got shape \(2,\)"),
        (lambda: time_under_incidents([0, 1], [[0.5, 2]]), ValueError, "incidents must be pairs of whole numbers"),
        (lambda: time_under_incidents([0, 1], [[0, 1], [3, 2]]), ValueError, "got 3 to 2 at position 1"),
    ],
)
def test_what_is_wrong_is_said(call, error, message):
    with pytest.raises(error, match=message):
        call()
