"""Where an attack takes place: a fresh monitor, somebody well-behaved who sends to it, and what all that costs."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.service.postgres import Postgres
from tests.service.process import MonitorProcess

# Nobody waits that long but on a machine that is busy with something else.
DEADLINE = 240.0


class Sender(threading.Thread):
    """Somebody well-behaved: one observation after the other, each again until it is acknowledged."""

    def __init__(self, address: str, headers: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self._address, self._headers = address, headers
        self._stopping, self._going = threading.Event(), threading.Event()
        self._resting = threading.Event()
        self._going.set()
        #: The longest time that it took until one was acknowledged.
        self.longest = 0.0
        self.acknowledged = 0

    def run(self) -> None:
        with httpx.Client(timeout=70) as client:
            while not self._stopping.is_set():
                if self._going.is_set():
                    self._resting.clear()
                    self._send(client, time.monotonic())
                else:
                    self._resting.set()
                self._stopping.wait(0.05)

    def _send(self, client: httpx.Client, began: float) -> None:
        observation = {"signal": "well-behaved", "time": time.time_ns(), "value": float(self.acknowledged % 7)}
        while not self._stopping.is_set():
            try:
                address = f"{self._address}/api/v1/observations"
                if client.post(address, json=observation, headers=self._headers).status_code == 200:
                    self.acknowledged += 1
                    self.longest = max(self.longest, time.monotonic() - began)
                    return
            except httpx.HTTPError:
                pass
            # What is not acknowledged counts too, so that an endless wait is seen.
            self.longest = max(self.longest, time.monotonic() - began)
            self._stopping.wait(0.05)

    @contextmanager
    def rests(self) -> Iterator[None]:
        """It sends nothing meanwhile: nobody is to blame for a monitor that is being restarted."""
        self._going.clear()
        self._resting.wait(DEADLINE)
        try:
            yield
        finally:
            self._going.set()

    def stop(self) -> None:
        self._stopping.set()
        self.join(DEADLINE)


class Ground:
    """A monitor of its own for one attack, what can be done to it, and what it costs."""

    def __init__(
        self,
        folder: Path,
        config: str = "",
        database: Postgres | None = None,
        *,
        tokens: bool = False,
        files: int | None = None,
    ) -> None:
        self.database, self._tokens = database, tokens
        self.url = database.new_database() if database else f"sqlite:///{folder}/data/tocsin.db"
        self.monitor = MonitorProcess(folder, config, {"TOCSIN_STORAGE__URL": self.url} if database else {}, files)
        #: Sent with every request, those of the well-behaved sender too.
        self.headers: dict[str, str] = {}
        self.sender = Sender(self.monitor.address, self.headers)
        #: The most memory that the monitor took, in bytes.
        self.memory = 0

    def __enter__(self) -> "Ground":
        if self._tokens:
            self.headers["Authorization"] = f"Bearer {self.monitor.make_token()}"
        self.monitor.start()
        self.sender.start()
        self.until(lambda: self.sender.acknowledged > 0)
        self.sender.longest = 0.0  # what was compiled for the first one is nobody's attack
        return self

    def __exit__(self, *_: object) -> None:
        self.measure()
        self.sender.stop()
        self.monitor.__exit__()

    @property
    def log_bytes(self) -> int:
        """How much the monitor has logged."""
        return self.monitor.log.stat().st_size

    @property
    def cpu_seconds(self) -> float:
        """How long the monitor has worked: unlike time, that does not depend on what else the machine does."""
        fields = Path(f"/proc/{self.monitor.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure(self) -> None:
        """Look how much memory the monitor has taken at most so far."""
        try:
            status = Path(f"/proc/{self.monitor.pid}/status").read_text()
        except (OSError, RuntimeError):
            return  # it does not run, or this system does not tell
        peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
        self.memory = max(self.memory, 1024 * int(peak.split()[1]))

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        """Ask the API for something."""
        headers = {**self.headers, **given.pop("headers", {})}
        return httpx.request(
            method, f"{self.monitor.address}{path}", headers=headers, timeout=given.pop("timeout", 70), **given
        )

    def send(self, *observations: dict[str, Any], **given: Any) -> list[dict[str, Any]]:
        """Hand over observations; what became of them."""
        reply = self.ask("POST", "/api/v1/observations", json=list(observations), **given)
        assert reply.status_code == 200, reply.text
        outcomes: list[dict[str, Any]] = reply.json()["outcomes"]
        return outcomes

    def restart(self, *, kill: bool = False, seconds: float = DEADLINE) -> None:
        """Stop the monitor, or kill it, and start it again."""
        with self.sender.rests():
            self.measure()
            self.monitor.kill() if kill else self.monitor.stop()
            self.monitor.start(wait=False)
            self.monitor.wait_until_ready(seconds)

    def until(self, condition: Callable[[], Any], seconds: float = DEADLINE) -> Any:
        """What the condition gives once it is true."""
        end = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < end, f"waited {seconds:g} s in vain"
            time.sleep(0.02)
        return found

    def check_alive(self) -> None:
        """The monitor is ready, and takes what the well-behaved sender sends."""
        assert self.ask("GET", "/readyz").status_code == 200
        before = self.sender.acknowledged
        self.until(lambda: self.sender.acknowledged > before)
