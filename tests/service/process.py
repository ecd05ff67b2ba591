"""A monitor in a process of its own, which can be killed."""

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import pytest

from tests.cli.calling import invoke
from tests.preloaded import ForkedTocsin
from tests.service.helpers import free_port


class MonitorProcess:
    """`tocsin serve` with a configuration file, at an address that stays the same."""

    #: What Python runs.
    program: tuple[str, ...] = ("-m", "tocsin")

    def __init__(
        self,
        folder: Path,
        config: str = "",
        environment: Mapping[str, str] | None = None,
        files: int | None = None,
        certificate: Path | None = None,
        *,
        forked: bool = True,
    ) -> None:
        self.folder, self._environment, self._files = folder, dict(environment or {}), files
        # From a process that has everything imported already, unless a start is to be measured.
        self._forked = forked and self.program is MonitorProcess.program and "PYTHONPATH" not in self._environment
        self.port = free_port()
        self.address = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        self._verify = ssl.create_default_context(cafile=certificate)
        self.config = folder / "tocsin.toml"
        self.config.write_text(config)
        self.log = folder / "monitor.log"
        self._process: subprocess.Popen[bytes] | ForkedTocsin | None = None

    @property
    def pid(self) -> int:
        """The number of the process that runs."""
        if self._process is None:
            raise RuntimeError("the monitor does not run")
        return self._process.pid

    @property
    def _surroundings(self) -> dict[str, str]:
        # The folder by a variable, above which the file may name a database.
        own = {"NUMBA_NUM_THREADS": "1", "TOCSIN_STORAGE__FOLDER": str(self.folder / "data")}
        return {**os.environ, **own, **self._environment}

    def start(self, *, wait: bool = True) -> None:
        arguments = ["serve", "--config", str(self.config), "--port", str(self.port)]
        if self._forked:
            self._process = ForkedTocsin(arguments, self._surroundings, self.log, files=self._files)
        else:  # there is something else to import
            with self.log.open("ab") as log:
                command = [sys.executable, *self.program, *arguments]
                self._process = subprocess.Popen(command, stdout=log, stderr=log, env=self._surroundings)
        if wait:
            self.wait_until_ready()

    def make_token(self, role: str = "admin", *options: str, name: str | None = None) -> str:
        """A token of the monitor, whether it runs or not."""
        return self._token("create", name or role, "--role", role, *options)

    def revoke_token(self, name: str) -> None:
        self._token("revoke", name)

    def _token(self, *arguments: str) -> str:
        """What `tocsin token` prints."""
        with pytest.MonkeyPatch.context() as patched:
            for name, value in self._surroundings.items():
                patched.setenv(name, value)
            done = invoke("token", *arguments, "--config", self.config)
        assert done.exit_code == 0, done.output
        return str(done.stdout).strip()

    def wait_until_ready(self, seconds: float = 300.0) -> None:
        self._wait_for(self.is_ready, seconds)

    def wait_until_it_listens(self, seconds: float = 300.0) -> None:
        """It has opened its store then, and may still be busy with what is in it."""
        self._wait_for(lambda: self._readiness() is not None, seconds)

    def _wait_for(self, reached: Callable[[], bool], seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.must_run()
            if reached():
                return
            time.sleep(0.05)
        raise RuntimeError(f"the monitor is not ready after {seconds:g} s: {self.log.read_text()[-2000:]}")

    def must_run(self) -> None:
        """RuntimeError, with what it said last, if it has ended."""
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"the monitor ended: {self.log.read_text()[-2000:]}")

    def is_ready(self) -> bool:
        """Whether it takes observations now."""
        return self._readiness() == 200

    def _readiness(self) -> int | None:
        try:
            return httpx.get(f"{self.address}/readyz", timeout=5, verify=self._verify).status_code
        except httpx.HTTPError:
            return None

    def kill(self) -> None:
        """As when the power goes: no signal can be caught."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """It does nothing any more, but its connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """After a pause."""
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        """In order."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None

    def __enter__(self) -> "MonitorProcess":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()
