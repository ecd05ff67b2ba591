"""A PostgreSQL server of our own, on loopback, for as long as tests need it."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

_PLACES = "/usr/lib/postgresql/*/bin/initdb"


def find_programs() -> Path | None:
    """The folder of initdb and pg_ctl, the newest where there are several."""
    found = sorted(Path("/").glob(_PLACES.lstrip("/")), key=lambda file: float(file.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


class Postgres:
    """A server for tests, gone with all that is in it when it is removed.

    `durable` keeps fsync on: needed where the point of a test is what survives.
    """

    def __init__(self, programs: Path, *, durable: bool = False) -> None:
        self._programs = programs
        self._fsync = "on" if durable else "off"
        # PostgreSQL refuses to run as root.
        self._user: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        self._folder = Path(tempfile.mkdtemp(prefix="tocsin-postgres-"))
        if self._user:
            shutil.chown(self._folder, "postgres", "postgres")
        self._data = self._folder / "data"
        self._stores = 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._run("initdb", "-A", "trust", "-U", "tocsin", "-E", "UTF8", "--locale=C", "--no-sync", "-D", self._data)

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://tocsin@127.0.0.1:{self.port}/postgres"

    def new_database(self) -> str:
        """The URL of what a store takes for an empty database: a schema, since each real one is hundreds of files."""
        self._stores += 1
        name = f"store_{self._stores}"
        with psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.url}?options=-csearch_path%3D{name}"

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self._folder} -c fsync={self._fsync}"
        log = self._folder / "log"
        self._run("pg_ctl", "-w", "-D", self._data, "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """Stop in order, ending the connections that there are."""
        self._run("pg_ctl", "-w", "-D", self._data, "-m", "fast", "stop")

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        """Stop as a crash does: no more is written, and `start` has to recover."""
        self._run("pg_ctl", "-w", "-D", self._data, "-m", "immediate", "stop")

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """None of its processes does anything meanwhile, but their connections stay open."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        every = [first, *map(int, children)]
        for process in every:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in every:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def remove(self) -> None:
        """Stop where it runs, and remove its files."""
        if (self._data / "postmaster.pid").exists():
            self.kill()
        shutil.rmtree(self._folder)

    def _run(self, program: str, *arguments: object) -> None:
        # Its output goes to a file: the server would hold a pipe open for as long as it runs.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [self._programs / program, *map(str, arguments)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self._folder, check=False, **self._user,
            )  # fmt: skip
            if done.returncode:
                output.seek(0)
                raise RuntimeError(f"{program} failed: {output.read().decode(errors='replace')}")
