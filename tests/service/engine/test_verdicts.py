"""The verdicts that are stored and returned are those of detectors by themselves, bit for bit."""

import random
from pathlib import Path

import pytest

from tests.cases import full
from tests.service.engine.helpers import (
    NAN,
    QUICK,
    SECOND,
    START,
    Rig,
    expected_all,
    expected_at,
    noise,
    one,
    oracle,
    rig,
    same,
    settings_of,
    statuses,
    verdicts,
)
from tocsin_monitor.observations import Batch, Status


@pytest.mark.slow
def test_the_size_of_batches_and_the_order_in_them_do_not_matter(tmp_path: Path) -> None:
    names = [f"signal {number}" for number in range(5)]
    values = {name: noise(number, 150) for number, name in enumerate(names)}
    source = random.Random(1)
    left = [one(name, START + at * SECOND, values[name][at]) for at in range(150) for name in names]
    with rig(tmp_path) as made:
        found = {}
        while left:
            size = source.choice((1, 3, 40, 200))
            batch, left = left[:size], left[size:]
            source.shuffle(batch)
            for outcome in made.take(*batch):
                found[outcome.signal, outcome.time] = outcome
        for name in names:
            wanted = expected_all(oracle(), values[name])
            assert same([row.judged for row in made.stored(name)], wanted)
            assert same([found[name, START + at * SECOND].judged for at in range(150)], wanted)
            assert any(judged.alarm for judged in wanted)


@pytest.mark.slow
def test_more_signals_than_a_block_has_room_for_and_new_ones_in_between(tmp_path: Path) -> None:
    count, steps = 150, 40
    values = {f"row {number}": noise(number, steps) for number in range(count)}
    with rig(tmp_path) as made:
        for at in range(steps):
            # Every signal begins at a step of its own, and some leave steps out.
            some = [name for number, name in enumerate(values) if at >= number % 7 and (number + at) % 11]
            made.take(*(one(name, START + at * SECOND, values[name][at]) for name in some))
        assert [block.rows for block in made.state.places.blocks] == [8, 8, 16, 32, 64, 64]
        for number in range(0, count, 4):  # signals of every block
            name = f"row {number}"
            there = [at for at in range(steps) if at >= number % 7 and (number + at) % 11]
            wanted = expected_at(oracle(), [START + at * SECOND for at in there], [values[name][at] for at in there])
            assert same([row.judged for row in made.stored(name)], wanted), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"forecaster": "auto", "views": None, "promise": "incidents", "alarm_rate": 0.02, "window": None},
        full({"forecaster": "auto", "views": None, "promise": "incidents", "preset": "light", "window": 300}),
        {"forecaster": "seasonal-naive", "forecaster_options": {"period": 7}, "nonconformity": "low"},
        full({"forecaster": None, "views": None}),
        {"accept_after": 3, "min_deviation": 1.0, "gap": 2, "min_duration": 2},
    ],
)
def test_other_detectors_with_snapshots_and_restarts(tmp_path: Path, settings: dict[str, object]) -> None:
    values = noise(3, 400)
    made = Rig(tmp_path, settings_of(detector={**QUICK, **settings}, engine={"snapshot_every": 90}))
    try:
        for at in range(0, 400, 80):
            made.feed("a", values[at : at + 80], START + at * SECOND)
            made = made.crash() if at == 160 else made.restart() if at == 240 else made
        assert same([row.judged for row in made.stored("a")], expected_all(oracle(**settings), values))
    finally:
        made.close()


def test_several_features(tmp_path: Path) -> None:
    names = ("x", "y", "z")
    values = noise(4, 200, features=3)
    with rig(tmp_path) as made:
        made.take(*(one("a", START + at * SECOND, value, names) for at, value in enumerate(values[:50])))
        made.feed("a", values[50:100], START + 50 * SECOND)
        # In another order, and with one of them left out, which is missing then.
        turned = [one("a", START + at * SECOND, (value[2], value[0]), ("z", "x")) for at, value in enumerate(values)]
        made.take(*turned[100:])
        taken = values[:100] + [(value[0], NAN, value[2]) for value in values[100:]]
        assert same([row.judged for row in made.stored("a")], expected_all(oracle(names), taken))
        bad = made.take(
            one("a", START + 10**12, (1, 2), ("x", "w")),
            one("a", START + 10**12, (1, 2)),
            one("a", START + 10**12, (1, 2), ("x", "x")),
            one("a", START + 10**12, (1, 2, 3), ("x", "y")),
            one("a", START + 10**12, (1, 2, 3)),
        )
        assert statuses(bad) == [Status.REFUSED] * 4 + [Status.SCORED]
        assert "x, y, z" in bad[0].message
        assert "got w" in bad[0].message
        assert "got 2 values" in bad[1].message


@pytest.mark.slow
@pytest.mark.parametrize("cut", [full(None), 3])
def test_steps_left_out_of_an_interval_are_missing(tmp_path: Path, cut: int | None) -> None:
    source = random.Random(2)
    moments, at = [], START
    for _ in range(120):
        at += source.choice((900, 1000, 1100, 1499, 1500, 1501, 4000, 30_000)) * 10**6
        moments.append(at)
    moments.append(at + 10**6 * SECOND)  # more than are ever filled in
    values = noise(5, 121)
    settings = settings_of(detector={**QUICK, "interval": 1.0}, engine={"snapshot_every": 10})
    made = Rig(tmp_path, settings)
    try:
        if cut is None:
            made.take(*map(one, ["a"] * 121, moments, values))
        else:
            for first in range(0, 121, cut):
                made.take(*map(one, ["a"] * cut, moments[first : first + cut], values[first : first + cut]))
                made = made.crash() if first == 60 else made
        detector = oracle(interval=1.0)
        wanted = expected_at(detector, moments, values)
        assert same([row.judged for row in made.stored("a")], wanted)
        assert made.engine.status("a").observations == detector.observations > 1000
    finally:
        made.close()


@pytest.mark.slow
def test_a_stretch_longer_than_what_goes_through_at_once(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        long, short = noise(6, 700), noise(7, 300)
        batch = [*map(one, ["a"] * 700, range(START, START + 700 * SECOND, SECOND), long)]
        batch += map(one, ["b"] * 300, range(START, START + 300 * SECOND, SECOND), short)
        outcomes = made.engine.submit(Batch(tuple(batch))).result(20)
        assert same(verdicts(outcomes[:700]), expected_all(oracle(), long))
        assert same(verdicts(outcomes[700:]), expected_all(oracle(), short))
