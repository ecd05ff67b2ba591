"""`tocsin`, forked from a process that has already imported the monitor and loaded its loops.

A start then takes a fraction of a second. From nothing it takes several, which hundreds of tests would wait for.
"""

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


class Preloaded:
    """The process that is forked: it waits for orders, one in a line, and answers each with a line."""

    def __init__(self) -> None:
        environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )
        self._lock = threading.Lock()

    def ask(self, **order: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())


@cache
def preloaded() -> Preloaded:
    """One for each worker. It ends with the worker, which closes its standard input."""
    return Preloaded()


class ForkedTocsin:
    """`tocsin` with these arguments, used as a `subprocess.Popen`. Its output is added to files."""

    def __init__(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        output: Path,
        errors: Path | None = None,
        stdin: Path | None = None,
        files: int | None = None,
    ) -> None:
        paths = [str(path) for path in (stdin or os.devnull, output, errors or output)]
        order = {"arguments": arguments, "environment": dict(environment), "folder": os.getcwd()}
        self.pid: int = preloaded().ask(start={**order, "paths": paths, "files": files})
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = preloaded().ask(poll=self.pid)
        return self._code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self, seconds: float = 300.0) -> int:
        end = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("tocsin", seconds)
            time.sleep(0.01)
        return code


def main() -> None:
    from tests.warm import judge
    from tocsin.cli.application import load
    from tocsin_monitor import http, monitor  # noqa: F401

    app = load("serve")
    judge()
    gc.freeze()  # nothing of this is garbage: forks need not look through it
    orders = os.fdopen(os.dup(0))  # forks have standard input to themselves
    for line in orders:
        order = json.loads(line)
        if (pid := order.get("poll")) is not None:
            ended, status = os.waitpid(pid, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        elif (answer := os.fork()) == 0:
            become(**order["start"])
            app(prog_name="tocsin")
        print(json.dumps(answer), flush=True)


def become(arguments: list[str], environment: dict[str, str], folder: str, paths: list[str], files: int | None) -> None:
    """A process in this folder with this environment, and these files for its standard streams."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["tocsin", *arguments]
    for number, path in enumerate(paths):
        kind = os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY
        os.dup2(os.open(path, kind, 0o644), number)
    if files is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


if __name__ == "__main__":
    main()
