"""Imported history: put in its place, learned beside what goes on live, and told to nobody."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.service.engine.helpers import QUICK, SECOND, START, Rig, expected_all, noise, one, oracle, rig, same, until
from tocsin_monitor.engine import imported_history
from tocsin_monitor.observations import Batch, Outcome, Status
from tocsin_monitor.store import StoreReader

SINK = {"sinks": {"webhook": [{"name": "hook", "url": "http://127.0.0.1:9"}]}}


def bring(made: Rig, name: str, values: list[float], start: int = START) -> list[Outcome]:
    """Import these values, and wait until they are learned."""
    observations = tuple(one(name, start + number * SECOND, value) for number, value in enumerate(values))
    outcomes = made.engine.submit(Batch(observations, source="import", history=True, whole=True)).result(60)
    until(lambda: {progress.stage for progress in made.engine.imports()} <= {"done", "failed"})
    return outcomes


@pytest.mark.slow
def test_live_observations_go_on_while_history_is_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imported_history, "step", _slow(imported_history.step))
    values = noise(1, 900)
    with rig(tmp_path, **SINK) as made:
        made.feed("a", values[600:700], START + 600 * SECOND)
        before = [row.judged.p for row in made.stored("a")]
        past = tuple(one("a", START + number * SECOND, values[number]) for number in range(600))
        made.engine.submit(Batch(past, history=True)).result(60)
        until(lambda: made.engine.imports()[0].stage == "learning")
        live = made.feed("a", values[700:800], START + 700 * SECOND)
        assert {outcome.status for outcome in live} == {Status.SCORED}
        until(lambda: made.engine.imports()[0].stage == "done")
        outcomes = made.feed("a", values[800:], START + 800 * SECOND)
        # As if all had come in its order.
        expected = expected_all(oracle(), values, START)
        assert same([outcome.judged for outcome in outcomes], expected[800:])
        rows = made.stored("a")
        assert [row.judged.p for row in rows[600:700]] == before
        assert same([row.judged for row in rows[:600]], expected[:600])
        assert made.sample("tocsin_signals_learning") == 0


def _slow(step):  # type: ignore[no-untyped-def]
    """Long enough for something to come live in between."""
    import time

    def slowed(*given):  # type: ignore[no-untyped-def]
        time.sleep(0.3)
        return step(*given)

    return slowed


@pytest.mark.slow
def test_nobody_is_told_of_the_past_nor_waits_for_what_was_only_imported(tmp_path: Path) -> None:
    values = [*noise(2, 700), *[50.0] * 5]
    template = {"templates": [{"match": "*", "silent_after": 0.2}]}
    with rig(tmp_path, **SINK, **template) as made:
        bring(made, "a", values)
        past = made.incidents()
        assert past
        assert {(row.open, row.ended) for row in past} == {(False, "imported")}
        made.feed("b", [1.0])
        until(lambda: any(row.kind == "silence" for row in made.incidents()))
        silent = [row for row in made.incidents() if row.kind == "silence"]
        assert len(silent) == 1  # that of b, though a has been silent for longer
        with made.store.reading() as reader:
            told = {row.incident for row in reader.outbox_due("hook", 2**62, 100)}
        assert told == {silent[0].id}
        made = made.restart()
        until(lambda: made.sample("tocsin_signals_silent") == 1)
        assert not made.engine.status("a").silent
        made.close()


@pytest.mark.slow
def test_an_import_that_is_interrupted_is_taken_up_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = noise(3, 700)
    with monkeypatch.context() as patch:
        patch.setattr("tocsin_monitor.engine.pending_imports.QUIET", 1e9)
        with rig(tmp_path) as made:
            past = tuple(one("a", START + number * SECOND, value) for number, value in enumerate(values))
            made.engine.submit(Batch(past, history=True)).result(60)
            made.crash().close()
    with rig(tmp_path) as made:
        until(lambda: [one.stage for one in made.engine.imports()] == ["done"])
        assert same([row.judged for row in made.stored("a")], expected_all(oracle(), values, START))
        # Another import of the same, and of more, doubles nothing.
        again = bring(made, "a", [*values, *noise(4, 50)])
        assert [outcome.status for outcome in again] == [Status.DUPLICATE] * 700 + [Status.IMPORTED] * 50
        expected = expected_all(oracle(), [*values, *noise(4, 50)], START)
        assert same([row.judged for row in made.stored("a")], expected)
        starts = [row.start for row in made.incidents()]
        assert len(starts) == len(set(starts))


@pytest.mark.slow
def test_signals_learned_together_get_what_each_gets_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = []
    step = imported_history.step

    def noted(
        reader: StoreReader, replays: Sequence[imported_history.HistoryReplay]
    ) -> list[imported_history.ReplayStep]:
        together.append(len(replays))
        return step(reader, replays)

    monkeypatch.setattr(imported_history, "step", noted)
    histories = {f"s{number}": noise(20 + number, 500 + 40 * number) for number in range(5)}
    template = {"templates": [{"match": "s4", "detector": {**QUICK, "window": 300}}]}
    with rig(tmp_path, engine={"threads": 1}, **template) as made:
        with made.held():
            for name, values in histories.items():
                past = tuple(one(name, START + number * SECOND, value) for number, value in enumerate(values))
                done = made.engine.submit(Batch(past, history=True))
        done.result(60)
        until(lambda: [one.stage for one in made.engine.imports()] == ["done"] * 5)
        assert {1, 4} <= set(together)
        for name, values in histories.items():
            detector = oracle(window=300) if name == "s4" else oracle()
            assert same([row.judged for row in made.stored(name)], expected_all(detector, values, START))
            live = made.feed(name, [0.5], START + len(values) * SECOND)
            assert live[0].status is Status.SCORED
        counts = {one.signal: one.incidents for one in made.engine.imports()}
        assert counts == {name: len(made.incidents(signal_id=made.engine.status(name).id)) for name in histories}


def test_one_that_cannot_be_learned_does_not_keep_the_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = imported_history.step

    def failing(
        reader: StoreReader, replays: Sequence[imported_history.HistoryReplay]
    ) -> list[imported_history.ReplayStep]:
        if any(one.row.name == "b" for one in replays):
            raise ValueError("nobody can judge this")
        return step(reader, replays)

    monkeypatch.setattr(imported_history, "step", failing)
    with rig(tmp_path, engine={"threads": 1}) as made:
        with made.held():
            for name in "abc":
                done = made.engine.submit(Batch((one(name, START, 1.0), one(name, START + SECOND, 2.0)), history=True))
        done.result(60)
        until(lambda: {one.stage for one in made.engine.imports()} == {"done", "failed"})
        found = {one.signal: (one.stage, one.message) for one in made.engine.imports()}
        assert found == {"a": ("done", None), "b": ("failed", "nobody can judge this"), "c": ("done", None)}


def test_a_signal_waits_for_company_only_while_a_file_is_being_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rig(tmp_path) as made:
        pending = made.state.pending_imports
        monkeypatch.setattr("tocsin_monitor.engine.pending_imports.QUIET", 0.0)
        with made.engine.storing({"a": 2, "b": 3}) as stored:
            made.engine.submit(Batch((one("a", START, 1.0), one("a", START + SECOND, 2.0)), history=True)).result(60)
            stored("a", 2)
            assert [(one.signal, one.stage, one.done, one.total) for one in made.engine.imports()] == [
                ("b", "storing", 0, 3), ("a", "waiting", 0, 0),
            ]  # fmt: skip
            assert pending.due() == {}
            with monkeypatch.context() as patch:
                patch.setattr("tocsin_monitor.engine.pending_imports.COMPANY", 1)
                assert list(pending.due()) == ["a"]
                assert pending.due({"a"}) == {}
            with monkeypatch.context() as patch:
                patch.setattr("tocsin_monitor.engine.pending_imports.LONGEST_ALONE", 0.0)
                assert list(pending.due()) == ["a"]
        until(lambda: [(one.signal, one.stage) for one in made.engine.imports()] == [("a", "done")])


def test_history_in_a_maintenance_window_is_kept_and_not_learned(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.engine.maintenance.add("*", START + 10 * SECOND, START + 20 * SECOND).result(60)
        outcomes = bring(made, "a", np.nan_to_num(noise(5, 400)).tolist())
        assert [outcome.status for outcome in outcomes[10:20]] == [Status.MAINTENANCE] * 10
        rows = made.stored("a")
        assert all(row.judged.p != row.judged.p for row in rows[10:20])
        assert all(row.judged.p == row.judged.p for row in rows[30:])


def test_a_removed_signal_takes_its_history_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin_monitor.engine.pending_imports.QUIET", 1e9)
    with rig(tmp_path) as made:
        made.engine.submit(Batch((one("a", START, 1.0),), history=True)).result(60)
        made.engine.signals.remove("a").result(60)
        assert len(made.state.pending_imports) == 0
        with made.store.reading() as reader:
            assert reader.cursors("import/") == {}
