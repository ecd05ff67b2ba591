"""One trigger of one signal, without Spark: against a detector that is given one observation after the other."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spark.helpers import QUICK
from tocsin.detection import Detector
from tocsin.spark.plan import NO_TIME, Clock, SparkPlan
from tocsin.spark.step import Step

pytest.importorskip("pyarrow")
FEATURES = ("value",)


def rows_of(stepped, kind):
    return [row for batch in stepped.rows for row in batch.to_pylist() if row["kind"] == kind]


def oracle(arrivals, triggers, **more):
    """Statuses and p by the rules, one observation at a time: sorted within a trigger, then one by one."""
    detector, newest, found = Detector(FEATURES, **QUICK, **more), -np.inf, []
    for first, last in triggers:
        before, seen = newest, set()
        for time, value in sorted(arrivals[first:last], key=lambda one: one[0]):
            if time < before:
                found.append((time, value, "late", None))
            elif time == before or time in seen:
                found.append((time, value, "duplicate", None))
            else:
                seen.add(time)
                verdict = detector.update(value, time)
                found.append((time, value, "scored", None if np.isnan(verdict.p) else verdict.p))
                newest = time
    return sorted(found, key=repr), detector


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.lists(st.integers(-1, 3), min_size=1, max_size=60),  # steps of time: back, none, one, and over a gap
    st.lists(st.integers(0, 60), max_size=5),
    st.booleans(),
)
def test_triggers_at_any_place_give_the_verdicts_of_one_by_one(steps, cuts, gaps):
    more = {"interval": 1.0} if gaps else {}
    # Values tell which of equal times it was; of those the smallest stands.
    arrivals = [(time, float(number)) for number, time in enumerate(np.cumsum(steps, dtype=float).tolist())]
    ends = sorted({min(cut, len(arrivals)) for cut in cuts} | {0, len(arrivals)})
    triggers = list(pairwise(ends))
    step, state, found = Step(SparkPlan(FEATURES, Clock.NUMBERS, {**QUICK, **more})), None, []
    for first, last in triggers:
        part = np.array(arrivals[first:last])
        order = np.random.default_rng(first).permutation(len(part))
        stepped = step.take("one", part[order, 0], part[order, 1:], state)
        state = stepped.state or state
        found += [(row["time"], row["value"], row["status"], row["p"]) for row in rows_of(stepped, "verdict")]
    expected, detector = oracle(arrivals, triggers, **more)
    assert sorted(found, key=repr) == expected
    assert Detector.from_bytes(state).observations == detector.observations
    assert Detector.from_bytes(state).update(3.0, 1e4).p == pytest.approx(
        detector.update(3.0, 1e4).p, abs=0, nan_ok=True
    )


def test_incidents_are_given_out_and_leave_the_state():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1000, 1))
    values[[700, 702, 900, 995]] += 15
    step, state, incidents, sizes = Step(SparkPlan(FEATURES, Clock.NUMBERS, QUICK)), None, [], []
    for first in range(0, 1000, 100):
        stepped = step.take("one", np.arange(first, first + 100.0), values[first : first + 100], state)
        state = stepped.state
        sizes.append(len(state))
        incidents += rows_of(stepped, "incident")
    detector = Detector(FEATURES, **QUICK)
    detector.run(values, np.arange(1000.0))
    over = [(one["start"], one["end"], one["p"], one["deviation"]) for one in incidents if not one["open"]]
    assert over == [(one.start, one.end, one.p, one.deviation) for one in detector.incidents if not one.open]
    assert len(over) > 1
    assert incidents[-1]["open"]
    assert incidents[-1]["start"] == 995
    assert max(sizes[-3:]) - min(sizes[-3:]) < 4000


def test_times_that_are_none_are_counted_and_left_out():
    step = Step(SparkPlan(FEATURES, Clock.MOMENTS, QUICK))
    stepped = step.take("one", np.array([NO_TIME, 5, NO_TIME]), np.zeros((3, 1)), None)
    (problem,) = rows_of(stepped, "problem")
    assert (problem["signal"], problem["problem"], problem["count"]) == ("one", "bad time", 2)
    assert [row["time"] for row in rows_of(stepped, "verdict")] == [5]
    assert step.take("one", np.array([NO_TIME]), np.zeros((1, 1)), None).state is None
    (problem,) = rows_of(step.nameless(3), "problem")
    assert (problem["signal"], problem["problem"], problem["count"]) == (None, "no id", 3)


def test_an_interval_that_cannot_be_right_is_told_and_changes_nothing():
    step = Step(SparkPlan(FEATURES, Clock.NUMBERS, {**QUICK, "interval": 1e-3}, longest_gap=10**9))
    stepped = step.take("one", np.array([0.0, 1e6]), np.zeros((2, 1)), None)
    (problem,) = rows_of(stepped, "problem")
    assert (problem["problem"], problem["level"]) == ("not judged", "error")
    assert "interval" in problem["text"]
    assert stepped.state is None


def test_a_plan_survives_its_way_to_the_workers():
    plan = SparkPlan(("a", "b"), Clock.LOCAL, {**QUICK, "interval": "5min", "forecaster_options": None}, shuffled=True)
    assert SparkPlan.read(plan.text()) == plan


def test_a_model_is_loaded_once():
    plan = SparkPlan(FEATURES, Clock.LOCAL, {"forecaster": "seasonal-naive", "forecaster_options": {"period": 7}})
    first, second = plan.detector_settings(), plan.detector_settings()
    (forecaster,) = first["forecaster"]
    assert second["forecaster"] == (forecaster,)
    assert second["forecaster"][0] is forecaster
    assert forecaster.period == 7
    several = SparkPlan(FEATURES, Clock.LOCAL, {}).detector_settings()
    assert [one.name for one in several["forecaster"]] == ["embedded", "autoregression"]
    assert SparkPlan(FEATURES, Clock.LOCAL, {"forecaster": None}).detector_settings() == {"forecaster": None}
