"""Observations from a Prometheus server."""

import asyncio
import hashlib
import time
from typing import Any

from tocsin.service.config import PrometheusQuery, PrometheusSourceSettings
from tocsin.service.errors import Backoff, error_text
from tocsin.service.observations import Cursor, Observation
from tocsin.service.outgoing import Client, ask, open_client
from tocsin.service.sources.base import LONGEST_WAIT, Source, SourceContext
from tocsin.service.sources.matrix import MalformedError, observations_in
from tocsin.service.sources.naming import NameTemplate

# Prometheus refuses to give more points of one series at once.
MOST_POINTS = 11_000
# How many samples to ask for at once, over all series: so many are held in memory.
SAMPLES = 50_000
FIRST_POINTS = 200
# The largest answer that is read, in bytes; after a larger one, less is asked for.
LARGEST = 32 * 2**20
# The clock may be set while we wait for the next step.
LONGEST_SLEEP = 10.0


class PrometheusSource(Source):
    """Asks each query for its next steps, as soon as they are old enough to be final, and never for one twice.

    How far it came is stored together with what it read, for each query by itself: after any outage it goes on from
    there, in order. What a query is first asked for, as far back as `lookback` says, is history: nobody is told of it.
    """

    kind = "prometheus"

    def __init__(self, settings: PrometheusSourceSettings, context: SourceContext) -> None:
        super().__init__(settings.name, context)
        self._settings, self._cursor, self._most = settings, context.cursor, context.most
        self._followed = [_Followed(self.name, query) for query in settings.queries]
        keys = [one.key for one in self._followed]
        if len(set(keys)) < len(keys):
            raise ValueError(f"queries of {self.name} must differ from one another")

    async def _work(self, backoff: Backoff) -> None:
        settings = self._settings
        async with (
            open_client(settings.url, timeout=settings.timeout, bearer_token=settings.bearer_token) as client,
            asyncio.TaskGroup() as tasks,
        ):
            for followed in self._followed:
                tasks.create_task(self._follow(client, followed))

    async def _follow(self, client: Client, followed: "_Followed") -> None:
        """One query by itself: that another cannot be answered does not hold it up."""
        backoff = Backoff(most=LONGEST_WAIT)
        points = FIRST_POINTS
        while True:
            try:
                if followed.next is None:
                    followed.next = self._start(followed)
                last = min(followed.newest(self._settings.delay), followed.next + (points - 1) * followed.step)
                if followed.is_history:
                    last = min(last, followed.live - followed.step)
                if last < followed.next:
                    wait = followed.next / 1000 + self._settings.delay - time.time()
                    await asyncio.sleep(min(max(wait, 0.01), LONGEST_SLEEP))
                    continue
                observations, series = await self._ask(client, followed, last)
                await self._store(followed, observations, last)
            except Exception as error:
                self._failed(f"{followed.query.query!r}: {error_text(error)}")
                points = max(1, points // 2)  # it may have been too much at once
                await asyncio.sleep(backoff.failed())
            else:
                backoff.succeeded()
                points = max(1, min(2 * points, SAMPLES // max(series, 1), MOST_POINTS))

    def _start(self, followed: "_Followed") -> int:
        position = self._cursor(followed.key)
        if position is not None:
            last, _, live = position.partition("/")
            followed.live = int(live or 0)
            return int(last) + followed.step
        followed.live = followed.newest(self._settings.delay) + followed.step
        return followed.newest(self._settings.delay + self._settings.lookback) + followed.step

    async def _ask(self, client: Client, followed: "_Followed", last: int) -> tuple[list[Observation], int]:
        question = {
            "query": followed.query.query,
            "start": f"{(followed.next or 0) / 1000:.3f}",
            "end": f"{last / 1000:.3f}",
            "step": f"{followed.step / 1000:.3f}",
        }
        answer = await ask(client, "POST", "/api/v1/query_range", most=LARGEST, data=question)
        if not answer.whole:
            raise MalformedError(f"the answer has more than {LARGEST} bytes")
        try:
            body: Any = answer.json()
        except (ValueError, RecursionError):
            raise MalformedError("the answer is no JSON") from None
        return observations_in(body, followed.query.query, followed.template, self._skipped)

    async def _store(self, followed: "_Followed", observations: list[Observation], last: int) -> None:
        """In pieces that the monitor takes. The cursor goes with the last one: broken off before, all is asked again,
        and what is stored already is known by its time."""
        pieces = [observations[i : i + self._most] for i in range(0, len(observations), self._most)] or [[]]
        history = followed.is_history
        for piece in pieces[:-1]:
            await self._hand_over(piece, history=history)
        # Where what is live begins is kept until it is reached.
        position = f"{last}/{followed.live}" if history else str(last)
        await self._hand_over(pieces[-1], Cursor(followed.key, position), history=history)
        followed.next = last + followed.step


class _Followed:
    """A query, and the next step to ask for. Steps are whole multiples of the step since 1970; all in milliseconds."""

    def __init__(self, source: str, query: PrometheusQuery) -> None:
        self.query = query
        self.template = None if query.signal is None else NameTemplate(query.signal)
        self.step = max(1, round(query.step * 1000))
        # By what is asked, not by its place: queries may be added and moved around.
        digest = hashlib.sha256(f"{query.query}\n{self.step}\n{query.signal}".encode()).hexdigest()[:16]
        self.key = f"{source}:{digest}"
        self.next: int | None = None
        #: The first step that is not history.
        self.live = 0

    @property
    def is_history(self) -> bool:
        """Whether the next step is."""
        return self.next is not None and self.next < self.live

    def newest(self, delay: float) -> int:
        """The newest step that is at least `delay` seconds old."""
        return int((time.time() - delay) * 1000) // self.step * self.step
