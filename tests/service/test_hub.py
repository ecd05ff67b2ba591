import asyncio
import json
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from tocsin_monitor import hub as hub_module
from tocsin_monitor.hub import FullHubError, Hub, StreamMessage, Subscription


def run(main: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await main

    asyncio.run(limited())


async def take(subscription: Subscription, count: int) -> list[StreamMessage]:
    return [await anext(subscription) for _ in range(count)]


async def nothing_comes(subscription: Subscription) -> bool:
    try:
        async with asyncio.timeout(0.05):
            await anext(subscription)
    except TimeoutError:
        return True
    return False


def test_events_come_in_order_to_all_subscribers() -> None:
    async def main() -> None:
        hub = Hub()
        hub.publish("status", {"n": -1})
        with hub.subscribe(None) as first, hub.subscribe(None) as second:
            for n in range(1000):
                hub.publish("status", {"n": n})
            for subscription in (first, second):
                assert [event.data["n"] for event in await take(subscription, 1000)] == list(range(1000))
            assert await nothing_comes(first)

    run(main())


def test_publishing_from_threads_wakes_who_waits() -> None:
    async def main() -> None:
        hub = Hub()
        with hub.subscribe(None) as subscription:
            waiting = asyncio.create_task(take(subscription, 400))
            await asyncio.sleep(0)
            threads = [
                threading.Thread(target=lambda: [hub.publish("status", {}) for _ in range(100)]) for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            numbers = [event.number for event in await waiting]
            assert numbers == list(range(1, 401))

    run(main())


def test_a_loop_is_woken_once_however_much_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        hub = Hub()
        with hub.subscribe(None), hub.subscribe(None):
            loop, calls = asyncio.get_running_loop(), 0
            original = loop.call_soon_threadsafe

            def counting(*args: Any) -> Any:
                nonlocal calls
                calls += 1
                return original(*args)

            monkeypatch.setattr(loop, "call_soon_threadsafe", counting)
            for _ in range(500):
                hub.publish("status", {})
            assert calls == 1

    run(main())


def test_who_comes_back_goes_on_where_it_was() -> None:
    async def main() -> None:
        hub = Hub()
        with hub.subscribe(None) as subscription:
            hub.publish("status", {"n": 0})
            last = await anext(subscription)
        hub.publish("status", {"n": 1})
        hub.publish("incident", {"n": 2})
        with hub.subscribe(last.id) as subscription:
            assert [event.data["n"] for event in await take(subscription, 2)] == [1, 2]

    run(main())


@pytest.mark.parametrize("after", ["", "nonsense", "other-1", "{run}-99", "{run}-", "{run}--1", "{run}-٣", "{run}-0"])
def test_an_id_that_is_not_known_gives_a_reset(after: str) -> None:
    async def main() -> None:
        hub = Hub(size=3)
        for n in range(5):
            hub.publish("status", {"n": n})
        with hub.subscribe(after.format(run=hub.run)) as subscription:
            hub.publish("status", {"n": 5})
            reset, following = await anext(subscription), None
            assert (reset.kind, reset.id) == ("reset", f"{hub.run}-6")
            hub.publish("status", {"n": 6})
            following = await anext(subscription)
            assert following.data == {"n": 6}

    run(main())


def test_the_oldest_event_in_the_ring_can_still_be_gone_on_from() -> None:
    async def main() -> None:
        hub = Hub(size=3)
        for n in range(1, 6):
            hub.publish("status", {"n": n})
        with hub.subscribe(f"{hub.run}-2") as subscription:
            assert [event.data["n"] for event in await take(subscription, 3)] == [3, 4, 5]
        with hub.subscribe(f"{hub.run}-1") as subscription:
            assert (await anext(subscription)).kind == "reset"

    run(main())


def test_a_reader_that_is_too_slow_is_dropped_and_can_come_back() -> None:
    async def main() -> None:
        hub = Hub(size=10)
        subscription = hub.subscribe(None)
        hub.publish("status", {})
        last = await anext(subscription)
        for _ in range(20):
            hub.publish("status", {})
        with pytest.raises(StopAsyncIteration):
            await anext(subscription)
        assert hub.subscribers == 0
        with hub.subscribe(last.id) as again:
            assert (await anext(again)).kind == "reset"

    run(main())


def test_verdicts_are_gathered() -> None:
    async def main() -> None:
        hub = Hub(pace=0.1)
        with hub.subscribe(None) as subscription:
            for n in range(50):
                hub.publish("verdicts", {"signals": {f"s{n % 2}": {"n": n}}})
            first, second = await take(subscription, 2)
            assert first.data == {"signals": {"s0": {"n": 0}}}
            assert second.data == {"signals": {"s0": {"n": 48}, "s1": {"n": 49}}}
            assert await nothing_comes(subscription)

    run(main())


def test_verdicts_come_in_time_though_nobody_publishes_again() -> None:
    async def main() -> None:
        hub = Hub(pace=0.1)
        with hub.subscribe(None) as subscription:
            started = time.monotonic()
            for n in range(3):
                hub.publish("verdicts", {"signals": {"s": {"n": n}}})
            await take(subscription, 2)
            assert 0.09 < time.monotonic() - started < 30

    run(main())


def test_who_missed_verdicts_gets_the_latest_of_all_signals_that_changed() -> None:
    async def main() -> None:
        hub = Hub(pace=0.0)
        hub.publish("verdicts", {"signals": {"old": {"n": 0}}})
        after = hub.publish("status", {})
        for n in range(5):
            hub.publish("verdicts", {"signals": {f"s{n}": {"n": n}, "often": {"n": n}}})
        hub.publish("signal", {"name": "s1", "change": "removed"})
        with hub.subscribe(after) as subscription:
            verdicts, removed = await take(subscription, 2)
            assert verdicts.data["signals"] == {
                "s0": {"n": 0}, "s2": {"n": 2}, "s3": {"n": 3}, "s4": {"n": 4}, "often": {"n": 4},
            }  # fmt: skip
            assert removed.kind == "signal"
            assert await nothing_comes(subscription)

    run(main())


def test_what_nobody_reads_is_never_made() -> None:
    async def main() -> None:
        hub, made = Hub(pace=0.0), []
        for n in range(3):
            hub.publish("verdicts", {"signals": {"s": lambda n=n: made.append(n) or {"n": n}}})
        with hub.subscribe(None) as subscription:
            hub.publish("verdicts", {"signals": {"s": lambda: made.append(3) or {"n": 3}}})
            (message,) = await take(subscription, 1)
            assert made == []
            assert message.written() is message.written()
            assert b'data: {"signals":{"s":{"n":3}}}' in message.written()
            assert made == [3]

    run(main())


def test_every_verdict_goes_only_to_who_asked_for_the_signal() -> None:
    async def main() -> None:
        hub = Hub()
        with hub.subscribe(None, ["a"]) as asked, hub.subscribe(None) as other:
            assert hub.watched("a")
            assert not hub.watched("b")
            hub.publish("verdict", {"signal": "a", "n": 0})
            hub.publish("verdict", {"signal": "b", "n": 1})
            hub.publish("status", {"n": 2})
            assert [event.data["n"] for event in await take(asked, 2)] == [0, 2]
            assert [event.data["n"] for event in await take(other, 1)] == [2]

    run(main())


def test_verdicts_on_other_signals_do_not_count_as_missed() -> None:
    async def main() -> None:
        hub = Hub(size=10)
        with hub.subscribe(None, ["busy"]), hub.subscribe(None) as other:
            for _ in range(5):
                for n in range(9):
                    hub.publish("verdict", {"signal": "busy", "n": n})
                assert await nothing_comes(other)
            hub.publish("status", {})
            assert (await anext(other)).kind == "status"

    run(main())


def test_verdicts_are_kept_for_a_while_for_who_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        hub = Hub()
        with hub.subscribe(None, ["a"]) as subscription:
            hub.publish("verdict", {"signal": "a", "n": 0})
            last = await anext(subscription)
        hub.publish("verdict", {"signal": "a", "n": 1})
        with hub.subscribe(last.id, ["a"]) as subscription:
            assert (await anext(subscription)).data["n"] == 1
        monkeypatch.setattr(hub_module, "LINGER", -1.0)
        hub.publish("verdict", {"signal": "a", "n": 2})  # nobody's any more
        later = hub.publish("status", {})
        with hub.subscribe(last.id, ["a"]) as subscription:
            assert (await anext(subscription)).kind == "reset"
        monkeypatch.undo()
        # Who asks for it for the first time has missed nothing that it was to get.
        with hub.subscribe(later, ["a", "b"]) as subscription:
            assert await nothing_comes(subscription)

    run(main())


def test_there_are_only_so_many_subscribers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr(hub_module, "MOST_SUBSCRIBERS", 2)
        hub = Hub()
        with hub.subscribe(None):
            with hub.subscribe(None), pytest.raises(FullHubError, match="2 live streams"):
                hub.subscribe(None)
            with hub.subscribe(None):
                assert hub.subscribers == 2

    run(main())


def test_closing_ends_all_streams() -> None:
    async def main() -> None:
        hub = Hub()
        subscription = hub.subscribe(None)
        waiting = asyncio.create_task(take(subscription, 1))
        await asyncio.sleep(0)
        hub.close()
        with pytest.raises(StopAsyncIteration):
            await waiting

    run(main())


def test_a_loop_that_is_gone_is_forgotten() -> None:
    hub = Hub(pace=0.0)

    async def leave_without_a_word() -> None:
        hub.subscribe(None, ["a"])

    run(leave_without_a_word())
    hub.publish("status", {})
    assert hub.subscribers == 0
    hub.publish("verdicts", {"signals": {}})


def test_an_event_is_one_line_of_data() -> None:
    event = StreamMessage(1, "run-1", "incident", {"note": "two\nlines\r", "p": float("nan")})
    assert event.written() == b'id: run-1\nevent: incident\ndata: {"note":"two\\nlines\\r","p":null}\n\n'
    assert event.written() is event.written()
    assert json.loads(event.written().split(b"data: ")[1])["p"] is None
