"""Signals that cannot be rebuilt are quarantined, with their reason; all others go on."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import full
from tests.service.engine.helpers import SECOND, START, Rig, expected_all, noise, one, oracle, rig, same, verdicts
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.observations import Status

GONE = {"forecaster": "gone"}


def spoilt(made: Rig, change: Callable[[sqlite3.Connection], Any]) -> Rig:
    """The same after a restart before which somebody changed the file."""
    made.close()
    with sqlite3.connect(made.folder / "tocsin.db") as database:
        change(database)
    database.close()
    return Rig(made.folder, made.settings)


def with_settings(name: str, **settings: Any) -> Callable[[sqlite3.Connection], Any]:
    """Have a signal ask for something that this release does not have."""

    def change(database: sqlite3.Connection) -> None:
        ((before,),) = database.execute("SELECT settings FROM signals WHERE name = ?", (name,))
        after = json.dumps({**json.loads(before), **settings})
        database.execute("UPDATE signals SET settings = ? WHERE name = ?", (after, name))

    return change


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        GONE,
        full({"window": 7}),
        full({"no_such_setting": 1}),
        {"views": ["gone"]},
        full({"window": 65536, "refresh": 1024}),
    ],
)
def test_one_that_cannot_be_made_does_not_hold_back_others(tmp_path: Path, settings: dict[str, Any]) -> None:
    values = noise(1, 300)
    with rig(tmp_path, engine={"max_signal_bytes": 2**20}) as made:
        for name in ("bad", "good/1", "good/2"):
            made.feed(name, values[:200])
        made = spoilt(made, with_settings("bad", **settings))
        try:
            assert made.engine.ready
            (bad,) = [status for status in made.engine.overview() if status.quarantined]
            assert bad.name == "bad"
            assert any(word in (bad.quarantined or "") for word in ("gone", "window", "no_such_setting", "memory"))
            assert made.sample("tocsin_signals_quarantined") == 1
            taken = made.feed("good/1", values[200:], START + 200 * SECOND)
            assert same(verdicts(taken), expected_all(oracle(), values)[200:])
        finally:
            made.close()


@pytest.mark.slow
def test_what_is_observed_meanwhile_is_kept_and_learned_when_it_is_mended(tmp_path: Path) -> None:
    values = noise(2, 400)
    with rig(tmp_path) as made:
        made.feed("a", values[:200])
        made = spoilt(made, with_settings("a", **GONE))
        try:
            kept = made.feed("a", values[200:300], START + 200 * SECOND)
            assert {outcome.status for outcome in kept} == {Status.QUARANTINED}
            again = made.take(one("a", START + 250 * SECOND, 1.0))
            assert again[0].status is Status.DUPLICATE
            with pytest.raises(RefusedError, match=r"quarantined.*configure it, reset it or remove it"):
                made.engine.signals.details("a").result(20)
            with pytest.raises(RefusedError, match="stays quarantined"):
                made.engine.signals.configure("a").result(20)
            mended = made.engine.signals.configure("a", detector={"forecaster": "last-value"}).result(20)
            assert mended.quarantined is None
            assert made.sample("tocsin_signals_quarantined") == 0
            judged = verdicts(made.feed("a", values[300:], START + 300 * SECOND))
            assert same(judged, expected_all(oracle(), values)[300:])
            made = made.crash()
            assert made.engine.status("a").observations == 400
            assert len(made.stored("a")) == 400
        finally:
            made.close()


@pytest.mark.slow
def test_one_that_is_quarantined_can_be_reset_and_removed(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        for name in ("a", "b"):
            made.feed(name, noise(3, 100))

        def damage(database: sqlite3.Connection) -> None:
            # Nothing can be learned from values that are no numbers.
            number = "(SELECT id FROM signals WHERE name = 'a')"
            database.execute(f"UPDATE observations SET value = 'x' WHERE signal = {number}")
            database.execute(f"DELETE FROM states WHERE signal = {number}")
            with_settings("b", **GONE)(database)

        made = spoilt(made, damage)
        try:
            assert sorted(made.state.quarantined) == ["a", "b"]
            made.engine.signals.remove("b").result(20)
            assert made.engine.signals.reset("a").result(20).observations == 0
            assert made.state.quarantined == {}
            assert made.feed("a", noise(4, 10), START + 200 * SECOND)[0].status is Status.SCORED
            made = made.crash()
            assert made.engine.status("a").observations == 10
            assert [status.name for status in made.engine.overview()] == ["a"]
        finally:
            made.close()


@pytest.mark.slow
def test_pages_that_cannot_be_read_cost_only_their_signal(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        for number in range(4):
            made.feed(f"signal/{number}", noise(number, 500))
        made.close()
        file = made.folder / "tocsin.db"
        with sqlite3.connect(file) as database:
            database.execute("DELETE FROM states")
            database.commit()
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            # The last leaf of the observations, with those of one signal only.
            pages = database.execute(
                "SELECT pageno FROM dbstat WHERE name = 'observations' AND pagetype = 'leaf' ORDER BY pageno"
            ).fetchall()
            size = database.execute("PRAGMA page_size").fetchone()[0]
        database.close()
        with file.open("r+b") as raw:
            raw.seek((pages[-3][0] - 1) * size)
            raw.write(b"\xff" * size)
        made = Rig(made.folder, made.settings)
        try:
            assert len(made.state.quarantined) == 1
            (quarantined,) = made.state.quarantined.values()
            assert "damaged" in quarantined.reason
            assert len(made.state.signals) == 3
        finally:
            made.close()
