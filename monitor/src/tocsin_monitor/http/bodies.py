"""Request bodies: their type, their compression, and the observations in them."""

import math
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any

from pydantic_core import from_json
from starlette.datastructures import Headers

from tocsin_monitor.as_json import NO_VERDICT
from tocsin_monitor.http.errors import HttpError
from tocsin_monitor.http.limits import too_large
from tocsin_monitor.observations import MOST_FEATURES, Observation, check_name, time_of


def media_type(headers: Headers) -> str:
    """The media type of a body, without parameters such as its character set."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def check_type(headers: Headers, *accepted: str) -> str:
    """The media type of a body, which must be one of these and not compressed."""
    found = media_type(headers)
    if found not in accepted:
        raise HttpError(415, f"the body must be {' or '.join(accepted)}, got {found!r:.100}", "Content-Type")
    coding = headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise HttpError(415, f"the body must not be compressed, got {coding!r:.100}", "Content-Encoding")
    return found


# gzip allows several parts, one after the other; what follows a part is copied for the next one.
MOST_PARTS = 100

_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


def unpacked(body: bytes, coding: str, limit: int) -> bytes:
    """A body without its Content-Encoding; refused if it would have more than `limit` bytes."""
    coding = coding.strip().lower() or "identity"
    if coding == "identity":
        return body
    if coding == "snappy":
        return _from_snappy(body, limit)
    if coding not in _WINDOW_BITS:
        raise HttpError(415, f"a body may be compressed with gzip or deflate, got {coding!r:.100}", "Content-Encoding")
    found, parts = b"", 0
    while body:
        parts += 1
        if parts > MOST_PARTS:
            raise HttpError(400, f"a body may have at most {MOST_PARTS} parts in {coding}, got more", "body")
        unpacking = zlib.decompressobj(_WINDOW_BITS[coding])
        try:
            found += unpacking.decompress(body, limit + 1 - len(found))
        except zlib.error as error:
            raise HttpError(400, f"the body is not {coding}: {error}", "body") from None
        if len(found) > limit:
            raise too_large(limit)
        if not unpacking.eof:
            raise HttpError(400, f"the body is not {coding}: it is cut off", "body")
        body = unpacking.unused_data
    return found


def _from_snappy(body: bytes, limit: int) -> bytes:
    """The block format, which begins with how long the result is."""
    import cramjam

    try:
        if cramjam.snappy.decompress_raw_len(body) > limit:
            raise too_large(limit)
        return bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError as error:
        raise HttpError(400, f"the body is not snappy's block format: {error}", "body") from None


JSON = "application/json"
NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl")
_FIELDS = frozenset(("signal", "time", "value"))
_WANTED = "a number, null, a list of these, or an object with one for each feature"
_NAN = float("nan")


def read_body(
    body: bytes, *, lines: bool, most: int, may_send: Callable[[str], bool] = lambda signal: True
) -> list[Observation | dict[str, Any]]:
    """Parse a body of JSON, or of one JSON object per line. A malformed body is rejected as a whole.

    In place of an invalid observation is its outcome, since it does not reach the engine.
    """
    taken: list[Observation | dict[str, Any]] = []
    for item in _lines(body, most) if lines else _items(body, most):
        try:
            observation = observation_of(item)
            if not may_send(observation.signal):
                raise ValueError("this token does not allow signals with this name")
            taken.append(observation)
        except ValueError as error:
            named = isinstance(item, dict) and isinstance(item.get("signal"), str)
            refused = {"signal": item["signal"] if named else None, "time": None, "status": "refused"}
            taken.append({**refused, **NO_VERDICT, "incident": None, "message": str(error)})
    return taken


def _items(body: bytes, most: int) -> list[Any]:
    data = _parse(body, "the body")
    if isinstance(data, dict):
        return [data]
    if isinstance(data, list):
        if len(data) > most:
            raise _too_many(most)
        return data
    raise HttpError(422, "the body must be an observation (a JSON object) or an array of observations", "body")


def _lines(body: bytes, most: int) -> list[Any]:
    """The parsed lines. Lines beyond the limit are never parsed."""
    items: list[Any] = []
    for place, line in enumerate(BytesIO(body), 1):
        if line.strip():
            if len(items) == most:
                raise _too_many(most)
            items.append(_parse(line, f"line {place}"))
    return items


def _too_many(most: int) -> HttpError:
    return HttpError(413, f"a request may contain at most {most} observations, got more", "body")


def _parse(text: bytes, what: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        hint = "; write null for a missing value" if b"NaN" in text or b"Infinity" in text else ""
        raise HttpError(422, f"{what} is not valid JSON: {error}{hint}", "body") from None


def observation_of(item: Any) -> Observation:
    """One observation; ValueError says what is wrong with it."""
    if type(item) is not dict:
        raise ValueError(f"an observation must be an object with signal, value and optionally time, got {_short(item)}")
    if not item.keys() <= _FIELDS:
        unknown = ", ".join(sorted(item.keys() - _FIELDS))
        raise ValueError(f"an observation has signal, time and value, but no {unknown:.100}")
    if "signal" not in item or "value" not in item:
        missing = "signal" if "signal" not in item else "value"
        raise ValueError(f"an observation needs {missing}: {_WANTED if missing == 'value' else 'the name of a signal'}")
    signal, time, value = check_name(item["signal"]), item.get("time"), item["value"]
    moment = None if time is None else time_of(time)
    if type(value) is float and value - value == 0.0:  # by far the most common: finite
        return Observation(signal, moment, (value,))
    if type(value) is list:
        _check_count(len(value))
        return Observation(signal, moment, tuple(map(_number, value)))
    if type(value) is dict:
        _check_count(len(value))
        return Observation(signal, moment, tuple(map(_number, value.values())), tuple(value))
    return Observation(signal, moment, (_number(value),))


def _number(value: Any) -> float:
    if value is None:
        return _NAN
    if type(value) is float or type(value) is int:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if number - number == 0.0:
            return number
        raise ValueError(f"a value must be finite, got {_short(value)}; write null for a missing one")
    raise ValueError(f"a value must be {_WANTED}, got {_short(value)}")


def _check_count(count: int) -> None:
    if not 1 <= count <= MOST_FEATURES:
        raise ValueError(f"an observation must have 1 to {MOST_FEATURES} values, got {count}")


def _short(value: Any) -> str:
    """A value for an error message, shortened; Python refuses to write numbers with too many digits."""
    try:
        text = repr(value)
    except ValueError:
        return "a number that is too large"
    return text if len(text) <= 60 else f"{text[:57]}..."
