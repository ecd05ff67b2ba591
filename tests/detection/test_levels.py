"""What is usual for a signal: the level view, leaks that stay open, and faults that do not deafen."""

import io

import numpy as np
import pytest

from tests.detection import oracle
from tests.detection.helpers import same_verdicts
from tests.detection.oracle import OracleLevel
from tocsin.detection import Detector, DetectorSettings, Fleet
from tocsin.detection.incidents.rules import TIGHTENED
from tocsin.detection.state.memory import memory_bytes
from tocsin.detection.views import Seen, level
from tocsin.detection.views.level import LevelView
from tocsin.detection.views.view import MOST_AT_ONCE
from tocsin.evaluation.machine import ar_noise

SETTINGS = {"alarm_rate": 0.003, "forecaster": "exponential-smoothing", "window": 1000}
PERIOD = 48


def seasonal(steps, seed=0, signals=1):
    noise = np.random.default_rng(seed).normal(size=(steps, signals))
    return 3 * np.sin(2 * np.pi * np.arange(steps) / PERIOD)[:, np.newaxis] + 0.5 * noise


def stepping(seed=0, steps=7500, every=1500):
    """Noise of .6% around a level that steps by up to 15%, and the level."""
    rng = np.random.default_rng(seed)
    level = 3.0 * np.repeat(rng.uniform(0.85, 1.15, -(-steps // every)), every)[:steps, np.newaxis]
    return level * (1 + 0.006 * ar_noise(rng.normal(size=(steps, 1)), 0.5)), level


def level_of(fleet):
    """The session of the level view."""
    return next(session for session in fleet.pipeline._views if isinstance(session, level.LevelSession))


@pytest.mark.parametrize(
    ("seasons", "side", "steps_every"),
    [(None, 0, None), ((), 0, None), ((40,), 1, None), ((150, 700), 2, None), ((9,), 0, None), ((), 0, 1500)],
    ids=str,
)
def test_a_session_agrees_with_the_oracle(seasons, side, steps_every, monkeypatch):
    """Rings so short that they are full soon, faults, gaps and values too large to be kept; 700 needs the means."""
    for place in (level, oracle):
        monkeypatch.setattr(place, "FINE", 1024)
        monkeypatch.setattr(place, "COARSE", 512)
    steps, rng = 5000, np.random.default_rng(0)
    signal = 100 * stepping(steps=steps, every=steps_every)[0] if steps_every else seasonal(steps)
    values = np.round(signal, 2) + np.where(np.arange(steps) < 3000, 0.0, 2.0)[:, np.newaxis]
    values[rng.random(values.shape) < 0.05] = np.nan
    values[1200:1300], values[2000] = np.nan, 1e39
    faulty = np.convolve(rng.random(steps) < 0.002, np.ones(120))[:steps] > 0
    session, rows = LevelView(seasons).open(1, 1, side), np.array([0])
    slow = OracleLevel(lambda error: -error if side == 2 else error, seasons, ())
    found, expected, renewed = np.full((steps, 1, 1, 4), np.nan), np.full((steps, 4), np.nan), []
    for first in range(0, steps, MOST_AT_ONCE):
        piece = slice(first, first + MOST_AT_ONCE)
        session.run(Seen(values[piece, :, np.newaxis], ()), rows, found[piece])
        session.forget(faulty[piece, np.newaxis], rows)
        renewed.append(bool(session.renewed[0]))
        session.renewed[:] = False
        assert slow.look_back() == renewed[-1]
        for step in range(first, first + MOST_AT_ONCE):
            if step > first:
                slow.look_back()
            expected[step] = slow.update(float(values[step, 0]))
            if faulty[step]:
                slow.forget()
    np.testing.assert_allclose(found[:, 0, 0], expected, rtol=1e-9, atol=1e-12)
    assert any(renewed) == (seasons != () or steps_every is not None)
    assert np.isfinite(found).mean() > 0.4


@pytest.mark.slow
def test_streamed_history_restored_and_threads_are_the_same_where_a_season_is_found():
    """It is found in one signal at a time, because they begin at different times."""
    values = seasonal(700, signals=3)
    values[:30, 1] = np.nan
    values[:, 2] = np.random.default_rng(5).normal(size=700)
    whole, streamed, threads = (Fleet(3, **SETTINGS, threads=count) for count in (1, 1, 3))
    expected = whole.run_arrays(values)
    periods = level_of(whole)._memory.periods[:, 0]
    assert periods.tolist() == [PERIOD, PERIOD, 0]
    same_verdicts(threads.run_arrays(values), expected)
    found = 0
    for step in range(700):
        row = streamed.update(values[step])
        for name in ("p", "alarm", "evidence", "views", "score"):
            np.testing.assert_array_equal(
                getattr(row, name)[0], getattr(expected, name)[step], err_msg=f"{name} {step}"
            )
        if step % MOST_AT_ONCE == 0 and level_of(streamed)._memory.periods[0, 0] == PERIOD:
            found = found or step
    assert 96 <= found <= 400
    for cut in (found - 1, found, found + 1, found + 2):
        first = Fleet(3, **SETTINGS)
        first.run_arrays(values[:cut])
        again = Fleet.from_state(first.state()).run_arrays(values[cut:])
        np.testing.assert_array_equal(again.p, expected.p[cut:])
        np.testing.assert_array_equal(again.views, expected.views[cut:])


def test_rows_at_different_phases_do_not_matter():
    """One signal is some observations ahead: pieces end where either of them looks back."""
    values = seasonal(400, signals=2)
    together, alone = Fleet(2, **SETTINGS), Fleet(1, **SETTINGS)
    together.run_arrays(values[:17, :1], rows=[0])
    found = together.run_arrays(np.stack([values[17:, 0], values[:-17, 1]], axis=1))
    expected = alone.run_arrays(values[:, :1])
    np.testing.assert_array_equal(found.p[:, 0], expected.p[17:, 0])
    np.testing.assert_array_equal(found.views[:, 0], expected.views[17:, 0])


@pytest.mark.slow
def test_a_leak_stays_open_until_it_is_repaired_and_the_repair_is_no_incident():
    """It grows for longer than anything else would take to be accepted as normal."""
    values = seasonal(4600, seed=1, signals=4)
    values[2600:4100] += (2.0 * np.minimum(np.arange(1500) / 1200, 1.0))[:, np.newaxis]
    fleet = Fleet(4, **SETTINGS)
    verdicts = fleet.run_arrays(values)
    assert fleet.settings.accepted_after == 600
    assert verdicts.open[3000:4100].all()
    assert not verdicts.opened[3000:4200].any()
    assert not verdicts.open[4280:].all(axis=0).any()
    for signal in range(4):
        (leak,) = (one for one in fleet.incidents(signal) if one.first < 3000 and one.last >= 4100)
        assert leak.ended == "returned"
        assert 4100 <= leak.last < 4100 + 256


def test_the_usual_level_is_that_of_the_present_regime():
    """It is known again two looks after each step, as precisely as the noise allows, and steps are not part of it."""
    values, level = stepping()
    session, rows = LevelView(()).open(1, 1, 0), np.array([0])
    memory, scores = session._memory, np.full((len(values), 1, 1, 4), np.nan)
    for first in range(0, len(values), 100):
        piece = slice(first, first + 100)
        session.run(Seen(values[piece, :, np.newaxis], ()), rows, scores[piece])
        if first % 1500 >= 1000:
            assert memory.centres[0, 0] == pytest.approx(level[first, 0], rel=0.002)
            assert 0.003 < memory.spreads[0, 0] / level[first, 0] < 0.007
    in_regime = np.arange(len(values)) % 1500 >= 1100
    assert np.nanmax(np.abs(scores[in_regime, 0, 0, 2])) < 0.01 * level.min()
    assert np.nanmax(np.abs(scores[1500:, 0, 0, 2])) > 0.05 * level.min()


@pytest.mark.slow
def test_a_leak_in_a_signal_that_steps_is_found_and_ends_with_its_repair():
    """A quarter more in 540 observations: no more than its steps have been, but not usual in its regime."""
    found = []
    for seed in range(3):
        values, _ = stepping(seed, steps=12_000, every=3000)
        values[11_000:11_540] *= 1 + 0.25 * np.arange(540)[:, np.newaxis] / 540
        fleet = Fleet(1, **SETTINGS)
        verdicts = fleet.run_arrays(values)
        found += [one for one in fleet.incidents(0) if 11_000 <= one.first < 11_180]
        assert verdicts.open[11_180:11_540].all()
        assert np.nanmin(verdicts.views[11_090:11_180, 0, -1]) > 5  # the level says so
    assert [one.ended for one in found] == 3 * ["returned"]
    assert all(11_540 - 1 <= one.last < 11_540 + 100 for one in found)


def test_an_onset_in_a_signal_that_steps_is_not_at_an_earlier_step():
    values, _ = stepping(steps=4500)
    values[4400:] *= 1.02
    session = LevelView(()).open(1, 1, 0)
    session.run(Seen(values[:, :, np.newaxis], ()), np.array([0]), np.empty((len(values), 1, 1, 4)))
    earliest, latest = session.onset(0, 0, 0, 2000, 64)
    assert latest <= 99 <= earliest < 130


def test_a_reference_with_steps_is_usual_as_a_whole():
    """No level within it is unusual, nor is one of its regimes more usual than another."""
    values, _ = stepping(seed=1, steps=4500)
    fleet = Fleet(1, **SETTINGS, views="level", season="none")
    fleet.learn_reference(values)
    assert level_of(fleet)._memory.centres[0, 0] == pytest.approx(np.median(values), rel=1e-3)
    assert not fleet.run_arrays(values[:1500]).alarm.any()


@pytest.mark.slow
def test_ten_faults_do_not_deafen():
    """Three signals with eleven equal faults each: of the last five as many are found as of the first five."""
    values = seasonal(9200, seed=2, signals=3)
    starts = np.arange(2600, 9000, 600)
    for start in starts:
        values[start : start + 60] += 3.0
    verdicts = Fleet(3, **SETTINGS).run_arrays(values)
    found = np.array([verdicts.alarm[start : start + 60].any(axis=0) for start in starts])
    assert found[:5].sum() >= 14
    assert found[-5:].sum() >= 14


def test_a_label_gives_back_exactly_what_the_incident_took():
    values = seasonal(2700)
    values[2600:2640] += 6
    fleet = Fleet(1, **SETTINGS)
    fleet.run_arrays(values[:2590])

    def tightened(of):
        return float(of.pipeline.ranking._memory.levels[0, TIGHTENED])

    before, opened = tightened(fleet), int(fleet.run_arrays(values[2590:]).opened.sum())
    # The threshold relaxes at the promised rate, and each incident takes a tenth.
    taken = before + 110 * 0.1 * SETTINGS["alarm_rate"] - tightened(fleet)
    assert opened > 0
    assert taken == pytest.approx(0.1 * opened)
    file = io.BytesIO()
    fleet.save(file)
    file.seek(0)
    for one in (fleet, Fleet.load(file)):
        held = tightened(one)
        one.label_fault(0)
        assert tightened(one) == pytest.approx(held + 0.1)
        one.label_fault(0, taken_back=True)
        assert tightened(one) == pytest.approx(held)
        one.label_fault(0)
        assert tightened(Fleet.from_state(one.state())) == tightened(one)
    for _ in range(30):
        fleet.label_fault(0)
    assert tightened(fleet) == pytest.approx(0.4)  # no looser than ever


@pytest.mark.parametrize("kind", ["walk", "trend"])
def test_a_signal_that_drifts_has_no_level_and_its_other_faults_are_found_as_before(kind):
    steps = np.random.default_rng(0).normal(size=4000)
    values = np.cumsum(steps) if kind == "walk" else 0.05 * np.arange(4000) + steps
    values[3500:3504] += 40
    found = {}
    for views in ("error,shape,movement,level", "error,shape,movement"):
        detector = Detector(**SETTINGS, views=views)
        verdicts = detector.run(values).verdicts
        found[views] = [(one.first, one.last, one.view) for one in detector.incidents]
        if views.endswith("level"):
            assert np.isnan(level_of(detector.fleet)._memory.centres).all()
            assert np.isnan(verdicts.views[1000:, 0, -1]).all()
    assert len(set(map(tuple, found.values()))) == 1
    assert any(first == 3500 for first, *_ in next(iter(found.values())))


@pytest.mark.parametrize("season", [PERIOD, "none"])
def test_a_reference_stays_what_is_usual(season):
    """A shift that lasts for longer than the reference is far from usual to the end."""
    values = np.random.default_rng(0).normal(size=(2500, 1)) if season == "none" else seasonal(2500)
    fleet = Fleet(1, **SETTINGS, views="level", season=season)
    fleet.learn_reference(values[:1000])
    normal = fleet.run_arrays(values[1000:1500])
    shifted = fleet.run_arrays(values[1500:] + 4.0)
    assert np.nanmedian(normal.views[-200:]) < 3
    assert np.nanmedian(shifted.views[-200:]) > 5
    assert np.median(shifted.score[-200:]) > 1.5


def test_values_too_large_to_be_kept_and_signals_that_begin_late_are_harmless():
    values = seasonal(900)
    values[:120] = np.nan
    values[400:410] = 1e39
    values[410:420] = -1e300
    verdicts = Detector(**SETTINGS).run(values).verdicts
    assert np.isfinite(verdicts.evidence[-100:]).all()


@pytest.mark.parametrize("features", [1, 3])
def test_a_level_takes_64_kilobytes_of_a_feature(features):
    session = LevelView().open(2, features, 0)
    assert 64 * 1024 < session.nbytes / (2 * features) < 70_000
    with_level, without = (
        memory_bytes(DetectorSettings(features=features, views=views, preset="light"))
        for views in ("error,shape,movement,level", "error,shape,movement")
    )
    assert 64 * 1024 < (with_level - without) / features < 200_000


def test_a_season_found_in_one_feature_leaves_what_was_learned_of_the_others():
    """The level of another feature means what it meant before."""
    values = np.concatenate([seasonal(1500, seed=3), np.random.default_rng(4).normal(size=(1500, 1))], axis=1)
    fleet = Fleet(1, **{**SETTINGS, "alarm_rate": 0.001}, views="level", features=["wave", "noise"])
    fleet.run_arrays(values[:, np.newaxis])
    assert level_of(fleet).seasonal[0].tolist() == [True, False]
    columns, window = fleet.pipeline.ranking._columns, fleet.pipeline.ranking.window
    learned = [window.learned[columns.place[c]] for c in np.flatnonzero(columns.length == 16)]
    assert learned[0] < 1400 < learned[1]
