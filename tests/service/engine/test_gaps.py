"""Gaps: what is missing is taken in bounded pieces, and others do not wait for it."""

from pathlib import Path

import numpy as np
import pytest

from tests.service.engine.helpers import (
    QUICK,
    SECOND,
    START,
    expected_all,
    noise,
    one,
    oracle,
    rig,
    same,
    statuses,
    verdicts,
)
from tocsin_monitor.engine import ingest
from tocsin_monitor.observations import Batch, Status

EVERY = {"interval": "1s"}


def test_gaps_wait_for_another_turn_and_change_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "MOST_FILLED", 50)
    values = noise(5, 30)
    with rig(tmp_path, detector={**QUICK, **EVERY}) as made:
        turns = made.sample("tocsin_tick_seconds_count")
        moments = [START + number * 20 * SECOND for number in range(30)]
        batch = [one("gaps", moment, value) for moment, value in zip(moments, values, strict=True)]
        batch.insert(21, batch[7])  # again in the same batch
        with made.held():
            slow = made.engine.submit(Batch(tuple(batch)))
            quick = made.engine.submit(Batch((one("others", START, 1.0),)))
        found = slow.result(20)
        assert quick.done()
        assert made.sample("tocsin_tick_seconds_count") - turns >= 10
        assert statuses(found) == [Status.SCORED] * 21 + [Status.DUPLICATE] + [Status.SCORED] * 9
        wanted = expected_all(oracle(**EVERY), values, START, 20 * SECOND)
        assert same(verdicts(found[:21] + found[22:]), wanted)
        assert len(made.stored("gaps")) == 30


def test_a_crash_between_two_turns_loses_and_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "MOST_FILLED", 10)
    values = np.round(np.random.default_rng(1).normal(size=40), 2).tolist()
    with rig(tmp_path, detector={**QUICK, **EVERY}) as made:
        made.feed("a", values[:20], START, 9 * SECOND)
        made = made.crash()
        try:
            outcomes = made.feed("a", values, START, 9 * SECOND)
            assert statuses(outcomes) == [Status.DUPLICATE] * 20 + [Status.SCORED] * 20
            assert same(verdicts(outcomes), expected_all(oracle(**EVERY), values, START, 9 * SECOND))
        finally:
            made.close()
