"""What becomes of observations by their times, and by what they are."""

import time
from pathlib import Path

import pytest

from tests.cases import full
from tests.service.engine.helpers import (
    NAN,
    QUICK,
    SECOND,
    START,
    Rig,
    bits,
    expected,
    expected_all,
    noise,
    one,
    oracle,
    rig,
    same,
    settings_of,
    statuses,
    verdicts,
)
from tocsin_monitor.engine.signals import QuarantinedSignal
from tocsin_monitor.engine.stages import Received, put_in_order, unjudged, without_duplicates
from tocsin_monitor.observations import Batch, Status
from tocsin_monitor.store import SignalRow

SCORED, LATE, MAINTENANCE, DUPLICATE, FUTURE, REFUSED, QUARANTINED, *_ = Status


def test_rules_need_no_engine() -> None:
    signal = QuarantinedSignal(SignalRow(7, "a", ("value",), {}, None, None, None, START), "it is broken")
    later, again, earlier = (Received(signal, START + at, (float(at),)) for at in (2, 2, 1))
    order = put_in_order([later, again, earlier], [])
    assert order.fresh == {}
    assert [(placed.received, placed.status) for placed in order.old] == [(earlier, QUARANTINED), (later, QUARANTINED)]
    assert order.repeated == [(again, later)]
    kept = unjudged(order.old[0])
    assert (kept.verdict.value, kept.verdict.alarm, kept.outcome(None).status) == ((1.0,), False, QUARANTINED)
    late, duplicates = without_duplicates(order.old, {(7, START + 1): kept.row})
    assert [placed.received for placed in late] == [later]
    assert [(received, outcome.status) for received, outcome in duplicates.items()] == [(earlier, DUPLICATE)]


def test_of_the_same_time_the_first_stands(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        first, again = made.take(one("a", START, 1.0), one("a", START, 2.0))
        assert statuses([first, again]) == [SCORED, DUPLICATE]
        assert bits(again.judged) == bits(first.judged)
        with made.held():  # both batches in one turn
            both = [made.engine.submit(Batch((one("a", START + SECOND, value),))) for value in (3.0, 4.0)]
        found = [future.result(20)[0] for future in both]
        assert statuses(found) == [SCORED, DUPLICATE]
        assert found[1].judged.value == (3.0,)
        (stored,) = made.take(one("a", START, 9.0))
        assert stored.status is DUPLICATE
        assert bits(stored.judged) == bits(first.judged)
        assert [row.judged.value for row in made.stored("a")] == [(1.0,), (3.0,)]


def test_what_is_late_is_kept_without_a_verdict_and_not_learned(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        made.feed("a", [1.0, 2.0], START, 10 * SECOND)
        late, same_late = made.take(one("a", START + SECOND, 5.0), one("a", START + SECOND, 6.0))
        assert statuses([late, same_late]) == [LATE, DUPLICATE]
        assert late.judged.value == same_late.judged.value == (5.0,)
        assert late.judged.p != late.judged.p
        assert statuses(made.take(one("a", START + SECOND, 6.0))) == [DUPLICATE]
        before = made.take(one("a", START - SECOND, 6.0), one("a", START + 20 * SECOND, 3.0))
        assert statuses(before) == [LATE, SCORED]
        detector = oracle()
        wanted = expected_all(detector, [1.0, 2.0, 3.0], START, 10 * SECOND)
        assert bits(before[1].judged) == bits(wanted[2])
        assert [row.status for row in made.stored("a")] == [LATE, SCORED, LATE, SCORED, SCORED]


def test_out_of_order_within_a_turn_is_put_into_order(tmp_path: Path) -> None:
    values = noise(1, 40)
    with rig(tmp_path) as made:
        batch = [one("a", START + at * SECOND, value) for at, value in enumerate(values)]
        outcomes = made.take(*reversed(batch))
        assert [outcome.time for outcome in outcomes] == [observation.time for observation in reversed(batch)]
        assert same(verdicts(outcomes)[::-1], expected_all(oracle(), values))


def test_the_future_is_not_kept_and_makes_no_signal(tmp_path: Path) -> None:
    with rig(tmp_path, engine={"future_tolerance": 100.0}) as made:
        now = time.time_ns()
        near, far = made.take(one("a", now + 90 * SECOND, 1.0), one("a", now + 200 * SECOND, 1.0))
        assert statuses([near, far]) == [SCORED, FUTURE]
        assert "at most 100 s ahead of the clock" in far.message
        assert statuses(made.take(one("b", now + 200 * SECOND, 1.0))) == [FUTURE]
        assert [status.name for status in made.engine.overview()] == ["a"]
        assert len(made.stored("a")) == 1
        assert made.sample("tocsin_observations_total", status="future", source="http") == 2


def test_without_a_time_it_is_now_and_never_twice_the_same(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        before = time.time_ns()
        found = made.take(one("a", None, 1.0), one("a", None, 2.0), one("b", None, 3.0))
        assert statuses(found) == [SCORED] * 3
        assert found[1].time == found[0].time + 1
        assert before <= found[0].time == found[2].time <= time.time_ns()
        ahead = time.time_ns() + 100 * SECOND
        # After one that is ahead of the clock they are not late, in the same batch or later.
        found = made.take(one("a", ahead, 1.0), one("a", None, 2.0)) + made.take(one("a", None, 3.0))
        assert [outcome.time for outcome in found] == [ahead, ahead + 1, ahead + 2]
        assert statuses(found) == [SCORED] * 3
        assert same([row.judged for row in made.stored("a")][2:4], verdicts(found)[:2])


def test_a_time_that_cannot_be_said_is_refused(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        assert statuses(made.take(one("a", -(2**63), 1.0), one("a", -(2**70), 1.0))) == [REFUSED] * 2
        assert made.engine.overview() == []
        assert statuses(made.take(one("a", -(2**63) + 1, 1.0), one("a", START, 1.0), one("a", -(2**80), 1.0))) == [
            SCORED, SCORED, REFUSED,
        ]  # fmt: skip


def test_maintenance_is_missing_for_the_detector_and_stays_so(tmp_path: Path) -> None:
    values = noise(2, 120)
    made = Rig(tmp_path, settings_of(engine={"snapshot_every": 1000}))
    try:
        window = made.engine.maintenance.add("pump/*", START + 40 * SECOND, START + 60 * SECOND, "oil", "me").result(9)
        assert made.engine.maintenance.add("fan", START, START + 999 * SECOND).result(9).id == window.id + 1
        found = made.feed("pump/1", values[:80])
        assert statuses(found) == [SCORED] * 40 + [MAINTENANCE] * 20 + [SCORED] * 20
        assert found[45].judged.value == (values[45],)
        assert found[45].judged.p != found[45].judged.p
        assert statuses(made.feed("other", values[:80])) == [SCORED] * 80
        made.engine.maintenance.remove(window.id).result(9)
        made = made.crash()
        assert [row.id for row in made.state.windows] == [window.id + 1]
        detector = oracle()
        taken = values[:40] + [NAN] * 20 + values[60:]
        wanted = expected_all(detector, taken)
        last = made.feed("pump/1", values[80:], START + 80 * SECOND)
        assert same(verdicts(found)[:40] + verdicts(found)[60:] + verdicts(last), wanted[:40] + wanted[60:])
    finally:
        made.close()


def test_names_that_cannot_be_are_refused_and_the_others_go_on(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        bad = ["", " a", "a\n", "x" * 201, "a/-/b", "a/-", "\ud800"]
        outcomes = made.take(*(one(name, START, 1.0) for name in bad), one("good/-x", START, 1.0))
        assert statuses(outcomes) == [REFUSED] * len(bad) + [SCORED]
        assert all(outcome.message for outcome in outcomes[:-1])


def test_no_more_signals_than_are_allowed(tmp_path: Path) -> None:
    with rig(tmp_path, engine={"max_signals": 3}) as made:
        made.take(one("a", START, 1.0))
        outcomes = made.take(*(one(name, START + SECOND, 1.0) for name in ("b", "?", " bad", "c", "d", "b", "a")))
        assert statuses(outcomes) == [SCORED, SCORED, REFUSED, REFUSED, REFUSED, DUPLICATE, SCORED]
        assert "max_signals" in outcomes[3].message
        made.engine.signals.remove("b").result(9)
        assert statuses(made.take(one("c", START, 1.0), one("d", START, 1.0))) == [SCORED, REFUSED]


def test_signals_appear_only_where_they_may(tmp_path: Path) -> None:
    with rig(tmp_path, engine={"auto_create": False}) as made:
        (refused,) = made.take(one("a", START, 1.0))
        assert refused.status is REFUSED
        assert "'a'" in refused.message
        made.engine.signals.create("a").result(9)
        assert statuses(made.take(one("a", START, 1.0))) == [SCORED]


def test_templates_say_what_a_signal_that_appears_is(tmp_path: Path) -> None:
    template = {"match": "p/*", "features": ["x", "y"], "unit": "mm", "silent_after": 60, "detector": {"gap": 2}}
    with rig(tmp_path, templates=[template]) as made:
        (found,) = made.take(one("p/1", START, (2.0,), ("y",)))
        wanted = expected(oracle(("x", "y"), gap=2), START, (NAN, 2.0))
        assert bits(found.judged) == bits(wanted)
        status = made.engine.status("p/1")
        assert (status.features, status.unit, status.template) == (("x", "y"), "mm", "p/*")
        # What does not fit it makes no signal.
        assert statuses(made.take(one("p/2", START, (1, 2, 3)), one("p/3", START, 1.0, ("w",)))) == [REFUSED] * 2
        assert len(made.engine.overview()) == 1
        made.take(one("q", START, (1, 2)))
        assert made.engine.status("q").features == ("feature 1", "feature 2")
        assert made.engine.signals.details("p/1").result(9).settings == {**QUICK, "gap": 2}


@pytest.mark.slow
@pytest.mark.parametrize("value", [float("inf"), full(-0.0), 1e308, full(5e-324)])
def test_strange_numbers_are_taken_as_a_detector_takes_them(tmp_path: Path, value: float) -> None:
    values = [*noise(3, 60), value, *noise(4, 10)]
    with rig(tmp_path) as made:
        assert same(verdicts(made.feed("a", values)), expected_all(oracle(), values))
        assert same([row.judged for row in made.stored("a")], expected_all(oracle(), values))
