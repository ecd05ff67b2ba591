"""Compressed bodies, unpacked only as far as they may be large."""

import zlib

from tocsin.service.http.errors import HttpError
from tocsin.service.http.limits import too_large

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
