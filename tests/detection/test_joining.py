"""States of many signals at once are those of each by itself."""

import numpy as np
import pytest

from tocsin.detection import Detector, Fleet

QUICK = {"preset": "light", "alarm_rate": 0.05}
STEPS, SIGNALS = 900, 5


@pytest.fixture(scope="module", params=[{}, {"features": 2, "refresh": 3}, {"forecaster": None}])
def fleet(request: pytest.FixtureRequest) -> Fleet:
    made = Fleet(SIGNALS, **{**QUICK, **request.param})
    rng = np.random.default_rng(4)
    values = np.abs(rng.normal(size=(STEPS, SIGNALS, len(made.features))))
    values[-20:] += 5 * rng.random((20, SIGNALS, 1))
    made.run_arrays(values, times=np.arange(STEPS)[:, np.newaxis] + np.zeros(SIGNALS))
    return made


@pytest.mark.slow
def test_states_taken_together_are_those_taken_one_by_one(fleet: Fleet) -> None:
    rows = [3, 0, 4]
    together = fleet.signal_states(rows, [1.0, 2.0, None])
    for row, last, state in zip(rows, [1.0, 2.0, None], together, strict=True):
        alone = fleet.signal_state(row, last)
        assert alone.keys() == state.keys()
        for name, array in alone.items():
            assert array.dtype == state[name].dtype, name
            assert np.array_equal(array, state[name], equal_nan=array.dtype.kind == "f"), name
        assert Detector.from_state(state).observations == STEPS


@pytest.mark.slow
def test_states_put_together_go_on_as_put_one_by_one(fleet: Fleet) -> None:
    last = [7.0, None, 3.0, None, 5.0]
    states = fleet.signal_states(range(SIGNALS), last)
    one_by_one, together = (Fleet.of(SIGNALS + 2, fleet.settings) for _ in range(2))
    rows = [6, 1, 0, 4, 2]
    assert [one_by_one.put(row, state) for row, state in zip(rows, states, strict=True)] == last
    assert together.put_all(rows, states) == last
    assert together.last_times == one_by_one.last_times == {6: 7.0, 0: 3.0, 2: 5.0}
    assert together.names == one_by_one.names
    values = np.abs(np.random.default_rng(5).normal(size=(50, SIGNALS + 2, len(fleet.features))))
    expected, found = one_by_one.run_arrays(values), together.run_arrays(values)
    for name in ("p", "severity", "forecast", "low", "high", "alarm", "feature_p"):
        assert np.array_equal(getattr(expected, name), getattr(found, name), equal_nan=True), name
    assert [repr(one) for one in one_by_one.incidents()] == [repr(one) for one in together.incidents()]


def test_one_bad_state_changes_nothing(fleet: Fleet) -> None:
    good, other = fleet.signal_state(0), fleet.signal_state(1)
    bad = {name: array for name, array in other.items() if name != "pipeline/seen"}
    changed = Fleet.of(2, fleet.settings)
    with pytest.raises(ValueError, match="same arrays"):
        changed.put_all([0, 1], [good, bad])
    assert [changed.observations(row) for row in (0, 1)] == [0, 0]


def test_signals_put_together_forget_what_a_shared_budget_knew_of_their_rows() -> None:
    given = Fleet(2, preset="light", budget="1/day", interval="5min")
    state = Fleet.of(1, given.settings).signal_state(0)
    forgotten = []
    given.parts.sharing.forget = forgotten.append
    given.put(1, state)
    given.put_all([0, 1], [state, state])
    assert forgotten == [1, 0, 1]
    with pytest.raises(ValueError, match="rows must be distinct"):
        given.put_all([0, 0], [state, state])
