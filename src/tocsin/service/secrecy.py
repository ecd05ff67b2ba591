"""Keeping secrets out of what is shown and logged."""

import re
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

MASK = "**********"
# Shorter texts are words that may stand anywhere, such as "api".
_SHORTEST = 6
_USER = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY = re.compile(r"(https?://[^\s?'\"]*\?)[^\s'\"]+")


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text without any of the secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
    return text


def hide_in_url(text: str) -> str:
    """The text without users, passwords and queries in the addresses that it holds.

    >>> hide_in_url("http://me:word@example.com/path?key=1 cannot be reached")
    'http://**********@example.com/path?********** cannot be reached'
    """
    return _QUERY.sub(rf"\1{MASK}", _USER.sub(f"{MASK}@", text))


def parts_of_url(url: str) -> tuple[str, ...]:
    """What of an address may be secret: all but where it leads. A long part of the path may be a password too."""
    parts = urlsplit(url)
    found = [parts.username, parts.password, parts.query, parts.path, *parts.path.split("/")]
    if parts.username is not None:  # as it is sent
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        found.append(b64encode(user.encode()).decode())
    return tuple(part for one in found if one for part in {one, unquote(one)})
