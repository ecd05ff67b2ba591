"""Detectors in files."""

import io
import json
import os
import pickle
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.cases import full
from tests.detection.helpers import ARRAYS, LAST, SMALL, MovingMean, hard_values, same_verdicts
from tocsin.conformal import SlidingWindow, save_scorer
from tocsin.detection import Detector, DetectorSettings, Fleet
from tocsin.detection.settings.declaration import declared
from tocsin.detection.state.storage import settings_header

ROOT = Path(__file__).parents[2]
STEPS = 700
LONGER = 900  # for forecasters that take their time to settle
NAMED = {**SMALL, "forecaster": "autoregression"}


def reloaded(one, **more):
    file = io.BytesIO()
    one.save(file)
    file.seek(0)
    return type(one).load(file, **more)


def everything(one, verdicts):
    """What a detector or fleet said and keeps, as arrays and text."""
    fleet = one.fleet if isinstance(one, Detector) else one
    arrays = {name: getattr(verdicts, name) for name in ARRAYS}
    state = {f"state {name}": array for name, array in one.state().items()} if isinstance(one, Detector) else {}
    audits = [repr(fleet.audit(signal)) for signal in range(len(fleet.names))]
    return {**arrays, **state, "incidents": np.array(repr(fleet.incidents())), "audits": np.array(audits)}


# One process goes on with several files, because starting one takes a second.
CONTINUE = textwrap.dedent(
    """
    import sys
    import numpy as np
    from tests.detection.helpers import MovingMean
    from tests.detection.test_storage import everything
    from tocsin.detection import Detector, Fleet

    for name in sys.argv[2:]:
        with np.load(f"{sys.argv[1]}/{name}.rest.npz") as rest:
            values, times = rest["values"], rest["times"]
        forecaster = MovingMean() if "own" in name else None
        kind = Fleet if "fleet" in name else Detector
        one = kind.load(f"{sys.argv[1]}/{name}.saved", forecaster=forecaster)
        run = one.run if kind is Detector else one.run_arrays
        verdicts = run(values, times=times) if times.size else run(values)
        verdicts = verdicts.verdicts if kind is Detector else verdicts
        np.savez(f"{sys.argv[1]}/{name}.done.npz", **everything(one, verdicts))
    """
)

CASES = {
    "plain": lambda: Detector(**NAMED),
    "features": lambda: Detector(["a", "b"], **NAMED, promise="observations"),
    "accepted": lambda: Detector(**NAMED, accept_after=9, refresh=3),
    "seasonal": lambda: Detector(**SMALL, forecaster="seasonal-naive", views="error,movement", gap=0, min_duration=2),
    "high": lambda: Detector(**LAST, views="error", nonconformity="high"),
    "light": lambda: Detector(**SMALL, preset="light"),
    "smoothing": lambda: Detector(**SMALL, forecaster="exponential-smoothing", min_deviation=0.5),
    "scores": lambda: Detector(**SMALL, forecaster=None, learning_rate=0.01),
    "own scaled": lambda: Detector(**SMALL, forecaster=MovingMean(), scaled=True, refresh=2),
    "budget": lambda: Detector(**{**NAMED, "alarm_rate": "2 per hour"}, interval="90s"),
    "fleet": lambda: Fleet(["x", "y", "z"], 2, **NAMED),
}


@pytest.mark.slow
def test_a_new_process_goes_on_exactly(tmp_path):
    """Saved at a random step, with and without times; verdicts, incidents, audit and state the same bit for bit."""
    rng = np.random.default_rng(11)
    expected = {}
    for number, (name, make) in enumerate(CASES.items()):
        one = make()
        fleet = one.fleet if isinstance(one, Detector) else one
        signals, features = len(fleet.names), len(fleet.features)
        values = np.stack([hard_values(10 * number + k, LONGER, features) for k in range(signals)], axis=1)
        times = np.datetime64("2024-03-01", "ns") + np.arange(LONGER) * np.timedelta64(90, "s")
        if name == "accepted":
            times = np.arange(LONGER) / 8
        at = int(rng.integers(300, LONGER - 200))
        if isinstance(one, Detector):
            values = values[:, 0]
        else:
            times = np.repeat(times[:, np.newaxis], signals, axis=1)
        timed = name != "plain"
        run = one.run if isinstance(one, Detector) else one.run_arrays
        run(values[:at], times=times[:at] if timed else None)
        one.save(tmp_path / f"{name}.saved")
        np.savez(tmp_path / f"{name}.rest.npz", values=values[at:], times=times[at:] if timed else np.empty(0))
        found = run(values[at:], times=times[at:] if timed else None)
        verdicts = found.verdicts if isinstance(one, Detector) else found
        expected[name] = everything(one, verdicts)
    command = [sys.executable, "-c", CONTINUE, str(tmp_path), *CASES]
    subprocess.run(
        command,
        check=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "PYTHONWARNINGS": "error"},
    )
    told = 0
    for name, wanted in expected.items():
        with np.load(tmp_path / f"{name}.done.npz") as done:
            assert set(done) == set(wanted)
            for array in wanted:
                np.testing.assert_array_equal(done[array], wanted[array], err_msg=f"{name}: {array}")
        told += str(wanted["incidents"]).count("Incident(")
    assert told > 10


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1, 32, 65, 391, *map(full, (2, 31, 33, 64, 99, 100, 650))])
def test_saved_at_any_step_goes_on_exactly(at):
    values = hard_values(4, LONGER, 2)
    detector = Detector(2, **SMALL, forecaster="autoregression", accept_after=9, refresh=2)
    detector.run(values[:at])
    other = reloaded(detector)
    same_verdicts(other.run(values[at:]).verdicts, detector.run(values[at:]).verdicts)
    assert repr(other.incidents) == repr(detector.incidents)
    assert other.audit == detector.audit
    assert other.observations == LONGER


def test_a_state_is_plain_arrays_and_a_copy(tmp_path):
    detector = Detector(**NAMED)
    detector.run(hard_values(0, 100), times=np.arange(100.0))
    detector.save(tmp_path / "d")
    with np.load(tmp_path / "d", allow_pickle=False) as saved:
        arrays = dict(saved)
    state = detector.state()
    assert arrays.keys() == state.keys()
    assert all(array.dtype.kind in "biufU" for array in arrays.values())
    before = {name: array.copy() for name, array in state.items()}
    detector.run(hard_values(1, 100))
    for name, array in state.items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    restored = Detector.from_state(state)
    restored.run(hard_values(1, 100))
    for name, array in state.items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_settings_survive():
    given = {
        **SMALL, "alarm_rate": "3/hour", "interval": "30s", "forecaster": "seasonal-naive", "nonconformity": "low",
        "preset": "light", "views": ("error",), "promise": "observations",
        "accept_after": 77, "refresh": 2, "learning_rate": 0.004,
        "gap": 4, "min_deviation": 0.25, "min_relative_deviation": 0.125, "min_duration": 3,
    }  # fmt: skip
    fleet = Fleet(["one", "two"], ["a", "b"], **given)
    other = reloaded(fleet)
    assert other.names == fleet.names
    assert other.features == fleet.features
    assert settings_header(other.settings) == settings_header(fleet.settings)
    assert other.guarantee == fleet.guarantee
    assert other.warm_up == fleet.warm_up
    for name, one in declared(DetectorSettings).items():
        if one.rule.saved:
            assert getattr(other.settings, name) == getattr(fleet.settings, name), name
    assert other.settings.sizes == fleet.settings.sizes
    assert repr(other.forecaster) == repr(fleet.forecaster)
    assert (other.settings.gap, other.log.min_duration) == (4, 3)


@pytest.mark.parametrize("rate", [Fraction(1, 20), np.float32(0.05), np.float64(0.05), "0.05"], ids=repr)
def test_every_kind_of_number_can_be_saved(rate):
    detector = Detector(**{**NAMED, "alarm_rate": rate}, gap=np.int64(3), min_duration=np.int16(2), min_deviation=1)
    assert reloaded(detector).alarm_rate == pytest.approx(0.05)


START = datetime(2024, 5, 1)


@pytest.mark.parametrize(
    "times",
    [
        np.datetime64(START, "ns") + np.arange(STEPS) * np.timedelta64(1, "m"),
        np.datetime64(START, "s") + np.arange(STEPS) * np.timedelta64(1, "m"),
        [START + timedelta(minutes=minute) for minute in range(STEPS)],
        [(START + timedelta(minutes=minute)).replace(tzinfo=UTC) for minute in range(STEPS)],
        [(START + timedelta(minutes=minute)).isoformat() for minute in range(STEPS)],
    ],
    ids=["datetime64[ns]", "datetime64[s]", "datetime", "datetime with zone", "text"],
)
def test_every_kind_of_date_can_be_saved(times):
    values = hard_values(1, STEPS)
    detector = Detector(**LAST, interval="1min")
    detector.run(values, times)
    other = reloaded(detector)
    incident = other.incidents[0]
    assert incident.start == np.datetime64(START) + incident.first * np.timedelta64(1, "m")
    assert [vars(one) for one in other.incidents] == [vars(one) for one in detector.incidents]
    after = START + timedelta(minutes=STEPS + 4)
    verdict, same = detector.update(1.0, after), other.update(1.0, after)
    assert repr(verdict) == repr(same)
    assert detector.observations == STEPS + 5


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["soon"] * 5, "times must be dates or numbers: .*'soon'"),
        ([object()] * 5, "times must be dates or numbers"),
        (np.arange(4), r"times must have shape \(5,\), got \(4,\)"),
        (5.0, r"times must have shape \(5,\), got \(\)"),
    ],
)
def test_other_times_are_refused_before_anything_happens(times, message):
    detector = Detector(**NAMED)
    with pytest.raises((TypeError, ValueError), match=message):
        detector.run(np.zeros(5), times)
    assert detector.observations == 0


def test_a_forecaster_without_a_name_must_be_given(tmp_path):
    path = tmp_path / "own"
    Detector(**SMALL, forecaster=MovingMean(4)).save(path)
    with pytest.raises(ValueError, match=r"^forecaster 'moving-mean of the tests' is not registered.*`forecaster`"):
        Detector.load(path)
    with pytest.raises(
        ValueError, match=r"^forecaster must be the one that was saved.*'context_length': 4.*got Mov.*5"
    ):
        Detector.load(path, forecaster=MovingMean(5))
    assert Detector.load(path, forecaster=MovingMean(4)).fleet.forecaster.context_length == 4
    Detector(**SMALL, forecaster=None).save(path)
    with pytest.raises(ValueError, match=r"^forecaster must be the one that was saved, None, got MovingMean"):
        Detector.load(path, forecaster=MovingMean())


def test_threads_are_chosen_anew(tmp_path):
    Detector(**NAMED, threads=3).save(tmp_path / "d")
    assert Detector.load(tmp_path / "d").fleet.settings.threads == 1
    assert Detector.load(tmp_path / "d", threads=2).fleet.settings.threads == 2
    with pytest.raises(ValueError, match=r"^threads must be an integer from 1 to 1024, got 0"):
        Detector.load(tmp_path / "d", threads=0)


def test_fleets_and_detectors_are_told_apart(tmp_path):
    Fleet(2, **NAMED).save(tmp_path / "fleet")
    Fleet(1, **NAMED).save(tmp_path / "fleet of one")
    for name in ("fleet", "fleet of one"):
        with pytest.raises(ValueError, match=r"state of a fleet of . signals: load it with Fleet.load"):
            Detector.load(tmp_path / name)
    Detector(**NAMED).save(tmp_path / "detector")
    assert Fleet.load(tmp_path / "detector").names == ["signal"]


@pytest.mark.parametrize("kind", [Detector, Fleet])
@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 cut short", pickle.dumps({"header": 1})])
def test_other_files_are_refused(tmp_path, kind, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"file must hold a (detector|fleet) saved by tocsin, got .*other"):
        kind.load(path)


@pytest.mark.parametrize("kind", [Detector, Fleet])
def test_files_of_something_else_are_refused(tmp_path, kind):
    save_scorer(SlidingWindow(window=3), tmp_path / "scorer")
    with (tmp_path / "arrays").open("wb") as file:
        np.savez(file, x=np.zeros(3))
    np.save(tmp_path / "one.npy", np.zeros(3))
    for name in ("scorer", "arrays"):
        with pytest.raises(ValueError, match="not the state of a detector, or it is damaged: 'header' is missing"):
            kind.load(tmp_path / name)
    with pytest.raises(ValueError, match=r"file must hold a (detector|fleet) saved by tocsin"):
        kind.load(tmp_path / "one.npy")
    with pytest.raises(FileNotFoundError):
        kind.load(tmp_path / "nowhere")


def test_a_file_cut_short_or_with_flipped_bits_is_refused(tmp_path):
    path = tmp_path / "d"
    detector = Detector(**SMALL, forecaster="last-value")
    detector.run(hard_values(0, 60))
    detector.save(path)
    content = path.read_bytes()
    for end in (10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match="file must hold a detector"):
            Detector.load(path)
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(60):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), size=3):
            damaged[place] ^= rng.integers(1, 256)
        path.write_bytes(damaged)
        try:
            outcomes.add(type(Detector.load(path)).__name__)
        except ValueError:
            outcomes.add("refused")
    assert "refused" in outcomes
    assert outcomes <= {"refused", "Detector"}


def damaged_header(state, **changes):
    header = json.loads(state["header"].tobytes())
    header.update(changes)
    return {**state, "header": np.array(json.dumps(header))}


@pytest.fixture(scope="module")
def good():
    detector = Detector(2, **NAMED)
    detector.run(hard_values(0, LONGER, 2))
    assert detector.incidents
    return detector.state()


def refused(state, match="not the state of a detector, or it is damaged"):
    with pytest.raises(ValueError, match=match):
        Detector.from_state(state)


@pytest.mark.slow
def test_missing_and_misshapen_arrays_are_refused(good):
    Detector.from_state(good)
    for name, array in good.items():
        refused({other: value for other, value in good.items() if other != name})
        if name == "header":
            continue
        refused({**good, name: array[np.newaxis]})
        if array.ndim:
            refused({**good, name: array[:-1]})
        if array.dtype.kind in "iuf":
            refused({**good, name: array.astype(complex)})
            refused({**good, name: np.full(array.shape, "text")})


@pytest.mark.parametrize("version", [1, 4, 8, "7", None], ids=repr)
def test_another_format_is_refused_and_not_called_damaged(good, version):
    message = f"^the state of a detector must have format 7, the version this release reads, got {version!r}: .* learn"
    refused(damaged_header(good, format=version), message)


@pytest.mark.parametrize(
    "changes",
    [
        {"signals": []}, {"signals": 3}, {"signals": ["a", "b"]}, {"features": ["a"]}, {"settings": {}},
        {"settings": 5},
        {"settings": {"colour": "red"}}, {"forecasters": 5}, {"forecasters": [{"name": "last-value"}]},
        {"forecasters": [{"name": "autoregression", "parameters": 5}]}, {"incidents": None}, {"incidents": {"open": 3}},
        {"incidents": {"open": {}, "closed": [{"colour": "red"}]}}, {"incidents": {"open": {"x": {}}, "closed": []}},
        {"extra": None},
    ],
    ids=str,
)  # fmt: skip
def test_damaged_headers_are_refused(good, changes):
    refused(damaged_header(good, **changes))


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "{", "5", "null", "[1, 2]", "[" * 100_000], ids=lambda text: text[:6])
def test_headers_that_are_none_are_refused(good, text):
    refused({**good, "header": np.array(text)})


def test_impossible_counts_are_refused(good):
    for name in ("counts", "faults", "money", "notes"):
        refused({**good, f"audit/{name}": good[f"audit/{name}"] - 10**6}, "audit must hold counts")
    refused({**good, "audit/counts": good["audit/counts"].astype(float)}, "audit must hold counts")
    refused({**good, "audit/money": good["audit/money"] * np.nan}, "audit must hold counts")
    for name in ("seen", "forecaster 0/gaps", "forecaster 0/rests", "ranking/counters", "ranking/pending count"):
        last = name.split("/")[-1]
        refused({**good, f"pipeline/{name}": good[f"pipeline/{name}"] - 10**6}, f"{last} must hold counts")
    for name in ("pipeline/views/shape/counts 0", "pipeline/views/movement/count"):
        refused({**good, name: good[name] - 10**6}, "count.*must hold counts")
    for name in ("bounds", "ranking/levels", "ranking/blocks", "ranking/pending", "ranking/thresholds"):
        array = good[f"pipeline/{name}"]
        refused({**good, f"pipeline/{name}": np.full_like(array, np.nan)}, "must hold numbers")
    refused({**good, "pipeline/views/movement/steps": good["pipeline/views/movement/steps"] - 1e9}, "counts and sizes")
    for name in ("pipeline/views/shape/units 0", "pipeline/views/shape/past 1"):
        refused({**good, name: np.full_like(good[name], np.inf)}, "must hold numbers")


def test_a_failing_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "d"
    detector = Detector(**NAMED)
    detector.save(path)
    content = path.read_bytes()
    detector.run(hard_values(0, 50))

    def disk_full(opened, **arrays):
        opened.write(b"half a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", disk_full)
    with pytest.raises(OSError, match="No space left"):
        detector.save(path)
    monkeypatch.undo()
    detector._last_time = object()
    with pytest.raises(TypeError, match="times must be numbers"):
        detector.save(path)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["d"]
