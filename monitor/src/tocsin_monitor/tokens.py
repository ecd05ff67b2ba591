"""Tokens and roles: who may do what."""

import hashlib
import re
import secrets
from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase

PREFIX = "tocsin_"
#: The pattern of a token's name.
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$"
#: The most name patterns of a token.
MOST_PATTERNS = 20
_FORM = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}", re.ASCII)


class Role(StrEnum):
    """What a token allows."""

    #: To see everything.
    READ = "read"
    #: To send observations, and nothing else.
    INGEST = "ingest"
    #: To see, and to acknowledge, snooze and label incidents and to plan maintenance.
    OPERATE = "operate"
    #: All that, and to change signals.
    WRITE = "write"
    #: Everything.
    ADMIN = "admin"

    @property
    def includes(self) -> frozenset["Role"]:
        """The roles it includes, among them itself."""
        return _INCLUDED[self]


_INCLUDED = {
    Role.READ: frozenset({Role.READ}),
    Role.INGEST: frozenset({Role.INGEST}),
    Role.OPERATE: frozenset({Role.READ, Role.OPERATE}),
    Role.WRITE: frozenset({Role.READ, Role.INGEST, Role.OPERATE, Role.WRITE}),
    Role.ADMIN: frozenset(Role),
}
ROLES = tuple(role.value for role in Role)


def check_patterns(role: str, patterns: Sequence[str]) -> None:
    """Reject patterns that would not limit the token."""
    if patterns and role == Role.ADMIN:
        raise ValueError("a token with the role admin cannot be limited to patterns, because it can create others")
    if len(patterns) > MOST_PATTERNS or not all(patterns):
        raise ValueError(f"a token may be limited to at most {MOST_PATTERNS} patterns, none of them empty")


def fits_any(name: str, patterns: Sequence[str]) -> bool:
    """Whether a signal's name matches one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_within(pattern: str, patterns: Sequence[str]) -> bool:
    """Whether all names that match a pattern match one of these, as far as the patterns' text shows it."""
    # In the wider pattern, ? stands for one character, but not for a *. Sets in brackets are not compared.
    return pattern in patterns or ("[" not in pattern and any(_covers(one, pattern) for one in patterns))


def _covers(wide: str, pattern: str) -> bool:
    parts = {"*": ".*", "?": "[^*]"}
    return "[" not in wide and bool(
        re.fullmatch("".join(parts.get(sign, re.escape(sign)) for sign in wide), pattern, re.DOTALL)
    )


def make_token() -> str:
    """A new token. It is shown once; only its hash is stored."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """The hash of a token, which is stored.

    A token has 256 random bits, so one round of SHA-256 cannot be reversed, and the timing of a lookup does not help to
    guess a token.
    """
    return hashlib.sha256(token.encode()).hexdigest()


def looks_like_token(text: str) -> bool:
    """Whether a text has the form of a token. Others need no lookup."""
    return _FORM.fullmatch(text) is not None
