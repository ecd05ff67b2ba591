"""`tocsin import`: waiting for a monitor that starts, and how far it is. Imports themselves are in tests/service."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calling import invoke
from tocsin_monitor.cli import client, import_progress

STARTING = "the monitor accepts no observations now: compiling"


@contextmanager
def answering(replies: dict[str, list[tuple[int, dict[str, Any]]]]) -> Iterator[str]:
    """The address of a server that gives these replies to each path in turn, the last one again and again."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            left = replies[self.path.partition("?")[0]]
            status, said = left.pop(0) if len(left) > 1 else left[0]
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def not_ready(times: int) -> list[tuple[int, dict[str, Any]]]:
    return [(503, {"error": {"message": STARTING}})] * times


def stage(name: str, done: int, total: int) -> tuple[int, dict[str, Any]]:
    return 200, {"imports": [{"signal": "pump", "stage": name, "done": done, "total": total, "incidents": 2}]}


IMPORTED = 200, {
    "understood": "time: time", "problems": [],
    "signals": [{"signal": "pump", "observations": 100, "duplicates": 0, "refused": 0, "older": 0}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (client, import_progress):
        monkeypatch.setattr(module, "_ASK_EVERY" if module is client else "ASK_EVERY", 0.01)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pump.csv"
    path.write_text("time,value\n2026-01-01,1\n")
    return path


def test_it_waits_for_a_monitor_that_starts_and_says_so_once(file: Path) -> None:
    replies = {
        "/readyz": [*not_ready(3), (200, {"status": "ready"})],
        "/api/v1/imports": [stage("storing", 50, 100), IMPORTED, stage("learning", 20, 100), stage("done", 100, 100)],
    }
    with answering(replies) as url:
        replies["/api/v1/imports"].pop(0)  # the request that stores the file comes first
        result = invoke("import", file, "--url", url)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("waiting for the monitor to start: " + STARTING) == 1
    assert "pump: 100 observations stored" in result.stderr
    assert "pump: learned, 2 past incidents" in result.stdout


def test_it_gives_up_on_a_monitor_that_does_not_become_ready(file: Path) -> None:
    with answering({"/readyz": not_ready(1)}) as url:
        for command in (("import", file), ("reload",)):
            result = invoke(*command, "--url", url, "--start-timeout", "0.05")
            assert result.exit_code == 1
            assert f"{STARTING}; waited 0.05 s for it to start (--start-timeout)" in " ".join(result.stderr.split())


def test_it_waits_less_where_nobody_answers(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering({}) as url:
        pass
    monkeypatch.setattr(client, "_LISTENS_AFTER", 0.05)
    result = invoke("import", file, "--url", url, "--start-timeout", "3600")
    assert result.exit_code == 1
    assert result.stderr.count("waiting for the monitor to start: it does not answer yet") == 1
    assert f"no monitor answers at {url}" in result.stderr


def test_progress_counts_what_is_stored_half(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(import_progress, "LINE_EVERY", 1e-9)
    replies = {"/api/v1/imports": [stage("storing", 0, 100), stage("storing", 60, 100), stage("waiting", 0, 0)]}
    with answering(replies) as url, client.client_of(url, None, 10.0) as asked:
        progress = import_progress.ImportProgress(asked)
        with progress.shown("pump.csv"):
            end = time.monotonic() + 60
            while "50 of 100" not in (said := capsys.readouterr().err) and time.monotonic() < end:
                time.sleep(0.05)
            assert "a second: 50 of 100, 0:00:0" in said
        progress.stored("pump", 100)
        replies["/api/v1/imports"] = [
            stage("learning", 300, 1000),
            stage("learning", 600, 1000),
            stage("done", 1000, 1000),
        ]
        (found,) = progress.wait().values()
        assert found is not None
        assert found["stage"] == "done"
    said = capsys.readouterr().err
    assert "learning: 65 of 100\n" in said
    assert "a second: 80 of 100, 0:00:0" in said
