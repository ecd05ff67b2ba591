"""What others push, by their own clients, to a real monitor: Prometheus, the OpenTelemetry SDK, InfluxDB's client."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from influxdb_client import InfluxDBClient, Point, WriteOptions, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import Observation as Observed
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from tests.service.helpers import DEADLINE, Prometheus
from tests.service.process import MonitorProcess

pytestmark = pytest.mark.slow

CONFIG = """
[detector]
forecaster = "last-value"
views = ["error"]
[[push.remote_write]]
match = "looks_total"
signal = "looks/{kind}"
rate = true
[[push.remote_write]]
match = "up"
[[push.remote_write]]
match = "level"
[[push.otlp]]
signal = "{service_name}/{__name__}"
"""


class Monitor(MonitorProcess):
    token: str
    sender: str
    limited: str

    def get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Connection": "close"}
        return httpx.get(f"{self.address}/api/v1{path}", headers=headers, timeout=60).json()

    def values(self, signal: str) -> list[Any]:
        """All values of a signal, none if it is not there."""
        return list(self.get(f"/signals/{signal}/-/history").get("value", [[]])[0])

    def sources(self) -> dict[str, Any]:
        return {one["name"]: one for one in self.get("/status")["sources"]}


def until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + DEADLINE
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)
    return found


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitor]:
    with Monitor(tmp_path_factory.mktemp("monitor"), CONFIG) as running:
        # Before it starts: it looks for new ones only now and then.
        running.token = running.make_token("admin")
        running.sender = running.make_token("ingest")
        running.limited = running.make_token("ingest", "--match", "cpu*", name="influx")
        running.start()
        yield running


class Target:
    """What Prometheus scrapes: a counter that grows by 5 with every look, and a level that can go away."""

    def __init__(self) -> None:
        self.looks, self.has_level = 0, True
        target = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                target.looks += 1
                text = f'# TYPE looks_total counter\nlooks_total{{kind="a"}} {5 * target.looks}\nunwanted 1\n'
                text += "level 7.5\n" if target.has_level else ""
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *message: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Target":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.full
def test_prometheus_writes_and_goes_on_after_the_monitor_was_killed(monitor: Monitor, tmp_path: Path) -> None:
    with Target() as target:
        url = f"{monitor.address}/api/v1/write"
        level = f'level{{instance="{target.place}", job="test"}}'
        with Prometheus(tmp_path / "prometheus", target.place, url, monitor.sender):
            until(lambda: len(monitor.values("looks/a")) >= 3)
            assert until(lambda: monitor.values(level))[0] == 7.5
            # Samples are a second apart, in which there is one look.
            assert monitor.values("looks/a")[0] == pytest.approx(5, rel=0.2)
            names = {one["name"] for one in monitor.get("/signals")["signals"]}
            assert names >= {"looks/a", level, f'up{{instance="{target.place}", job="test"}}'}
            assert not any("unwanted" in name for name in names)
            monitor.kill()
            looks = target.looks
            until(lambda: target.looks > looks + 3)
            monitor.start()
            before = len(monitor.values(level))
            until(lambda: len(monitor.values(level)) > before + 3)
            # What was sampled while the monitor was away has come later: no second is missing.
            times = monitor.get(f"/signals/{level}/-/history")["times"]
            moments = [datetime.fromisoformat(one).timestamp() for one in times]
            assert max(later - one for one, later in pairwise(moments)) < 2.5
            # The level goes away: Prometheus tells by a marker, which is a missing value.
            target.has_level = False
            until(lambda: monitor.values(level)[-1] is None)
    assert monitor.sources()["remote_write"]["last_error"] is None


@pytest.mark.full
def test_the_opentelemetry_sdk_exports(monitor: Monitor) -> None:
    exporter = OTLPMetricExporter(
        f"{monitor.address}/v1/metrics",
        headers={"Authorization": f"Bearer {monitor.sender}"},
        compression=Compression.Gzip,
        preferred_temporality={Counter: AggregationTemporality.CUMULATIVE, Histogram: AggregationTemporality.DELTA},
    )
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=10**7)
    provider = MeterProvider([reader], Resource.create({"service.name": "shop"}))
    meter = provider.get_meter("web")
    meter.create_observable_gauge("temperature", [lambda options: [Observed(21.5)]])
    requests, took = meter.create_counter("requests"), meter.create_histogram("took")
    for _ in range(3):
        requests.add(10)
        took.record(2.0)
        took.record(4.0)
        assert provider.force_flush(60_000)
    provider.shutdown()
    assert monitor.values("shop/temperature")[:3] == [21.5] * 3
    assert len(monitor.values("shop/requests")) >= 2  # the first point begins the counter
    assert all(rate > 0 for rate in monitor.values("shop/requests")[:2])
    assert monitor.values("shop/took.mean")[:3] == [3.0] * 3
    assert monitor.values("shop/took.count")[:3] == [2.0] * 3
    assert monitor.sources()["otlp"]["last_error"] is None


def test_influx_clients_write_one_by_one_and_in_batches(monitor: Monitor) -> None:
    start = int(time.time()) - 10_000
    failed: list[Any] = []
    with InfluxDBClient(monitor.address, monitor.limited, org="plant", enable_gzip=True) as client:
        with client.write_api(write_options=SYNCHRONOUS) as one_by_one:
            point = Point("cpu").tag("host", "a b").field("user", 2.5).field("busy", True).time(start, WritePrecision.S)
            one_by_one.write("bucket", record=point)
            assert monitor.values('cpu_user{host="a b"}') == [2.5]
            assert monitor.values('cpu_busy{host="a b"}') == [1]
            with pytest.raises(ApiException) as refused:
                one_by_one.write("bucket", record="mem,host=a used=1")
            assert refused.value.status == 400
            assert "this token does not allow the signal" in refused.value.message
        options = WriteOptions(batch_size=200, flush_interval=200)
        with client.write_api(write_options=options, error_callback=lambda *error: failed.append(error)) as batching:
            for second in range(1000):
                record = f"cpu,host=b user={second}i {start + second}"
                batching.write("bucket", record=record, write_precision=WritePrecision.S)
    assert not failed
    assert sorted(monitor.values('cpu_user{host="b"}')) == list(range(1000))
    with InfluxDBClient(monitor.address, "wrong", org="plant") as client, client.write_api(SYNCHRONOUS) as api:
        with pytest.raises(ApiException) as unknown:
            api.write("bucket", record="cpu user=1")
        assert unknown.value.status == 401
