"""Declaration of a setting: once, with everything that checks, commands, states and pages need to know."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from textwrap import fill
from types import NoneType
from typing import Any, TypeVar, get_args

import numpy as np

from tocsin import checks

T = TypeVar("T")
_KEY = "setting"
Check = Callable[[str, Any], Any]


@dataclass(frozen=True)
class Rule:
    """The properties of a setting besides its name, type and default."""

    #: One line on its purpose.
    help: str
    #: The bounds of a number.
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    #: The accepted names, for a single name or each of several.
    choices: Collection[str] = ()
    #: What is accepted, in words, if type, bounds and choices do not say it.
    accepts: str = ""
    #: What None means.
    unset: str = "none"
    #: Takes name and value and returns the value in its proper type. Required unless the type is bool, int, float, str,
    #: tuple[str, ...] or Mapping, or one of these or None.
    check: Check | None = None
    #: Whether users choose it in commands and configuration. Others come from the data or the machine.
    configured: bool = True
    #: Whether a state stores it.
    saved: bool = True
    #: The presets that have it; empty for all.
    presets: tuple[str, ...] = ()


def setting(default: Any, help: str, **rule: Any) -> Any:  # noqa: A002
    """A dataclass field that is a setting with the properties of `Rule`."""
    return field(default=default, metadata={_KEY: Rule(help, **rule)})


@dataclass(frozen=True)
class Setting:
    """One declared setting. `type` is its type when it is not None."""

    name: str
    type: Any
    optional: bool
    default: Any
    rule: Rule

    @property
    def help(self) -> str:
        """One line on its purpose."""
        alone = f'; only with preset="{self.rule.presets[0]}"' if len(self.rule.presets) == 1 else ""
        return self.rule.help + alone

    @property
    def accepted(self) -> str:
        """What is accepted, in words."""
        rule = self.rule
        if rule.accepts:
            return rule.accepts
        if rule.choices:
            return ", ".join(f'"{name}"' for name in rule.choices)
        if self.type is bool:
            return "True, False"
        if self.type is int:
            return f"{rule.least:,} to {rule.most:,}" if rule.most is not None else f"at least {rule.least:,}"
        return checks.range_text(above=rule.above, least=rule.least, most=rule.most, below=rule.below)

    def checked(self, value: Any) -> Any:
        """The value in its proper type; an error names the setting, the value and what is accepted."""
        if value is None and self.optional:
            return None
        if self.rule.check is not None:
            return self.rule.check(self.name, value)
        return _CHECKS[self.type](self, value)


# Inspecting a class takes as long as checking all settings.
_DECLARED: dict[type, dict[str, Setting]] = {}


def declared(kind: type) -> dict[str, Setting]:
    """The settings declared by a dataclass, by name."""
    if kind not in _DECLARED:
        _DECLARED[kind] = _found(kind)
    return _DECLARED[kind]


def _found(kind: type) -> dict[str, Setting]:
    found = {}
    for one in fields(kind):
        rule: Rule = one.metadata[_KEY]
        alone = [part for part in get_args(one.type) if part is not NoneType]
        optional = one.default is None or NoneType in get_args(one.type)  # one that is filled in later is never None
        plain = alone[0] if optional and len(alone) == 1 else one.type
        origin = Mapping if getattr(plain, "__origin__", None) is Mapping else plain
        if rule.check is None and origin not in _CHECKS:
            raise TypeError(f"{one.name} must have a check of its own, got one of type {one.type}")
        found[one.name] = Setting(name=one.name, type=origin, optional=optional, default=one.default, rule=rule)
    return found


def lists_settings(of: type | None = None) -> Callable[[type[T]], type[T]]:
    """Replace "{settings}" in a class docstring with the declared settings.

    The settings are those declared by `of`, or by the class itself.
    """

    def decorate(kind: type[T]) -> type[T]:
        if kind.__doc__:  # there is none under python -OO
            kind.__doc__ = kind.__doc__.replace("    {settings}", _described(of or kind))
        return kind

    return decorate


def _described(kind: type) -> str:
    texts = (f"{one.name} : {one.help}." for one in declared(kind).values())
    return "\n".join(fill(text, 120, initial_indent=" " * 4, subsequent_indent=" " * 8) for text in texts)


def _truth(one: Setting, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{one.name} must be True or False, got {value!r}")
    return bool(value)


def _integer(one: Setting, value: Any) -> int:
    rule = one.rule
    least, most = int(rule.least or 0), None if rule.most is None else int(rule.most)
    return checks.integer(one.name, value, least=least, most=most)


def _number(one: Setting, value: Any) -> float:
    rule = one.rule
    return checks.number(
        one.name, value, above=rule.above, least=rule.least, most=rule.most, below=rule.below
    )  # fmt: skip


def _word(one: Setting, value: Any) -> str:
    if one.rule.choices:
        return checks.choice(one.name, value, one.rule.choices)
    if not isinstance(value, str):
        raise TypeError(f"{one.name} must be a text, got {value!r}")
    return value


def _words(one: Setting, value: Any) -> tuple[str, ...]:
    choices = one.rule.choices
    names: list[Any] = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [None]
    known = [isinstance(name, str) and (not choices or name in choices) for name in names]
    if not all(known) or len(set(names)) != len(names):
        among = f" from {', '.join(map(repr, choices))}" if choices else ""
        raise ValueError(f"{one.name} must be a list of distinct names{among}, got {value!r}")
    return tuple(names)


def _mapping(one: Setting, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"{one.name} must be a mapping of names to values, got {value!r}")
    return dict(value)


_CHECKS: dict[Any, Callable[[Setting, Any], Any]] = {
    bool: _truth,
    int: _integer,
    float: _number,
    str: _word,
    tuple[str, ...]: _words,
    Mapping: _mapping,
}
