"""Servers of our own on loopback, for as long as tests need them."""

import asyncio
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tocsin_monitor.store import Store

DEADLINE = 90.0  # seconds; nobody waits that long but on a machine that is busy with something else


def program(*names: str) -> str:
    """The path of an installed program, under one of its names; skips the test if there is none."""
    for name in names:
        found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
        if found:
            return found
    pytest.skip(f"{names[0]} is not installed")


@cache
def _empty_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        Store.open(f"sqlite:///{folder}/tocsin.db").close()
        return Path(folder, "tocsin.db").read_bytes()


def sqlite_store(folder: Path) -> Store:
    """The store in a folder. A new one is a copy, since to create its tables takes longer than most tests."""
    file = folder / "tocsin.db"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_empty_store())
    return Store.open(f"sqlite:///{file}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Server:
    """A program that listens on a port of loopback and keeps everything in one folder."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.program = program(*names)
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def arguments(self) -> list[str]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([self.program, *self.arguments()], stdout=log, stderr=log)
        end = time.monotonic() + DEADLINE
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.program} did not start:\n{(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(DEADLINE)
            self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Any:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class Mosquitto(Server):
    """A broker; with a password it lets in nobody but "tocsin", with TLS nobody who does not speak that."""

    def __init__(self, folder: Path, password: str | None = None, *, tls: bool = False) -> None:
        super().__init__(folder, "mosquitto")
        lines = [f"listener {self.port} 127.0.0.1", "persistence true", f"persistence_location {folder}/", "user root"]
        self.certificate = folder / "certificate.pem"
        if tls:
            key = folder / "key.pem"
            made = [program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
            made += ["-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"]
            made += ["-keyout", str(key), "-out", str(self.certificate)]
            subprocess.run(made, check=True, capture_output=True)
            lines += [f"certfile {self.certificate}", f"keyfile {key}"]
        if password is None:
            lines.append("allow_anonymous true")
        else:
            users = folder / "users"
            made = [program("mosquitto_passwd"), "-b", "-c", str(users), "tocsin", password]
            subprocess.run(made, check=True, capture_output=True)
            lines += ["allow_anonymous false", f"password_file {users}"]
        (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")

    def arguments(self) -> list[str]:
        return ["-c", str(self.folder / "mosquitto.conf")]


class _Ready(Server):
    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False


class Prometheus(_Ready):
    """Scrapes one target every second, and writes what it finds to an address, if it is given one."""

    def __init__(self, folder: Path, target: str, writes_to: str | None = None, token: str | None = None) -> None:
        super().__init__(folder, "prometheus")
        sending = "" if token is None else f", authorization: {{credentials: {token}}}"
        queue = "queue_config: {batch_send_deadline: 200ms, min_backoff: 100ms, max_backoff: 500ms}"
        writing = "" if writes_to is None else f"remote_write: [{{url: '{writes_to}', {queue}{sending}}}]\n"
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: test, static_configs: [{{targets: ['{target}']}}]}}]\n" + writing
        )

    def arguments(self) -> list[str]:
        return [
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            f"--storage.tsdb.path={self.folder / 'data'}",
        ]


class Alertmanager(_Ready):
    """Sends what it knows to an address, at once, or nothing to anybody."""

    def __init__(self, folder: Path, sends_to: str | None = None) -> None:
        super().__init__(folder, "prometheus-alertmanager", "alertmanager")
        route = "route: {receiver: one, group_by: ['...'], group_wait: 0s, group_interval: 1s}\n"
        hooks = "" if sends_to is None else f", webhook_configs: [{{url: '{sends_to}', send_resolved: true}}]"
        (folder / "alertmanager.yml").write_text(f"{route}receivers: [{{name: one{hooks}}}]\n")

    def arguments(self) -> list[str]:
        return [
            f"--config.file={self.folder / 'alertmanager.yml'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--cluster.listen-address=",
            f"--storage.path={self.folder / 'data'}",
        ]


async def until(condition: Callable[[], Any], seconds: float = DEADLINE) -> Any:
    """What the condition gives once it is true; fails if that takes too long."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"waited {seconds:g} s in vain"
        await asyncio.sleep(0.02)
    return result


class Running:
    """Something with `run`, for as long as an `async with` lasts."""

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    async def __aenter__(self) -> "Running":
        self._tasks = [asyncio.create_task(part.run()) for part in self._parts]
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if not isinstance(result, asyncio.CancelledError):
                raise AssertionError(f"it ended by itself: {result!r}")


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run an asynchronous test."""

    async def limited() -> None:
        async with asyncio.timeout(300):
            await test()

    asyncio.run(limited())
