"""Settings as the arguments of constructors, and as a table in the documentation."""

import inspect
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from tocsin.detection.settings.declaration import Setting, declared
from tocsin.detection.settings.detector_settings import DetectorSettings

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=DetectorSettings)
Signals = int | Sequence[str]


def takes_settings(make: Callable[P, S]) -> Callable[[Callable[[T, S], None]], Callable[Concatenate[T, P], None]]:
    """Give a constructor that needs settings the arguments of `make`, which creates them."""

    def decorate(init: Callable[[T, S], None]) -> Callable[Concatenate[T, P], None]:
        @wraps(init)
        def wrapped(self: T, *given: P.args, **settings: P.kwargs) -> None:
            _check_call(self, shown, (self, *given), settings)
            init(self, make(*given, **settings))

        shown = _show_arguments(wrapped, init, make)
        return wrapped

    return decorate


def takes_signals_and_settings(
    make: Callable[P, S],
) -> Callable[[Callable[[T, Signals | None, S], None]], Callable[..., None]]:
    """The same for a constructor that takes signals before the settings; None if they are not given."""

    def decorate(init: Callable[[T, Signals | None, S], None]) -> Callable[..., None]:
        @wraps(init)
        def wrapped(self: T, signals: Signals | None = None, *given: P.args, **settings: P.kwargs) -> None:
            _check_call(self, shown, (self, signals, *given), settings)
            init(self, signals, make(*given, **settings))

        shown = _show_arguments(wrapped, init, make)
        return wrapped

    return decorate


def keeps_settings(*left_out: str) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Let a constructor take detector settings as keyword arguments, and store them as given.

    Estimators of other libraries work like this: they check their settings on use.
    """
    kept = [one for one in inspect.signature(DetectorSettings).parameters.values() if one.name not in left_out]

    def decorate(init: Callable[[T], None]) -> Callable[..., None]:
        @wraps(init)
        def wrapped(self: T, **settings: Any) -> None:
            _check_call(self, shown, (self,), settings)
            init(self)
            for one in kept:
                setattr(self, one.name, settings.get(one.name, one.default))

        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        shown = inspect.Signature([itself, *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in kept)])
        wrapped.__signature__ = shown  # type: ignore[attr-defined]  # used by `help`, editors and estimators
        return wrapped

    return decorate


def _check_call(self: Any, shown: inspect.Signature, given: tuple[Any, ...], settings: dict[str, Any]) -> None:
    """Reject what Python would reject, but name the class that was called."""
    name = type(self).__name__
    for unknown in settings.keys() - shown.parameters.keys():
        near = get_close_matches(unknown, shown.parameters, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; accepted: {', '.join(list(shown.parameters)[1:])}"
        raise TypeError(f"{name}() got an unexpected argument {unknown!r}{hint}")
    try:
        shown.bind(*given, **settings)
    except TypeError as error:
        raise TypeError(f"{name}() got wrong arguments: {error}; the call is {name}{_call(shown)}") from None


def _call(shown: inspect.Signature) -> str:
    """How a constructor is called, by its first arguments."""
    positional = [
        one.name for one in shown.parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD and one.name != "self"
    ]
    return f"({', '.join(positional)}, and settings by keyword)"


def _show_arguments(wrapped: Any, init: Callable[..., None], make: Callable[..., Any]) -> inspect.Signature:
    """Let `help`, editors and pages show the arguments one by one."""
    itself, *own = list(inspect.signature(init).parameters.values())[:-1]
    own = [itself, *(one.replace(default=None) for one in own)]
    shown = inspect.Signature([*own, *inspect.signature(make).parameters.values()], return_annotation=None)
    wrapped.__signature__ = shown
    wrapped.__annotations__ = {
        name: parameter.annotation
        for name, parameter in shown.parameters.items()
        if parameter.annotation is not parameter.empty
    }
    return shown


def settings_table() -> str:
    """All detector settings as a Markdown table."""
    rows = [
        f"| `{one.name}` | {_default(one)} | {one.accepted} | {one.help} |"
        for one in declared(DetectorSettings).values()
    ]
    return "\n".join(["| setting | default | accepted | meaning |", "|---|---|---|---|", *rows])


def _default(one: Setting) -> str:
    if one.default is None:
        return one.rule.unset
    return f'"{one.default}"' if isinstance(one.default, str) else str(one.default)


if __name__ == "__main__":
    sys.stdout.write(settings_table() + "\n")
