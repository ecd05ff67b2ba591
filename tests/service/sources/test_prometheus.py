"""The Prometheus source with a real Prometheus, and with answers that no Prometheus gives."""

import asyncio
import json
import logging
import math
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.service.helpers import Prometheus, Running, run, until
from tests.service.sources.inbox import Inbox
from tocsin_monitor.config.sources import PrometheusSourceSettings as Settings
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Status
from tocsin_monitor.sources import SourceContext
from tocsin_monitor.sources import prometheus as module
from tocsin_monitor.sources.prometheus import PrometheusSource


class Web:
    """A web server that answers with what a function gives: a status and a body."""

    def __init__(self, answer: Any) -> None:
        self.asked: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                web.asked.append(dict(urllib.parse.parse_qsl(body)))
                web.headers.append(dict(self.headers))
                status, text = answer(web.asked[-1])
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            do_POST = do_GET

            def log_message(self, *message: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self.place = f"127.0.0.1:{self.port}"

    def __enter__(self) -> "Web":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Target:
    """What is scraped: the count grows with every look."""

    def __init__(self) -> None:
        self.count = 0
        self.late = False

    def __call__(self, asked: Any) -> tuple[int, str]:
        self.count += 1
        text = f'looks{{kind="a"}} {self.count}\nbroken NaN\n'
        return 200, text + ('looks{kind="b"} 5\n' if self.late else "")


@pytest.fixture
def target() -> Iterator[tuple[Target, Web]]:
    made = Target()
    with Web(made) as web:
        yield made, web


def settings(url: str, *queries: dict[str, Any], **given: Any) -> Settings:
    return Settings(**{"name": "prom", "url": url, "queries": queries, "delay": 0.5, **given})


def oracle(prometheus: Prometheus, query: str, times: list[int]) -> list[float]:
    """One question for each time."""
    values = []
    for moment in times:
        asked = urllib.parse.urlencode({"query": query, "time": moment / 1e9})
        with urllib.request.urlopen(f"{prometheus.url}/api/v1/query?{asked}") as answer:
            values.append(float(json.load(answer)["data"]["result"][0]["value"][1]))
    return values


@pytest.mark.slow
def test_follows_catches_up_and_asks_nothing_twice(
    tmp_path: Path, target: tuple[Target, Web], metrics: Metrics
) -> None:
    async def test() -> None:
        inbox = Inbox()
        looks = {"query": 'looks{job="test"}', "signal": "looks/{kind}", "step": 1}
        queries = [looks, {"query": "broken * 1", "step": 1}, {"query": "nonsense(", "step": 1}]
        with Prometheus(tmp_path / "prometheus", target[1].place) as prometheus:
            given = settings(prometheus.url, *queries, lookback=5)
            source = PrometheusSource(given, inbox.context(metrics))
            async with Running(source):
                await until(lambda: len(inbox.values("looks/a")) >= 2)
                target[0].late = True
                await until(lambda: inbox.values("looks/b"))
                assert "nonsense(" in (source.health.last_error or "")
                assert "HTTP 400" in (source.health.last_error or "")
            # Away for a while: Prometheus goes on, and is itself away when we come back.
            await asyncio.sleep(1)
            await asyncio.to_thread(prometheus.stop)
            before = max(place[1] for place in inbox.kept)
            again = PrometheusSource(given, inbox.context(metrics))
            async with Running(again):
                await until(lambda: again.health.last_error is not None)
                await asyncio.to_thread(prometheus.start)
                await until(lambda: max(place[1] for place in inbox.kept) > before + 1e9)
            times = [moment for name, moment in sorted(inbox.kept) if name == "looks/a"]
            assert inbox.values("looks/a") == oracle(prometheus, 'looks{kind="a"}', times)
        assert inbox.signals >= {"looks/a", "looks/b"}
        # The result of a calculation has no name: the query stands for it.
        calculated = next(name for name in inbox.signals if name.startswith("broken * 1{"))
        assert all(map(math.isnan, inbox.values(calculated)))
        assert [later - earlier for earlier, later in pairwise(times)] == [10**9] * (len(times) - 1)
        assert set(inbox.statuses) == {Status.SCORED}

    run(test)


def series(values: list[Any], **labels: str) -> dict[str, Any]:
    return {"metric": labels, "values": values}


def matrix(*result: dict[str, Any]) -> tuple[int, str]:
    return 200, json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def every_step(asked: dict[str, str]) -> tuple[int, str]:
    first, last, step = (round(float(asked[name]) * 1000) for name in ("start", "end", "step"))
    return matrix(series([[time / 1000, str(time)] for time in range(first, last + 1, step)], __name__="x"))


@pytest.mark.slow
def test_a_long_past_is_asked_in_pieces(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        with Web(every_step) as web:
            given = settings(f"http://{web.place}", {"query": "x", "step": 1}, lookback=30_000)
            started = time.time()
            async with Running(PrometheusSource(given, inbox.context(metrics))):
                await until(lambda: len(inbox.kept) >= 30_000)
            spans = [(float(asked["start"]), float(asked["end"])) for asked in web.asked]
        assert max(end - start for start, end in spans) + 1 == module.MOST_POINTS
        assert all(later[0] == earlier[1] + 1 for earlier, later in pairwise(spans))
        assert spans[0][0] == pytest.approx(started - 30_000, abs=2)
        assert spans[-1][1] <= time.time() - 0.5
        assert max(len(batch.observations) for batch in inbox.batches) <= 2000
        assert set(inbox.statuses) == {Status.SCORED}

    run(test)


def test_broken_off_in_a_piece(metrics: Metrics) -> None:
    """The cursor goes with the last batch of a piece: what was stored before is asked again, and is known."""

    async def test() -> None:
        inbox = Inbox()
        with Web(every_step) as web:
            given = settings(f"http://{web.place}", {"query": "x", "step": 1}, lookback=150)
            source = PrometheusSource(given, inbox.context(metrics, most=40))
            taken = 0

            async def submit(batch: Any) -> Any:
                nonlocal taken
                taken += 1
                inbox.failures = taken == 3
                return await inbox.submit(batch)

            source._submit = submit
            async with Running(source):
                await until(lambda: len(inbox.kept) >= 150)
        times = sorted(moment for _, moment in inbox.kept)
        assert times == list(range(times[0], times[-1] + 1, 10**9))
        assert Status.LATE not in inbox.statuses
        assert inbox.statuses.count(Status.DUPLICATE) == 80

    run(test)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((500, "out of memory"), "HTTP 500: out of memory"),
        ((200, "<html>"), "no JSON"),
        ((200, '{"data": {"resultType": "vector", "result": []}}'), "must be a matrix"),
        ((200, "[]"), "has no result"),
        (matrix(series([[1, "many"]])), "a time and a number"),
        ((301, ""), "HTTP 301"),
    ],
)
def test_wrong_answers_are_told_and_tried_again(
    answer: tuple[int, str], told: str, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin_monitor.errors.delay_after", lambda *_: 0.01)

    async def test() -> None:
        inbox = Inbox()
        left = [answer, answer]
        with Web(lambda asked: left.pop() if left else every_step(asked)) as web:
            given = settings(f"http://{web.place}", {"query": "x", "step": 1}, lookback=5)
            source = PrometheusSource(given, inbox.context(metrics))
            async with Running(source):
                await until(lambda: len(inbox.kept) >= 5)
        assert told in (source.health.last_error or "")

    run(test)


def test_series_that_would_be_one_signal(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()

        def answer(asked: dict[str, str]) -> tuple[int, str]:
            sample = [[float(asked["start"]), "1"]]
            return matrix(
                *(series(sample, host=host, disk=disk) for host, disk in (("a", "1"), ("a", "2"), ("b", "1")))
            )

        with Web(answer) as web:
            given = settings(f"http://{web.place}", {"query": "x", "signal": "{host}", "step": 1}, lookback=1)
            source = PrometheusSource(given, inbox.context(metrics))
            async with Running(source):
                await until(lambda: inbox.kept)
        assert inbox.signals == {"b"}
        assert "map to the same signal 'a'" in (source.health.last_error or "")

    run(test)


def test_a_series_without_a_name_does_not_hold_up_others(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()

        def answer(asked: dict[str, str]) -> tuple[int, str]:
            sample = [[float(asked["start"]), "1"]]
            return matrix(series(sample, host="a"), series(sample, disk="1"))

        with Web(answer) as web:
            given = settings(f"http://{web.place}", {"query": "x", "signal": "{host}", "step": 1}, lookback=1)
            source = PrometheusSource(given, inbox.context(metrics))
            async with Running(source):
                await until(lambda: inbox.kept)
        assert inbox.signals == {"a"}
        assert "a series of 'x': the name of the signal would be empty" in (source.health.last_error or "")

    run(test)


def test_secrets_are_sent_and_never_told(metrics: Metrics, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        inbox = Inbox()
        with Web(every_step) as web:
            query = {"query": "x", "step": 1}
            basic = settings(f"http://user:pa55word@{web.place}", query, lookback=2)
            bearer = settings(f"http://{web.place}", query, lookback=2, bearer_token="t0ken", name="other")
            async with Running(
                *(
                    PrometheusSource(one, SourceContext(inbox.submit, lambda _: None, metrics))
                    for one in (basic, bearer)
                )
            ):
                await until(lambda: len(inbox.batches) >= 2)
            sent = {headers.get("Authorization") for headers in web.headers}
        assert sent == {"Bearer t0ken", "Basic dXNlcjpwYTU1d29yZA=="}
        gone = PrometheusSource(basic, inbox.context(metrics))
        async with Running(gone):
            await until(lambda: gone.health.last_error)
        assert "pa55word" not in (gone.health.last_error or "")

    with caplog.at_level(logging.DEBUG):
        run(test)
    assert "pa55word" not in caplog.text
    assert "t0ken" not in caplog.text


def test_what_is_first_asked_for_is_history_until_it_is_reached(metrics: Metrics) -> None:
    def answer(asked: dict[str, str]) -> tuple[int, str]:
        first, last = round(float(asked["start"])), round(float(asked["end"]))
        sample = [[moment, "1"] for moment in range(first, last + 1)]
        result = [{"metric": {"__name__": "up"}, "values": sample}]
        return 200, json.dumps({"data": {"resultType": "matrix", "result": result}})

    async def test() -> None:
        inbox = Inbox()
        with Web(answer) as web:
            given = settings(f"http://{web.place}", {"query": "up", "step": 1}, lookback=1000)
            began = time.time()
            async with Running(PrometheusSource(given, inbox.context(metrics))):
                await until(lambda: len(inbox.kept) >= module.FIRST_POINTS)
                inbox.failures = 10**6  # it is broken off in the middle of its history
                await until(lambda: inbox.failures < 10**6)
            inbox.failures = 0
            async with Running(PrometheusSource(given, inbox.context(metrics))):
                await until(lambda: any(not batch.history and batch.observations for batch in inbox.batches))
        times = {
            history: [one.time for batch in inbox.batches if batch.history is history for one in batch.observations]
            for history in (True, False)
        }
        assert max(times[True]) < min(times[False])
        assert max(times[True]) / 1e9 <= began + 60
        assert len(times[True]) >= 999
        assert len(inbox.kept) == sum(len(batch.observations) for batch in inbox.batches)

    run(test)
