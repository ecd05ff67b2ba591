"""`tocsin watch`: lines in, verdicts out, and a restart that nobody notices."""

import io
import itertools
import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from tests.cases import full
from tests.cli.calling import invoke, noisy_values, run_process, words
from tocsin import Detector
from tocsin.cli import app

SETTINGS = ["--alarm-rate", "0.02", "--window", "400", "--views", "error", "--forecaster", "last-value"]


def verdicts(text):
    return [json.loads(line) for line in text.splitlines()]


def started(state):
    command = [sys.executable, "-m", "tocsin", "watch", *SETTINGS, "--state", str(state)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def resumed(state):
    """What is said when a state is taken up."""
    return invoke("watch", *SETTINGS, "--state", state, stdin="4\n").stderr


def plain(values):
    return "".join("\n" if np.isnan(value) else f"{value}\n" for value in values)


@pytest.mark.slow
def test_a_verdict_for_every_line():
    values = noisy_values(900, fault=800)
    result = invoke("watch", *SETTINGS, stdin=plain(values))
    assert result.exit_code == 0, result.stderr
    records = verdicts(result.stdout)
    detector = Detector(alarm_rate=0.02, window=400, views=["error"], forecaster="last-value")
    for value, record in zip(values, records, strict=True):
        verdict = detector.update(float(value))
        assert record["p"] == (None if np.isnan(verdict.p) else verdict.p)
        assert record["alarm"] == verdict.alarm
        assert record["return_period"] == (None if np.isnan(verdict.return_period) else verdict.return_period)
        assert record.get("explanation") == (verdict.explanation if verdict.alarm else None)
    assert records[800]["alarm"]
    assert records[800]["direction"] == "above"
    assert (records[800]["view"], records[800]["incident"]["view"]) == ("error", "error")
    assert "above the forecast" in records[800]["explanation"]
    assert records[800]["incident"]["explanation"] == records[800]["explanation"]
    assert records[800]["incident"]["return_period"] > 50
    assert records[800]["incident"]["start"] == 800
    told = f"900 observations, {len(detector.incidents)} incidents; {detector.audit.in_words()}"
    assert told in result.stderr


def test_the_summary_is_of_all_signals_together():
    lines = "".join(f'{{"id": "{name}", "value": {value}}}\n' for value in noisy_values(700) for name in "ab")
    result = invoke("watch", *SETTINGS, stdin=lines)
    assert result.exit_code == 0, result.stderr
    assert "1,400 observations of 2 signals" in result.stderr
    assert "times the promised incidents since warm-up" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("cut", [full(1), 333, full(899)])
def test_a_restart_goes_on_exactly(cut, tmp_path):
    values = noisy_values(900, fault=800)
    whole = invoke("watch", *SETTINGS, stdin=plain(values)).stdout
    state = tmp_path / "deep" / "state.npz"
    first = invoke("watch", *SETTINGS, "--state", state, stdin=plain(values[:cut]))
    second = run_process("watch", *SETTINGS, "--state", state, stdin=plain(values[cut:]))
    assert first.stdout + second.stdout == whole
    assert f"after {cut} observations" in second.stderr


@pytest.mark.slow
def test_many_signals_with_times_and_gaps():
    lines = []
    for step in range(600):
        for name in ("a", "b"):
            if (name, step) != ("b", 300):
                time_ = f"2026-01-01T{step // 60:02d}:{step % 60:02d}:00"
                lines.append(json.dumps({"id": name, "time": time_, "value": float(np.sin(step * 7.3 + ord(name)))}))
    result = invoke("watch", *SETTINGS, "--interval", "1min", stdin="\n".join(lines))
    assert result.exit_code == 0, result.stderr
    records = verdicts(result.stdout)
    assert len(records) == 1199
    alone = Detector(alarm_rate=0.02, window=400, views=["error"], forecaster="last-value", interval="1min")
    for line in lines:
        given = json.loads(line)
        if given["id"] == "b":
            expected = alone.update(given["value"], given["time"])
    assert records[-1]["p"] == expected.p
    assert alone.observations == 600


def test_bad_lines_are_told_and_left_out():
    result = invoke("watch", *SETTINGS, stdin="1.0\nabc\n2.0\n")
    assert result.exit_code == 3
    assert len(verdicts(result.stdout)) == 2
    assert "line 2" in result.stderr
    assert "'abc'" in result.stderr


def test_late_observations_are_told_and_change_nothing():
    lines = ["time,value", "2026-01-01 00:00,1", "2026-01-01 00:02,2", "2026-01-01 00:01,9", "2026-01-01 00:03,3"]
    result = invoke("watch", *SETTINGS, stdin="\n".join(lines) + "\n")
    assert result.exit_code == 3
    assert [record["value"] for record in verdicts(result.stdout)] == [1, 2, 3]
    assert "line 4" in result.stderr
    assert "later" in result.stderr


def test_another_setting_than_the_state_has_is_refused(tmp_path):
    state = tmp_path / "state.npz"
    assert invoke("watch", *SETTINGS, "--state", state, stdin="1\n2\n").exit_code == 0
    before = state.read_bytes()
    result = invoke("watch", *SETTINGS, "--gap", "3", "--state", state, stdin="3\n")
    assert result.exit_code == 2
    assert "gap=10" in words(result)
    assert state.read_bytes() == before


def test_a_damaged_state_is_refused(tmp_path):
    state = tmp_path / "state.npz"
    state.write_text("this is no state")
    result = invoke("watch", *SETTINGS, "--state", state, stdin="3\n")
    assert result.exit_code == 2
    assert "state.npz" in "".join(words(result).split())
    assert state.read_text() == "this is no state"


def test_alarms_only():
    result = invoke("watch", *SETTINGS, "--alarms-only", stdin=plain(noisy_values(900, fault=800)))
    records = verdicts(result.stdout)
    assert 0 < len(records) < 60
    assert all(record["alarm"] for record in records)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [full(signal.SIGTERM), signal.SIGINT])
def test_a_signal_to_stop_saves_the_state(kind, tmp_path):
    state = tmp_path / "state.npz"
    process = started(state)
    process.stdin.write("1\n2\n3\n")
    process.stdin.flush()
    for _ in range(3):
        process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(kind)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert "after 3 observations" in resumed(state)


@pytest.mark.slow
def test_a_reader_that_goes_away_loses_no_state(tmp_path):
    state = tmp_path / "state.npz"
    process = started(state)
    process.stdin.write("1\n2\n")
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.readline()
    process.stdout.close()
    process.stdin.write("3\n")
    process.stdin.close()
    process.wait(timeout=30)
    process.stderr.close()
    assert "after 3 observations" in resumed(state)


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.0, full(0.013), full(0.031), full(0.058)])
def test_a_signal_in_the_middle_of_the_work_saves_the_state_too(after, tmp_path):
    state, busy = tmp_path / "state.npz", threading.Event()
    process = started(state)

    def feed():
        with suppress(OSError, ValueError):
            while not busy.is_set():
                process.stdin.write("1\n2\n3\n")

    feeder = threading.Thread(target=feed)
    feeder.start()
    for _ in range(20):
        process.stdout.readline()
    time.sleep(after)
    process.send_signal(signal.SIGTERM)
    rest = process.stdout.read()
    assert process.wait(timeout=30) == 0
    busy.set()
    feeder.join()
    for stream in (process.stdout, process.stderr):
        stream.close()
    with suppress(BrokenPipeError):
        process.stdin.close()
    count = 20 + rest.count("\n")
    assert f"after {count} observations" in resumed(state)


def test_features_are_known_by_their_names_after_a_restart(tmp_path):
    state = tmp_path / "state.npz"
    invoke("watch", *SETTINGS, "--state", state, stdin='{"a": 1, "b": 100}\n{"a": 2, "b": 200}\n')
    result = invoke("watch", *SETTINGS, "--state", state, stdin='{"b": 300, "a": 3}\n')
    assert result.exit_code == 0
    assert verdicts(result.stdout)[0]["forecast"] == [2, 200]
    other = invoke("watch", *SETTINGS, "--state", state, stdin='{"a": 3, "c": 300}\n')
    assert other.exit_code == 3
    assert "a, b as before" in other.stderr


def test_a_state_that_cannot_be_written_is_found_out_at_once(tmp_path):
    (tmp_path / "taken").write_text("")
    result = invoke("watch", *SETTINGS, "--state", tmp_path / "taken" / "state.npz", stdin="1\n")
    assert result.exit_code == 2
    assert not result.stdout


class Piecewise:
    """Standard input that gives so many bytes at a time, as a pipe does with what waits in it."""

    def __init__(self, text, sizes):
        self.left, self.sizes = text.encode(), iter(sizes)

    @property
    def buffer(self):
        return self

    def read1(self, most):
        size = min(next(self.sizes), most)
        some, self.left = self.left[:size], self.left[size:]
        return some


def written(monkeypatch, text, sizes, *options):
    """What is written of lines that come in such pieces."""
    out = io.TextIOWrapper(io.BytesIO())
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", Piecewise(text, sizes))
        patch.setattr(sys, "stdout", out)
        with suppress(SystemExit):
            app(["watch", *SETTINGS, *options])
    return out.buffer.getvalue().decode().splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [full(()), full(("--interval", "1min")), ("--every", "5min"), full(("--alarms-only",))]
)
def test_what_is_written_does_not_depend_on_how_lines_come_together(monkeypatch, options):
    rng = np.random.default_rng(0)
    lines = ["id,time,a,b"]
    for step in range(700):
        for name in ("x", "y"):
            if rng.random() < 0.97:
                fault = 8 * (620 <= step < 630)  # alarms need some observations before
                moment = np.datetime64("2024-03-30T23:00") + step
                late = rng.random() < 0.02
                moment = moment - 50 if late else moment
                lines.append(f"{name},{moment}:00+02:00,{rng.normal() + fault:.3f},{rng.normal():.3f}")
    text = "\n".join([*lines[:900], "nonsense", *lines[900:]])
    one_by_one = written(monkeypatch, text, [len(line) + 1 for line in text.split("\n")] + [0] * 9, *options)
    assert len(one_by_one) >= (10 if options else 1200)
    assert "--every" in options or any("incident" in line for line in one_by_one)
    sizes = np.random.default_rng(0).integers(1, 6000, 10_000)
    assert written(monkeypatch, text, map(int, sizes), *options) == one_by_one
    assert written(monkeypatch, text, itertools.repeat(10**9), *options) == one_by_one


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("2024-03-31T01:30:00+02:00", "2024-03-31T01:30:00+02:00"),
        ("2024-03-31 01:30:00.25-0530", "2024-03-31T01:30:00.250-0530"),
        ("2024-03-31T01:30:00Z", "2024-03-31T01:30:00Z"),
        ("2024-03-31T01:30:00", "2024-03-31T01:30:00"),
        ("1711848600", "2024-03-31T01:30:00"),
    ],
)
def test_times_keep_their_zone(given, told):
    result = invoke("watch", *SETTINGS, stdin=f"time,value\n{given},1\n")
    assert [record["time"] for record in verdicts(result.stdout)] == [told]


@pytest.mark.slow
def test_another_alarm_rate_keeps_what_was_learned(tmp_path):
    values, state = noisy_values(1200, fault=1100), tmp_path / "state.npz"
    invoke("watch", *SETTINGS, "--state", state, stdin=plain(values[:1000]))
    other = ["--alarm-rate", "0.01", *SETTINGS[2:]]
    result = invoke("watch", *other, "--state", state, stdin=plain(values[1000:]))
    assert result.exit_code == 0, result.output
    records = verdicts(result.stdout)
    assert all(record["warm"] for record in records)
    assert records[100]["alarm"]
    # Until an incident, which the other rate may see otherwise.
    whole = verdicts(invoke("watch", *SETTINGS, stdin=plain(values)).stdout)
    assert [record["p"] for record in records[:100]] == [record["p"] for record in whole[1000:1100]]


def test_without_an_alarm_rate_a_state_keeps_its_own(tmp_path):
    state = tmp_path / "state.npz"
    for given in (SETTINGS, SETTINGS[2:]):
        result = invoke("watch", *given, "--state", state, stdin="1\n2\n")
        assert result.exit_code == 0, result.output
    with np.load(state) as arrays:
        assert json.loads(str(arrays["watch"]))["settings"]["alarm_rate"] == "0.02"
        watched = {name.removeprefix("0/"): array for name, array in arrays.items() if name.startswith("0/")}
    assert Detector.from_state(watched).alarm_rate == 0.02


@pytest.mark.slow
def test_a_state_from_elsewhere_is_refused_in_words(tmp_path):
    state = tmp_path / "state.npz"
    for content in (b"time,value\n1,2\n", b"", b"PK\x03\x04 nothing"):
        state.write_bytes(content)
        result = invoke("watch", *SETTINGS, "--state", state, stdin="1\n")
        assert result.exit_code == 2
        assert "state.npz" in words(result).replace(" ", "")
        assert "Traceback" not in result.output
        assert state.read_bytes() == content
    detector = Detector(alarm_rate=0.02)
    detector.save(state)
    told = words(invoke("watch", *SETTINGS, "--state", state, stdin="1\n"))
    assert "is not a state of `tocsin watch`, but a detector" in told
    np.savez(state, weights=np.zeros(3))
    told = words(invoke("watch", *SETTINGS, "--state", state, stdin="1\n"))
    assert "is not a state of `tocsin watch`, but arrays called weights" in told
    state.unlink()
    invoke("watch", *SETTINGS, "--state", state, stdin="1\n")
    told = words(invoke("watch", "--window", "500", *SETTINGS[:2], "--state", state, stdin="1\n"))
    assert "only the alarm rate may change" in told
