"""Incidents that stay open while the signal is unlike what it was before, and why they end."""

import io
from types import SimpleNamespace

import numpy as np
import pytest

from tests.cases import full
from tests.detection.helpers import MovingMean, same_verdicts
from tests.detection.oracle import FromContext, OracleDetector
from tocsin.constants import constants
from tocsin.detection import Detector, Fleet
from tocsin.detection.incidents import rules
from tocsin.detection.incidents.verdict import RETURNED, SUBSIDED

BEFORE = 2500
SETTINGS = {"alarm_rate": 0.003, "forecaster": "exponential-smoothing", "window": 1000}


def signal(after, seed=0, features=1):
    return np.random.default_rng(seed).normal(size=(BEFORE + after, features))


def with_step(lasts, after, size=8.0, seed=0):
    values = signal(lasts + after, seed)
    values[BEFORE : BEFORE + lasts] += size
    return values


def late(detector):
    """The incidents that began with what comes after the quiet time."""
    return [incident for incident in detector.incidents if incident.first >= BEFORE]


def test_a_step_is_one_incident_until_it_is_over():
    detector = Detector(**SETTINGS)
    verdicts = detector.run(with_step(300, 200)).verdicts
    incident = late(detector)[0]
    assert (incident.first, incident.ended) == (BEFORE, "returned")
    assert BEFORE + 300 <= incident.last < BEFORE + 300 + 64
    assert verdicts.open[BEFORE : BEFORE + 300].all()
    over = np.flatnonzero(~verdicts.open[BEFORE:, 0])[0]
    assert 300 < over <= 300 + 128


@pytest.mark.slow
@pytest.mark.parametrize("size", [full(4), 15])
def test_a_leak_is_one_incident_until_it_is_repaired_however_large_it_grows(size):
    values = signal(2100, seed=1)
    values[BEFORE : BEFORE + 2000, 0] += np.linspace(0, size, 2000)
    detector = Detector(**SETTINGS)
    verdicts = detector.run(values).verdicts
    assert verdicts.open[BEFORE + 1000 : BEFORE + 2000].all()
    assert not verdicts.opened[BEFORE + 1000 :].any()


def test_equal_faults_are_incidents_of_the_same_rank():
    values = signal(1200, seed=3)
    for start in (0, 300, 600):
        values[BEFORE + start : BEFORE + start + 60] += 8
    detector = Detector(**SETTINGS)
    detector.run(values)
    found = [incident for incident in late(detector) if incident.first - BEFORE in (0, 300, 600)]
    assert len(found) == 3
    assert {incident.ended for incident in found} == {"returned"}
    severities = [incident.severity for incident in found]
    assert min(severities) > 0.5 * max(severities)


def test_what_was_weak_or_chance_does_not_claim_that_its_cause_is_gone():
    values = signal(2000, seed=5)
    values[BEFORE:] += 0.5  # to the end
    detector = Detector(**SETTINGS)
    detector.run(values)
    assert {incident.ended for incident in detector.incidents} <= {"subsided", "accepted", None}
    assert [incident.ended for incident in detector.incidents].count("subsided") >= 5


def test_right_after_something_was_accepted_nobody_can_tell_what_a_signal_is_back_to():
    values = with_step(4000, 0, size=3.0)
    soon, much_later = BEFORE + 1000, BEFORE + 3000
    values[[soon, much_later]] += 10
    detector = Detector(**SETTINGS, accept_after=200)
    detector.run(values)
    ends = {incident.first: incident.ended for incident in late(detector)}
    assert "accepted" in ends.values()
    assert (ends[soon], ends[much_later]) == ("subsided", "returned")


@pytest.mark.parametrize(
    ("level", "ended"), [(0.9, RETURNED), (1.1, SUBSIDED), (-1.1, RETURNED), (0.0, RETURNED), (np.nan, RETURNED)]
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_signal_has_not_returned_if_its_level_is_still_a_third_of_the_way_away(sign, level, ended):
    """The level was three from the usual one."""
    counters, levels = np.zeros((1, rules.COUNTERS), dtype=np.int64), np.zeros((1, rules.LEVELS))
    counters[0, [rules.OPEN, rules.CERTAIN]], counters[0, rules.SINCE] = 1, 10
    levels[0, rules.PEAK_LEVEL], levels[0, rules.FURTHEST] = 3.0 * sign, -1.0
    memory = SimpleNamespace(counters=counters, levels=levels, blocks=np.zeros((1, 1)))
    settings = SimpleNamespace(
        gap=10, accept_after=600, by_p=True, longest=64, returned=32, window=2000, block=100, constants=constants()
    )
    kept = counters.copy()
    state = rules.advance_incident(0, False, False, 1.0, level * sign, settings, memory)
    assert (state, counters[0, rules.OPEN]) == (ended, 0)
    # With a reference there is one normal, whatever was accepted before.
    counters[:] = kept
    counters[0, [rules.FROZEN, rules.ADAPTING]] = 1, 2000
    levels[0, rules.PEAK_LEVEL] = 0.0
    assert rules.advance_incident(0, False, False, 1.0, level * sign, settings, memory) == RETURNED


@pytest.mark.slow
def test_what_stays_is_accepted_after_a_while_and_becomes_normal():
    detector = Detector(**SETTINGS, accept_after=200)
    verdicts = detector.run(with_step(1500, 0)).verdicts
    incident = late(detector)[0]
    assert incident.ended == "accepted"
    assert 195 <= incident.duration <= 400
    assert verdicts.open[BEFORE + 700 :].mean() < 0.2
    never = Detector(**SETTINGS, accept_after=10**6)
    never.run(with_step(1500, 0))
    assert late(never)[0].open


def test_a_signal_that_says_nothing_any_more_is_silent():
    values = with_step(50, 200)
    values[BEFORE + 40 :] = np.nan
    detector = Detector(**SETTINGS)
    detector.run(values)
    (incident,) = late(detector)
    assert incident.ended == "silent"
    assert incident.last < BEFORE + 40 + 50


@pytest.mark.slow
def test_what_somebody_takes_for_normal_ends_and_is_learned():
    fleet = Fleet(["a", "b"], **SETTINGS)
    values = np.concatenate([with_step(1500, 0), with_step(1500, 0)], axis=1)
    fleet.run_arrays(values[: BEFORE + 20])
    assert fleet.open_incident(1) is not None
    assert fleet.accept(1)
    assert fleet.open_incident(1) is None
    assert fleet.incidents(1)[-1].ended == "labelled"
    assert not fleet.accept(1)
    fleet = Fleet.from_state(fleet.state())  # what was said is kept
    fleet.run_arrays(values[BEFORE + 20 : BEFORE + 120])
    assert fleet.open_incident(1) is None
    assert fleet.open_incident(0) is not None
    verdicts = fleet.run_arrays(values[BEFORE + 120 :])
    assert verdicts.open[400:, 1].mean() < 0.2


def test_a_spike_is_over_soon():
    values = signal(300)
    values[BEFORE] += 30
    detector = Detector(**SETTINGS)
    detector.run(values)
    incident = late(detector)[0]
    assert (incident.first, incident.ended) == (BEFORE, "returned")
    assert incident.duration <= 40


def test_a_pulse_of_a_switch_is_over_soon():
    """The network sees it for a thousand observations, and its forecasts of a switch are then not exactly 0."""
    switch = np.zeros(5200)
    switch[[3000, 4000, 5000]] = 1.0
    detector = Detector(alarm_rate=0.001)
    detector.run(switch)
    assert [incident.first for incident in detector.incidents] == [3000, 4000, 5000]
    assert all(incident.duration <= 64 for incident in detector.incidents)
    assert all(incident.explanation.startswith("1.0, usually 0.0;") for incident in detector.incidents)


@pytest.mark.slow
def test_slow_views_do_not_open_again_what_is_over():
    """They look back into it, and so do the forecasts that they compare with."""
    opened = 0
    for seed in range(6):
        detector = Detector(**SETTINGS)
        detector.run(with_step(120, 200, seed=seed))
        opened += len(late(detector)) - 1
    # By chance alone it would be 6 * 200 * 0.003 = 3.6.
    assert opened <= 9


@pytest.mark.slow
@pytest.mark.parametrize("cut", [full(BEFORE + 1), BEFORE + 77, BEFORE + 305, full(BEFORE + 350)])
def test_an_incident_goes_on_after_a_restart(cut):
    values = with_step(300, 200)
    whole, first = Fleet(1, **SETTINGS), Fleet(1, **SETTINGS)
    expected = whole.run_arrays(values)
    first.run_arrays(values[:cut])
    file = io.BytesIO()
    first.save(file)
    file.seek(0)
    again = Fleet.load(file)
    rest = [again.update(value) for value in values[cut:]]
    for step, one in enumerate(rest):
        assert one.state[0, 0] == expected.state[cut + step, 0]
        assert one.p[0, 0] == expected.p[cut + step, 0]
    assert again.incidents() == whole.incidents()


@pytest.mark.slow
@pytest.mark.parametrize("features", [1, full(2)])
@pytest.mark.parametrize("lasts", [full(40), 150])
def test_holding_agrees_with_the_oracle(features, lasts):
    """A step that returns with gaps in it, one that is accepted, and a change of noise."""
    settings = {
        "window": 250, "alarm_rate": 0.02, "views": ("error", "shape", "movement"), "accept_after": 120,
        "gap": 5,
    }  # fmt: skip
    rng = np.random.default_rng(lasts)
    values = rng.normal(size=(1100, features))
    values[650 : 650 + lasts] += 9
    values[900:] *= 6
    values[rng.random(values.shape) < 0.03] = np.nan
    fleet = Fleet(1, features, forecaster=MovingMean(), **settings)
    oracle = OracleDetector(features, fleet.settings.sizes, forecaster=FromContext(MovingMean()), **settings)
    found = fleet.run_arrays(values[:, np.newaxis])
    expected = oracle.run(values)
    for name in ("state", "alarm", "opened"):
        np.testing.assert_array_equal(getattr(found, name)[:, 0], expected[name], err_msg=name)
    np.testing.assert_allclose(found.evidence[:, 0], expected["evidence"], rtol=1e-9, atol=1e-12)
    assert {1, 2, 6 if lasts == 40 else 4} <= set(found.state[:, 0])
    assert (found.open[:, 0] & ~found.alarm[:, 0]).sum() > 40


@pytest.mark.slow
def test_signals_do_not_disturb_each_other():
    values = np.concatenate([with_step(200, 150), signal(350, seed=9)], axis=1)
    both = Fleet(2, **SETTINGS).run_arrays(values)
    for column in range(2):
        alone = Fleet(1, **SETTINGS).run_arrays(values[:, [column]])
        same_verdicts(_only(both, column), alone)


def _only(verdicts, column):
    return type(verdicts)(**{name: getattr(verdicts, name)[:, [column]] for name in verdicts.__dataclass_fields__})
