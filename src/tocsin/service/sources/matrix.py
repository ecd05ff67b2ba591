"""What Prometheus answers to a query over a range of time."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from tocsin.service.errors import MonitorError
from tocsin.service.observations import Observation
from tocsin.service.sources.naming import NameTemplate, series_signal

MILLISECOND = 10**6  # ns


class MalformedError(MonitorError):
    """An answer that is not as Prometheus writes it."""


def observations_in(
    answer: Any, query: str, template: NameTemplate | None, skipped: Callable[[str], None]
) -> tuple[list[Observation], int]:
    """The samples of an answer, by time, and how many series it has.

    NaN and infinite samples are missing values. Series that would all be one signal are left out, since nobody could
    tell which sample is the right one, and so are series without a name; `skipped` is told.
    """
    named: defaultdict[str, list[tuple[list[Any], str | None]]] = defaultdict(list)
    series = _series(answer)
    for one in series:
        labels = _labels(one)
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
        raise MalformedError("the answer has no result") from None
    if kind != "matrix" or not isinstance(result, list) or not all(isinstance(one, dict) for one in result):
        raise MalformedError(f"the answer must be a matrix, got {kind!r}")
    return result


def _labels(series: Mapping[str, Any]) -> Mapping[str, str]:
    labels = series.get("metric")
    if not isinstance(labels, dict):
        raise MalformedError("a series of the answer has no labels")
    return labels


def _observation(signal: str, sample: Any, target: str | None) -> Observation:
    try:
        time, value = sample
        moment, number = round(float(time) * 1000) * MILLISECOND, float(value)
    except (OverflowError, TypeError, ValueError):
        raise MalformedError(f"a sample of {signal!r} must be a time and a number, got {sample!r}") from None
    return Observation(signal, moment, (number if math.isfinite(number) else math.nan,), sender=target)
