"""How far an import is: observations stored and learned, how many a second, and how long the rest will take."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tocsin.cli.application import progress
from tocsin_monitor.cli.client import answer
from tocsin_monitor.errors import MonitorError

if TYPE_CHECKING:
    import httpx
    from rich.progress import Progress

# How often to ask for progress, and how often to print a line where nobody watches, in seconds.
ASK_EVERY = 0.5
LINE_EVERY = 5.0

#: What the monitor says about each signal; None if it knows nothing of an import.
Stages = dict[str, dict[str, Any] | None]


class ImportProgress:
    """The progress of an import, as the monitor tells it. To store an observation counts half, to learn it the rest."""

    def __init__(self, client: "httpx.Client") -> None:
        self._client = client
        #: The number of observations of each signal, as far as it is known.
        self._totals: dict[str, int] = {}
        #: The signals whose observations are all stored.
        self._stored: set[str] = set()

    def stored(self, name: str, observations: int) -> None:
        """So many observations of a signal are stored."""
        earlier = self._totals[name] if name in self._stored else 0
        self._totals[name] = earlier + observations
        self._stored.add(name)

    @contextmanager
    def shown(self, file: str) -> Iterator[None]:
        """Show the progress while a file is sent and stored."""
        ended = threading.Event()
        with progress(LINE_EVERY) as bar:
            shown = _Shown(bar, file)

            def watch() -> None:
                while not ended.wait(ASK_EVERY):
                    with suppress(MonitorError):  # the request that stores the file says what is wrong
                        shown.update(*self._look()[:2])

            thread = threading.Thread(target=watch, daemon=True)
            thread.start()
            try:
                yield
            finally:
                ended.set()
                thread.join(ASK_EVERY)

    def wait(self) -> Stages:
        """Show the progress until everything that is stored is learned; returns what became of each signal."""
        with progress(LINE_EVERY) as bar:
            shown = _Shown(bar, "learning")
            while True:
                done, total, found = self._look()
                shown.update(done, total)
                stages = {name: found.get(name) for name in self._totals if name in self._stored}
                if all(one is None or one["stage"] in ("done", "failed") for one in stages.values()):
                    return stages
                time.sleep(ASK_EVERY)

    def _look(self) -> tuple[float, int, dict[str, dict[str, Any]]]:
        """How many observations are done, of how many, and what the monitor says."""
        found = {one["signal"]: one for one in answer(self._client, "GET", "/imports")["imports"]}
        for name, one in found.items():
            if one["stage"] == "storing" and name not in self._stored:
                self._totals[name] = one["total"]
        done = 0.0
        for name, total in self._totals.items():
            at = found.get(name)
            if at is None or at["stage"] in ("done", "failed"):
                done += total
            elif at["stage"] == "storing":
                done += at["done"] / 2
            else:
                done += total / 2 + (total * at["done"] / at["total"] / 2 if at["total"] else 0.0)
        return done, sum(self._totals.values()), found


class _Shown:
    """A task of a progress bar whose name includes how much is done a second."""

    def __init__(self, bar: "Progress", name: str) -> None:
        self._bar, self._name = bar, name
        self._task = bar.add_task(name, total=None)
        self._first: tuple[float, float] | None = None

    def update(self, done: float, total: int) -> None:
        now = time.monotonic()
        then, before = self._first = self._first or (now, done)
        rate = f", {(done - before) / (now - then):,.0f} a second" if done > before else ""
        self._bar.update(self._task, description=f"{self._name}{rate}", completed=round(done), total=total or None)
