"""Constructors that take the settings of a detector as arguments of their own."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from tocsin.detection.settings import DetectorSettings

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=DetectorSettings)
Signals = int | Sequence[str]


def takes_settings(
    make: Callable[P, DetectorSettings],
) -> Callable[[Callable[[T, DetectorSettings], None]], Callable[Concatenate[T, P], None]]:
    """Have a constructor that needs settings take the arguments of `make`, which makes them."""

    def decorate(init: Callable[[T, DetectorSettings], None]) -> Callable[Concatenate[T, P], None]:
        @wraps(init)
        def wrapped(self: T, *given: P.args, **settings: P.kwargs) -> None:
            init(self, make(*given, **settings))

        _show_arguments(wrapped, init, make)
        return wrapped

    return decorate


def takes_signals_and_settings(
    make: Callable[P, S],
) -> Callable[[Callable[[T, Signals, S], None]], Callable[Concatenate[T, Signals, P], None]]:
    """The same for a constructor that needs signals before the settings."""

    def decorate(init: Callable[[T, Signals, S], None]) -> Callable[Concatenate[T, Signals, P], None]:
        @wraps(init)
        def wrapped(self: T, signals: Signals, *given: P.args, **settings: P.kwargs) -> None:
            init(self, signals, make(*given, **settings))

        _show_arguments(wrapped, init, make)
        return wrapped

    return decorate


def _show_arguments(wrapped: Any, init: Callable[..., None], make: Callable[..., Any]) -> None:
    """Let `help`, editors and pages show the arguments one by one."""
    own = list(inspect.signature(init).parameters.values())[:-1]
    shown = inspect.Signature([*own, *inspect.signature(make).parameters.values()], return_annotation=None)
    wrapped.__signature__ = shown
    wrapped.__annotations__ = {
        name: parameter.annotation
        for name, parameter in shown.parameters.items()
        if parameter.annotation is not parameter.empty
    }
