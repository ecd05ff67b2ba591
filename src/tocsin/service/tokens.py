"""Tokens: who may do what."""

import hashlib
import re
import secrets
from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase

PREFIX = "tocsin_"
#: What a token may be called; a pattern for a whole text.
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$"
#: How many patterns of names a token may be limited to.
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
        """The roles whose work it may do, its own among them."""
        return _INCLUDED[self]


_INCLUDED = {
    Role.READ: frozenset({Role.READ}),
    Role.INGEST: frozenset({Role.INGEST}),
    Role.OPERATE: frozenset({Role.READ, Role.OPERATE}),
    Role.WRITE: frozenset({Role.READ, Role.INGEST, Role.OPERATE, Role.WRITE}),
    Role.ADMIN: frozenset(Role),
}
ROLES = tuple(role.value for role in Role)


def role_of(text: str) -> Role:
    """The role of that name."""
    if text not in ROLES:
        raise ValueError(f"a role must be one of {', '.join(ROLES)}, got {text!r}")
    return Role(text)


def check_patterns(role: str, patterns: Sequence[str]) -> None:
    """Refuse limits that would limit nothing."""
    if patterns and role == Role.ADMIN:
        raise ValueError("a token with the role admin cannot be limited to patterns, since it can create others")
    if len(patterns) > MOST_PATTERNS or not all(patterns):
        raise ValueError(f"a token may be limited to at most {MOST_PATTERNS} patterns, none of them empty")


def fits_any(name: str, patterns: Sequence[str]) -> bool:
    """Whether a signal's name fits one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_within(pattern: str, patterns: Sequence[str]) -> bool:
    """Whether all names that fit a pattern fit one of these, as far as one can tell by looking at it."""
    # A ? of theirs stands for one character, and hence not for a *. What a set in brackets holds is not looked at.
    return pattern in patterns or ("[" not in pattern and any(_covers(one, pattern) for one in patterns))


def _covers(wide: str, pattern: str) -> bool:
    parts = {"*": ".*", "?": "[^*]"}
    return "[" not in wide and bool(
        re.fullmatch("".join(parts.get(sign, re.escape(sign)) for sign in wide), pattern, re.DOTALL)
    )


def make_token() -> str:
    """A new token. It is shown once; only its hash is kept."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """What is stored of a token.

    A token holds 256 random bits, so one round of SHA-256 cannot be turned back, and looking a hash up tells nothing
    by its timing that would help to find another token.
    """
    return hashlib.sha256(token.encode()).hexdigest()


def looks_like_token(text: str) -> bool:
    """Whether a text has the form of a token; others need not be looked up."""
    return _FORM.fullmatch(text) is not None
