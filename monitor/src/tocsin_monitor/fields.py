"""Declares the fields of what is stored and shown once, in a dataclass: its table, its JSON and its model follow.

A field's type says what becomes of it. `Time` is an integer in the store and ISO 8601 in replies; a float that is NaN
is NULL in the store and null in replies. `Shown` is its description for readers.
"""

from dataclasses import dataclass, fields
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints


class _TimeMark:
    """Marks an integer that is a time."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a field means, and its name in replies if it is called otherwise there."""

    about: str
    name: str | None = None


#: Nanoseconds since 1970 (UTC).
Time = Annotated[int, _TimeMark]


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """A field as declared. `type` is without None, for which `optional` stands."""

    name: str
    type: Any
    optional: bool
    is_time: bool
    #: Its name in replies, and what it means; None if the name says it.
    shown: str
    about: str | None

    @property
    def is_number(self) -> bool:
        """Whether it is a number that may be missing: NaN."""
        return self.type is float

    @property
    def origin(self) -> Any:
        """Of a type with arguments, the type without them."""
        return get_origin(self.type) or self.type


@lru_cache
def declared(source: type) -> tuple[DeclaredField, ...]:
    """The fields of a dataclass in their order, `id` first."""
    hints = get_type_hints(source, include_extras=True)
    found = [_declared(field.name, hints[field.name]) for field in fields(source)]
    return tuple(sorted(found, key=lambda field: field.name != "id"))


def _declared(name: str, hint: Any) -> DeclaredField:
    kind, marks = _without_marks(hint)
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    optional = NoneType in options
    if optional and len(options) == 2:
        kind, more = _without_marks(next(one for one in options if one is not NoneType))
        marks += more
    shown = next((mark for mark in marks if isinstance(mark, Shown)), None)
    return DeclaredField(
        name,
        kind,
        optional,
        _TimeMark in marks,
        name if shown is None or shown.name is None else shown.name,
        None if shown is None else shown.about,
    )


def _without_marks(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(hint) is not Annotated:
        return hint, ()
    kind, *marks = get_args(hint)
    return kind, tuple(marks)
