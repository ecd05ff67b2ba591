"""The views: what each says, in numbers and in words, and that nothing depends on when it is asked."""

import re

import numpy as np
import pytest

from tests.cases import full
from tests.detection.helpers import LAST, SMALL, same_verdicts
from tests.detection.oracle import OracleRelation
from tocsin.detection import Detector, Fleet
from tocsin.detection.incidents.verdict import explain
from tocsin.detection.views import Seen, Stream, View, ViewSession, available_views, make_view
from tocsin.detection.views import view as contract
from tocsin.detection.views.error import GivenScore
from tocsin.detection.views.movement import MovementView
from tocsin.detection.views.shape import Scale, ShapeSession, ShapeView
from tocsin.detection.views.view import MOST_AT_ONCE
from tocsin.testing import check_view


@pytest.mark.parametrize("nonconformity", ["absolute", "high", "low"])
@pytest.mark.parametrize("view", ["error"])
def test_words_name_the_side_whatever_is_strange(nonconformity, view):
    """Low values are ranked turned over; what is said of them is not."""
    side = -1 if nonconformity == "low" else 1
    values = np.random.default_rng(0).normal(size=1000)
    values[940:] += side * 20
    detector = Detector(
        window=250, alarm_rate=0.01, forecaster="exponential-smoothing", forecaster_options={"rate": 0.01}, views=view,
        nonconformity=nonconformity,
    )  # fmt: skip
    verdicts = detector.run(values).verdicts
    assert verdicts.alarm[940:, 0].sum() > 10
    assert side * verdicts.score[990, 0] > 5
    why = explain(verdicts, 990, 0, detector.fleet.views, detector.features)
    assert why.view == view
    assert (" above " if side > 0 else " below ") in why.text


@pytest.mark.parametrize("cut", [20, 32, 70, 201, 256, *map(full, (31, 33, 200, 240, 255, 257))])
def test_a_shape_that_begins_late_does_not_depend_on_when_it_was_saved(cut):
    """Nothing known when units are first looked for: there is nothing to compare with, restored or not."""
    values = np.random.default_rng(1).normal(size=300)
    values[:200] = np.nan
    detector = Detector(**LAST, views="shape")
    detector.run(values[:cut])
    restored = Detector.from_bytes(detector.to_bytes())
    same_verdicts(restored.run(values[cut:]).verdicts, detector.run(values[cut:]).verdicts)


class Loudest(View):
    """The largest size of the newest four values: what another package might bring."""

    name = "loudest"

    def __init__(self):
        self.streams = (Stream("loudest-4", 4),)

    def open(self, signals, features, side):
        return LoudestSession(signals, features)

    def words(self, stream, score, unit, interval):
        return f"as loud as {score:.3g}"


class LoudestSession(ViewSession):
    def __init__(self, signals, features):
        self._newest = np.full((signals, features, 4), np.nan)

    def run(self, seen, rows, scores):
        for t, values in enumerate(seen.values):
            self._newest[rows] = np.concatenate([self._newest[rows][..., 1:], values[..., np.newaxis]], axis=2)
            full = ~np.isnan(self._newest[rows]).any(axis=2)
            scores[t, ..., 0] = np.where(full, np.abs(self._newest[rows]).max(axis=2), np.nan)

    def state(self, rows):
        return {"newest": self._newest[rows]}

    def _restore(self, state, rows):
        self._newest[rows] = state["newest"]


class Point:
    """An entry point of a package that is not there."""

    def __init__(self, name, made):
        self.name, self.load = name, lambda: made


@pytest.fixture
def installed(monkeypatch):
    """Views of other packages."""
    points = [Point("loudest", Loudest), Point("broken", dict), Point("movement", Loudest)]
    monkeypatch.setattr(contract, "entry_points", lambda group: points if group == "tocsin.views" else [])
    contract._by_name.cache_clear()
    yield
    contract._by_name.cache_clear()


def test_views_of_other_packages_go_by_their_names(installed):
    """A name that is taken stays with this package, and what is no view is refused by the name of its entry point."""
    assert available_views()[-2:] == ["loudest", "broken"]
    assert isinstance(make_view("loudest"), Loudest)
    assert isinstance(make_view("movement"), MovementView)
    with pytest.raises(TypeError, match=r"the entry point 'broken' of tocsin\.views must be a View, got \{\}"):
        make_view("broken")
    with pytest.raises(ValueError, match=r"views must be one of .*'loudest'.*got 'softest'"):
        make_view("softest")


@pytest.mark.slow
def test_a_view_of_another_package_is_judged_saved_and_explained(installed):
    check_view(Loudest())
    values = np.random.default_rng(0).normal(size=800)
    values[700:710] = 30 * (-1) ** np.arange(10)
    detector = Detector(window=300, alarm_rate=0.01, forecaster="last-value", views="error,loudest")
    detector.run(values[:650])
    restored = Detector.from_bytes(detector.to_bytes())
    verdicts = detector.run(values[650:]).verdicts
    same_verdicts(restored.run(values[650:]).verdicts, verdicts)
    assert verdicts.alarm[50:60, 0].any()
    assert detector.update(0.0).views.keys() == {"error", "loudest"}
    alone = Detector(window=300, alarm_rate=0.01, forecaster="last-value", views="loudest")
    alone.run(values[:705])
    assert alone.incidents[-1].explanation == "as loud as 30"


VIEWS = [*map(make_view, available_views()), GivenScore()]
every_view = pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)


@pytest.mark.slow
@every_view
def test_every_view_keeps_the_contract(view):
    check_view(view)


def shown(values):
    """A session needs no more than this where it looks at no forecasts."""
    return Seen(values, ())


def long_values(steps, features, seed=0):
    """A billion and a walk of noise, with gaps, resting stretches and changes of scale."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(steps, 1, features)) * np.exp(3 * np.sin(np.arange(steps) / 90_000))[:, None, None]
    values += 1e9 + 1e-3 * np.cumsum(rng.normal(size=(steps, 1, features)), axis=0)
    values[rng.random(values.shape) < 1e-4] = np.nan
    for start in range(0, steps, steps // 7):
        values[start : start + 500] = values[start]
    return values


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "features"), [full(300_000, 1), (60_000, 3)])
def test_a_session_does_not_drift_however_long_it_runs(steps, features):
    """A session that has run for long goes on as one that is restored from its state."""
    scales = (Scale(8, 1, 300, 8), Scale(8, 2, 200, 4))
    made = {
        "shape": lambda: ShapeSession(1, features, scales, 50),
        "movement": lambda: make_view("movement").open(1, features, 0),
    }
    values, rows = long_values(steps, features), np.array([0])
    for name, make in made.items():
        session, other = make(), make()
        streams, width = (2, 1) if name == "shape" else (len(make_view(name).streams), features)
        scores = np.full((steps - 400, 1, width, streams), np.nan)
        session.run(shown(values[:-400]), rows, scores)
        assert np.isfinite(scores).mean() > 0.9
        other.restore(session.state(rows), rows)
        after = [np.full((400, 1, width, streams), np.nan) for _ in range(2)]
        session.run(shown(values[-400:]), rows, after[0])
        other.run(shown(values[-400:]), rows, after[1])
        np.testing.assert_array_equal(*after, err_msg=name)
        assert np.isfinite(after[0]).mean() > 0.95


def test_a_switch_that_seldom_moves_does_not_outweigh_other_features():
    """Its first pulse of two observations is nearer to the past than a wave that is lost."""
    rng = np.random.default_rng(0)
    values = np.zeros((3000, 1, 2))
    values[:, 0, 0] = np.sin(np.arange(3000) / 5) + 0.1 * rng.normal(size=3000)
    values[::150, 0, 1] = values[1951, 0, 1] = 1.0
    values[2800:2820, 0, 0] = 2.0
    scores = np.full((3000, 1, 1, 2), np.nan)
    ShapeView().open(1, 2, 0).run(shown(values), np.array([0]), scores)
    single = scores[:, 0, 0, 0]
    assert single[2800:2820].max() > np.nanmax(single[1000:2800])


def test_stretches_of_a_fault_are_forgotten_once_no_newer_one_can_be_judged_by_them():
    """The second of two equal faults is as far from everything as the first, unless the first was learned."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1200, 1, 1))
    fault = 6 + rng.normal(size=60)
    values[600:660, 0, 0] = values[1000:1060, 0, 0] = fault
    rows = np.array([0])
    furthest = {}
    for forgets in (False, True):
        session = ShapeView().open(1, 1, 0)
        scores = np.full((1200, 1, 1, 2), np.nan)
        for first in range(0, 1200, MOST_AT_ONCE):
            piece = slice(first, first + MOST_AT_ONCE)
            session.run(shown(values[piece]), rows, scores[piece])
            faulty = np.zeros((MOST_AT_ONCE, 1), dtype=bool)
            faulty[:, 0] = forgets & (np.abs(np.arange(1200)[piece] - 630) <= 31)
            session.forget(faulty, rows)
        furthest[forgets] = np.nanmax(scores[1000:1060, 0, 0], axis=0) / np.nanmax(scores[600:660, 0, 0], axis=0)
    assert (furthest[False] < 0.8).all()
    assert (furthest[True] > 0.9).all()


@pytest.mark.parametrize(
    ("name", "stream", "score", "text"),
    [
        ("error", 1, 2.5, "2.5 mm above the forecast"),
        ("error", 1, -2.5, "2.5 mm below the forecast"),
        ("error", 0, -1e-5, "1e-05 mm below the forecasts of the last 15 observations"),
        ("shape", 0, 3.21, "the last 16 observations resemble no earlier stretch"),
        ("shape", 1, 3.21, "the last 64 observations resemble no earlier stretch"),
        ("movement", 0, -np.log(0.25), "moves by only 0.25 mm a step, for 48 observations"),
        ("movement", 0, 745.0, "has not moved for 48 observations"),
        ("movement", 1, np.log(0.25), "moves by 0.25 mm a step, for 48 observations"),
        ("movement", 2, 0.25, "moves by 0.25 mm in one step"),
        ("level", 0, 2.5, ""),
        ("level", 3, -2.5, "over 512 observations"),
        ("relation", 0, 2.5, "2.5 mm above what the other feature says"),
        ("relation", 2, -2.5, "2.5 mm below what the other feature says, on average over 64 observations"),
        ("relation", 4, 2.5, "2.5 mm away from what the other feature says, on average over 64 observations"),
    ],
)
def test_every_view_says_in_words_what_is_strange(name, stream, score, text):
    assert make_view(name).words(stream, score, "mm", None) == text


@pytest.mark.parametrize(
    ("name", "stream", "text"),
    [
        ("error", 0, "1 mm above the forecasts of the last 15 min"),
        ("shape", 1, "the last 64 min resemble no earlier stretch"),
        ("movement", 1, "moves by 2.72 mm a step, for 48 min"),
        ("level", 3, "over 8.5 h"),
        ("relation", 1, "1 mm above what the other feature says, on average over 16 min"),
    ],
)
def test_where_the_interval_is_known_stretches_are_told_in_time(name, stream, text):
    assert make_view(name).words(stream, 1.0, "mm", 60.0) == text


def test_a_score_from_outside_is_told_as_it_is():
    assert GivenScore().words(0, 3.0, "", None) == "a score of 3"


FAULTS = {
    "error": (lambda values: values[1500:1502].__iadd__(25), "the forecast"),
    "shape": (lambda values: values.__setitem__(slice(1500, 1580), 2.0 * np.sin(np.arange(80) / 2)), "no earlier"),
    "movement": (lambda values: values.__setitem__(slice(1500, 1600), 0.4), "has not moved for 48"),
    "level": (lambda values: values[1500:1600].__iadd__(1.5), "usually"),
}


@pytest.mark.parametrize("view", FAULTS)
def test_each_kind_of_fault_is_explained_by_its_view(view):
    """Two features, of which the second has the fault; the shape is that of both together."""
    values = np.random.default_rng(3).normal(size=(1700, 2))
    strike, words = FAULTS[view]
    strike(values[:, 1])
    detector = Detector(
        ["flow", "heat [mm]"], alarm_rate=0.01, window=1000, forecaster="exponential-smoothing",
        forecaster_options={"rate": 0.02}, views="error,shape,movement,level",
    )  # fmt: skip
    verdicts = detector.run(values).verdicts
    number = [one.name for one in detector.fleet.views].index(view)
    chosen = np.flatnonzero(verdicts.cause[1500:1600, 0, 0] == number)
    assert chosen.size
    at = 1500 + chosen[np.argmax(verdicts.views[1500 + chosen, 0, number])]
    why = explain(verdicts, int(at), 0, detector.fleet.views, detector.features)
    assert why.view == view
    assert why.feature == (None if view == "shape" else "heat [mm]")
    assert words in why.text
    assert why.text.startswith("heat: ")
    assert re.search(r"-\d\.\d+ to \d\.\d+ mm", why.text)
    assert explain(verdicts, 0, 0, detector.fleet.views, detector.features) is None


MINUTES = np.datetime64("2026-01-05", "ns") + np.arange(2000) * np.timedelta64(60, "s")


def watched(values, features=1, unit=""):
    """What a fleet of one finds in values of each minute."""
    fleet = Fleet(1, features, alarm_rate=0.002, forecaster="exponential-smoothing", interval="1min", season="none",
                  forecaster_options={"rate": 0.7})  # fmt: skip
    fleet.units[0] = unit
    verdicts = fleet.run_arrays(values[:, np.newaxis], times=MINUTES[: len(values), np.newaxis])
    return fleet, verdicts


def test_a_usual_value_is_not_told_as_if_it_were_beyond_what_is_usual():
    values = np.random.default_rng(5).normal(size=1600)
    values[1500:] = 0.0
    fleet, _ = watched(values, unit="GB")
    (incident,) = [one for one in fleet.incidents() if one.first > 1500]
    assert re.fullmatch(r"0\.0 GB is usual \(-1\.\d to 1\.\d GB\), but has not moved for 48 min", incident.explanation)


def test_the_end_of_a_burst_is_not_told_as_low():
    """It shows more than the burst, since by then the forecast has followed; the words stay those of the burst."""
    rng = np.random.default_rng(5)
    values = 10 * np.sin(2 * np.pi * np.arange(1600) / 90.7) + 0.3 * rng.normal(size=1600)
    values[1498:1508] = np.linspace(values[1498], 20.0, 10)
    fleet, verdicts = watched(values)
    why = explain(verdicts, 1508, 0, fleet.views, fleet.features)
    assert verdicts.alarm[1508, 0]
    assert verdicts.evidence[1508, 0] > verdicts.evidence[1498:1508, 0].max() + 3.0
    assert re.fullmatch(r"fell back to -7, usually -10 to 11(; moves by [\d.]+ in one step)?", why.text)
    (incident,) = [one for one in fleet.incidents() if one.last >= 1508]
    assert MINUTES[1498] < incident.peak < MINUTES[1508]
    assert incident.direction == "above"
    assert re.match(r"(19|20), usually -10 to 11", incident.explanation)


def test_a_unit_is_that_of_the_feature_or_else_of_the_signal():
    values = np.random.default_rng(5).normal(size=(1600, 2))
    said = {}
    for feature in range(2):
        strange = values.copy()
        strange[1500, feature] = 30.0
        fleet, _ = watched(strange, ["flow", "heat [°C]"], unit="GB")
        said[feature] = next(one.explanation for one in fleet.incidents() if one.first == 1500)
    assert re.match(r"flow: 30\.0 GB, usually -1\.\d to 1\.\d GB", said[0])
    assert re.match(r"heat: 30\.0 °C, usually -1\.\d to 1\.\d °C", said[1])


def related(steps, features, seed=0):
    """Features that follow one load, each with noise of its own."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(steps, 1)) + 0.3 * rng.normal(size=(steps, features))


def test_one_feature_has_no_relations():
    """Not by default, nor beside other views; alone they are refused."""
    names = [view.name for view in Detector(**SMALL).fleet.views]
    assert names == ["error", "shape", "movement", "level"]
    assert [view.name for view in Detector(views="error,relation", **SMALL).fleet.views] == ["error"]
    assert [view.name for view in Detector(2, **SMALL).fleet.views] == [*names, "relation"]
    with pytest.raises(ValueError, match=r"views=\('relation',\) compare features, and need at least two of them"):
        Detector(views="relation", **SMALL)


@pytest.mark.parametrize("kind", ["parts", "late"])
def test_a_feature_that_leaves_the_others_is_named(kind):
    """Each of its values is usual: nothing else sees it."""
    values = related(1500, 5)
    values[1300:1360, 3] = np.random.default_rng(1).normal(size=60) if kind == "parts" else values[1290:1350, 3]
    found = {}
    for views in ("movement,level", "movement,level,relation"):
        detector = Detector(["a", "b", "c", "d [bar]", "e"], alarm_rate=0.005, views=views, forecaster="last-value")
        detector.run(values)
        found[views] = [one for one in detector.incidents if one.first >= 1300 and one.first < 1360]
    before, (incident, *_) = found.values()
    assert not before
    assert (incident.view, incident.features[0]) == ("relation", "d [bar]")
    assert incident.explanation.startswith("d: ")
    assert "what the other 4 features say" in incident.explanation


def scores_of(values, faulty=None):
    """The scores `[T, F, streams]` of the view of relations, which forgets what is faulty."""
    session = make_view("relation").open(1, values.shape[1], 0)
    scores = np.full((len(values), 1, values.shape[1], 5), np.nan)
    for first in range(0, len(values), MOST_AT_ONCE):
        piece = slice(first, first + MOST_AT_ONCE)
        session.run(shown(values[piece, np.newaxis]), np.array([0]), scores[piece])
        if faulty is not None:
            session.forget(faulty[piece, np.newaxis], np.array([0]))
    return scores[:, 0]


def test_constant_and_repeated_features_are_no_trouble():
    """A feature that never moves has no score and changes none; one that repeats another is told by it."""
    values = related(1000, 3)
    alone = scores_of(values)
    beside = scores_of(np.column_stack([values, np.full(1000, 7.0)]))
    assert np.isnan(beside[:, 3]).all()
    np.testing.assert_allclose(beside[:, :3], alone, rtol=1e-9)
    twice = scores_of(np.column_stack([values, values[:, 0]]))
    assert np.isfinite(twice[200:]).all()
    assert np.abs(twice[600:, [0, 3], 0]).mean() < 0.1 * np.abs(alone[600:, 0, 0]).mean()


def test_missing_features_are_told_by_those_that_are_known():
    """A score of a feature is that of the view of the known ones alone, roughly: what is gone says nothing."""
    values = related(1500, 4)
    gone = values.copy()
    gone[1000:, 2:] = np.nan
    scores, pair = scores_of(gone)[1000:], scores_of(values[:, :2])[1000:]
    assert np.isnan(scores[:, 2:]).all()
    assert np.corrcoef(scores[:, 0, 0], pair[:, 0, 0])[0, 1] > 0.99
    gone[1000:, 1] = np.nan
    assert np.isnan(scores_of(gone)[1000:]).all()


def test_relations_are_not_learned_from_a_fault_nor_from_what_led_up_to_it():
    values = related(1200, 3)
    values[600:900, 0] = -values[600:900, 0]
    faulty = (np.arange(1200) >= 632) & (np.arange(1200) < 900)
    after = slice(1000, 1200)
    usual = np.abs(scores_of(related(1200, 3))[after, 0, 0]).mean()
    assert np.abs(scores_of(values, faulty)[after, 0, 0]).mean() < 1.05 * usual
    assert np.abs(scores_of(values)[after, 0, 0]).mean() > 1.15 * usual


def test_many_features_agree_with_the_oracle():
    """One never moves, one moves late, one is a switch, one repeats another, one begins late; values are missing."""
    rng = np.random.default_rng(6)
    values = rng.normal(size=(420, 3)) @ rng.normal(size=(3, 40)) + 0.4 * rng.normal(size=(420, 40))
    values[:, 0], values[:160, 1], values[:, 2] = 7.0, 3.0, values[:, 3]
    values[:120, 4] = np.nan
    values[:, 5] = rng.random(420).round() * (rng.random(420) < 0.1)
    values[rng.random(values.shape) < 0.03] = np.nan
    faulty = (np.arange(420) >= 200) & (np.arange(420) < 210)
    oracle, expected = OracleRelation(lambda error: error, True, 40), []
    for row, fault in zip(values, faulty, strict=True):
        expected.append(oracle.update(row))
        if fault:
            oracle.forget()
    assert oracle.learned < 320
    np.testing.assert_allclose(scores_of(values, faulty), expected, rtol=1e-6, atol=1e-9)


def test_a_switch_at_rest_is_where_the_others_say():
    """Else its first pulse for long would be a thousand times as far as it ever was, and so would each one after it."""
    values = np.column_stack([related(4000, 2), np.zeros(4000)])
    values[[300, 900, 1500, 3900], 2] = 1.0
    scores = scores_of(values)
    at_rest = np.abs(scores[2000:3900, 2])
    assert (at_rest[:, 0] == 0.0).mean() > 0.99
    assert np.abs(scores[3900, 2, 0]) > 0.9
    detector = Detector(3, preset="light", alarm_rate=0.001)
    assert np.nanmax(detector.run(values).verdicts.views[3900:3920, 0, -1]) < 15


def test_outliers_hardly_change_a_relation():
    values = related(1200, 3)
    usual = np.abs(scores_of(values)[600:, 0, 0]).mean()
    hit = np.random.default_rng(2).random(600) < 0.05
    values[:600, 1][hit] += 100
    assert np.abs(scores_of(values)[600:, 0, 0]).mean() < 1.2 * usual
