"""Ended at any moment and started again, everything goes on as if nothing had happened."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import full
from tests.service.engine.helpers import (
    QUICK,
    SECOND,
    START,
    Rig,
    expected_all,
    noise,
    one,
    oracle,
    rig,
    same,
    settings_of,
    until,
    verdicts,
)
from tocsin.detection.state.storage import arrays_to_bytes
from tocsin_monitor.store import IncidentRow

NAMES = ("a", "b", "c")
STEPS = 220
SETTINGS = settings_of(
    engine={"snapshot_every": 7},
    sinks={"webhook": [{"name": "hook", "url": "https://example.com"}]},
)


def _batches(seed: int) -> list[list[Any]]:
    source = random.Random(seed)
    values = {name: noise(seed + number, STEPS) for number, name in enumerate(NAMES)}
    left = [one(name, START + at * SECOND, values[name][at]) for at in range(STEPS) for name in NAMES]
    batches = []
    while left:
        size = source.randint(1, 40)
        batches.append(left[:size])
        left = left[size:]
    return batches


def _told(row: IncidentRow) -> IncidentRow:
    """What must not depend on restarts: all but when things were noticed."""
    return replace(row, id=0, opened=0, closed=None if row.closed is None else 0)


def _ends(made: Rig) -> tuple[Any, ...]:
    """Everything that one can see of the signals at the end."""
    with made.store.reading() as reader:
        outbox = [(row.incident, row.status) for row in reader.outbox_due("hook", 2**62, 10**6)]
    incidents = made.incidents()
    numbers = {row.id: (row.signal, row.start) for row in incidents}
    statuses = [replace(status, last_arrival=0, incident=None) for status in made.engine.overview()]
    opened = [numbers.get(status.incident) for status in made.engine.overview()]
    told = sorted((numbers[number], status) for number, status in outbox)
    return sorted(map(_told, incidents), key=lambda row: (row.signal, row.start)), repr(statuses), opened, told


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, full(2)])
def test_crashes_at_any_moment_change_nothing(tmp_path: Path, seed: int) -> None:
    batches = _batches(seed)
    with rig(tmp_path / "whole", SETTINGS) as whole:
        for batch in batches:
            whole.take(*batch)
        wanted = _ends(whole)
    source = random.Random(seed)
    made = Rig(tmp_path / "crashing", SETTINGS)
    crashes = 0
    try:
        for batch in batches:
            made.take(*batch)
            if source.random() < 0.2:
                made, crashes = made.crash(), crashes + 1
        assert crashes > 2
        assert _ends(made) == wanted
        assert len(wanted[0]) > 5
        for number, name in enumerate(NAMES):
            found = [row.judged for row in made.stored(name)]
            assert same(found, expected_all(oracle(), noise(seed + number, STEPS)))
    finally:
        made.close()


@pytest.mark.slow
def test_from_copies_of_the_files_taken_while_it_runs(tmp_path: Path) -> None:
    batches = _batches(3)
    copies = []
    with rig(tmp_path / "running", SETTINGS) as made:
        for number, batch in enumerate(batches):
            made.take(*batch)
            if number % 12 == 5:
                copy = tmp_path / f"copy {number}"
                copy.mkdir()
                with made.held():
                    for file in made.folder.glob("tocsin.db*"):
                        shutil.copy(file, copy / file.name)
                copies.append((copy, batches[number + 1 :]))
        wanted = _ends(made)
    assert len(copies) > 1
    for copy, rest in copies:
        with rig(copy, SETTINGS) as restarted:
            for batch in rest:
                restarted.take(*batch)
            assert _ends(restarted) == wanted


@pytest.mark.slow
def test_snapshots_are_taken_and_what_was_stored_since_is_scored_again(tmp_path: Path) -> None:
    made = Rig(tmp_path, settings_of(engine={"snapshot_every": 50}))
    names = "abcdefgh"  # as many as are stored together
    try:
        for at in range(0, 320, 10):
            for name in names:
                made.feed(name, noise(1, 10), START + at * SECOND)
        assert made.sample("tocsin_snapshot_seconds_count") >= 5
        made = made.crash()
        # A snapshot that is due may have to wait on a busy machine, but not for the same time again and again. The last
        # one may be so late that nothing came after it.
        assert made.sample("tocsin_replayed_observations_total") < 160 * len(names)
        for name in names:
            made.feed(name, noise(2, 150), START + 320 * SECOND)
        made = made.restart()  # stopped in good order, there is nothing to do again
        assert made.sample("tocsin_replayed_observations_total") == 0
    finally:
        made.close()


def test_the_snapshot_of_a_signal_alone_waits_for_the_next_chores(tmp_path: Path) -> None:
    with rig(tmp_path, settings_of(engine={"snapshot_every": 50})) as made:
        made.feed("a", noise(1, 60))
        until(lambda: made.sample("tocsin_snapshot_seconds_count"))


@pytest.mark.slow
def test_what_is_too_old_goes_and_is_not_missed(tmp_path: Path) -> None:
    """All observations of these tests are years old."""
    settings = settings_of(engine={"snapshot_every": 30}, storage={"keep_observations": 60, "keep_incidents": 60})
    made = Rig(tmp_path, settings)
    values = noise(7, 300)
    try:
        outcomes = []
        for at in range(0, 300, 20):
            outcomes += made.feed("a", values[at : at + 20], START + at * SECOND)
            made.upkeep.prune()
            made = made.crash() if at == 160 else made
        until(lambda: len(made.stored("a")) < 60)
        assert same(verdicts(outcomes), expected_all(oracle(), values))
        assert all(row.open for row in made.incidents() if row.closed is None)
    finally:
        made.close()


def test_acknowledgements_are_kept_and_incidents_are_not_doubled(tmp_path: Path) -> None:
    values = [*noise(8, 200), 50.0]
    made = Rig(tmp_path, settings_of(detector={**QUICK, "gap": 30}))
    try:
        made.feed("a", values)
        (going_on,) = made.incidents(open=True)
        made.engine.incidents.acknowledge(going_on.id, "me", "seen").result(9)
        made.engine.incidents.snooze(going_on.id, START).result(9)
        made = made.crash()
        (outcome,) = made.take(one("a", START + 201 * SECOND, -70.0))
        assert outcome.incident == going_on.id
        (still,) = made.incidents(open=True)
        assert (still.id, still.acknowledged_by, still.note) == (going_on.id, "me", "seen")
        assert still.alarms == going_on.alarms + 1
        made = made.crash()
        made.feed("a", [0.0] * 60, START + 202 * SECOND)
        assert made.incidents(open=True) == []
        (over,) = [row for row in made.incidents() if row.id == going_on.id]
        assert (over.acknowledged_by, over.snoozed_until, over.open) == ("me", START, False)
        assert made.sample("tocsin_incidents_open", kind="alarm") == 0
    finally:
        made.close()


def _of_an_older_release() -> bytes:
    """A state of the format before, in which a detector has one forecaster; all else as it should be."""
    state = oracle().state()
    header = json.loads(state["header"].tobytes())
    (forecaster,) = header.pop("forecasters")
    header |= {"format": header["format"] - 1, "forecaster": forecaster}
    return arrays_to_bytes({**state, "header": np.array(json.dumps(header))})


@pytest.mark.slow
@pytest.mark.parametrize("damage", [full(b""), b"nonsense", full("other settings"), "older release"])
def test_a_state_that_cannot_be_used_is_learned_anew(
    tmp_path: Path, damage: bytes | str, caplog: pytest.LogCaptureFixture
) -> None:
    values = [*noise(9, 300), 80.0]
    made = Rig(tmp_path, settings_of(engine={"snapshot_every": 20}))
    try:
        made.feed("a", values)
        made.feed("b", values)
        (old,) = made.incidents(open=True, signal_id=1)
        others = {"other settings": oracle(gap=2).to_bytes(), "older release": _of_an_older_release()}
        other = others[damage] if isinstance(damage, str) else damage
        made = made.crash_leaving(1, START + 300 * SECOND, other)
        (said,) = (one.getMessage() for one in caplog.records if "learns anew" in one.getMessage())
        assert said.startswith("the stored state of 'a' cannot be used, so its detector learns anew: ")
        assert damage != "older release" or "must have format 7, the version this release reads, got 6" in said
        assert made.engine.status("a").incident is None
        assert [row.signal for row in made.incidents(open=True)] == [2]
        assert not next(row for row in made.incidents() if row.id == old.id).open
        rest = [-200.0, *noise(10, 50)]
        for name in "ab":
            (first, *_) = made.feed(name, rest, START + 301 * SECOND)
            assert first.judged.alarm
            # For the detector that learned anew this is the first alarm; for the other one the incident goes on.
            (began,) = (row.start for row in made.incidents() if row.id == first.incident)
            assert (began == first.time) == (name == "a")
            found = [row.judged for row in made.stored(name)]
            assert same(found, expected_all(oracle(), values + rest))
    finally:
        made.close()
