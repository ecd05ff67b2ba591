"""Detection of a text's encoding by its first bytes."""

import codecs
import re

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
WESTERN = "cp1252"  # Latin-1 as Windows writes it
NAMES = {"utf-16": "UTF-16", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16", WESTERN: "Latin-1"}


def check_encoding(encoding: str | None) -> str | None:
    """The encoding's canonical name; ValueError if it is unknown."""
    try:
        return None if encoding is None else codecs.lookup(encoding).name
    except LookupError:
        raise ValueError(f"encoding must be one that Python knows, such as 'utf-8', got {encoding!r}") from None


def find_encoding(start: bytes) -> str | None:
    """UTF-8, UTF-16 or Western (Latin-1); None if the bytes are not text.

    Without a byte order mark, UTF-16 shows by a zero in every other byte. Text that is not valid UTF-8 is Western,
    unless parts of it can only be UTF-8: then it is damaged UTF-8.

    Examples
    --------
    >>> find_encoding("Größe".encode()), find_encoding("Größe".encode("latin-1")), find_encoding(b"a\\0;\\0b\\0")
    ('utf-8', 'cp1252', 'utf-16-le')
    """
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            return encoding
    if b"\0" in start:
        for first, encoding in ((0, "utf-16-be"), (1, "utf-16-le")):
            if start[first::2].count(0) > 0.7 * len(start[first::2]) and start[1 - first :: 2].count(0) == 0:
                return encoding
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        proper = start.decode("utf-8", errors="ignore")
        return "utf-8" if _BEYOND_ASCII.search(proper.encode()) else WESTERN
    return "utf-8"
