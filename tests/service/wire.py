"""Protobuf written by hand, byte by byte, so that tests do not share the tables of what they test."""

import struct
from typing import Any

import cramjam


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: Any) -> bytes:
    """A float is a double, an int a varint, everything else has a length."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def write_1(*series: tuple[dict[str, str], list[tuple[int, float]]], histograms: int = 0) -> bytes:
    """A remote write request of version 1; times are in milliseconds."""
    body = b""
    for labels, samples in series:
        one = b"".join(field(1, field(1, name) + field(2, value)) for name, value in labels.items())
        one += b"".join(field(2, field(1, value) + field(2, time)) for time, value in samples)
        one += field(4, field(1, 5)) * histograms
        body += field(1, one)
    return body


def write_2(*series: tuple[dict[str, str], list[tuple[int, float]]], histograms: int = 0) -> bytes:
    """The same of version 2."""
    symbols = [""]
    parts = b""
    for labels, samples in series:
        refs = b""
        for text in (text for pair in labels.items() for text in pair):
            if text not in symbols:
                symbols.append(text)
            refs += varint(symbols.index(text))
        one = field(1, refs) + b"".join(field(2, field(1, value) + field(2, time)) for time, value in samples)
        one += field(3, field(1, 5)) * histograms
        parts += field(5, one)
    return b"".join(field(4, symbol) for symbol in symbols) + parts
