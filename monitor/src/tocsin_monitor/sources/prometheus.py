"""Observations from a Prometheus server, by queries over ranges of time."""

import asyncio
import hashlib
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from tocsin_monitor.config.section import NameTemplate
from tocsin_monitor.config.sources import PrometheusQuery, PrometheusSourceSettings
from tocsin_monitor.errors import Backoff, MonitorError, error_text
from tocsin_monitor.observations import Cursor, Observation
from tocsin_monitor.outgoing import Client, ask, open_client
from tocsin_monitor.sources.base import LONGEST_WAIT, Source, SourceContext
from tocsin_monitor.sources.payloads import series_signal

MILLISECOND = 10**6  # ns
# Prometheus refuses queries for more points per series.
MOST_POINTS = 11_000
# How many samples to ask for at once, over all series. They are all held in memory.
SAMPLES = 50_000
FIRST_POINTS = 200
# The largest reply that is read, in bytes. After a larger one, the source asks for less.
LARGEST = 32 * 2**20
# In seconds. The clock may be changed during the wait for the next step.
LONGEST_SLEEP = 10.0


class PrometheusSource(Source):
    """Runs each query for its next steps as soon as they are old enough to be final, and never for a step twice.

    The position of each query is stored together with its observations, so after an outage it continues from there, in
    order. The first run of a query reaches back as far as `lookback`; what it finds is history and sends no messages.
    """

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
        """Follow one query, independently of the others: an error in one does not delay the rest."""
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
                points = max(1, points // 2)  # the reply may have been too large
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
            raise MonitorError(f"the answer has more than {LARGEST} bytes")
        try:
            body: Any = answer.json()
        except (ValueError, RecursionError):
            raise MonitorError("the answer is no JSON") from None
        return observations_in(body, followed.query.query, followed.template, self._skipped)

    async def _store(self, followed: "_Followed", observations: list[Observation], last: int) -> None:
        """Store observations in batches. The last batch carries the cursor: if this is interrupted before it, all are
        queried again, and those already stored are recognised by their time."""
        pieces = [observations[i : i + self._most] for i in range(0, len(observations), self._most)] or [[]]
        history = followed.is_history
        for piece in pieces[:-1]:
            await self._hand_over(piece, history=history)
        # The position where history ends is stored until it is reached.
        position = f"{last}/{followed.live}" if history else str(last)
        await self._hand_over(pieces[-1], Cursor(followed.key, position), history=history)
        followed.next = last + followed.step


class _Followed:
    """A query and its next step. Steps are whole multiples of the interval since 1970, in milliseconds."""

    def __init__(self, source: str, query: PrometheusQuery) -> None:
        self.query = query
        self.template = None if query.signal is None else NameTemplate(query.signal)
        self.step = max(1, round(query.step * 1000))
        # By content, not by position in the settings: queries may be added and reordered.
        digest = hashlib.sha256(f"{query.query}\n{self.step}\n{query.signal}".encode()).hexdigest()[:16]
        self.key = f"{source}:{digest}"
        self.next: int | None = None
        #: The first step after history.
        self.live = 0

    @property
    def is_history(self) -> bool:
        return self.next is not None and self.next < self.live

    def newest(self, delay: float) -> int:
        """The newest step that is at least `delay` seconds old."""
        return int((time.time() - delay) * 1000) // self.step * self.step


def observations_in(
    answer: Any, query: str, template: NameTemplate | None, skipped: Callable[[str], None]
) -> tuple[list[Observation], int]:
    """The samples of a reply, ordered by time, and its number of series.

    NaN and infinite samples are missing values. Series that map to the same signal are skipped, because it is unclear
    which sample is right, and so are series without a name; `skipped` is called for each.
    """
    named: defaultdict[str, list[tuple[list[Any], str | None]]] = defaultdict(list)
    series = _series(answer)
    for one in series:
        labels = one.get("metric")
        if not isinstance(labels, dict):
            raise MonitorError("a series of the answer has no labels")
        try:
            signal = series_signal(template, labels, query)
        except ValueError as error:
            skipped(f"a series of {query!r}: {error}")
            continue
        named[signal].append((one.get("values", []), labels.get("instance")))
    observations = []
    for signal, alike in named.items():
        if len(alike) > 1:
            skipped(f"{len(alike)} series of {query!r} map to the same signal {signal!r}: use more labels in `signal`")
            continue
        samples, target = alike[0]
        observations += [_observation(signal, sample, target) for sample in samples]
    observations.sort(key=lambda observation: (observation.time, observation.signal))
    return observations, len(series)


def _series(answer: Any) -> list[Mapping[str, Any]]:
    try:
        data = answer["data"]
        kind, result = data["resultType"], data["result"]
    except (KeyError, TypeError):
        raise MonitorError("the answer has no result") from None
    if kind != "matrix" or not isinstance(result, list) or not all(isinstance(one, dict) for one in result):
        raise MonitorError(f"the answer must be a matrix, got {kind!r}")
    return result


def _observation(signal: str, sample: Any, target: str | None) -> Observation:
    try:
        time, value = sample
        moment, number = round(float(time) * 1000) * MILLISECOND, float(value)
    except (OverflowError, TypeError, ValueError):
        raise MonitorError(f"a sample of {signal!r} must be a time and a number, got {sample!r}") from None
    return Observation(signal, moment, (number if math.isfinite(number) else math.nan,), sender=target)
