"""The paper's detector: its numbers against a slow version, and to the last bit however it is fed."""

import numpy as np
import pytest

from tests import paper
from tests.cases import full
from tests.detection.helpers import MovingMean
from tocsin.conformal import MERGES, W1ACAS
from tocsin.detection import Detector, Fleet, memory_bytes
from tocsin.detection.state.rerating import rerated
from tocsin.forecasting import EmbeddedForecaster, LastValue
from tocsin_bench.files import LabelledFile
from tocsin_bench.forecast_errors import ForecasterChoice, make_material
from tocsin_bench.methods import METHODS

QUICK = {"preset": "paper", "forecaster": "last-value"}
#: Weights that move far within a short test.
MOVING = {**QUICK, "alpha_c": 0.05, "window": 250, "learning_rate": 0.05, "horizons": 3}


def identical(left, right):
    return np.array_equal(left, right, equal_nan=True)


@pytest.mark.parametrize("merge", ["fisher", "harmonic"])
def test_the_detector_is_the_bench_s_method_and_both_are_the_paper_s(merge):
    values = paper.example(260, features=2)
    p = Detector(2, preset="paper", merge_features=merge).run(values).p
    file = LabelledFile("one", "one", 100, values, np.zeros(len(values), dtype=bool))
    material = make_material(file, ForecasterChoice("embedded", {"context_length": 52}), 15)
    methods = {method.name: method for method in METHODS["w1-acas"].for_features()}
    assert identical(methods[f"w1-acas-{merge}"](material).p, p)
    wanted = paper.slow_p(values, EmbeddedForecaster(context_length=52), merge=merge)
    np.testing.assert_allclose(p, wanted, rtol=0, atol=1e-9)
    assert np.isnan(p[:52]).all()
    assert np.isfinite(p[52:]).all()


@pytest.mark.parametrize("prior", ["recent", "extend"])
def test_learned_weights_against_the_slow_version(prior):
    values = paper.example(700)
    detector = Detector(**QUICK, prior=prior)
    np.testing.assert_allclose(
        detector.run(values).p, paper.slow_p(values, LastValue(), prior=prior), rtol=0, atol=1e-9
    )
    assert detector.weights.shape == (1, 15, 5000)
    assert 0 < detector.weights[..., :99].min() < 1


def test_options_are_those_of_the_scorer_and_the_merges():
    values = paper.example(400, features=2)
    options = {"alpha_c": 0.05, "batch": 4, "optimizer": "sgd", "learning_rate": 0.1, "prior": "recent", "window": 300}
    merges = {"merge_horizons": "cauchy", "merge_features": "bonferroni"}
    p = Detector(2, **QUICK, horizons=2, **options, **merges).run(values).p
    errors = np.full((400, 2, 2), np.nan)
    for horizon in (1, 2):
        errors[52:, :, horizon - 1] = np.abs(values[52:] - values[52 - horizon : 400 - horizon])
    last = np.flatnonzero(np.isnan(values[:, 0]))[0]
    errors[last + 1, 0, 0] = abs(values[last + 1, 0] - values[last - 1, 0])  # the last value that there was
    errors[last + 2, 0, 1] = abs(values[last + 2, 0] - values[last - 1, 0])
    ranks = W1ACAS(4, dtype="float64", **options).run(errors.reshape(400, 4)).reshape(errors.shape)
    assert identical(p, MERGES["bonferroni"](MERGES["cauchy"](ranks)))


@pytest.mark.parametrize("features", [full(1), 11])
def test_streamed_restored_and_in_a_fleet_it_gives_the_same_bits(features):
    rng = np.random.default_rng(features)
    values = rng.normal(size=(330, 3, features)).cumsum(axis=0)
    values[rng.random(values.shape) < 0.03] = np.nan
    values[200:280, 1] = np.nan  # longer than a forecast reaches
    values[150, 2] += 30
    whole = Fleet(3, features, **MOVING).run_arrays(values)
    assert whole.alarm.any()
    parts, fleet = [], Fleet(3, features, threads=2, **MOVING)
    for first in range(0, 330, 110):
        parts.append(fleet.run_arrays(values[first : first + 110]))
        fleet = Fleet.from_state(fleet.state())
    for column in range(3):
        detector = Detector(features, **MOVING)
        each = [detector.update(row) for row in values[:, column]]
        assert identical([verdict.p for verdict in each], whole.p[:, column])
        assert identical([verdict.alarm for verdict in each], whole.alarm[:, column])
        assert identical([verdict.low for verdict in each], np.squeeze(whole.low[:, column]))
    for name in ("p", "alarm", "state", "opened", "warm", "low", "feature_p", "evidence"):
        assert identical(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name)), name


def test_signals_move_between_fleets():
    values = np.random.default_rng(1).normal(size=(300, 3))
    source, target = Fleet(3, **MOVING), Fleet(2, **MOVING)
    source.run_arrays(values[:200])
    target.put(1, source.signal_state(2))
    states = source.signal_states([0], [None])
    target.put_all([0], states)
    assert identical(target.run_arrays(values[200:, [0, 2]]).p, source.run_arrays(values[200:]).p[:, [0, 2]])


def test_it_alarms_where_p_is_below_alpha_and_an_incident_is_a_run_of_alarms():
    values = paper.example(1000)[:, 0]
    values[800:804] += 9
    values[950:952], values[952] = 20, np.nan
    detector = Detector(**QUICK, alarm_rate=0.02)
    found = detector.run(values).verdicts
    assert identical(found.alarm, found.p < 0.02)
    assert identical(found.warm[:, 0], np.cumsum(np.isfinite(found.p[:, 0])) > 50)
    alarms = found.alarm[:, 0]
    starts = np.flatnonzero(alarms & ~np.append(False, alarms[:-1]))
    assert [one.first for one in detector.incidents] == starts.tolist()
    assert sum(one.alarms for one in detector.incidents) == alarms.sum()
    assert all(one.duration == one.alarms for one in detector.incidents)
    by_start = {one.first: one for one in detector.incidents}
    assert by_start[950].ended == "silent"
    assert by_start[800].ended == "subsided"
    assert by_start[800].explanation == "10 above the forecasts of the last 15 observations"
    assert by_start[800].severity == pytest.approx(-np.log10(by_start[800].p))
    assert detector.warm_up == 102


def test_it_learns_from_incidents():
    values = np.random.default_rng(0).normal(size=1500)
    values[700:] *= 8
    alarms = Detector(preset="paper", forecaster=MovingMean(), alarm_rate=0.02).run(values).alarm
    assert alarms[700:730].sum() >= 5
    assert alarms[-300:].mean() < 0.05


def test_accepting_ends_an_incident_and_labelling_it_counts_it_as_true():
    detector = Detector(**QUICK)
    detector.run(np.append(np.random.default_rng(0).normal(size=400), 50.0))
    assert detector.accept()
    assert detector.incidents[-1].ended == "labelled"
    detector.fleet.label_fault(0)
    assert detector.audit.faults == 1


def test_another_alpha_continues_with_what_was_learned():
    values = np.random.default_rng(3).normal(size=600)
    before = Detector(**MOVING, alarm_rate=0.01)
    before.run(values[:400])
    after = Detector.from_state(rerated(before.state(), 0.05))
    found, wanted = after.run(values[400:]), before.run(values[400:])
    assert identical(found.p, wanted.p)
    assert identical(found.alarm, wanted.p < 0.05)


def test_memory_is_known_before():
    for features in (1, 2):
        fleets = [Fleet(count, features, **MOVING) for count in (1, 2)]
        each = fleets[1].pipeline.nbytes - fleets[0].pipeline.nbytes
        assert memory_bytes(fleets[0].settings) == pytest.approx(each, rel=0.02)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"preset": "full", "horizons": 15}, "horizons=15 exists only with preset='paper', got preset='full'"),
        ({"preset": "light", "prior": "recent"}, "prior='recent' exists only with preset='paper', got preset='light'"),
        ({"merge_features": "fisher"}, "merge_features='fisher' exists only with preset='paper', got preset='full'"),
        ({**QUICK, "views": "error"}, r"views=\('error',\) exists only with preset='full' or 'light', got preset='pap"),
        ({**QUICK, "season": 24}, r"season=\(24,\) exists only with"),
        ({**QUICK, "gap": 3}, "gap=3 exists only with"),
        ({**QUICK, "nonconformity": "high"}, "nonconformity='high' exists only with"),
        ({**QUICK, "budget": 0.1}, "budget=0.1 exists only with"),
        ({**QUICK, "alarm_rate": "1/day", "interval": 60}, "alarm_rate must be a number .* got '1/day'"),
        ({**QUICK, "forecaster": None}, "forecaster must be a single one .* got None"),
        ({**QUICK, "forecaster": [LastValue(), LastValue()]}, "forecaster must be a single one"),
        (
            {**QUICK, "alarm_rate": 1e-4},
            "window must have room for .* got 5000 with alpha_c=0.01 and alarm_rate=0.0001",
        ),
        ({**QUICK, "window": 250, "alpha_c": 0.003}, "window must have room for .* got 250 with alpha_c=0.003"),
        ({"preset": "paper", "horizons": 999}, "horizons=999 needs forecasts of 999 steps"),
        ({**QUICK, "merge_horizons": "mode"}, "merge_horizons must be .*'mode'"),
        ({**QUICK, "optimizer": "newton"}, "optimizer must be .*'newton'"),
    ],
)
def test_what_does_not_apply_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Fleet(1, **given)


def test_there_is_no_reference():
    detector = Detector(**QUICK)
    detector.run(np.arange(100.0))
    with pytest.raises(ValueError, match="preset='paper' has no reference"):
        detector.learn_reference(np.arange(500.0))
    assert detector.observations == 100


@pytest.mark.slow
def test_every_door_gives_the_paper_s_numbers():
    values = paper.example(600)
    wanted = paper.slow_p(values, EmbeddedForecaster(context_length=52))
    for name, door in paper.DOORS.items():
        np.testing.assert_allclose(door(values), wanted, rtol=0, atol=1e-9, err_msg=name)


def test_the_page_lists_every_element_with_its_place_in_the_code():
    found = paper.elements()
    assert len({name for name, *_ in found}) == len(found) > 55
    roots = [paper.ROOT, paper.ROOT / "src" / "tocsin", paper.ROOT / "bench" / "src" / "tocsin_bench"]
    for name, places, status in found:
        text = ""
        for place in places:
            files = [root / place for root in roots if place.endswith(".py") and (root / place).is_file()]
            assert files or place in text, f"{name}: {place}"
            text = files[0].read_text() if files else text
        assert places or status == "missing" or name == "Eq. 16", name
